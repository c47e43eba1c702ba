"""Safe YAML parser: nodes with file and line, bounded in size and depth, no tags.

Scalars follow YAML 1.2's core schema: `no` is text, `1e-3` a number, `1:30` text. Tags, merge keys, several documents
and duplicate keys are rejected; anchors are allowed within bounds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
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
class YamlNode:
    """Value with its location ("file.yaml:12", "" without one).

    `value` is None, bool, int, float, str, a list of nodes, a dict of text to node, or any other object passed from
    Python. `key_location` is the location of its key in a mapping; `size` is the number of nodes below it.
    """

    value: Any
    location: str = ""
    key_location: str = ""
    size: int = 1

    def to_data(self) -> Any:
        """Convert to plain Python data."""
        if isinstance(self.value, dict):
            return {key: child.to_data() for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.to_data() for child in self.value]
        return self.value


def find_along_path(root: YamlNode, path: str) -> tuple[YamlNode, str]:
    """Follow a key path such as "faults[0].robot" or "faults.0.robot" as far as the nodes of a tree go.

    Returns:
        The deepest node on the path, and the remaining_path of the path, which the tree does not have.
    """
    node, remaining_path = root, path
    while remaining_path:
        if (
            isinstance(node.value, dict) and remaining_path in node.value
        ):  # a key may contain dots: randomize has such keys
            return node.value[remaining_path], ""
        match = _PATH_STEP.match(remaining_path)
        name = match[1] if match is not None else remaining_path
        if isinstance(node.value, dict) and name in node.value:
            node = node.value[name]
        elif isinstance(node.value, list) and name.isdecimal() and int(name) < len(node.value):
            node = node.value[int(name)]
        else:
            break
        remaining_path = remaining_path[match.end() :] if match is not None else ""
    return node, remaining_path


_PATH_STEP = re.compile(r"[.\[]?([^.\[\]]+)\]?\.?")


def yaml_from_data(data: Any, location: str = "") -> YamlNode:
    """Convert Python data to nodes with the same location."""
    if isinstance(data, YamlNode):
        return data
    if isinstance(data, Mapping):
        entries = {
            str(key.value if isinstance(key, Enum) else key): yaml_from_data(value, location)
            for key, value in data.items()
        }
        return YamlNode(entries, location, location)
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return YamlNode([yaml_from_data(value, location) for value in data], location, location)
    return YamlNode(data, location, location)


def read_yaml(path: str | Path, source_name: str | None = None) -> YamlNode:
    """Read a YAML file; locations contain `source_name`, or else the path as given.

    Raises:
        ConfigError: The file cannot be read, or as `parse_yaml`.
    """
    name = source_name or str(path)
    try:
        with open(path, "rb", opener=_open_nonblocking) as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        raise ConfigError(f"cannot be read: {getattr(error, 'strerror', None) or error}", location=name) from error
    if len(data) > MAX_BYTES:
        raise ConfigError(f"is larger than {MAX_BYTES // 1024 // 1024} MiB", location=name)
    try:
        return parse_yaml(data.decode("utf-8-sig"), name)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError("is not UTF-8 text", location=f"{name}:{line}") from error


def _open_nonblocking(path: str, flags: int) -> int:
    """Open a file; a pipe without a writer would block, so it is read as empty."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    return descriptor


def parse_yaml(text: str, source_name: str = "text") -> YamlNode:
    """Parse YAML text.

    Raises:
        ConfigError: The text is empty or not YAML, has a tag, a merge key or a duplicate key, or exceeds the limits on
            nesting (50) and size (200,000 values, anchors counted at each use).
    """
    if len(text) > MAX_BYTES:
        raise ConfigError(f"is larger than {MAX_BYTES // 1024 // 1024} million characters", location=source_name)
    try:
        events = yaml.parse(text, Loader=_LOADER)
        return _Composer(source_name, events).compose_document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        location = f"{source_name}:{mark.line + 1}" if mark is not None else source_name
        raise ConfigError(f"is not valid YAML: {error.problem or error.context}", location=location) from error
    except yaml.YAMLError as error:
        raise ConfigError(f"is not valid YAML: {str(error).splitlines()[0]}", location=source_name) from error


