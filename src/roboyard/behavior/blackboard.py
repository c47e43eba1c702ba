"""The blackboard: named values that the nodes of a tree share, one scope for each subtree.

An entry gets its type from the first typed port that names it, or from the first typed value; other types are
rejected from then on.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from roboyard.behavior.basic_types import (
    ANY,
    STRING,
    VALUE,
    PortType,
    is_number,
    port_type_of_value,
    to_float,
    to_integer,
)
from roboyard.behavior.errors import PortError, TreeNodeError


class _EmptyValue:
    """The value of an entry that was declared and never set."""

    def __repr__(self) -> str:
        return "(empty)"


EMPTY: Final = _EmptyValue()


class BlackboardEntry:
    """A value with its type, the number of times that it was set, and the time of the last one [ns]."""

    __slots__ = ("sequence", "stamp_ns", "type", "value")

    def __init__(self, port_type: PortType) -> None:
        self.type = port_type
        self.value: Any = EMPTY
        self.sequence = 0
        self.stamp_ns = 0


@dataclass
class SharedState:
    """State that all scopes of a tree share: a counter of created and removed entries, and the time [ns]."""

    version: int = 0
    now_ns: int = 0


class Blackboard:
    """One scope of entries.

    Args:
        parent: Enclosing scope; names refer to it by remappings and ``autoremap``, ``@name`` refers to the
            outermost scope.
    """

    def __init__(self, parent: Blackboard | None = None) -> None:
        self.parent = parent
        self.autoremap = False
        self.shared: SharedState = parent.shared if parent else SharedState()
        self._entries: dict[str, BlackboardEntry] = {}
        self._remappings: dict[str, str] = {}

    @property
    def root(self) -> Blackboard:
        """Return the outermost scope."""
        blackboard = self
        while blackboard.parent is not None:
            blackboard = blackboard.parent
        return blackboard

    def remap(self, internal: str, external: str) -> None:
        """Let ``internal`` refer to the parent's entry ``external``; the first remapping of a name counts."""
        self._remappings.setdefault(internal, external)
        self.shared.version += 1

    def remappings(self) -> dict[str, str]:
        """Return the names of this scope and those of the parent that they refer to."""
        return dict(self._remappings)

    def entry(self, key: str) -> BlackboardEntry | None:
        """Return the entry that a name refers to in this scope, or None."""
        found = self._entries.get(key)
        if found is not None:
            return found
        if key[:1] == "@":
            return self.root.entry(key[1:])
        if self.parent is not None:
            if key in self._remappings:
                return self.parent.entry(self._remappings[key])
            if self.autoremap and key[:1] != "_":
                return self.parent.entry(key)
        return None

    def create(self, key: str, port_type: PortType) -> BlackboardEntry:
        """Declare an entry; an existing one is kept.

        Raises:
            TreeNodeError: it exists with another type, or the key is none.
        """
        if key[:1] == "@":
            if "@" in key[1:]:
                raise TreeNodeError("Character '@' used multiple times in the key")
            return self.root._create(key[1:], port_type)
        return self._create(key, port_type)

    def _create(self, key: str, port_type: PortType) -> BlackboardEntry:
        found = self._entries.get(key)
        if found is not None:
            if found.type is not port_type and found.type.is_strong and port_type.is_strong:
                raise TreeNodeError(
                    f"Blackboard entry [{key}]: once declared, the type of a port shall not change. "
                    f"Previously declared type [{found.type.name}], current type [{port_type.name}]"
                )
            return found
        external = self._remappings.get(key)
        if external is None and self.autoremap and key[:1] != "_":
            external = key
        if external is not None:
            if self.parent is None:
                raise TreeNodeError("Missing parent blackboard")
            return self.parent._create(external, port_type)
        new_entry = self._entries[key] = BlackboardEntry(port_type)
        self.shared.version += 1
        return new_entry

    def get(self, key: str) -> Any:
        """Return the value of an entry.

        Raises:
            PortError: there is no such entry, or it was never set.
        """
        found = self.entry(key)
        if found is None:
            raise PortError(f"Blackboard::get() error. Missing key [{key}]", valid=_describe_keys(self))
        if found.value is EMPTY:
            raise PortError(f"Blackboard::get() error. Entry [{key}] hasn't been initialized, yet")
        return found.value

    def set(self, key: str, value: Any, port_type: PortType | None = None) -> None:
        """Set an entry, and create it if it does not exist.

        Args:
            key: Its name.
            value: Its value.
            port_type: The type that the one who sets it has for it; else the value's own.

        Raises:
            TreeNodeError: the entry has another type, and the value has no safe conversion to it.
        """
        if key[:1] == "@":
            self.root.set(key[1:], value, port_type)
            return
        port_type = port_type or port_type_of_value(value)
        found = self._entries.get(key)
        if found is None:
            found = self._create(key, ANY if port_type is STRING else port_type)
            found.value = value
        elif not found.type.is_strong:
            found.type = port_type
            found.value = value
        else:
            found.value = _convert_for_entry(key, found, value, port_type)
        found.sequence += 1
        found.stamp_ns = self.shared.now_ns

    def unset(self, key: str) -> None:
        """Remove an entry of this scope; one of another scope is kept."""
        if self._entries.pop(key, None) is not None:
            self.shared.version += 1

    def keys(self) -> list[str]:
        """Return the names of the entries of this scope."""
        return list(self._entries)

    def __iter__(self) -> Iterator[tuple[str, BlackboardEntry]]:
        return iter(self._entries.items())

    def save_state(self) -> dict[str, Any]:
        """Return the entries of this scope as plain data."""
        return {
            key: {"type": entry.type.name, "sequence": entry.sequence, "stamp_ns": entry.stamp_ns}
            | ({} if entry.value is EMPTY else {"value": copy_container(entry.value)})
            for key, entry in self
        }

    def load_state(self, saved: dict[str, Any], port_types: dict[str, PortType]) -> None:
        """Restore the result of `save_state`.

        Args:
            saved: The result.
            port_types: Types by name, for entries that the tree does not declare.
        """
        declared = self._entries
        self._entries = {}
        for key, saved_entry in saved.items():
            declared_entry, name = declared.get(key), saved_entry["type"]
            port_type = (
                declared_entry.type
                if declared_entry is not None and declared_entry.type.name == name
                else port_types.get(name, ANY)
            )
            entry = self._entries[key] = BlackboardEntry(port_type)
            entry.value = copy_container(saved_entry.get("value", EMPTY))
            entry.sequence, entry.stamp_ns = saved_entry["sequence"], saved_entry["stamp_ns"]
        self.shared.version += 1


