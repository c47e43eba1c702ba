"""Numbers of messages over time: which fields a topic has, and their values as they come."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from roboyard.errors import InputError
from roboyard.view.wire import ViewMessage, packed

_MOST_FIELDS, _MOST_ELEMENTS, _DEEPEST = 300, 24, 6
_MOST_CURVES = 32
_WAITING = 5_000
"""Messages of plotted topics that wait for the server's thread; of more the oldest are lost."""


def fields(message: Any) -> list[str]:
    """Paths of all numbers in a message, as ``pose.position.x`` or ``position[2]``; of long arrays the first ones."""
    return [path for _, path in zip(range(_MOST_FIELDS), _paths(message, "", 0), strict=False)]


def _paths(value: Any, path: str, depth: int) -> Iterator[str]:
    if isinstance(value, (bool, int, float, np.generic)):
        yield path
    elif dataclasses.is_dataclass(value) and depth < _DEEPEST:
        for field in dataclasses.fields(value):
            yield from _paths(getattr(value, field.name), f"{path}.{field.name}" if path else field.name, depth + 1)
    elif isinstance(value, (list, tuple, np.ndarray)) and len(value) and not isinstance(value[0], str):
        for index in range(min(len(value), _MOST_ELEMENTS)):
            yield from _paths(value[index], f"{path}[{index}]", depth + 1)


def number_at(message: Any, path: str) -> float:
    """A number of a message; not a number where it has none there."""
    value = message
    try:
        for part in path.replace("[", ".[").split("."):
            value = value[int(part[1:-1])] if part.startswith("[") else getattr(value, part)
        return float(value)
    except (AttributeError, IndexError, TypeError, ValueError):
        return float("nan")


class Plots:
    """Curves that somebody looks at.

    Attributes:
        topics: Those of them; a message of another is not kept.
    """

    def __init__(self) -> None:
        self.topics: frozenset[str] = frozenset()
        self._curves: dict[tuple[str, str], set[int]] = {}
        self._asked: dict[str, list[Callable[[list[str]], None]]] = {}
        self._new: deque[tuple[str, int, Any]] = deque(maxlen=_WAITING)

    def change(self, topic: str, path: str, viewer: int, *, on: bool) -> None:
        """Begin or end to tell a viewer a curve.

        Raises:
            InputError: there are too many already.
        """
        key = topic, path
        if on:
            if key not in self._curves and len(self._curves) >= _MOST_CURVES:
                raise InputError(f"{_MOST_CURVES} curves are told already", valid="fewer")
            self._curves.setdefault(key, set()).add(viewer)
        else:
            self._curves.get(key, set()).discard(viewer)
        self._settle()

    def forget(self, viewer: int) -> None:
        """A viewer is gone."""
        for viewers in self._curves.values():
            viewers.discard(viewer)
        self._settle()

    def ask(self, topic: str, tell: Callable[[list[str]], None]) -> None:
        """Have the fields of a topic told once it says something."""
        if len(self._asked) < _MOST_CURVES:
            self._asked.setdefault(topic, []).append(tell)
        self._settle()

    def _settle(self) -> None:
        self._curves = {key: viewers for key, viewers in self._curves.items() if viewers}
        self.topics = frozenset({topic for topic, _ in self._curves} | set(self._asked))

    def take(self, topic: str, time_ns: int, message: Any) -> None:
        """Keep a message until `news`; from any thread."""
        self._new.append((topic, time_ns, message))

    def news(self) -> list[ViewMessage]:
        """One frame with all new values: for each curve its times and values."""
        if not self._new:
            return []
        taken = [self._new.popleft() for _ in range(len(self._new))]
        for topic, _, message in taken:
            for tell in self._asked.pop(topic, ()):
                tell(fields(message))
                self._settle()
        curves, arrays = [], []
        for topic, path in self._curves:
            rows = [(time_ns * 1e-9, number_at(message, path)) for name, time_ns, message in taken if name == topic]
            if rows:
                curves.append([topic, path])
                arrays.append(np.array(rows, dtype=np.float32))
        return [ViewMessage(packed({"op": "curves", "curves": curves}, arrays))] if curves else []
