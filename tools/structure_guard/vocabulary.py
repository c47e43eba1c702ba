"""The project's list of private words and what replaces them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_KINDS = frozenset({"function", "class", "parameter", "variable", "attribute", "module", "test"})
_PATTERNS = ("headings", "phrases", "messages")
_SECTIONS = frozenset({"allowed", "test_functions", "parts", "names", "spelling", "module_names", *_PATTERNS})
_PARTICIPLE = re.compile(r"^[a-z]+(ing|ed)$")


class VocabularyError(Exception):
    """The vocabulary file is not as it should be; the message is one line."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What replaces a word, and where the word is banned."""

    replacement: str
    exempt_rooms: frozenset[str] = frozenset()
    kinds: frozenset[str] = _KINDS

    def applies(self, room: str, kind: str) -> bool:
        """Whether the word is banned in a definition of this kind in this room."""
        return room not in self.exempt_rooms and kind in self.kinds


def split_identifier(name: str) -> list[str]:
    """Parts of an identifier in lower case: ``_HTTPServer2_ofNode`` gives http, server, of, node."""
    return [part.lower() for part in _PART.findall(name)]


@dataclass(frozen=True)
class Vocabulary:
    """Banned words of identifiers, module names, headings, prose and error messages."""

    parts: Mapping[str, Entry]
    names: Mapping[str, Entry]
    allowed: frozenset[tuple[str, ...]]
    allowed_in_tests: frozenset[str]
    allowed_modules: frozenset[str]
    banned_modules: frozenset[str]
    patterns: Mapping[str, tuple[tuple[re.Pattern[str], str], ...]]

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read a vocabulary file; raises VocabularyError."""
        try:
            data = tomllib.loads(path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise VocabularyError(f"{path}: {error}") from None
        unknown = sorted(set(data) - _SECTIONS)
        if unknown:
            raise VocabularyError(f"{path}: unknown section {unknown[0]!r} (one of {', '.join(sorted(_SECTIONS))})")
        try:
            modules = data.get("module_names", {})
            return cls(
                parts=_read_entries(data, "parts") | _read_entries(data, "spelling"),
                names=_read_entries(data, "names"),
                allowed=frozenset(tuple(item.split("_")) for item in data.get("allowed", {}).get("compounds", ())),
                allowed_in_tests=frozenset(data.get("test_functions", {}).get("allowed", ())),
                allowed_modules=frozenset(modules.get("allowed", ())),
                banned_modules=frozenset(modules.get("banned", ())),
                patterns={
                    section: tuple((re.compile(key, re.IGNORECASE), use) for key, use in data.get(section, {}).items())
                    for section in _PATTERNS
                },
            )
        except (ValueError, AttributeError, TypeError, re.error) as error:
            raise VocabularyError(f"{path}: {error}") from None

    def find_in_identifier(self, name: str, room: str, kind: str) -> dict[str, str]:
        """Banned words of an identifier with their replacements; the kind of a test function is `test`."""
        parts = split_identifier(name)
        found: dict[str, str] = {}
        if any(part in self.parts for part in parts):
            hidden = self._hidden(parts)
            for position, part in enumerate(parts):
                entry = self.parts.get(part)
                if entry is None or position in hidden or (kind == "test" and part in self.allowed_in_tests):
                    continue
                if entry.applies(room, kind):
                    found[part] = entry.replacement
        whole = self.names.get("_".join(parts))
        if whole is not None and not found and whole.applies(room, kind):
            found["_".join(parts)] = whole.replacement
        return found

    def find_in_text(self, section: str, text: str) -> Iterator[tuple[int, str, str]]:
        """Offset, text and replacement of each banned form of a section (headings, phrases, messages)."""
        for pattern, replacement in self.patterns[section]:
            for match in pattern.finditer(text):
                yield match.start(), match.group(), replacement

    def is_bare_modifier(self, stem: str) -> bool:
        """Whether a module's name is one word that is a participle or an adjective."""
        stem = stem.strip("_")
        if stem in self.allowed_modules or not stem.isalpha():
            return False
        return stem in self.banned_modules or _PARTICIPLE.fullmatch(stem) is not None

    def _hidden(self, parts: list[str]) -> set[int]:
        """Positions of the parts that belong to an allowed compound."""
        found: set[int] = set()
        for compound in self.allowed:
            size = len(compound)
            for start in range(len(parts) - size + 1):
                if tuple(parts[start : start + size]) == compound:
                    found.update(range(start, start + size))
        return found


def _read_entries(data: Mapping[str, Any], section: str) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for key, value in data.get(section, {}).items():
        if isinstance(value, str):
            entry = Entry(value)
        elif isinstance(value, dict) and isinstance(value.get("use"), str) and set(value) <= {"use", "except", "kinds"}:
            entry = Entry(value["use"], frozenset(value.get("except", ())), frozenset(value.get("kinds", _KINDS)))
        else:
            raise ValueError(f"{section}.{key}: a replacement, or a table with 'use', 'except' and 'kinds'")
        if not entry.kinds <= _KINDS:
            raise ValueError(f"{section}.{key}: kinds are {', '.join(sorted(_KINDS))}")
        for word in key.split():
            if word in found:
                raise ValueError(f"{section}: {word!r} occurs twice")
            found[word] = entry
    return found
