"""The baseline: the counts that the tree had when it was last lowered, and the comparison with today's.

The rule of a check: the sum over all rooms may not rise.  A room's own count may rise only while that sum does not,
which is what moving code to another room does; a new room starts at 0 and a removed room gives its share back.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from structure_guard.checks import CHECK_NAMES, Violation

Counts = Mapping[str, Mapping[str, int]]


class BaselineError(Exception):
    """The baseline file is missing or malformed, or would be raised; the message is one line."""


@dataclass(frozen=True, slots=True)
class Change:
    """A check's count before and now; of all rooms together where `room` is empty."""

    check: str
    room: str
    before: int
    now: int

    def __str__(self) -> str:
        place = f"{self.check} of {self.room}" if self.room else f"{self.check} of all rooms"
        return f"{place}: {self.before} → {self.now}"


@dataclass(frozen=True)
class Comparison:
    """Today's counts against the baseline's."""

    risen: tuple[Change, ...]
    """Checks whose sum over all rooms rose: failures."""
    moved: tuple[Change, ...]
    """Rooms whose count rose while the sum did not: accepted as moved code."""
    fallen: tuple[Change, ...]
    """Checks whose sum fell: the baseline can be lowered."""

    @property
    def is_recorded(self) -> bool:
        """Whether the baseline says exactly what the tree holds."""
        return not (self.risen or self.moved or self.fallen)


def compare(before: Counts, now: Counts) -> Comparison:
    """Compare two tables of counts by check and room."""
    risen: list[Change] = []
    moved: list[Change] = []
    fallen: list[Change] = []
    for check in CHECK_NAMES:
        old, new = before.get(check, {}), now.get(check, {})
        change = Change(check, "", sum(old.values()), sum(new.values()))
        if change.now > change.before:
            risen.append(change)
            continue
        if change.now < change.before:
            fallen.append(change)
        moved += [
            Change(check, room, old.get(room, 0), count) for room, count in new.items() if count > old.get(room, 0)
        ]
    return Comparison(tuple(risen), tuple(moved), tuple(fallen))


def load_baseline(path: Path) -> dict[str, dict[str, int]]:
    """Read a baseline file; raises BaselineError."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise BaselineError(f"{path}: {error.strerror} (`structure.py --update` writes a first one)") from None
    except ValueError as error:
        raise BaselineError(f"{path}: {error}") from None
    if not isinstance(data, dict):
        raise BaselineError(f"{path}: not a table of checks")
    for check, rooms in data.items():
        if check not in CHECK_NAMES:
            raise BaselineError(f"{path}: unknown check {check!r} (one of {', '.join(CHECK_NAMES)})")
        if not isinstance(rooms, dict) or not all(type(count) is int and count > 0 for count in rooms.values()):
            raise BaselineError(f"{path}: {check} is not a table of rooms and positive numbers")
    return data


def write_baseline(path: Path, counts: Counts) -> None:
    """Write a baseline file, a line for each check and room."""
    ordered = {check: dict(sorted(counts[check].items())) for check in CHECK_NAMES if counts.get(check)}
    path.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


def update_baseline(path: Path, counts: Counts) -> Comparison:
    """Lower a baseline to today's counts, or write the first one; raises BaselineError if a check's sum rose."""
    if not path.exists():
        write_baseline(path, counts)
        return Comparison((), (), ())
    comparison = compare(load_baseline(path), counts)
    if comparison.risen:
        raise BaselineError(
            f"{path}: cannot be raised: {'; '.join(map(str, comparison.risen))} (remove the new violations)"
        )
    write_baseline(path, counts)
    return comparison


def find_new(before: Iterable[Violation], now: Sequence[Violation]) -> list[Violation]:
    """Violations that are in `now` and not in `before`: neither at the same place nor, moved, at another one.

    Lines are not compared. A violation whose file moved keeps its subject, and is matched by it.
    """
    places: Counter[tuple[str, str, str]] = Counter()
    subjects: Counter[tuple[str, str]] = Counter()
    for item in before:
        places[item.check, item.path, item.subject] += 1
        subjects[item.check, item.subject] += 1
    unmatched: list[Violation] = []
    for item in now:
        if places[item.check, item.path, item.subject]:
            places[item.check, item.path, item.subject] -= 1
            subjects[item.check, item.subject] -= 1
        else:
            unmatched.append(item)
    found: list[Violation] = []
    for item in unmatched:
        if subjects[item.check, item.subject]:
            subjects[item.check, item.subject] -= 1
        else:
            found.append(item)
    return found
