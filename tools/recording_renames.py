"""The table of what is called otherwise at a new revision, as `compare_recordings.py` reads it from a TOML file.

Names are exact, or a pattern: a key that begins with ``re:`` is a regular expression for the whole name, and its value
may use groups (``\\1``).  ``tools/renames.toml`` says what each section means.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from roboyard.errors import InputError

PATTERN = "re:"
"""What a key begins with that is a regular expression."""
NAMES = ("scenarios", "topics", "types", "nodes", "frames", "parameters", "metadata", "metrics", "criteria", "keys")
"""Sections of the form ``old = "new"``."""
NESTED = ("fields", "values")
"""Sections of such sections."""
EXCLUDED = ("scenarios", "topics", "fields", "metadata", "metrics")
"""What may be left out of a comparison."""
RUN = ("run", "{scenario}", "--smoke", "--seed", "{seed}", "--out", "{folder}", "--no-video", "--json")
LIST = ("list", "scenarios", "--json")
PROBE = (
    "-c",
    "from roboyard.scenarios.provenance import cpu_class, installed_versions_hash; "
    "print(installed_versions_hash(), cpu_class(), sep='\\n')",
)
COMMANDS = {"run": RUN, "list": LIST, "environment": PROBE}
"""Words after ``roboyard`` that run a scenario and list all, and words after ``python`` that print versions and kind of
processor, by which runs are kept."""
NODE_FIELDS = frozenset({"rcl_interfaces/msg/Log.name", "rcl_interfaces/msg/ParameterEvent.node"})
"""Fields that hold a node's name."""
FRAME_FIELDS = frozenset({"frame_id", "child_frame_id"})
"""Names of fields that hold a frame's name, in any type."""
PARAMETER_FIELD = "rcl_interfaces/msg/Parameter.name"


class NameTable:
    """Old names with their new ones; it remembers which of them were met.

    Args:
        section: Its name, for what is told.
        entries: Old name or pattern to new name.
        where: The file, for errors.
    """

    def __init__(self, section: str, entries: Mapping[str, str], where: str) -> None:
        self.section, self.met = section, set[str]()
        self._exact = {old: new for old, new in entries.items() if not old.startswith(PATTERN)}
        self._patterns = [
            (old, _compile(old.removeprefix(PATTERN), where), new)
            for old, new in entries.items()
            if old.startswith(PATTERN)
        ]
        self._known: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._exact or self._patterns)

    def new_name(self, old: str) -> str:
        """What is called ``old`` at the old revision, as the new one calls it."""
        known = self._known.get(old)
        if known is None:
            known = self._known[old] = self._find(old)
        return known

    def _find(self, old: str) -> str:
        if old in self._exact:
            self.met.add(old)
            return self._exact[old]
        for key, pattern, new in self._patterns:
            match = pattern.fullmatch(old)
            if match is not None:
                self.met.add(key)
                return match.expand(new)
        return old

    def unmet(self) -> list[str]:
        """Entries that no name was met for, as "section.name"."""
        keys = [*self._exact, *(key for key, _, _ in self._patterns)]
        return [f"{self.section}: {key}" for key in keys if key not in self.met]


@dataclass(frozen=True, slots=True)
class TextRule:
    """A regular expression that is replaced in texts of the old revision before they are compared.

    Attributes:
        pattern: What is sought.
        replacement: What takes its place; may use groups.
        fields: Patterns of "package/msg/Type.field" that it holds for; empty: all strings.
    """

    pattern: re.Pattern[str]
    replacement: str
    fields: tuple[str, ...]


