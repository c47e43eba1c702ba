"""Compares what two runs' metrics.json say, verdicts of their criteria included, under a table of renames."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from recording_diff import ABSENT, told
from recording_renames import Renames

_WORD = re.compile(r"[A-Za-z_][\w.]*")
_STRINGS = ("nodes", "topics", "types", "frames", "scenarios", "parameters")
"""Sections whose names stand in metrics.json as whole strings and as keys."""


class MetricDifference(NamedTuple):
    """A value that differs.

    Attributes:
        path: Keys down to it, by the new run's names, as "robots.rover.metrics.path_length".
        old: Its value in the old run.
        new: Its value in the new one.
    """

    path: str
    old: str
    new: str

    @property
    def is_verdict(self) -> bool:
        """Whether it is about a criterion that held on one side only, or about the run's success."""
        return self.path in ("success", "state") or (
            self.path.startswith("criteria.") and self.path.endswith(".passed")
        )

    def __str__(self) -> str:
        return f"{self.path}: {self.old} → {self.new}"


def compare_metrics(old: Mapping[str, Any], new: Mapping[str, Any], renames: Renames) -> list[MetricDifference]:
    """What differs between two documents, verdicts first.

    Args:
        old: What the old run's metrics.json holds.
        new: What the new one's holds.
        renames: What is called otherwise in the new one, and what is left out.
    """
    found = [MetricDifference(path, *told(a, b)) for path, a, b in _differences(old, new, renames, "", "")]
    return sorted(found, key=lambda one: not one.is_verdict)


def _differences(old: Any, new: Any, renames: Renames, at: str, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Path by the new names, old value, new value; ``at`` is the path by the old names.

    A metric without a value is null or absent: older runs have null, newer ones leave it out.
    """
    if (old is None and new is ABSENT) or (old is ABSENT and new is None):
        return
    if at and (renames.excludes("metrics", at) or renames.excludes("metrics", path)):
        return
    by_name = _named(old), _named(new)
    if None not in by_name:
        old, new = by_name
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        before = {_new_key(renames, at, str(key)): str(key) for key in old}
        for key in [*before, *(key for key in new if key not in before)]:
            old_key = before.get(key, key)
            deeper = f"{at}.{old_key}" if at else old_key, f"{path}.{key}" if path else key
            a, b = old.get(old_key, ABSENT) if key in before else ABSENT, new.get(key, ABSENT)
            yield from _differences(a, b, renames, *deeper)
    elif (
        isinstance(old, Sequence)
        and isinstance(new, Sequence)
        and not isinstance(old, str)
        and not isinstance(new, str)
    ):
        for k in range(max(len(old), len(new))):
            a, b = (side[k] if k < len(side) else ABSENT for side in (old, new))
            yield from _differences(a, b, renames, f"{at}.{k}", f"{path}.{k}")
    else:
        if isinstance(old, str) and old is not ABSENT:
            old = _new_text(renames, at, old)
        if type(old) is not type(new) or old != new:
            yield path, old, new


def _named(found: Any) -> dict[str, Any] | None:
    """A list of things with names, as nodes and topics, by these; None if it is something else."""
    if not isinstance(found, list) or not found or not all(isinstance(one, Mapping) and "name" in one for one in found):
        return None
    names = {str(one["name"]): one for one in found}
    return names if len(names) == len(found) else None


def _new_key(renames: Renames, at: str, key: str) -> str:
    if at == "criteria":
        return renames.new_name("criteria", key)
    path = f"{at}.{key}" if at else key
    renamed = renames.new_name("keys", path)
    if renamed != path:
        return renamed
    new = _new_metric(renames, key)
    for section in _STRINGS:
        if new == key:
            new = renames.new_name(section, key)
    return new


def _new_metric(renames: Renames, name: str) -> str:
    """A metric's new name; it may stand behind its robot's."""
    robot, dot, metric = name.rpartition(".")
    return robot + dot + renames.new_name("metrics", metric)


def _new_text(renames: Renames, at: str, text: str) -> str:
    for section in _STRINGS:
        new = renames.new_name(section, text)
        if new != text:
            return new
    if at.startswith("criteria.") and renames.names["metrics"]:
        text = _WORD.sub(lambda word: _new_metric(renames, word[0]), text)
    return renames.new_string("metrics.json", at, text)
