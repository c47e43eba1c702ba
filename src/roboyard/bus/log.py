"""Logging of nodes to /rosout with simulated time stamps, and to the log sinks of the bus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

LogLevel = Literal["debug", "info", "warn", "error", "fatal"]
LOG_LEVELS: dict[LogLevel, int] = {"debug": 10, "info": 20, "warn": 30, "error": 40, "fatal": 50}
"""Log levels with the numbers of rcl_interfaces/Log."""


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One log record."""

    time_ns: int
    level: LogLevel
    node: str
    text: str


def to_valid_utf8(text: object) -> str:
    """Return `text` as valid UTF-8; file names may contain bytes that are not characters."""
    return str(text).encode("utf-8", "backslashreplace").decode()


class Logger:
    """Writes the log records of a node.

    Args:
        node: Full name of the node.
        clock: Function that returns simulated time [ns].
        sink: Function that receives the records.
    """

    def __init__(self, node: str, clock: Callable[[], int], sink: Callable[[LogRecord], None]) -> None:
        self._node = node
        self._clock = clock
        self._sink = sink
        self._last_written_ns: dict[str, int] = {}

    def save_state(self) -> dict[str, int]:
        """Return the times of the last throttled messages [ns], as plain data."""
        return dict(self._last_written_ns)

    def load_state(self, saved: dict[str, int]) -> None:
        """Restore a state that `save_state` returned."""
        self._last_written_ns = dict(saved)

    def debug(self, text: str, throttle: float | None = None) -> None:
        """Write a message for the node's developers."""
        self._write("debug", text, throttle)

    def info(self, text: str, throttle: float | None = None) -> None:
        """Write a message about the node's normal operation."""
        self._write("info", text, throttle)

    def warn(self, text: str, throttle: float | None = None) -> None:
        """Write a warning: something is wrong, but the node continues."""
        self._write("warn", text, throttle)

    def error(self, text: str, throttle: float | None = None) -> None:
        """Write an error: an operation failed."""
        self._write("error", text, throttle)

    def fatal(self, text: str, throttle: float | None = None) -> None:
        """Write a fatal error: the node cannot continue."""
        self._write("fatal", text, throttle)

    def _write(self, level: LogLevel, text: str, throttle: float | None) -> None:
        """Write a message, unless the same text was written less than `throttle` simulated seconds ago."""
        now_ns, text = self._clock(), to_valid_utf8(text)
        if throttle is not None:
            last_ns = self._last_written_ns.get(text)
            if last_ns is not None and now_ns - last_ns < throttle * 1e9:
                return
            self._last_written_ns[text] = now_ns
        self._sink(LogRecord(now_ns, level, self._node, text))
