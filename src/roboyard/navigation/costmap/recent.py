"""What a sensor said lately, and whether it still speaks."""

from __future__ import annotations

import math
from typing import Any, Generic, TypeVar

from roboyard.errors import ConfigError

T = TypeVar("T")


class Recent(Generic[T]):
    """Keeps what came in for a while, as Nav2's observation buffers do.

    Args:
        persistence: How long something counts [s]; 0: only the newest does, however old.
        every: A sensor that says nothing for longer is silent [s]; infinite: it never is.
        name: Of the sensor, for messages.

    Raises:
        ConfigError: a time out of range.
    """

    def __init__(self, *, persistence: float = 0.0, every: float = math.inf, name: str = "sensor") -> None:
        if not 0.0 <= persistence <= 3600.0:
            raise ConfigError(f"persistence = {persistence}", location=name, valid="0 to 3600 s")
        if not every > 0.0:
            raise ConfigError(f"every = {every}", location=name, valid="a positive time [s], or infinite")
        self.name = name
        self._persistence_ns = round(persistence * 1e9)
        self._every = every
        self._kept: list[tuple[int, T]] = []
        self._heard_ns: int | None = None

    def add(self, item: T, time_ns: int) -> None:
        """Something came in that was measured at a time [ns]."""
        self._heard_ns = time_ns if self._heard_ns is None else max(time_ns, self._heard_ns)
        if self._persistence_ns == 0:
            if not self._kept or time_ns >= self._kept[0][0]:
                self._kept = [(time_ns, item)]
            return
        self._kept.append((time_ns, item))

    def recent(self, now_ns: int) -> list[T]:
        """What counts at a time [ns], in the order in which it came; what no longer does is forgotten."""
        if self._persistence_ns:
            self._kept = [(time_ns, item) for time_ns, item in self._kept if now_ns - time_ns <= self._persistence_ns]
        return [item for _, item in self._kept]

    def save_state(self) -> dict[str, Any]:
        """What it keeps and when it last heard something, as plain data if the items are."""
        return {"kept": list(self._kept), "heard_ns": self._heard_ns}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of ``save``."""
        self._kept, self._heard_ns = list(saved["kept"]), saved["heard_ns"]

    def silent_for(self, now_ns: int, since_ns: int = 0) -> float:
        """How long it has said nothing [s]; ``since_ns``: when one began to listen."""
        return (now_ns - (since_ns if self._heard_ns is None else self._heard_ns)) * 1e-9

    def is_silent(self, now_ns: int, since_ns: int = 0) -> bool:
        """Whether it has said nothing for longer than it may."""
        return self.silent_for(now_ns, since_ns) > self._every
