"""Rates and bandwidths of topics over simulated time."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice, pairwise
from typing import Any

from roboyard.cli.lookup import Source
from roboyard.cli.terminal import size
from roboyard.compute.wall_clock import wall_seconds

Seen = Sequence[tuple[int, int]]
"""Time [ns] and size [bytes] of messages."""
_EVERY = 1.0
"""Wall time between two lines about a live run [s]."""


@dataclass(frozen=True, slots=True)
class Frequency:
    """Mean rate [Hz] and the times between messages [s]; None where there are too few messages."""

    topic: str
    messages: int
    rate: float | None
    shortest: float | None
    longest: float | None
    deviation: float | None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    def __str__(self) -> str:
        if self.shortest is None:
            return f"{self.topic}: too few messages for a rate ({self.messages})"
        average = "all at one instant" if self.rate is None else f"{self.rate:.3f} Hz"
        return (
            f"average rate: {average}   min: {self.shortest:.4f} s  max: {self.longest:.4f} s  "
            f"std dev: {self.deviation:.5f} s  window: {self.messages}"
        )


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Bytes per simulated second, and sizes of messages [bytes]."""

    topic: str
    messages: int
    per_second: float | None
    mean: float
    smallest: int
    largest: int

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    def __str__(self) -> str:
        average = "unknown" if self.per_second is None else f"{size(self.per_second)}/s"
        return (
            f"average: {average}   mean: {size(self.mean)}  min: {size(self.smallest)}  max: {size(self.largest)}  "
            f"window: {self.messages}"
        )


@dataclass(frozen=True, slots=True)
class Age:
    """Time from the stamp in a message's header to its publication [s]; None without messages."""

    topic: str
    messages: int
    mean: float | None
    shortest: float | None
    longest: float | None
    deviation: float | None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    def __str__(self) -> str:
        if self.mean is None:
            return f"{self.topic}: no messages"
        return (
            f"average delay: {self.mean:.4f} s   min: {self.shortest:.4f} s  max: {self.longest:.4f} s  "
            f"std dev: {self.deviation:.5f} s  window: {self.messages}"
        )


def ages(
    source: Source, topic: str, count: int | None, window: int, shown: Callable[[Age], None] | None = None
) -> Age:  # fmt: skip
    """How old messages are when they come; arguments as for ``follow``.

    Raises:
        InputError: they have no header.
    """
    from roboyard.errors import InputError
    from roboyard.messages import to_nanoseconds

    seen: deque[float] = deque(maxlen=max(window, 2))
    due = wall_seconds() + _EVERY
    try:
        for heard in islice(source.messages([topic]), count):
            header = getattr(heard.message, "header", None)
            if header is None:
                kind = source.topic(topic).type
                raise InputError(f"{topic} carries {kind}, which has no header", location=source.where)
            seen.append((heard.time_ns - to_nanoseconds(header.stamp)) * 1e-9)
            if shown is not None and wall_seconds() >= due:
                shown(_age_of(topic, seen))
                due = wall_seconds() + _EVERY
    except KeyboardInterrupt:
        if not seen:
            raise
    return _age_of(topic, seen)


def _age_of(topic: str, seen: Sequence[float]) -> Age:
    if not seen:
        return Age(topic, 0, None, None, None, None)
    return Age(topic, len(seen), statistics.fmean(seen), min(seen), max(seen), statistics.pstdev(seen))


def follow(source: Source, topic: str, count: int | None, window: int, shown: Callable[[Seen], None] | None) -> Seen:
    """Listen to a topic until ``count`` messages came or it ends.

    Args:
        source: Where.
        topic: Absolute name.
        count: How many messages; None: all of a recording, or until the run ends or somebody interrupts.
        window: How many of the latest are kept.
        shown: Called about once a second of wall time.
    """
    seen: deque[tuple[int, int]] = deque(maxlen=max(window, 2))
    due = wall_seconds() + _EVERY
    for heard in islice(source.messages([topic]), count):
        seen.append((heard.time_ns, len(heard.data)))
        if shown is not None and wall_seconds() >= due:
            shown(seen)
            due = wall_seconds() + _EVERY
    return seen


def rate_of(topic: str, seen: Seen) -> Frequency:
    """How regularly they came."""
    gaps = [(later - earlier) * 1e-9 for (earlier, _), (later, _) in pairwise(seen)]
    if not gaps:
        return Frequency(topic, len(seen), None, None, None, None)
    mean = statistics.fmean(gaps)
    rate = 1.0 / mean if mean > 0.0 else None
    return Frequency(topic, len(seen), rate, min(gaps), max(gaps), statistics.pstdev(gaps))


def bandwidth_of(topic: str, seen: Seen) -> Bandwidth:
    """How much data they carried."""
    sizes = [octets for _, octets in seen]
    span = (seen[-1][0] - seen[0][0]) * 1e-9 if seen else 0.0
    # n messages span n - 1 periods: the first one's bytes belong to the time before
    per_second = sum(sizes[1:]) / span if span > 0.0 else None
    mean = statistics.fmean(sizes) if sizes else 0.0
    return Bandwidth(topic, len(sizes), per_second, mean, min(sizes, default=0), max(sizes, default=0))
