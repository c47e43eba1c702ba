"""Logging of nodes: on /rosout, stamped with simulated time, and to the log sinks of the bus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

LogLevel = Literal["debug", "info", "warn", "error", "fatal"]
LOG_LEVELS: dict[LogLevel, int] = {"debug": 10, "info": 20, "warn": 30, "error": 40, "fatal": 50}
"""The numbers of rcl_interfaces/Log."""


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One line of the log."""

    time_ns: int
    level: LogLevel
    node: str
    text: str


def to_valid_utf8(text: object) -> str:
    """``text`` as UTF-8 can hold it: names of files may contain bytes that are no characters."""
    return str(text).encode("utf-8", "backslashreplace").decode()


class Logger:
    """Writes a node's lines.

    Args:
        node: Full name of the node.
        clock: Gives simulated time [ns].
        sink: Takes the records.
    """

    def __init__(self, node: str, clock: Callable[[], int], sink: Callable[[LogRecord], None]) -> None:
        self._node = node
        self._clock = clock
        self._sink = sink
        self._last_written_ns: dict[str, int] = {}

    def save_state(self) -> dict[str, int]:
        """When it last wrote what it does not write again and again [ns], as plain data."""
        return dict(self._last_written_ns)

    def load_state(self, saved: dict[str, int]) -> None:
        """Counterpart of `save`."""
        self._last_written_ns = dict(saved)

    def debug(self, text: str, throttle: float | None = None) -> None:
        """For developers of the node."""
        self._write("debug", text, throttle)

    def info(self, text: str, throttle: float | None = None) -> None:
        """What the node does."""
        self._write("info", text, throttle)

    def warn(self, text: str, throttle: float | None = None) -> None:
        """Something is not as it should be, the node goes on."""
        self._write("warn", text, throttle)

    def error(self, text: str, throttle: float | None = None) -> None:
        """Something failed."""
        self._write("error", text, throttle)

    def fatal(self, text: str, throttle: float | None = None) -> None:
        """Nothing can go on."""
        self._write("fatal", text, throttle)

    def _write(self, level: LogLevel, text: str, throttle: float | None) -> None:
        """Write, unless the same text was written less than ``throttle`` simulated seconds ago."""
        now_ns, text = self._clock(), to_valid_utf8(text)
        if throttle is not None:
            last_ns = self._last_written_ns.get(text)
            if last_ns is not None and now_ns - last_ns < throttle * 1e9:
                return
            self._last_written_ns[text] = now_ns
        self._sink(LogRecord(now_ns, level, self._node, text))