@dataclass
class Renames:
    """All sections of the file. `read_renames` makes it."""

    where: str = "no table of renames"
    names: dict[str, NameTable] = field(default_factory=dict)
    fields: dict[str, NameTable] = field(default_factory=dict)
    values: dict[str, NameTable] = field(default_factory=dict)
    texts: list[TextRule] = field(default_factory=list)
    excluded: dict[str, tuple[str, ...]] = field(default_factory=dict)
    commands: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for section in NAMES:
            self.names.setdefault(section, NameTable(section, {}, self.where))
        for kind in EXCLUDED:
            self.excluded.setdefault(kind, ())
        self.renames_strings = bool(self.values or self.texts) or any(
            self.names[section] for section in ("nodes", "frames", "parameters")
        )

    @property
    def is_active(self) -> bool:
        """Whether anything of a recording is called otherwise."""
        sections = ("topics", "types", "nodes", "frames", "parameters", "metadata", "scenarios")
        return bool(self.fields or self.values or self.texts) or any(self.names[section] for section in sections)

    def new_name(self, section: str, old: str) -> str:
        """The new name of a scenario, topic, …; sections are `NAMES`."""
        return self.names[section].new_name(old)

    def new_field(self, old_type: str, old: str) -> str:
        """The new name of a field, or constant, of a message type."""
        table = self.fields.get(old_type)
        return old if table is None else table.new_name(old)

    def new_string(self, old_type: str, name: str, old: str) -> str:
        """What the old revision's string in a field would be at the new revision.

        Args:
            old_type: The message type that has the field, as the old revision calls it.
            name: The field, likewise.
            old: Its value.
        """
        place = f"{old_type}.{name}"
        for key in (place, "*"):
            table = self.values.get(key)
            if table is not None and (new := table.new_name(old)) != old:
                return new
        if name in FRAME_FIELDS:
            return self.new_name("frames", old)
        if place in NODE_FIELDS:
            return self.new_name("nodes", old)
        if place == PARAMETER_FIELD:
            return self.new_name("parameters", old)
        for rule in self.texts:
            if not rule.fields or any(fnmatchcase(place, pattern) for pattern in rule.fields):
                old = rule.pattern.sub(rule.replacement, old)
        return old

    def excludes(self, kind: str, name: str) -> bool:
        """Whether something is left out of the comparison; kinds are `EXCLUDED`, names the old revision's."""
        return any(fnmatchcase(name, pattern) for pattern in self.excluded[kind])

    def command(self, side: str, what: str) -> tuple[str, ...]:
        """How a side, "old" or "new", is asked for something; see `COMMANDS`."""
        return self.commands.get(side, {}).get(what, COMMANDS[what])

    def unmet(self) -> list[str]:
        """Entries for which no name was met."""
        tables = [*self.names.values(), *self.fields.values(), *self.values.values()]
        return [entry for table in tables for entry in table.unmet()]


def read_renames(path: Path) -> Renames:
    """The table of a TOML file.

    Raises:
        InputError: it cannot be read, or holds what no section knows.
    """
    where = str(path)
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", location=where, valid="a table of renames") from None
    except ValueError as error:
        raise InputError(f"is no TOML: {error}", location=where) from None
    return parse_renames(document, where)


def parse_renames(document: Mapping[str, Any], where: str = "renames") -> Renames:
    """The table that a TOML document describes; raises as `read_renames`."""
    valid = (*NAMES, *NESTED, "texts", "exclude", "commands")
    _only(document, valid, where)
    fields, values = (
        {
            key: NameTable(f"{section}.{key}", _strings(entries, f"{where}: [{section}.{key}]"), where)
            for key, entries in _mapping(document.get(section, {}), f"{where}: [{section}]").items()
        }
        for section in NESTED
    )
    texts = []
    for number, rule in enumerate(document.get("texts", ())):
        at = f"{where}: [[texts]] number {number + 1}"
        _only(_mapping(rule, at), ("pattern", "replacement", "fields"), at)
        found = _strings({key: rule.get(key) for key in ("pattern", "replacement")}, at)
        texts.append(TextRule(_compile(found["pattern"], at), found["replacement"], _words(rule.get("fields", []), at)))
    exclude = _mapping(document.get("exclude", {}), f"{where}: [exclude]")
    _only(exclude, EXCLUDED, f"{where}: [exclude]")
    commands = _mapping(document.get("commands", {}), f"{where}: [commands]")
    _only(commands, ("old", "new"), f"{where}: [commands]")
    for side, entries in commands.items():
        _only(_mapping(entries, f"{where}: [commands.{side}]"), tuple(COMMANDS), f"{where}: [commands.{side}]")
    return Renames(
        where,
        {name: NameTable(name, _strings(document.get(name, {}), f"{where}: [{name}]"), where) for name in NAMES},
        fields,
        values,
        texts,
        {kind: _words(names, f"{where}: [exclude] {kind}") for kind, names in exclude.items()},
        {
            side: {what: _words(words, f"{where}: [commands.{side}] {what}") for what, words in entries.items()}
            for side, entries in commands.items()
        },
    )


def _only(found: Mapping[str, Any], valid: Sequence[str], where: str) -> None:
    for key in found:
        if key not in valid:
            raise InputError(f"unknown key {key!r}", location=where, valid=", ".join(valid))


def _mapping(found: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(found, Mapping):
        raise InputError(f"{found!r} is no table", location=where)
    return found


def _strings(found: Any, where: str) -> dict[str, str]:
    for key, value in _mapping(found, where).items():
        if not isinstance(value, str):
            raise InputError(f"{key} is {value!r}", location=where, valid="a text")
    return dict(found)


def _words(found: Any, where: str) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise InputError(f"{found!r} is no list of texts", location=where)
    return tuple(found)


def _compile(pattern: str, where: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InputError(f"{pattern!r} is no regular expression: {error}", location=where) from None
