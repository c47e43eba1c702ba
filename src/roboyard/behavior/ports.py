"""Ports of nodes: declarations, and the entries of the blackboard that their texts refer to.

A port's text in XML is a constant, or ``{key}`` for the entry ``key`` of the node's blackboard; ``{=}`` for the
entry of the port's own name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from roboyard.behavior.basic_types import ANY, PortType, port_type_of, to_string

if TYPE_CHECKING:
    pass

INPUT, OUTPUT, INOUT = "input_port", "output_port", "inout_port"


@dataclass(frozen=True)
class Port:
    """A port of a node type.

    Attributes:
        direction: `INPUT`, `OUTPUT` or `INOUT`.
        type: Type of its values.
        default: Text that is used where XML has none; None without a default.
        doc: Purpose.
        optional: Whether XML may omit it although it has no default; ``inputs`` of the node does not contain it
            then.
    """

    direction: str
    type: PortType = field(default=ANY)
    default: str | None = None
    doc: str = ""
    optional: bool = False

    @property
    def is_input(self) -> bool:
        """Whether the port is read."""
        return self.direction != OUTPUT

    @property
    def is_output(self) -> bool:
        """Whether the port is written."""
        return self.direction != INPUT

    @property
    def is_required(self) -> bool:
        """Whether XML must contain the port."""
        return self.is_input and self.default is None and not self.optional


def input_port(value_type: Any = object, default: Any = None, doc: str = "", *, optional: bool = False) -> Port:
    """Declare an input port for values of a Python class or `PortType`."""
    return Port(INPUT, port_type_of(value_type), _default_text(default), doc, optional)


def output_port(value_type: Any = object, default: str | None = None, doc: str = "") -> Port:
    """Declare an output port; ``default`` is an entry, as ``{key}``."""
    return Port(OUTPUT, port_type_of(value_type), default, doc)


def inout_port(value_type: Any = object, default: Any = None, doc: str = "", *, optional: bool = False) -> Port:
    """Declare a port that is read and written."""
    return Port(INOUT, port_type_of(value_type), _default_text(default), doc, optional)


def _default_text(default: Any) -> str | None:
    if default is None or default.__class__ is str:
        return default
    if default.__class__ is bool:
        return str(default).lower()
    return str(default.name) if hasattr(default, "name") else to_string(default)


def blackboard_pointer(text: str) -> str | None:
    """Return the key in ``{key}``; None if the text is a constant."""
    stripped = text.strip(" ")
    return stripped[1:-1] if len(stripped) >= 3 and stripped[0] == "{" and stripped[-1] == "}" else None


def remapped_key(port: str, text: str) -> str | None:
    """Return the key of the entry that the text of a port refers to; None if the text is a constant."""
    return port if text in ("{=}", "=") else blackboard_pointer(text)
