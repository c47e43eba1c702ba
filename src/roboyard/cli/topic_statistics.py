"""Measurement of the rate, bandwidth and delay of a topic of a live run or a recording, and their text."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice

from roboyard.cli.source import DataSource
from roboyard.cli.terminal import format_size
from roboyard.compute.wall_clock import wall_seconds
from roboyard.record.topic_statistics import (
    BandwidthStatistics,
    DelayStatistics,
    RateStatistics,
    ReceivedSizes,
    compute_delay,
)

_REPORT_PERIOD = 1.0
"""Wall time between two reports about a live run [s]."""


def measure_delay(
    source: DataSource,
    topic: str,
    count: int | None,
    window: int,
    on_update: Callable[[DelayStatistics], None] | None = None,
) -> DelayStatistics:
    """Measure the delays between the stamps in the headers of messages and their publication.

    Args:
        source: A live run or a recording.
        topic: Absolute name.
        count: Number of messages; None: until the recording or run ends, or the user interrupts.
        window: Number of latest messages to evaluate.
        on_update: Called about once per wall second.

    Raises:
        InputError: The messages have no header.
    """
    from roboyard.errors import InputError
    from roboyard.messages import to_nanoseconds

    delays: deque[float] = deque(maxlen=max(window, 2))
    due = wall_seconds() + _REPORT_PERIOD
    try:
        for received in islice(source.messages([topic]), count):
            header = getattr(received.message, "header", None)
            if header is None:
                type_name = source.topic(topic).type
                raise InputError(f"{topic} has the type {type_name}, which has no header", location=source.name)
            delays.append((received.time_ns - to_nanoseconds(header.stamp)) * 1e-9)
            if on_update is not None and wall_seconds() >= due:
                on_update(compute_delay(topic, delays))
                due = wall_seconds() + _REPORT_PERIOD
    except KeyboardInterrupt:
        if not delays:
            raise
    return compute_delay(topic, delays)


def receive_sizes(
    source: DataSource, topic: str, count: int | None, window: int, on_update: Callable[[ReceivedSizes], None] | None
) -> ReceivedSizes:
    """Receive messages of a topic; return the times and sizes of the latest. Arguments as for `measure_delay`."""
    received_sizes: deque[tuple[int, int]] = deque(maxlen=max(window, 2))
    due = wall_seconds() + _REPORT_PERIOD
    for received in islice(source.messages([topic]), count):
        received_sizes.append((received.time_ns, len(received.data)))
        if on_update is not None and wall_seconds() >= due:
            on_update(received_sizes)
            due = wall_seconds() + _REPORT_PERIOD
    return received_sizes


def format_rate(found: RateStatistics) -> str:
    """Return a line about a rate, as ``ros2 topic hz`` prints it."""
    if found.min_period is None:
        return f"{found.topic}: too few messages for a rate ({found.messages})"
    average = "all messages have the same time" if found.rate is None else f"{found.rate:.3f} Hz"
    return (
        f"average rate: {average}   min: {found.min_period:.4f} s  max: {found.max_period:.4f} s  "
        f"std dev: {found.std_dev:.5f} s  window: {found.messages}"
    )


def format_bandwidth(found: BandwidthStatistics) -> str:
    """Return a line about a bandwidth, as ``ros2 topic bw`` prints it."""
    average = "unknown" if found.per_second is None else f"{format_size(found.per_second)}/s"
    return (
        f"average: {average}   mean: {format_size(found.mean)}  min: {format_size(found.smallest)}  "
        f"max: {format_size(found.largest)}  window: {found.messages}"
    )


def format_delay(found: DelayStatistics) -> str:
    """Return a line about a delay, as ``ros2 topic delay`` prints it."""
    if found.mean is None:
        return f"{found.topic}: no messages"
    return (
        f"average delay: {found.mean:.4f} s   min: {found.min_delay:.4f} s  max: {found.max_delay:.4f} s  "
        f"std dev: {found.std_dev:.5f} s  window: {found.messages}"
    )
