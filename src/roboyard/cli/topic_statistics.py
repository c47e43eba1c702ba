"""Rate, bandwidth and delay of topics in simulated time."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice, pairwise
from typing import Any

from roboyard.cli.source import Source
from roboyard.cli.terminal import format_size
from roboyard.compute.wall_clock import wall_seconds

ReceivedSizes = Sequence[tuple[int, int]]
"""Time [ns] and size [bytes] of messages."""
_REPORT_PERIOD = 1.0
"""Wall time between two lines about a live run [s]."""


@dataclass(frozen=True, slots=True)
class RateStatistics:
    """Mean rate [Hz] and the times between messages [s]; None where there are too few messages."""

    topic: str
    messages: int
    rate: float | None
    min_period: float | None
    max_period: float | None
    std_dev: float | None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    def __str__(self) -> str:
        if self.min_period is None:
            return f"{self.topic}: too few messages for a rate ({self.messages})"
        average = "all at one instant" if self.rate is None else f"{self.rate:.3f} Hz"
        return (
            f"average rate: {average}   min: {self.min_period:.4f} s  max: {self.max_period:.4f} s  "
            f"std dev: {self.std_dev:.5f} s  window: {self.messages}"
        )


@dataclass(frozen=True, slots=True)
class BandwidthStatistics:
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
        average = "unknown" if self.per_second is None else f"{format_size(self.per_second)}/s"
        return (
            f"average: {average}   mean: {format_size(self.mean)}  min: {format_size(self.smallest)}  "
            f"max: {format_size(self.largest)}  "
            f"window: {self.messages}"
        )


@dataclass(frozen=True, slots=True)
class DelayStatistics:
    """Time from the stamp in a message's header to its publication [s]; None without messages."""

    topic: str
    messages: int
    mean: float | None
    min_delay: float | None
    max_delay: float | None
    std_dev: float | None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    def __str__(self) -> str:
        if self.mean is None:
            return f"{self.topic}: no messages"
        return (
            f"average delay: {self.mean:.4f} s   min: {self.min_delay:.4f} s  max: {self.max_delay:.4f} s  "
            f"std dev: {self.std_dev:.5f} s  window: {self.messages}"
        )


def measure_delay(
    source: Source,
    topic: str,
    count: int | None,
    window: int,
    on_update: Callable[[DelayStatistics], None] | None = None,
) -> DelayStatistics:
    """How old messages are when they come; arguments as for ``follow``.

    Raises:
        InputError: they have no header.
    """
    from roboyard.errors import InputError
    from roboyard.messages import to_nanoseconds

    delays: deque[float] = deque(maxlen=max(window, 2))
    due = wall_seconds() + _REPORT_PERIOD
    try:
        for received in islice(source.messages([topic]), count):
            header = getattr(received.message, "header", None)
            if header is None:
                kind = source.topic(topic).type
                raise InputError(f"{topic} carries {kind}, which has no header", location=source.name)
            delays.append((received.time_ns - to_nanoseconds(header.stamp)) * 1e-9)
            if on_update is not None and wall_seconds() >= due:
                on_update(_compute_delay(topic, delays))
                due = wall_seconds() + _REPORT_PERIOD
    except KeyboardInterrupt:
        if not delays:
            raise
    return _compute_delay(topic, delays)


def _compute_delay(topic: str, delays: Sequence[float]) -> DelayStatistics:
    if not delays:
        return DelayStatistics(topic, 0, None, None, None, None)
    return DelayStatistics(
        topic, len(delays), statistics.fmean(delays), min(delays), max(delays), statistics.pstdev(delays)
    )


def receive_sizes(
    source: Source, topic: str, count: int | None, window: int, on_update: Callable[[ReceivedSizes], None] | None
) -> ReceivedSizes:
    """Listen to a topic until ``count`` messages came or it ends.

    Args:
        source: Where.
        topic: Absolute name.
        count: How many messages; None: all of a recording, or until the run ends or somebody interrupts.
        window: How many of the latest are kept.
        shown: Called about once a second of wall time.
    """
    received_sizes: deque[tuple[int, int]] = deque(maxlen=max(window, 2))
    due = wall_seconds() + _REPORT_PERIOD
    for received in islice(source.messages([topic]), count):
        received_sizes.append((received.time_ns, len(received.data)))
        if on_update is not None and wall_seconds() >= due:
            on_update(received_sizes)
            due = wall_seconds() + _REPORT_PERIOD
    return received_sizes


def compute_rate(topic: str, received_sizes: ReceivedSizes) -> RateStatistics:
    """How regularly they came."""
    gaps = [(later - earlier) * 1e-9 for (earlier, _), (later, _) in pairwise(received_sizes)]
    if not gaps:
        return RateStatistics(topic, len(received_sizes), None, None, None, None)
    mean = statistics.fmean(gaps)
    rate = 1.0 / mean if mean > 0.0 else None
    return RateStatistics(topic, len(received_sizes), rate, min(gaps), max(gaps), statistics.pstdev(gaps))


def compute_bandwidth(topic: str, received_sizes: ReceivedSizes) -> BandwidthStatistics:
    """How much data they carried."""
    sizes = [octets for _, octets in received_sizes]
    span = (received_sizes[-1][0] - received_sizes[0][0]) * 1e-9 if received_sizes else 0.0
    # n messages span n - 1 periods: the first one's bytes belong to the time before
    per_second = sum(sizes[1:]) / span if span > 0.0 else None
    mean = statistics.fmean(sizes) if sizes else 0.0
    return BandwidthStatistics(topic, len(sizes), per_second, mean, min(sizes, default=0), max(sizes, default=0))
