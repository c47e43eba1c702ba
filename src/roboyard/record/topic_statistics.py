"""Statistics of the messages of a topic in simulated time: rate, bandwidth, and delay."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

ReceivedSizes = Sequence[tuple[int, int]]
"""Time [ns] and size [bytes] of each message."""


@dataclass(frozen=True, slots=True)
class RateStatistics:
    """Rate of a topic [Hz] and the periods between its messages [s]; None where there are too few messages.

    ``rate`` is None, too, where all messages have the same time.
    """

    topic: str
    messages: int
    rate: float | None
    min_period: float | None
    max_period: float | None
    std_dev: float | None


@dataclass(frozen=True, slots=True)
class BandwidthStatistics:
    """Bandwidth of a topic [bytes per simulated second; None where unknown], and sizes of its messages [bytes]."""

    topic: str
    messages: int
    per_second: float | None
    mean: float
    smallest: int
    largest: int


@dataclass(frozen=True, slots=True)
class DelayStatistics:
    """Times from the stamps in the headers of messages to their publication [s]; None without messages."""

    topic: str
    messages: int
    mean: float | None
    min_delay: float | None
    max_delay: float | None
    std_dev: float | None


def compute_rate(topic: str, received_sizes: ReceivedSizes) -> RateStatistics:
    """Compute the rate of a topic.

    Args:
        topic: Its name.
        received_sizes: Its messages, in the order of their times.
    """
    periods = [(later - earlier) * 1e-9 for (earlier, _), (later, _) in pairwise(received_sizes)]
    if not periods:
        return RateStatistics(topic, len(received_sizes), None, None, None, None)
    mean = statistics.fmean(periods)
    rate = 1.0 / mean if mean > 0.0 else None
    return RateStatistics(topic, len(received_sizes), rate, min(periods), max(periods), statistics.pstdev(periods))


def compute_bandwidth(topic: str, received_sizes: ReceivedSizes) -> BandwidthStatistics:
    """Compute the bandwidth of a topic; arguments as for `compute_rate`."""
    sizes = [size for _, size in received_sizes]
    duration = (received_sizes[-1][0] - received_sizes[0][0]) * 1e-9 if received_sizes else 0.0
    # n messages span n - 1 periods: the bytes of the first belong to the time before
    per_second = sum(sizes[1:]) / duration if duration > 0.0 else None
    mean = statistics.fmean(sizes) if sizes else 0.0
    return BandwidthStatistics(topic, len(sizes), per_second, mean, min(sizes, default=0), max(sizes, default=0))


def compute_delay(topic: str, delays: Sequence[float]) -> DelayStatistics:
    """Compute statistics of the delays of a topic [s]."""
    if not delays:
        return DelayStatistics(topic, 0, None, None, None, None)
    return DelayStatistics(
        topic, len(delays), statistics.fmean(delays), min(delays), max(delays), statistics.pstdev(delays)
    )
