"""Scans of a log put in order of time: what stamps that repeat, go back or were never set are taken for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roboyard.mapping.scan import Scan

_PERIOD_NS: Final = 100_000_000
"""Between scans of a log in which no two stamps differ [ns]."""
_LONG_NS: Final = 1_000_000_000
_LONG_PERIODS: Final = 10
_FEW: Final = 0.1
"""Share of the beams that a whole turn may lack."""


def ordered(scans: Sequence[Scan], warnings: list[str]) -> list[Scan]:
    """Scans in strictly ascending order of time, those of several lasers mixed.

    Args:
        scans: In the order in which they were made; stamps of one laser may repeat but do not go back.
        warnings: Gets a sentence for each kind of thing found amiss.
    """
    by_laser: dict[str, list[Scan]] = {}
    for scan in scans:
        by_laser.setdefault(scan.laser, []).append(scan)
    mixed: list[Scan] = []
    for name, own in by_laser.items():
        kept = _whole_turns(name, _without_copies(name, own, warnings), warnings)
        times = spread(np.array([scan.time_ns for scan in kept], dtype=np.int64))
        moved = [
            scan if scan.time_ns == time_ns else replace(scan, time_ns=time_ns)
            for scan, time_ns in zip(kept, times.tolist(), strict=True)
        ]
        count = sum(old is not new for old, new in zip(kept, moved, strict=True))
        if count:
            warnings.append(f"{count} scans of {name} have the stamp of the one before: spread up to the next stamp")
        _say_gaps(name, times, warnings)
        mixed += moved
    mixed.sort(key=lambda scan: scan.time_ns)
    last_ns = None
    for index, scan in enumerate(mixed):
        if last_ns is not None and scan.time_ns <= last_ns:  # two lasers at one moment: no difference that matters
            mixed[index] = replace(scan, time_ns=last_ns + 1)
        last_ns = mixed[index].time_ns
    return mixed


def spread(times_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Times (n,) that never descend as ones that ascend: equal ones are spread evenly up to the next.

    A run of equal times does not reach further than that many usual periods.
    """
    times = np.asarray(times_ns, dtype=np.int64)
    if len(times) < 2:
        return times
    starts = np.flatnonzero(np.diff(times, prepend=times[0] - 1) > 0)
    counts = np.diff(starts, append=len(times))
    if len(starts) == len(times):
        return times
    firsts = times[starts]
    steps = np.diff(firsts)
    single = steps[counts[:-1] == 1]
    usual = int(np.median(single)) if len(single) else (int(np.median(steps / counts[:-1])) if len(steps) else 0)
    usual = usual or _PERIOD_NS
    room = np.append(steps, usual * counts[-1])
    pace = np.maximum(np.minimum(room // counts, usual), 1)
    within = np.arange(len(times)) - np.repeat(starts, counts)
    spread_times = np.repeat(firsts, counts) + within * np.repeat(pace, counts)
    return np.asarray(np.maximum.accumulate(spread_times - np.arange(len(times))) + np.arange(len(times)))


def _without_copies(name: str, scans: list[Scan], warnings: list[str]) -> list[Scan]:
    """Without scans that were logged twice: with the stamp and the ranges of the one before."""
    kept = scans[:1]
    for scan in scans[1:]:
        if scan.time_ns != kept[-1].time_ns or not np.array_equal(scan.ranges, kept[-1].ranges, equal_nan=True):
            kept.append(scan)
    if len(kept) < len(scans):
        warnings.append(f"{len(scans) - len(kept)} scans of {name} are there twice: left out")
    return kept


def _whole_turns(name: str, scans: list[Scan], warnings: list[str]) -> list[Scan]:
    """Without scans that are said to look as far round as the others and have far fewer or far more beams.

    A laser that counts its beams anew in each turn stays: no number of beams stands out there.
    """
    counts, number = np.unique([len(scan.ranges) for scan in scans], return_counts=True)
    if len(counts) < 2:
        return scans
    usual = int(counts[number.argmax()])
    turns = [abs(scan.angle_increment) * (len(scan.ranges) - 1) for scan in scans if len(scan.ranges) == usual]
    turn = float(np.median(turns))
    kept = [
        scan
        for scan in scans
        if abs(len(scan.ranges) - usual) <= max(2.0, _FEW * usual)
        or abs(abs(scan.angle_increment) * (len(scan.ranges) - 1) - turn) > _FEW * turn
    ]
    others = sum(len(scan.ranges) != usual for scan in kept)
    if len(kept) < len(scans) and number.max() > 0.5 * len(scans):
        warnings.append(
            f"{len(scans) - len(kept)} scans of {name} have other numbers of beams over the same angle than the usual "
            f"{usual}: left out"
        )
    else:
        kept = scans
    if others:
        warnings.append(f"{name} has from {counts[0]} to {counts[-1]} beams a scan")
    return kept


def _say_gaps(name: str, times: NDArray[np.int64], warnings: list[str]) -> None:
    steps = np.diff(times)
    if not len(steps):
        return
    long = np.flatnonzero(steps > max(_LONG_NS, _LONG_PERIODS * int(np.median(steps))))
    if len(long):
        worst = int(long[steps[long].argmax()])
        warnings.append(
            f"{name} has {len(long)} gaps, the longest of {steps[worst] * 1e-9:.1f} s, "
            f"{(times[worst] - times[0]) * 1e-9:.1f} s from its start"
        )