class _Composer:
    def __init__(self, source_name: str, events: Iterator[Any]) -> None:
        self._source_name = source_name
        self._events = events
        self._anchors: dict[str | None, YamlNode] = {}
        self._n_nodes = 0

    def compose_document(self) -> YamlNode:
        root: YamlNode | None = None
        for event in self._events:
            if isinstance(event, yaml.StreamStartEvent | yaml.StreamEndEvent | yaml.DocumentEndEvent):
                continue
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    raise ConfigError(
                        "a second document starts here", location=self._location(event), valid="one document per file"
                    )
                continue
            root = self._compose_node(event, 0)
        if root is None or (root.value is None and root.size == 1):
            raise ConfigError("is empty", location=self._source_name)
        return root

    def _location(self, event: Any) -> str:
        return f"{self._source_name}:{event.start_mark.line + 1}"

    def _compose_node(self, event: Any, depth: int) -> YamlNode:
        location = self._location(event)
        if depth > MAX_DEPTH:
            raise ConfigError(f"is nested deeper than {MAX_DEPTH} levels", location=location)
        if isinstance(event, yaml.AliasEvent):
            node = self._anchors.get(event.anchor)
            if node is None:
                raise ConfigError(f"alias *{event.anchor} does not refer to a complete earlier node", location=location)
            self._count_nodes(node.size, location)
            return YamlNode(node.value, location, location, node.size)
        if event.tag not in (None, "!"):
            raise ConfigError(f"tag {event.tag!r} is not supported", location=location, valid="plain YAML without tags")
        self._count_nodes(1, location)
        if isinstance(event, yaml.ScalarEvent):
            quoted = event.style not in (None, "")
            node = YamlNode(event.value if quoted else parse_scalar(event.value), location, location)
        elif isinstance(event, yaml.SequenceStartEvent):
            children = list(self._compose_items(depth))
            node = YamlNode(children, location, location, 1 + sum(child.size for child in children))
        else:
            entries = self._compose_entries(depth)
            node = YamlNode(entries, location, location, 1 + sum(child.size for child in entries.values()))
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _count_nodes(self, size: int, location: str) -> None:
        self._n_nodes += size
        if self._n_nodes > MAX_NODES:
            raise ConfigError(f"has more than {MAX_NODES} values (anchors counted at each use)", location=location)

    def _compose_items(self, depth: int) -> Iterator[YamlNode]:
        for event in self._events:
            if isinstance(event, yaml.SequenceEndEvent):
                return
            yield self._compose_node(event, depth + 1)

    def _compose_entries(self, depth: int) -> dict[str, YamlNode]:
        entries: dict[str, YamlNode] = {}
        for event in self._events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            location = self._location(event)
            if not isinstance(event, yaml.ScalarEvent) or event.tag not in (None, "!"):
                raise ConfigError("a key must be plain text", location=location)
            if event.value == "<<" and event.style in (None, ""):
                raise ConfigError("merge keys (<<) are not supported", location=location, valid="write the keys out")
            if event.value in entries:
                first = entries[event.value].key_location
                raise ConfigError(
                    f"key {event.value!r} is given twice", location=location, valid=f"the first is at {first}"
                )
            child = self._compose_node(next(self._events), depth + 1)
            entries[event.value] = YamlNode(child.value, child.location, location, child.size)
        return entries


def parse_scalar(text: str) -> bool | int | float | str | None:
    """Parse a plain scalar by YAML 1.2's core schema (chapter 10.3.2)."""
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


MAX_OPEN_BRACKETS = 100


def count_open_brackets(text: bytes) -> int:
    """Count the maximum number of simultaneously open brackets and braces, including those in quotes and comments."""
    level = max_level = 0
    for byte in text:
        if byte in b"[{":
            level += 1
            max_level = max(max_level, level)
        elif byte in b"]}":
            level = max(level - 1, 0)
    return max_level
