"""The blackboard: named values that the nodes of a tree share, one scope for each subtree.

An entry has a type as soon as a typed port names it or a typed value is set; from then on other types are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from roboyard.behavior.errors import PortError, TreeNodeError
from roboyard.behavior.types import ANY, TEXT, VALUE, PortType, is_number, to_integer, to_real, type_of_value


class _Empty:
    """What an entry holds that was declared and never set."""

    def __repr__(self) -> str:
        return "(empty)"


EMPTY: Final = _Empty()


class Entry:
    """A value with its type, how often it was set, and when last [ns]."""

    __slots__ = ("sequence", "stamp_ns", "type", "value")

    def __init__(self, kind: PortType) -> None:
        self.type = kind
        self.value: Any = EMPTY
        self.sequence = 0
        self.stamp_ns = 0


@dataclass
class Shared:
    """What all scopes of a tree share: how often entries were made or taken away, and the time [ns]."""

    version: int = 0
    now_ns: int = 0


class Blackboard:
    """One scope of entries.

    Args:
        parent: The scope outside; ``remap`` and ``autoremap`` let names refer to it, ``@name`` to the outermost.
    """

    def __init__(self, parent: Blackboard | None = None) -> None:
        self.parent = parent
        self.autoremap = False
        self.shared: Shared = parent.shared if parent else Shared()
        self._entries: dict[str, Entry] = {}
        self._remaps: dict[str, str] = {}

    @property
    def root(self) -> Blackboard:
        """The outermost scope."""
        board = self
        while board.parent is not None:
            board = board.parent
        return board

    def remap(self, inside: str, outside: str) -> None:
        """Let ``inside`` mean the parent's entry ``outside``; the first one said holds."""
        self._remaps.setdefault(inside, outside)
        self.shared.version += 1

    def remaps(self) -> dict[str, str]:
        """Names here and what they mean in the parent."""
        return dict(self._remaps)

    def entry(self, key: str) -> Entry | None:
        """The entry that a name refers to here, or None."""
        found = self._entries.get(key)
        if found is not None:
            return found
        if key[:1] == "@":
            return self.root.entry(key[1:])
        if self.parent is not None:
            if key in self._remaps:
                return self.parent.entry(self._remaps[key])
            if self.autoremap and key[:1] != "_":
                return self.parent.entry(key)
        return None

    def create(self, key: str, kind: PortType) -> Entry:
        """Declare an entry; one that exists stays.

        Raises:
            NodeError: it exists with another type, or the key is none.
        """
        if key[:1] == "@":
            if "@" in key[1:]:
                raise TreeNodeError("Character '@' used multiple times in the key")
            return self.root._create(key[1:], kind)
        return self._create(key, kind)

    def _create(self, key: str, kind: PortType) -> Entry:
        found = self._entries.get(key)
        if found is not None:
            if found.type is not kind and found.type.strong and kind.strong:
                raise TreeNodeError(
                    f"Blackboard entry [{key}]: once declared, the type of a port shall not change. "
                    f"Previously declared type [{found.type.name}], current type [{kind.name}]"
                )
            return found
        outside = self._remaps.get(key)
        if outside is None and self.autoremap and key[:1] != "_":
            outside = key
        if outside is not None:
            if self.parent is None:
                raise TreeNodeError("Missing parent blackboard")
            return self.parent._create(outside, kind)
        made = self._entries[key] = Entry(kind)
        self.shared.version += 1
        return made

    def get(self, key: str) -> Any:
        """The value of an entry.

        Raises:
            PortError: there is no such entry, or it was never set.
        """
        found = self.entry(key)
        if found is None:
            raise PortError(f"Blackboard::get() error. Missing key [{key}]", valid=_choices(self))
        if found.value is EMPTY:
            raise PortError(f"Blackboard::get() error. Entry [{key}] hasn't been initialized, yet")
        return found.value

    def set(self, key: str, value: Any, kind: PortType | None = None) -> None:
        """Set an entry, and make it if there is none.

        Args:
            key: Its name.
            value: Its value.
            kind: The type that the one who sets it has for it; else the value's own.

        Raises:
            NodeError: the entry has another type, and the value has no safe conversion to it.
        """
        if key[:1] == "@":
            self.root.set(key[1:], value, kind)
            return
        kind = kind or type_of_value(value)
        found = self._entries.get(key)
        if found is None:
            found = self._create(key, ANY if kind is TEXT else kind)
            found.value = value
        elif not found.type.strong:
            found.type = kind
            found.value = value
        else:
            found.value = _fit(key, found, value, kind)
        found.sequence += 1
        found.stamp_ns = self.shared.now_ns

    def unset(self, key: str) -> None:
        """Take away an entry of this scope; one of another scope stays."""
        if self._entries.pop(key, None) is not None:
            self.shared.version += 1

    def keys(self) -> list[str]:
        """Names of this scope's own entries."""
        return list(self._entries)

    def __iter__(self) -> Iterator[tuple[str, Entry]]:
        return iter(self._entries.items())

    def save_state(self) -> dict[str, Any]:
        """This scope's own entries as plain data."""
        return {
            key: {"type": entry.type.name, "sequence": entry.sequence, "stamp_ns": entry.stamp_ns}
            | ({} if entry.value is EMPTY else {"value": entry.value})
            for key, entry in self
        }

    def load_state(self, saved: dict[str, Any], kinds: dict[str, PortType]) -> None:
        """Take back what ``save`` gave; ``kinds`` are types by name, for entries that the tree does not declare."""
        declared = self._entries
        self._entries = {}
        for key, told in saved.items():
            known, name = declared.get(key), told["type"]
            kind = known.type if known is not None and known.type.name == name else kinds.get(name, ANY)
            entry = self._entries[key] = Entry(kind)
            entry.value = told.get("value", EMPTY)
            entry.sequence, entry.stamp_ns = told["sequence"], told["stamp_ns"]
        self.shared.version += 1


def _fit(key: str, entry: Entry, value: Any, kind: PortType) -> Any:
    """A value as a typed entry takes it."""
    if kind is VALUE and entry.type is type_of_value(value):
        return value
    if entry.type is kind or entry.type is type_of_value(value):
        return fitted(value, entry.value)
    if value.__class__ is str and entry.type.parse is not None and kind is not VALUE:
        return entry.type.parse(value)
    if kind is not VALUE and is_number(value) and entry.type.python in (int, float, bool):
        try:
            return entry.type.read(value)
        except PortError:
            pass
    raise TreeNodeError(
        f"Blackboard::set({key}): once declared, the type of a port shall not change. "
        f"Previously declared type [{entry.type.name}], current type [{kind.name}]"
    )


def fitted(value: Any, previous: Any) -> Any:
    """A value as it is put in the place of another one: numbers stay whole or real, as they were.

    Raises:
        PortError: the two are of different kinds, or the value is not whole.
    """
    if previous is EMPTY or value.__class__ is previous.__class__:
        return value
    if is_number(value) and is_number(previous):
        return to_real(value) if previous.__class__ is float else to_integer(value)
    if is_number(value) or is_number(previous) or value.__class__ is str or previous.__class__ is str:
        raise PortError("Any::copyInto fails")
    return value


def _choices(board: Blackboard) -> str | None:
    names = ", ".join(sorted(board.keys()))
    return f"there are {names}" if names else None