def copy_container(value: Any) -> Any:
    """Return a shallow copy of a list, dict, set or deque; other values are returned as they are."""
    return copy.copy(value) if isinstance(value, list | dict | set | deque) else value


def _convert_for_entry(key: str, entry: BlackboardEntry, value: Any, port_type: PortType) -> Any:
    """Convert a value to the type of an entry."""
    if port_type is VALUE and entry.type is port_type_of_value(value):
        return value
    if entry.type is port_type or entry.type is port_type_of_value(value):
        return convert_like(value, entry.value)
    if value.__class__ is str and entry.type.parse is not None and port_type is not VALUE:
        return entry.type.parse(value)
    if port_type is not VALUE and is_number(value) and entry.type.python in (int, float, bool):
        try:
            return entry.type.read(value)
        except PortError:
            pass
    raise TreeNodeError(
        f"Blackboard::set({key}): once declared, the type of a port shall not change. "
        f"Previously declared type [{entry.type.name}], current type [{port_type.name}]"
    )


def convert_like(value: Any, previous: Any) -> Any:
    """Convert a value to replace another one: integers stay integers, and floats stay floats.

    Raises:
        PortError: The two are of different types, or the value is no integer.
    """
    if previous is EMPTY or value.__class__ is previous.__class__:
        return value
    if is_number(value) and is_number(previous):
        return to_float(value) if previous.__class__ is float else to_integer(value)
    if is_number(value) or is_number(previous) or value.__class__ is str or previous.__class__ is str:
        raise PortError("Any::copyInto fails")
    return value


def _describe_keys(blackboard: Blackboard) -> str | None:
    names = ", ".join(sorted(blackboard.keys()))
    return f"there are {names}" if names else None
