"""``<xacro:macro>``: its parameters with their defaults."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from roboyard.description.values import fault, shown
from roboyard.description.xacro.tables import Properties, Scope
from roboyard.description.xml import Node

# name, or name:=default, name:=^ (take it from outside), name:=^|default; a default may be 'quoted' (a lone quote, too)
_PARAMETER = re.compile(
    r"\s*([^\s:=]{1,200})\s*(?::?=\s*(\^\|?)?((?:'''|'[^']*'|\"[^\"]*\"|\$\{[^}]*\}|[^\s'\"])*))?(?=\s|$)"
)
_MAX_PARAMETERS = 500


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; ``*name`` takes an element, ``**name`` its content.

    Attributes:
        forward: Whether an outer property of this name is taken first.
        default: Text to evaluate where nothing is given; None = it must be given.
    """

    name: str
    forward: bool = False
    default: str | None = None

    @property
    def block(self) -> bool:
        """Whether it takes an element instead of a value."""
        return self.name.startswith("*")


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro with the scopes it was defined in."""

    node: Node
    parameters: tuple[Parameter, ...]
    properties: Properties = field(repr=False)
    macros: Scope[Macro] = field(repr=False)


def parameters(node: Node) -> tuple[Parameter, ...]:
    """What the ``params`` attribute declares. Raises DescriptionError."""
    text, at = node.get("params"), 0
    found: dict[str, Parameter] = {}
    while text[at:].strip():
        match = _PARAMETER.match(text, at)
        if match is None or match.end() == at:
            raise fault(f"params has {shown(text[at:])}", node, "name, name:=default, name:=^, *block or **block")
        name, forward, default = match.groups()
        if name in found or len(found) >= _MAX_PARAMETERS:
            raise fault(f"parameter {shown(name)} exists twice, or there are too many", node)
        if default is not None and len(default) >= 2 and default[0] == default[-1] and default[0] in "'\"":
            default = default[1:-1]
        if forward == "^":
            default = None
        found[name] = Parameter(name, forward is not None, default)
        at = match.end()
    return tuple(found.values())
