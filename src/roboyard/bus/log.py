"""Logging of nodes: to /rosout, stamped with simulated time, and to whoever listens on the bus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Level = Literal["debug", "info", "warn", "error", "fatal"]
LEVELS: dict[Level, int] = {"debug": 10, "info": 20, "warn": 30, "error": 40, "fatal": 50}
"""The numbers of rcl_interfaces/Log."""


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the log."""

    time_ns: int
    level: Level
    node: str
    text: str


def plain(text: object) -> str:
    """``text`` as UTF-8 can hold it: names of files may contain bytes that are no characters."""
    return str(text).encode("utf-8", "backslashreplace").decode()


class Logger:
    """Writes a node's lines.

    Args:
        node: Full name of the node.
        clock: Gives simulated time [ns].
        sink: Takes the records.
    """

    def __init__(self, node: str, clock: Callable[[], int], sink: Callable[[Record], None]) -> None:
        self._node = node
        self._clock = clock
        self._sink = sink
        self._last: dict[str, int] = {}

    def save(self) -> dict[str, int]:
        """When it last wrote what it does not write again and again [ns], as plain data."""
        return dict(self._last)

    def load(self, saved: dict[str, int]) -> None:
        """Counterpart of `save`."""
        self._last = dict(saved)

    def debug(self, text: str, every: float | None = None) -> None:
        """For developers of the node."""
        self._write("debug", text, every)

    def info(self, text: str, every: float | None = None) -> None:
        """What the node does."""
        self._write("info", text, every)

    def warn(self, text: str, every: float | None = None) -> None:
        """Something is not as it should be, the node goes on."""
        self._write("warn", text, every)

    def error(self, text: str, every: float | None = None) -> None:
        """Something failed."""
        self._write("error", text, every)

    def fatal(self, text: str, every: float | None = None) -> None:
        """Nothing can go on."""
        self._write("fatal", text, every)

    def _write(self, level: Level, text: str, every: float | None) -> None:
        """Write, unless the same text was written less than ``every`` simulated seconds ago."""
        now_ns, text = self._clock(), plain(text)
        if every is not None:
            last = self._last.get(text)
            if last is not None and now_ns - last < every * 1e9:
                return
            self._last[text] = now_ns
        self._sink(Record(now_ns, level, self._node, text))
