"""The laser scans of a recording in order of time, each with its odometry and the mounting pose of its laser."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError, RecordingError
from roboyard.geometry import SE2
from roboyard.mapping.nodes.recorded_frames import (
    LaserMounts,
    OdometryLog,
    RecordedFrameTree,
    ScanDefects,
    make_scan_converter,
    normalize_frame_name,
)
from roboyard.mapping.scan import LaserScan
from roboyard.mapping.trajectory import PoseTrajectory
from roboyard.messages import to_nanoseconds
from roboyard.record import Recording, open_recording

MAX_BEAMS: Final = 400_000_000
"""Of all scans of a log together: 1.6 GB; ten hours of ten scans a second with a thousand beams each."""
NOT_RECORDED: Final = "memory"
"""Format of a log whose scans are in no file."""
_MAX_BACKWARD_FRACTION: Final = 0.01
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ScanLog:
    """Scans of a recording with odometry and mounting poses: the input of mapping.

    Attributes:
        path: Of the recording.
        format: Of the recording: "mcap", "rosbag1", "rosbag2" or "carmen"; "memory" if the scans are in no file.
        scans: In strictly ascending order of time, those of all lasers together.
        lasers: Their topics.
        odometry: The whole odometry, ``T_odom_base``; without poses where there is none.
        odometry_source: Its topic, "tf", or "none".
        warnings: What was found amiss and what was made of it, one sentence each.
    """

    path: Path
    format: str
    scans: tuple[LaserScan, ...]
    lasers: tuple[str, ...]
    odometry: PoseTrajectory
    odometry_source: str
    warnings: tuple[str, ...]

    @classmethod
    def from_scans(cls, scans: Iterable[LaserScan], name: str = "scans") -> ScanLog:
        """Return a log of scans that are in no file.

        Args:
            scans: Scans in strictly ascending order of time, those of all lasers together.
            name: Name of the log.

        Raises:
            InputError: There is no scan, an element is no scan, or the times do not ascend.
        """
        if not isinstance(scans, Iterable):
            raise InputError(
                f"an object of type {type(scans).__name__} is no log",
                location=name,
                valid="a recording, a ScanLog, or scans",
            )
        scans = tuple(scans)
        for index, scan in enumerate(scans):
            if not isinstance(scan, LaserScan):
                raise InputError(f"element {index} is of type {type(scan).__name__}", location=name, valid="LaserScan")
        if not scans:
            raise InputError("there is no scan", location=name, valid="one LaserScan or more")
        if any(later.time_ns <= scan.time_ns for scan, later in pairwise(scans)):
            raise InputError("the times of the scans do not ascend", location=name, valid="strictly ascending time_ns")
        stamped_poses = [(scan.time_ns, scan.odometry) for scan in scans if scan.odometry is not None]
        odometry = PoseTrajectory(
            np.array([time_ns for time_ns, _ in stamped_poses], dtype=np.int64),
            np.array([(pose.x, pose.y, pose.theta) for _, pose in stamped_poses], dtype=np.float64).reshape(-1, 3),
        )
        lasers = tuple(sorted({scan.laser_name for scan in scans}))
        return cls(Path(name), NOT_RECORDED, scans, lasers, odometry, "scans" if stamped_poses else NO_ODOMETRY, ())

    @property
    def is_recorded(self) -> bool:
        """Return whether the log was read from a file."""
        return self.format != NOT_RECORDED

    def __len__(self) -> int:
        return len(self.scans)

    def __iter__(self) -> Iterator[LaserScan]:
        return iter(self.scans)

    @property
    def duration(self) -> float:
        """Return the time from the first scan to the last [s]."""
        return (self.scans[-1].time_ns - self.scans[0].time_ns) * 1e-9


def read_log(path: Path | str, topics: ScanLogTopics | None = None, progress: Progress | None = None) -> ScanLog:
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
        return _ScanLogReader(recording, topics or ScanLogTopics(), progress or (lambda n_read, total: None)).read()


@dataclass(slots=True)
class _RecordedScan:
    """A scan as it was recorded: its stamp, its recording time, and the number of odometry poses before it."""

    scan: LaserScan
    stamp_ns: int
    record_ns: int
    n_poses_before: int


class _ScanLogReader:
    def __init__(self, recording: Recording, selection: ScanLogTopics, progress: Progress) -> None:
        self.recording, self.selection, self.progress = recording, selection, progress
        self.warnings: list[str] = []
        self.location = str(recording.path)
        self.frames = RecordedFrameTree()
        self.odometry = OdometryLog()
        self.odometry_edge: tuple[str, str] | None = None
        self.odometry_source = NO_ODOMETRY

    def read(self) -> ScanLog:
        topics = self.recording.topics
        names = scan_topics(self.recording, self.selection)
        tf_topics = [name for name in TF_TOPICS if name in topics and topics[name].count]
        for item in self.recording.messages(tf_topics) if tf_topics else ():
            self.frames.add(item.message)
        lasers = self.deduplicate_lasers({name: self.frame_of(name) for name in names if topics[name].count})
        base = self.select_odometry(lasers)
        mounts = LaserMounts(self.frames, base, lasers, self.warnings)
        if not mounts.usable:
            raise RecordingError(
                "no laser looks along the floor", location=self.location, valid="; ".join(self.warnings)
            )
        raw = self.read_messages(mounts)
        scans, odometry = self.assemble(raw, mounts)
        warnings = (*dict.fromkeys(self.recording.warnings), *self.warnings)
        used = tuple(sorted({scan.laser_name for scan in scans}))
        return ScanLog(
            self.recording.path, self.recording.format, tuple(scans), used, odometry, self.odometry_source, warnings
        )

    def frame_of(self, topic: str) -> str:
        """Return the frame of the first message on a topic."""
        first_message: Any = next(iter(self.recording.messages([topic]))).message
        return normalize_frame_name(first_message.header.frame_id)

    def deduplicate_lasers(self, frames: dict[str, str]) -> dict[str, str]:
        """Return the topics with their frames; of several with scans of one frame, such as raw and filtered scans, only
        one.
        """
        if self.selection.scans:
            return frames
        topics = self.recording.topics
        selected: dict[str, str] = {}
        for topic in sorted(frames, key=lambda name: (-topics[name].count, len(name), name)):
            frame = frames[topic]
            duplicate = next((other for other, other_frame in selected.items() if frame and other_frame == frame), None)
            if duplicate is None:
                selected[topic] = frame
            else:
                self.warnings.append(f"{topic} is not read: it has the scans of the same laser as {duplicate}")
        roots = {
            topic: self.frames.chain_to_root(frame)[-1]
            for topic, frame in selected.items()
            if frame in self.frames.edges
        }
        bases = {self.frames.base_frame(selected[topic]) for topic in roots}
        if len(bases) > 1:
            raise RecordingError(
                f"lasers of several robots: {', '.join(sorted(selected))} on {', '.join(sorted(bases))}",
                location=self.location,
                valid="name the topics of one",
            )
        return dict(sorted(selected.items()))

    def select_odometry(self, lasers: dict[str, str]) -> str:
        """Select the source of odometry; return the frame that it moves, the robot's base."""
        frame = next(iter(lasers.values()))
        is_frame_known = frame in self.frames.edges
        for topic in odometry_topics(self.recording, self.selection):
            first_message: Any = next(iter(self.recording.messages([topic]))).message
            child_frame = normalize_frame_name(first_message.child_frame_id)
            if (
                not is_frame_known
                or not child_frame
                or self.selection.odometry
                or self.frames.path_between(child_frame, frame) is not None
            ):
                self.odometry_source = topic
                return child_frame or (self.frames.base_frame(frame) if is_frame_known else "")
        if self.selection.odometry != NO_ODOMETRY:
            self.odometry_edge = self.frames.odometry_edge(frame)
            if self.odometry_edge is not None:
                self.odometry_source = ODOMETRY_FROM_TF
                return self.odometry_edge[1]
            if self.selection.odometry == ODOMETRY_FROM_TF:
                raise RecordingError("no frame called odom above the lasers", location=self.location, valid="odom")
            self.warnings.append("there is no odometry")
        return self.frames.base_frame(frame) if is_frame_known else ""

    def read_messages(self, mounts: LaserMounts) -> list[_RecordedScan]:
        """Read scans and odometry, in the order of recording."""
        names = set(mounts.usable)
        if self.odometry_source not in (NO_ODOMETRY, ODOMETRY_FROM_TF):
            names.add(self.odometry_source)
        if self.odometry_edge is not None or mounts.has_moving_lasers:
            names |= {name for name in TF_TOPICS if name in self.recording.topics}
        defects = ScanDefects()
        converters = {name: make_scan_converter(name, defects) for name in mounts.usable}
        total = sum(self.recording.topics[name].count for name in names)
        recorded_scans: list[_RecordedScan] = []
        n_beams = 0
        for n_read, item in enumerate(self.recording.messages(sorted(names))):
            if n_read % 200 == 0:
                self.progress(n_read, total)
            if item.topic in converters:
                scan = converters[item.topic](item.message)
                if scan is None:
                    continue
                recorded_scans.append(
                    _RecordedScan(scan, to_nanoseconds(item.message.header.stamp), item.time_ns, len(self.odometry))
                )
                n_beams += len(scan.ranges)
                if n_beams > MAX_BEAMS:
                    raise RecordingError(
                        f"holds more than {MAX_BEAMS} beams",
                        location=self.location,
                        valid="name fewer topics, or cut it",
                    )
            elif item.topic == self.odometry_source:
                self.odometry.add_odometry(item.message, item.time_ns)
            else:
                mounts.add(item.message)
                if self.odometry_edge is not None:
                    self.odometry.add_transforms(item.message, item.time_ns, *self.odometry_edge)
        self.progress(total, total)
        defects.report(self.warnings)
        n_invalid = self.odometry.by_stamp.n_invalid
        if n_invalid:
            self.warnings.append(f"{n_invalid} poses of odometry dropped: not finite, or without a heading")
        if not recorded_scans:
            raise RecordingError(
                "there is no usable scan", location=self.location, valid="; ".join(self.warnings) or "scans with beams"
            )
        return recorded_scans

    def assemble(
        self, recorded_scans: list[_RecordedScan], mounts: LaserMounts
    ) -> tuple[list[LaserScan], PoseTrajectory]:
        """Return the scans in order, with odometry and mounting poses, and the whole odometry."""
        use_record_times = self.are_stamps_unusable(recorded_scans)
        if not use_record_times:
            recorded_scans = self.drop_out_of_order(recorded_scans)
        times, n_poses_before = (
            _scan_times(recorded_scans, use_record_times),
            np.array([recorded_scan.n_poses_before for recorded_scan in recorded_scans], dtype=np.int64),
        )
        poses, has_odometry = self.odometry.sample(times, n_poses_before, use_record_times)
        if len(self.odometry) and not use_record_times and has_odometry.mean() < 0.5:
            record_samples = self.odometry.sample(_scan_times(recorded_scans, True), n_poses_before, True)
            if record_samples[1].mean() > 0.9:
                self.warnings.append("scans and odometry have stamps of different clocks: recording times are used")
                use_record_times, times, (poses, has_odometry) = True, _scan_times(recorded_scans, True), record_samples
        if len(self.odometry) and not has_odometry.all():
            self.warnings.append(f"{int((~has_odometry).sum())} of {len(has_odometry)} scans have no odometry")
        scans = []
        for recorded_scan, time_ns, pose, is_known in zip(
            recorded_scans, times.tolist(), poses.tolist(), has_odometry.tolist(), strict=True
        ):
            mount = mounts.mount_at(recorded_scan.scan.laser_name, time_ns)
            sign = -1.0 if mount.upside_down else 1.0
            scans.append(
                replace(
                    recorded_scan.scan,
                    time_ns=time_ns,
                    T_base_laser=mount.T_base_laser,
                    odometry=SE2(*pose) if is_known else None,
                    angle_min=sign * recorded_scan.scan.angle_min,
                    angle_increment=sign * recorded_scan.scan.angle_increment,
                )
            )
        return sort_scans(scans, self.warnings), self.odometry.to_trajectory(use_record_times)

    def are_stamps_unusable(self, recorded_scans: list[_RecordedScan]) -> bool:
        """Return whether the stamps are unusable, so that recording times must be used."""
        stamps = _scan_times(recorded_scans, False)
        if (
            len(recorded_scans) > 1
            and len(np.unique(stamps)) == 1
            and len(np.unique(_scan_times(recorded_scans, True))) > 1
        ):
            self.warnings.append("the stamps of scans were never set: recording times are used")
            return True
        goes_back = _goes_back(recorded_scans)
        if goes_back.sum() <= max(1.0, _MAX_BACKWARD_FRACTION * len(recorded_scans)):
            return False
        if bool(_times_go_back(recorded_scans, _scan_times(recorded_scans, True)).any()):
            return False
        self.warnings.append(f"{int(goes_back.sum())} stamps of scans go back: recording times are used")
        return True

    def drop_out_of_order(self, recorded_scans: list[_RecordedScan]) -> list[_RecordedScan]:
        """Drop the scans whose stamps go back."""
        goes_back = _goes_back(recorded_scans)
        if goes_back.any():
            self.warnings.append(f"{int(goes_back.sum())} scans dropped: time stamps not increasing")
        return [item for item, is_backward in zip(recorded_scans, goes_back.tolist(), strict=True) if not is_backward]


