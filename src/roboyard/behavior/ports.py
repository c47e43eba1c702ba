"""Ports: through what nodes and blackboard talk, and how a node reads and writes them.

A port's text in XML is a constant, or ``{key}`` for the entry ``key`` of the node's blackboard; ``{=}`` for the entry
of the port's own name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from roboyard.behavior.blackboard import EMPTY, Blackboard, Entry
from roboyard.behavior.errors import PortError
from roboyard.behavior.types import ANY, TEXT, VALUE, PortType, to_text, type_of

if TYPE_CHECKING:
    from roboyard.behavior.node import TreeNode

_ABSENT = Entry(ANY)
"""In the place of an entry that there is not."""
INPUT, OUTPUT, INOUT = "input_port", "output_port", "inout_port"


@dataclass(frozen=True)
class Port:
    """A port that a type of node has.

    Attributes:
        direction: `INPUT`, `OUTPUT` or `INOUT`.
        type: What values it has.
        default: Text that holds where XML has none; None without one.
        doc: What it is for.
        optional: Whether XML may leave it out although it has no default; ``inputs`` of the node has not got it then.
    """

    direction: str
    type: PortType = field(default=ANY)
    default: str | None = None
    doc: str = ""
    optional: bool = False

    @property
    def reads(self) -> bool:
        """Whether values come in."""
        return self.direction != OUTPUT

    @property
    def writes(self) -> bool:
        """Whether values go out."""
        return self.direction != INPUT

    @property
    def required(self) -> bool:
        """Whether XML has to say it."""
        return self.reads and self.default is None and not self.optional


def input_port(kind: Any = object, default: Any = None, doc: str = "", *, optional: bool = False) -> Port:
    """A port for values that come in, of a Python class or `PortType`."""
    return Port(INPUT, type_of(kind), _as_text(default), doc, optional)


def output_port(kind: Any = object, default: str | None = None, doc: str = "") -> Port:
    """A port for values that go out; ``default`` is an entry, as ``{key}``."""
    return Port(OUTPUT, type_of(kind), default, doc)


def inout_port(kind: Any = object, default: Any = None, doc: str = "", *, optional: bool = False) -> Port:
    """A port for values that come in and go out."""
    return Port(INOUT, type_of(kind), _as_text(default), doc, optional)


def _as_text(default: Any) -> str | None:
    if default is None or default.__class__ is str:
        return default
    if default.__class__ is bool:
        return str(default).lower()
    return str(default.name) if hasattr(default, "name") else to_text(default)


def pointer(text: str) -> str | None:
    """The key in ``{key}``; None if the text is a constant."""
    bare = text.strip(" ")
    return bare[1:-1] if len(bare) >= 3 and bare[0] == "{" and bare[-1] == "}" else None


def remapped(port: str, text: str) -> str | None:
    """The key of the entry that a port's text refers to; None if the text is a constant."""
    return port if text in ("{=}", "=") else pointer(text)


def reader(node: TreeNode, name: str) -> Callable[[], Any]:
    """A function that gives an input port's value at each call; it raises `PortError` where there is none."""
    text = node.inputs.get(name)
    if text is None and name in node.ports:
        text = node.ports[name].default  # an empty one, which stands in no node's inputs
    if text is None:
        known = name in node.ports
        why = "nor the manifest or the XML contain the key:" if known else "the manifest doesn't contain the key:"
        return _failing(f"getInput() of node '{node.path}' failed because {why} [{name}]")
    kind = node.ports[name].type if name in node.ports else ANY
    key = remapped(name, text)
    if key is None:
        try:
            constant = text if kind.parse is None else kind.parse(text)
        except (PortError, ValueError) as error:
            return _failing(f"getInput(): {error}")
        return lambda: constant
    return _entry_reader(node.blackboard, name, key, kind)


def _failing(what: str) -> Callable[[], Any]:
    def read() -> Any:
        raise PortError(what)

    return read


def _entry_reader(blackboard: Blackboard, name: str, key: str, kind: PortType) -> Callable[[], Any]:
    shared = blackboard.shared
    python = kind.python
    entry, version = _ABSENT, -1

    def read() -> Any:
        nonlocal entry, version
        if version != shared.version:  # entries were made or taken away since
            entry, version = blackboard.entry(key) or _ABSENT, shared.version
        value = entry.value
        if value.__class__ is python:
            return value
        if value is not EMPTY:
            return kind.read(value)
        if kind is VALUE and entry is not _ABSENT:
            return None
        raise PortError(f"getInput() failed because it was unable to find the key [{name}] remapped to [{key}]")

    return read


def writer(node: TreeNode, name: str) -> Callable[[Any], None]:
    """A function that sets an output port's entry; it raises `PortError` where there is none."""
    text = node.outputs.get(name)
    if text is None:
        missing = f"setOutput() failed: NodeConfig::output_ports does not contain the key: [{name}]"
        return _failing_writer(missing)
    key = remapped(name, text)
    if key is None:
        return _failing_writer("setOutput requires a blackboard pointer. Use {}")
    kind = node.ports[name].type if name in node.ports else ANY
    return _entry_writer(node.blackboard, key, kind)


def _failing_writer(what: str) -> Callable[[Any], None]:
    def write(_value: Any) -> None:
        raise PortError(what)

    return write


def _entry_writer(blackboard: Blackboard, key: str, kind: PortType) -> Callable[[Any], None]:
    shared = blackboard.shared
    python = kind.python
    entry, version = _ABSENT, -1

    def write(value: Any) -> None:
        nonlocal entry, version
        if version != shared.version:
            entry, version = blackboard.entry(key) or _ABSENT, shared.version
        if entry.type is kind and value.__class__ is python:
            entry.value = value
            entry.sequence += 1
            entry.stamp_ns = shared.now_ns
            return
        if python is not None and value.__class__ is not python and kind is not TEXT:
            value = kind.read(value)
        blackboard.set(key, value, kind if kind.strong else None)

    return write
