"""YAML read into plain nodes that know their line. Nothing in a file can run code or fill the memory.

Scalars follow YAML 1.2's core schema: `no` is text, `1e-3` a number, `1:30` text. Tags, merge keys, several documents
and keys given twice are refused; anchors are allowed within bounds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from roboyard.errors import ConfigError

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 50
MAX_NODES = 200_000
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_NULL = re.compile(r"null|Null|NULL|~|")
_BOOL = re.compile(r"(true|True|TRUE)|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]{1,100}|0o[0-7]{1,100}|0x[0-9a-fA-F]{1,100}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INF = re.compile(r"([-+]?)\.(?:inf|Inf|INF)")
_NAN = re.compile(r"\.(?:nan|NaN|NAN)")


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it was written ("file.yaml:12", "" if nowhere).

    `value` is None, bool, int, float, str, a list of nodes, a dict of text to node, or any other Python object that
    was handed in from Python. `key_place` is the place of its key in a mapping; `size` counts the nodes below it.
    """

    value: Any
    place: str = ""
    key_place: str = ""
    size: int = 1

    def plain(self) -> Any:
        """The same as plain Python data."""
        if isinstance(self.value, dict):
            return {key: child.plain() for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.plain() for child in self.value]
        return self.value


def from_data(data: Any, place: str = "") -> Node:
    """Python data as nodes, all at the same place."""
    if isinstance(data, Node):
        return data
    if isinstance(data, Mapping):
        return Node({str(key): from_data(value, place) for key, value in data.items()}, place, place)
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return Node([from_data(value, place) for value in data], place, place)
    return Node(data, place, place)


def read_file(path: str | Path, where: str | None = None) -> Node:
    """Read a YAML file; places are named by `where` or the path as given.

    Raises:
        ConfigError: It cannot be read, or as for `read_text`.
    """
    name = where or str(path)
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # the latter of a zero byte in the path
        raise ConfigError(f"cannot be read: {getattr(error, 'strerror', None) or error}", where=name) from error
    if len(data) > MAX_BYTES:
        raise ConfigError(f"is larger than {MAX_BYTES // 1024 // 1024} MiB", where=name)
    try:
        return read_text(data.decode("utf-8-sig"), name)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError("is not UTF-8 text", where=f"{name}:{line}") from error


def _open_at_once(path: str, flags: int) -> int:
    """Opening a pipe into which nobody writes would wait for ever; so it is empty."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    return descriptor


def read_text(text: str, where: str = "text") -> Node:
    """Read YAML text.

    Raises:
        ConfigError: It is empty or not YAML, uses a tag, a merge key, a key twice, or exceeds the bounds on nesting
            (50) and size (200,000 values, anchors counted where they are used).
    """
    if len(text) > MAX_BYTES:
        raise ConfigError(f"is larger than {MAX_BYTES // 1024 // 1024} million characters", where=where)
    try:
        events = yaml.parse(text, Loader=_LOADER)
        return _Composer(where, events).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{where}:{mark.line + 1}" if mark is not None else where
        raise ConfigError(f"is not valid YAML: {error.problem or error.context}", where=place) from error
    except yaml.YAMLError as error:
        raise ConfigError(f"is not valid YAML: {str(error).splitlines()[0]}", where=where) from error


class _Composer:
    def __init__(self, where: str, events: Iterator[Any]) -> None:
        self._where = where
        self._events = events
        self._anchors: dict[str | None, Node] = {}
        self._nodes = 0

    def document(self) -> Node:
        root: Node | None = None
        for event in self._events:
            if isinstance(event, yaml.StreamStartEvent | yaml.StreamEndEvent | yaml.DocumentEndEvent):
                continue
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    raise ConfigError("a second document begins here", where=self._place(event), valid="one a file")
                continue
            root = self._node(event, 0)
        if root is None or (root.value is None and root.size == 1):
            raise ConfigError("is empty", where=self._where)
        return root

    def _place(self, event: Any) -> str:
        return f"{self._where}:{event.start_mark.line + 1}"

    def _node(self, event: Any, depth: int) -> Node:
        place = self._place(event)
        if depth > MAX_DEPTH:
            raise ConfigError(f"is nested deeper than {MAX_DEPTH} levels", where=place)
        if isinstance(event, yaml.AliasEvent):
            node = self._anchors.get(event.anchor)
            if node is None:
                raise ConfigError(f"*{event.anchor} refers to nothing that is complete before it", where=place)
            self._count(node.size, place)
            return Node(node.value, place, place, node.size)
        if event.tag not in (None, "!"):
            raise ConfigError(f"tag {event.tag!r} is not accepted here", where=place, valid="plain YAML without tags")
        self._count(1, place)
        if isinstance(event, yaml.ScalarEvent):
            quoted = event.style not in (None, "")
            node = Node(event.value if quoted else read_scalar(event.value), place, place)
        elif isinstance(event, yaml.SequenceStartEvent):
            children = list(self._items(depth))
            node = Node(children, place, place, 1 + sum(child.size for child in children))
        else:
            entries = self._entries(depth)
            node = Node(entries, place, place, 1 + sum(child.size for child in entries.values()))
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _count(self, size: int, place: str) -> None:
        self._nodes += size
        if self._nodes > MAX_NODES:
            raise ConfigError(f"holds more than {MAX_NODES} values (anchors counted where used)", where=place)

    def _items(self, depth: int) -> Iterator[Node]:
        for event in self._events:
            if isinstance(event, yaml.SequenceEndEvent):
                return
            yield self._node(event, depth + 1)

    def _entries(self, depth: int) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        for event in self._events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            place = self._place(event)
            if not isinstance(event, yaml.ScalarEvent) or event.tag not in (None, "!"):
                raise ConfigError("a key must be plain text", where=place)
            if event.value == "<<" and event.style in (None, ""):
                raise ConfigError("merge keys (<<) are not accepted here", where=place, valid="write the keys out")
            if event.value in entries:
                first = entries[event.value].key_place
                raise ConfigError(f"key {event.value!r} is given twice", where=place, valid=f"the first is at {first}")
            child = self._node(next(self._events), depth + 1)
            entries[event.value] = Node(child.value, child.place, place, child.size)
        return entries


def read_scalar(text: str) -> bool | int | float | str | None:
    """A plain scalar by YAML 1.2's core schema (chapter 10.3.2)."""
    if _NULL.fullmatch(text):
        return None
    if match := _BOOL.fullmatch(text):
        return match[1] is not None
    if _INT.fullmatch(text):
        return int(text, 8 if text.startswith("0o") else 16 if text.startswith("0x") else 10)
    if _FLOAT.fullmatch(text):
        return float(text)
    if match := _INF.fullmatch(text):
        return float(f"{match[1]}inf")
    if _NAN.fullmatch(text):
        return float("nan")
    return text