def _scan_times(recorded_scans: list[_RecordedScan], use_record_times: bool) -> NDArray[np.int64]:
    return np.array([item.record_ns if use_record_times else item.stamp_ns for item in recorded_scans], dtype=np.int64)


def _goes_back(recorded_scans: list[_RecordedScan]) -> NDArray[np.bool_]:
    return _times_go_back(recorded_scans, _scan_times(recorded_scans, False))


def _times_go_back(recorded_scans: list[_RecordedScan], times: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which times (n,) are before an earlier scan of the same laser."""
    goes_back = np.zeros(len(recorded_scans), dtype=np.bool_)
    names = np.array([item.scan.laser_name for item in recorded_scans])
    for name in sorted(set(names.tolist())):
        laser_rows = np.flatnonzero(names == name)
        goes_back[laser_rows] = times[laser_rows] < np.maximum.accumulate(times[laser_rows])
    return goes_back


SCAN_TYPES: Final = ("sensor_msgs/msg/LaserScan", "sensor_msgs/msg/MultiEchoLaserScan")
ODOMETRY_TYPE: Final = "nav_msgs/msg/Odometry"
TF_TOPICS: Final = ("/tf", "/tf_static")
TRUTH_PREFIX: Final = "/truth/"
NO_ODOMETRY, ODOMETRY_FROM_TF = "none", "tf"


@dataclass(frozen=True, slots=True)
class ScanLogTopics:
    """Topics to read of a recording.

    Attributes:
        scans: Topics of the lasers; empty: all lasers of the robot.
        odometry: Topic of odometry, "tf" for the transforms, "none" for none; empty: a topic of odometry of the frame
            that carries the lasers, or else the transforms.
    """

    scans: tuple[str, ...] = ()
    odometry: str = ""


def scan_topics(recording: Recording, selection: ScanLogTopics) -> list[str]:
    """Return the topics of scans to read.

    Raises:
        UnknownNameError: a wanted topic does not exist.
        RecordingError: there is no scan, or a wanted topic has other messages.
    """
    topics = recording.topics
    if selection.scans:
        recording.channels_of(selection.scans)
        for name in selection.scans:
            if topics[name].type not in SCAN_TYPES:
                raise RecordingError(
                    f"{name} carries {topics[name].type}", location=str(recording.path), valid=" or ".join(SCAN_TYPES)
                )
        names = list(dict.fromkeys(selection.scans))
    else:
        names = [
            name
            for name, topic in topics.items()
            if topic.type in SCAN_TYPES and topic.count and not name.startswith(TRUTH_PREFIX)
        ]
    if not any(topics[name].count for name in names):
        available_topics = ", ".join(f"{name} ({topic.type})" for name, topic in list(topics.items())[:8])
        raise RecordingError(
            "holds no scan of a laser", location=str(recording.path), valid=f"there is {available_topics or 'nothing'}"
        )
    return names


def odometry_topics(recording: Recording, selection: ScanLogTopics) -> list[str]:
    """Return the topics of odometry to read, the most likely first; empty if only transforms remain or none is wanted.

    Raises:
        UnknownNameError: the wanted topic does not exist.
        RecordingError: the wanted topic has other messages.
    """
    topics = recording.topics
    if selection.odometry in (NO_ODOMETRY, ODOMETRY_FROM_TF):
        return []
    if selection.odometry:
        recording.channels_of((selection.odometry,))
        if topics[selection.odometry].type != ODOMETRY_TYPE:
            raise RecordingError(
                f"{selection.odometry} carries {topics[selection.odometry].type}",
                location=str(recording.path),
                valid=ODOMETRY_TYPE,
            )
        return [selection.odometry]
    candidates = [
        name
        for name, topic in topics.items()
        if topic.type == ODOMETRY_TYPE and topic.count and not name.startswith(TRUTH_PREFIX)
    ]
    return sorted(candidates, key=lambda name: (name.rpartition("/")[2] != "odom", len(name), name))


_PERIOD_NS: Final = 100_000_000
"""Between scans of a log in which no two stamps differ [ns]."""
_LONG_NS: Final = 1_000_000_000
_LONG_PERIODS: Final = 10
_MAX_BEAM_COUNT_DEVIATION: Final = 0.1
"""Share of the beams that a whole turn may lack."""


def sort_scans(scans: Sequence[LaserScan], warnings: list[str]) -> list[LaserScan]:
    """Return the scans of all lasers in strictly ascending order of time.

    Args:
        scans: In the order in which they were made; stamps of one laser may repeat but do not go back.
        warnings: Gets a sentence for each kind of thing found amiss.
    """
    by_laser: dict[str, list[LaserScan]] = {}
    for scan in scans:
        by_laser.setdefault(scan.laser_name, []).append(scan)
    mixed: list[LaserScan] = []
    for name, laser_scans in by_laser.items():
        valid_scans = _drop_partial_scans(name, _drop_duplicates(name, laser_scans, warnings), warnings)
        times = spread_equal_times(np.array([scan.time_ns for scan in valid_scans], dtype=np.int64))
        retimed_scans = [
            scan if scan.time_ns == time_ns else replace(scan, time_ns=time_ns)
            for scan, time_ns in zip(valid_scans, times.tolist(), strict=True)
        ]
        count = sum(old is not new for old, new in zip(valid_scans, retimed_scans, strict=True))
        if count:
            warnings.append(
                f"{count} scans of {name} have the stamp of the scan before: their times are spread to the next"
            )
        _report_gaps(name, times, warnings)
        mixed += retimed_scans
    mixed.sort(key=lambda scan: scan.time_ns)
    last_ns = None
    for index, scan in enumerate(mixed):
        if last_ns is not None and scan.time_ns <= last_ns:  # two lasers at one moment: no difference that matters
            mixed[index] = replace(scan, time_ns=last_ns + 1)
        last_ns = mixed[index].time_ns
    return mixed


def spread_equal_times(times_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ascending times (n,) of times that never descend: equal ones are spread evenly until the next.

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
    single_steps = steps[counts[:-1] == 1]
    usual_period = (
        int(np.median(single_steps))
        if len(single_steps)
        else (int(np.median(steps / counts[:-1])) if len(steps) else 0)
    )
    usual_period = usual_period or _PERIOD_NS
    available = np.append(steps, usual_period * counts[-1])
    intervals = np.maximum(np.minimum(available // counts, usual_period), 1)
    position_in_run = np.arange(len(times)) - np.repeat(starts, counts)
    spread_times = np.repeat(firsts, counts) + position_in_run * np.repeat(intervals, counts)
    return np.asarray(np.maximum.accumulate(spread_times - np.arange(len(times))) + np.arange(len(times)))


def _drop_duplicates(name: str, scans: list[LaserScan], warnings: list[str]) -> list[LaserScan]:
    """Drop scans that were recorded twice: with the stamp and the ranges of the scan before."""
    unique_scans = scans[:1]
    for scan in scans[1:]:
        if scan.time_ns != unique_scans[-1].time_ns or not np.array_equal(
            scan.ranges, unique_scans[-1].ranges, equal_nan=True
        ):
            unique_scans.append(scan)
    if len(unique_scans) < len(scans):
        warnings.append(f"{len(scans) - len(unique_scans)} scans of {name} dropped: recorded twice")
    return unique_scans


def _drop_partial_scans(name: str, scans: list[LaserScan], warnings: list[str]) -> list[LaserScan]:
    """Drop scans with a very different number of beams than other scans over the same angle.

    A laser that counts its beams anew in each turn stays: no number of beams stands out there.
    """
    counts, number = np.unique([len(scan.ranges) for scan in scans], return_counts=True)
    if len(counts) < 2:
        return scans
    usual_count = int(counts[number.argmax()])
    sweep_angles = [
        abs(scan.angle_increment) * (len(scan.ranges) - 1) for scan in scans if len(scan.ranges) == usual_count
    ]
    usual_sweep = float(np.median(sweep_angles))
    complete_scans = [
        scan
        for scan in scans
        if abs(len(scan.ranges) - usual_count) <= max(2.0, _MAX_BEAM_COUNT_DEVIATION * usual_count)
        or abs(abs(scan.angle_increment) * (len(scan.ranges) - 1) - usual_sweep)
        > _MAX_BEAM_COUNT_DEVIATION * usual_sweep
    ]
    n_others = sum(len(scan.ranges) != usual_count for scan in complete_scans)
    if len(complete_scans) < len(scans) and number.max() > 0.5 * len(scans):
        warnings.append(
            f"{len(scans) - len(complete_scans)} scans of {name} dropped: other numbers of beams over the same angle "
            f"than the usual {usual_count}"
        )
    else:
        complete_scans = scans
    if n_others:
        warnings.append(f"{name} has {counts[0]} to {counts[-1]} beams per scan")
    return complete_scans


def _report_gaps(name: str, times: NDArray[np.int64], warnings: list[str]) -> None:
    steps = np.diff(times)
    if not len(steps):
        return
    long_steps = np.flatnonzero(steps > max(_LONG_NS, _LONG_PERIODS * int(np.median(steps))))
    if len(long_steps):
        worst = int(long_steps[steps[long_steps].argmax()])
        warnings.append(
            f"{name} has {len(long_steps)} gaps, the longest of {steps[worst] * 1e-9:.1f} s, "
            f"{(times[worst] - times[0]) * 1e-9:.1f} s from its start"
        )
