"""The scans of any recording, each with the odometry at its moment and the place of its laser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import RecordingError
from roboyard.geometry import SE2
from roboyard.mapping.nodes.log_frames import Frames, plain
from roboyard.mapping.nodes.log_lasers import Faults, Mounts, reader
from roboyard.mapping.nodes.log_odometry import OdometryLog
from roboyard.mapping.nodes.log_topics import (
    FROM_TRANSFORMS,
    NONE,
    TRANSFORMS,
    LogTopics,
    odometry_topics,
    scan_topics,
)
from roboyard.mapping.scan import Scan
from roboyard.mapping.scan_order import ordered
from roboyard.mapping.trajectory import Trajectory
from roboyard.messages import to_nanoseconds
from roboyard.record import Recording, open_recording

MAX_BEAMS: Final = 400_000_000
"""Of all scans of a log together: 1.6 GB; ten hours of ten scans a second with a thousand beams each."""
_FEW: Final = 0.01
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ScanLog:
    """What a recording holds for making a map of it.

    Attributes:
        path: Of the recording.
        format: Of the recording: "mcap", "rosbag1", "rosbag2" or "carmen".
        scans: In strictly ascending order of time, those of all lasers together.
        lasers: Their topics.
        odometry: The whole odometry, ``T_odom_base``; without poses where there is none.
        odometry_source: Its topic, "tf", or "none".
        warnings: What was found amiss and what was made of it, one sentence each.
    """

    path: Path
    format: str
    scans: tuple[Scan, ...]
    lasers: tuple[str, ...]
    odometry: Trajectory
    odometry_source: str
    warnings: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.scans)

    def __iter__(self) -> Iterator[Scan]:
        return iter(self.scans)

    @property
    def duration(self) -> float:
        """From the first scan to the last [s]."""
        return (self.scans[-1].time_ns - self.scans[0].time_ns) * 1e-9


def read_log(path: Path | str, topics: LogTopics | None = None, progress: Progress | None = None) -> ScanLog:
    """Read the scans of a recording of any kind.

    Stamps that repeat are spread, the few that go back are left out; where many do, or were never set, the times of
    recording are taken for all messages.  Every such thing is said in ``warnings``.

    Args:
        path: CARMEN log, MCAP file, ROS 1 or ROS 2 bag, or the folder of a run.
        topics: Which topics to read.
        progress: Called now and then with the number of messages read and of all that will be.

    Raises:
        RecordingError: it cannot be read, holds no scan that can be used, or is too large.
        UnknownNameError: a wanted topic does not exist.
    """
    with open_recording(path) as recording:
        return _Reader(recording, topics or LogTopics(), progress or (lambda done, total: None)).read()


@dataclass(slots=True)
class _Raw:
    """A scan as it was recorded: its own stamp, when it was recorded, and how many poses of odometry were before it."""

    scan: Scan
    stamp_ns: int
    record_ns: int
    before: int


class _Reader:
    def __init__(self, recording: Recording, wanted: LogTopics, progress: Progress) -> None:
        self.recording, self.wanted, self.progress = recording, wanted, progress
        self.warnings: list[str] = []
        self.where = str(recording.path)
        self.frames = Frames()
        self.odometry = OdometryLog()
        self.edge: tuple[str, str] | None = None
        self.source = NONE

    def read(self) -> ScanLog:
        present = self.recording.topics
        names = scan_topics(self.recording, self.wanted)
        tree = [name for name in TRANSFORMS if name in present and present[name].count]
        for item in self.recording.messages(tree) if tree else ():
            self.frames.add(item.message)
        lasers = self.one_of_each({name: self.frame_of(name) for name in names if present[name].count})
        base = self.choose_odometry(lasers)
        mounts = Mounts(self.frames, base, lasers, self.warnings)
        if not mounts.usable:
            raise RecordingError("no laser looks along the floor", location=self.where, valid="; ".join(self.warnings))
        raw = self.collect(mounts)
        scans, track = self.put_together(raw, mounts)
        warnings = (*dict.fromkeys(self.recording.warnings), *self.warnings)
        used = tuple(sorted({scan.laser for scan in scans}))
        return ScanLog(self.recording.path, self.recording.format, tuple(scans), used, track, self.source, warnings)

    def frame_of(self, topic: str) -> str:
        """Frame of the first message on a topic."""
        first: Any = next(iter(self.recording.messages([topic]))).message
        return plain(first.header.frame_id)

    def one_of_each(self, frames: dict[str, str]) -> dict[str, str]:
        """Topics with their frames; where several carry scans of one frame, as a laser's raw and filtered, only one."""
        if self.wanted.scans:
            return frames
        topics = self.recording.topics
        chosen: dict[str, str] = {}
        for topic in sorted(frames, key=lambda name: (-topics[name].count, len(name), name)):
            frame = frames[topic]
            same = next((other for other, its in chosen.items() if frame and its == frame), None)
            if same is None:
                chosen[topic] = frame
            else:
                self.warnings.append(f"{topic} has the scans of the same laser as {same}: left out")
        roots = {topic: self.frames.chain(frame)[-1] for topic, frame in chosen.items() if frame in self.frames.edges}
        bases = {self.frames.base(chosen[topic]) for topic in roots}
        if len(bases) > 1:
            raise RecordingError(
                f"lasers of several robots: {', '.join(sorted(chosen))} on {', '.join(sorted(bases))}",
                location=self.where,
                valid="name the topics of one",
            )
        return dict(sorted(chosen.items()))

    def choose_odometry(self, lasers: dict[str, str]) -> str:
        """Decide where odometry comes from; gives the frame that it moves, the robot's base."""
        frame = next(iter(lasers.values()))
        known = frame in self.frames.edges
        for topic in odometry_topics(self.recording, self.wanted):
            first: Any = next(iter(self.recording.messages([topic]))).message
            child = plain(first.child_frame_id)
            if not known or not child or self.wanted.odometry or self.frames.way(child, frame) is not None:
                self.source = topic
                return child or (self.frames.base(frame) if known else "")
        if self.wanted.odometry != NONE:
            self.edge = self.frames.odometry_edge(frame)
            if self.edge is not None:
                self.source = FROM_TRANSFORMS
                return self.edge[1]
            if self.wanted.odometry == FROM_TRANSFORMS:
                raise RecordingError("no frame called odom above the lasers", location=self.where, valid="odom")
            self.warnings.append("there is no odometry")
        return self.frames.base(frame) if known else ""

    def collect(self, mounts: Mounts) -> list[_Raw]:
        """Read scans and odometry, in the order of recording."""
        names = set(mounts.usable)
        if self.source not in (NONE, FROM_TRANSFORMS):
            names.add(self.source)
        if self.edge is not None or mounts.moving:
            names |= {name for name in TRANSFORMS if name in self.recording.topics}
        faults = Faults()
        readers = {name: reader(name, faults) for name in mounts.usable}
        total = sum(self.recording.topics[name].count for name in names)
        found: list[_Raw] = []
        beams = 0
        for done, item in enumerate(self.recording.messages(sorted(names))):
            if done % 200 == 0:
                self.progress(done, total)
            if item.topic in readers:
                scan = readers[item.topic](item.message)
                if scan is None:
                    continue
                found.append(_Raw(scan, to_nanoseconds(item.message.header.stamp), item.time_ns, len(self.odometry)))
                beams += len(scan.ranges)
                if beams > MAX_BEAMS:
                    raise RecordingError(
                        f"holds more than {MAX_BEAMS} beams", location=self.where, valid="name fewer topics, or cut it"
                    )
            elif item.topic == self.source:
                self.odometry.add_odometry(item.message, item.time_ns)
            else:
                mounts.add(item.message)
                if self.edge is not None:
                    self.odometry.add_transforms(item.message, item.time_ns, *self.edge)
        self.progress(total, total)
        faults.say(self.warnings)
        broken = self.odometry.by_stamp.broken
        if broken:
            self.warnings.append(f"{broken} poses of odometry are not finite or have no direction: left out")
        if not found:
            raise RecordingError(
                "no scan can be used", location=self.where, valid="; ".join(self.warnings) or "scans with beams"
            )
        return found

    def put_together(self, raw: list[_Raw], mounts: Mounts) -> tuple[list[Scan], Trajectory]:
        """Scans in order, with odometry and mounts; and the whole odometry."""
        recorded = self.stamps_are_useless(raw)
        if not recorded:
            raw = self.without_late(raw)
        times, before = _times(raw, recorded), np.array([item.before for item in raw], dtype=np.int64)
        poses, known = self.odometry.at(times, before, recorded)
        if len(self.odometry) and not recorded and known.mean() < 0.5:
            by_record = self.odometry.at(_times(raw, True), before, True)
            if by_record[1].mean() > 0.9:
                self.warnings.append("scans and odometry have stamps of different clocks: times of recording are taken")
                recorded, times, (poses, known) = True, _times(raw, True), by_record
        if len(self.odometry) and not known.all():
            self.warnings.append(f"{int((~known).sum())} of {len(known)} scans are of times without odometry")
        scans = []
        for item, time_ns, pose, has in zip(raw, times.tolist(), poses.tolist(), known.tolist(), strict=True):
            mount = mounts.at(item.scan.laser, time_ns)
            sign = -1.0 if mount.upside_down else 1.0
            scans.append(
                replace(
                    item.scan,
                    time_ns=time_ns,
                    T_base_laser=mount.T_base_laser,
                    odometry=SE2(*pose) if has else None,
                    angle_min=sign * item.scan.angle_min,
                    angle_increment=sign * item.scan.angle_increment,
                )
            )
        return ordered(scans, self.warnings), self.odometry.track(recorded)

    def stamps_are_useless(self, raw: list[_Raw]) -> bool:
        """Whether the times of recording tell more than the stamps."""
        stamps = _times(raw, False)
        if len(raw) > 1 and len(np.unique(stamps)) == 1 and len(np.unique(_times(raw, True))) > 1:
            self.warnings.append("the scans' stamps were never set: times of recording are taken")
            return True
        late = _late(raw)
        if late.sum() <= max(1.0, _FEW * len(raw)):
            return False
        if bool(_late_of(raw, _times(raw, True)).any()):
            return False
        self.warnings.append(f"{int(late.sum())} stamps of scans go back: times of recording are taken")
        return True

    def without_late(self, raw: list[_Raw]) -> list[_Raw]:
        """Without the scans whose stamps go back."""
        late = _late(raw)
        if late.any():
            self.warnings.append(f"{int(late.sum())} scans whose stamps go back: left out")
        return [item for item, is_late in zip(raw, late.tolist(), strict=True) if not is_late]


def _times(raw: list[_Raw], recorded: bool) -> NDArray[np.int64]:
    return np.array([item.record_ns if recorded else item.stamp_ns for item in raw], dtype=np.int64)


def _late(raw: list[_Raw]) -> NDArray[np.bool_]:
    return _late_of(raw, _times(raw, False))


def _late_of(raw: list[_Raw], times: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which times (n,) are before one of an earlier scan of the same laser."""
    late = np.zeros(len(raw), dtype=np.bool_)
    names = np.array([item.scan.laser for item in raw])
    for name in sorted(set(names.tolist())):
        own = np.flatnonzero(names == name)
        late[own] = times[own] < np.maximum.accumulate(times[own])
    return late
