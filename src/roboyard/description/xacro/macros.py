"""``<xacro:macro>``: its parameters with their defaults."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from roboyard.description.values import error_at, quote
from roboyard.description.xacro.tables import Properties, XacroScope
from roboyard.description.xml import XmlNode

# name, or name:=default, name:=^ (take it from outside), name:=^|default; a default may be 'quoted' (a lone quote, too)
_PARAMETER = re.compile(
    r"\s*([^\s:=]{1,200})\s*(?::?=\s*(\^\|?)?((?:'''|'[^']*'|\"[^\"]*\"|\$\{[^}]*\}|[^\s'\"])*))?(?=\s|$)"
)
_MAX_PARAMETERS = 500


@dataclass(frozen=True, slots=True)
class MacroParameter:
    """One parameter; ``*name`` takes an element, ``**name`` its content.

    Attributes:
        inherits: Whether an outer property of this name is taken first.
        default: Text to evaluate where nothing is given; None = it must be given.
    """

    name: str
    inherits: bool = False
    default: str | None = None

    @property
    def is_block(self) -> bool:
        """Whether it takes an element instead of a value."""
        return self.name.startswith("*")


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro with the scopes it was defined in."""

    node: XmlNode
    parameters: tuple[MacroParameter, ...]
    properties: Properties = field(repr=False)
    macros: XacroScope[Macro] = field(repr=False)


def parse_parameters(node: XmlNode) -> tuple[MacroParameter, ...]:
    """What the ``params`` attribute declares. Raises DescriptionError."""
    text, position = node.get("params"), 0
    parsed: dict[str, MacroParameter] = {}
    while text[position:].strip():
        match = _PARAMETER.match(text, position)
        if match is None or match.end() == position:
            raise error_at(
                f"params has {quote(text[position:])}", node, "name, name:=default, name:=^, *block or **block"
            )
        name, inherited, default = match.groups()
        if name in parsed or len(parsed) >= _MAX_PARAMETERS:
            raise error_at(f"parameter {quote(name)} exists twice, or there are too many", node)
        if default is not None and len(default) >= 2 and default[0] == default[-1] and default[0] in "'\"":
            default = default[1:-1]
        if inherited == "^":
            default = None
        parsed[name] = MacroParameter(name, inherited is not None, default)
        position = match.end()
    return tuple(parsed.values())
