"""Parses CARMEN logs, the format of most public 2D lidar data sets, and reads them as recordings.

Lines read (source: CARMEN's logger, ``param_daemon``/``log`` documentation, as the logs' own headers state it)::

    ODOM x y theta tv rv accel  t host t_logger
    FLASER n [range…] x y theta  odom_x odom_y odom_theta  t host t_logger       (RLASER: the rear laser)
    ROBOTLASER1 type start fov resolution max accuracy remission  n [range…]  m [remission…]
        laser_x laser_y laser_theta  robot_x robot_y robot_theta  tv rv  forward side turn  t host t_logger
    PARAM name value…

FLASER lines do not state angles.  Scans of 180 and of 181 beams start at -90° with an increment of 180°/180: with
gmapping's poses, this gives the sharpest maps of five public logs; offsets of a quarter of a degree are worse.

"Corrected" logs are the output of a SLAM program: FLASER poses are its estimates, and ODOM lines continue from the last
estimate.  An ODOM line directly after a scan, with the scan's pose and an unset stamp (0 or arbitrary), marks this
restart.  If all stamps are equal, NEFF lines (gmapping's effective number of particles) identify a corrected log.
Chaining the increments between the marks restores the raw odometry.  Where no odometry was logged between two scans,
the estimate is used.
"""

from __future__ import annotations

import gzip
import io
import math
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import RecordingError
from roboyard.geometry import SE2, SE3
from roboyard.messages import deserialize, message_type, schema, serialize, time_to_msg
from roboyard.messages.convert import make_header, pose_stamped_to_msg, pose_to_msg, transforms_to_msg
from roboyard.record.recording import (
    ChannelStatistics,
    MessageDecoder,
    RawMessage,
    RecordedChannel,
    RecordedMessage,
    Recording,
    short_error_text,
)

MAX_BEAMS = 100_000
MAX_ENTRIES = 2_000_000
"""Maximum number of scans and odometry lines of a log: more than a day at 20 per second."""
_MAX_LINE = 4 << 20
_MAX_KINDS = 1000
_MAX_PARAMETERS = 100_000
_MIN_LINE_GAP_NS = 100_000_000
"""Minimum time between lines of a log whose stamps were rounded [ns]."""
_MAX_DISTANCE = 10.0
"""Maximum plausible distance between two lines [m]."""
_LASERS = {"FLASER": "scan", "ROBOTLASER1": "scan", "RLASER": "rear_scan", "ROBOTLASER2": "rear_scan"}
_SICK_MAX_RANGE = 80.0
"""Range that means "no return" if the log does not state one [m]; SICK LMS scanners report 81.91 then."""

CarmenPose = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class LaserEntry:
    """One laser scan.

    Attributes:
        time_ns: Stamp [ns].
        name: "scan" or "rear_scan".
        ranges: (n,) distances [m].
        angle_min: Angle of the first beam in the laser frame [rad].
        angle_increment: Angle between beams [rad].
        range_max: Maximum range; larger values mean no return [m].
        pose: Pose of the laser as the line states it (x [m], y [m], theta [rad]): the estimate in a corrected log.
        odometry: Pose of the robot at the scan, from odometry.
        laser: Pose of the laser in the robot's frame.
    """

    time_ns: int
    name: str
    ranges: NDArray[np.float32]
    angle_min: float
    angle_increment: float
    range_max: float
    pose: CarmenPose
    odometry: CarmenPose
    laser: CarmenPose


@dataclass(frozen=True, slots=True)
class OdometryEntry:
    """Odometry entry: stamp [ns], pose (x [m], y [m], theta [rad]), linear [m/s] and angular velocity [rad/s]."""

    time_ns: int
    pose: CarmenPose
    linear_velocity: float
    angular_velocity: float


@dataclass(slots=True)
class CarmenLog:
    """A parsed log.

    Attributes:
        entries: Scans and odometry in file order; stamps never decrease.
        parameters: Values of PARAM lines by name.
        is_slam_output: True for the output of a SLAM program.
        warnings: Problems found, one sentence each.
    """

    entries: list[LaserEntry | OdometryEntry] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)
    is_slam_output: bool = False
    warnings: list[str] = field(default_factory=list)


def parse_carmen_log(lines: Iterable[str], location: str = "log") -> CarmenLog:
    """Parse the lines of a log.

    Args:
        lines: Text lines.
        location: Name of the log in error messages, which add the line number.

    Raises:
        RecordingError: A line is malformed, or the log has neither scans nor odometry.
    """
    return _CarmenParser(location).parse(lines)


class _CarmenParser:
    def __init__(self, location: str) -> None:
        self.location = location
        self.log = CarmenLog()
        self.last_ns = 0
        self.n_late = 0
        self.skipped_lines: dict[str, int] = {}
        self.logged_odometry: CarmenPose | None = None  # pose of the last ODOM line as the file states it
        self.raw_odometry: CarmenPose = (0.0, 0.0, 0.0)  # odometry chained across the marks
        self.previous_scan: LaserEntry | None = None  # the scan on the previous line
        self.marked_pose: CarmenPose | None = None  # pose of a SLAM mark that no odometry has followed yet
        self.n_estimated = 0
        self.scan_keywords: dict[int, str] = {}  # line keyword by index of the scan's entry
        self.raw_odometry_by_entry: dict[int, CarmenPose] = {}  # raw odometry by index of the scan's entry

    def parse(self, lines: Iterable[str]) -> CarmenLog:
        log = self.log
        for number, line in enumerate(lines, 1):
            try:
                self.parse_line(line)
            except (ValueError, OverflowError) as error:
                printable = "".join(c if c.isprintable() else " " for c in line.strip()[:60])
                problem = f"{short_error_text(error)}: '{printable}'"
                if line.endswith("\n") or not log.entries:
                    raise RecordingError(problem, location=f"{self.location}:{number}", valid="a CARMEN log") from error
                log.warnings.append(f"the last line is incomplete and was skipped ({problem})")
        if not log.entries:
            raise RecordingError(
                "the log contains no scan and no odometry", location=self.location, valid="a CARMEN log"
            )
        for index, odometry in self.raw_odometry_by_entry.items() if log.is_slam_output else ():
            entry = log.entries[index]
            if isinstance(entry, LaserEntry):
                log.entries[index] = replace(entry, odometry=odometry)
        self.drop_duplicate_scans()
        self.add_warnings()
        self.interpolate_rounded_stamps()
        return log

    def interpolate_rounded_stamps(self) -> None:
        """Replace stamps that a program rounded to six digits; only the order of such lines is known."""
        entries = self.log.entries
        instants = len({entry.time_ns for entry in entries})
        if instants * 4 >= len(entries):
            return
        self.log.warnings.append(
            f"{len(entries)} lines have only {instants} different stamps, so the stamps were rounded; lines are spaced "
            f"{_MIN_LINE_GAP_NS * 1e-9:g} s apart, or the time the robot needs at 1 m/s and 1 rad/s if that is longer"
        )
        time_ns, last = entries[0].time_ns, _robot_pose(entries[0])
        for index, entry in enumerate(entries[1:], 1):
            x, y, rotation = _relative_pose(last, _robot_pose(entry))
            last = _robot_pose(entry)
            time_ns += max(_MIN_LINE_GAP_NS, round(max(min(math.hypot(x, y), _MAX_DISTANCE), abs(rotation)) * 1e9))
            entries[index] = replace(entry, time_ns=time_ns)

    def drop_duplicate_scans(self) -> None:
        """Remove FLASER scans that the logger also wrote as ROBOTLASER1; the latter states its angles and is kept."""
        duplicate_keywords = {
            f"{plain}LASER"
            for plain, full in (("F", "1"), ("R", "2"))
            if f"ROBOTLASER{full}" in self.scan_keywords.values()
        }
        entries = [
            entry
            for index, entry in enumerate(self.log.entries)
            if self.scan_keywords.get(index) not in duplicate_keywords
        ]
        if len(entries) < len(self.log.entries):
            self.log.warnings.append(
                f"{len(self.log.entries) - len(entries)} scans without angles also exist with angles and were removed"
            )
        self.log.entries = entries

    def add_warnings(self) -> None:
        log = self.log
        if self.skipped_lines:
            kinds = ", ".join(f"{count} {word}" for word, count in list(self.skipped_lines.items())[:8])
            log.warnings.append(f"skipped lines: {kinds}")
        if self.n_estimated:
            log.warnings.append(
                f"{self.n_estimated} scans have no odometry of their own; their motion is taken from the log's SLAM "
                "estimate"
            )
        if self.n_late:
            log.warnings.append(
                f"{self.n_late} stamps decreased or were negative and were replaced by the stamp of the previous line"
            )

    def parse_line(self, line: str) -> None:
        if len(line) >= _MAX_LINE:
            raise ValueError(f"the line has {len(line)} characters or more")
        if len(self.log.entries) > MAX_ENTRIES:
            raise ValueError(f"the log has more than {MAX_ENTRIES} scans and odometry lines")
        words = line.split()
        if not words or words[0][0] in '#"':
            return
        keyword = words[0]
        if keyword == "ODOM":
            self.parse_odometry(words)
        elif keyword in ("FLASER", "RLASER"):
            self.parse_laser(words)
        elif keyword in ("ROBOTLASER1", "ROBOTLASER2"):
            self.parse_robot_laser(words)
        elif keyword == "PARAM":
            if len(words) < 3:
                raise ValueError("PARAM requires a name and a value")
            self.log.parameters[words[1]] = words[2]
            if len(self.log.parameters) > _MAX_PARAMETERS:
                raise ValueError(f"the log has more than {_MAX_PARAMETERS} parameters")
        elif keyword.isascii() and keyword.isidentifier() and keyword.isupper():  # NEFF, SYNC, RAWLASER1, …
            self.log.is_slam_output |= keyword == "NEFF"
            self.skipped_lines[keyword] = self.skipped_lines.get(keyword, 0) + 1
            if len(self.skipped_lines) > _MAX_KINDS:
                raise ValueError("the log has too many different line keywords")
        else:
            raise ValueError("unknown line keyword")

    def parse_odometry(self, words: list[str]) -> None:
        if len(words) < 8:
            raise ValueError(f"ODOM requires 9 fields, got {len(words) - 1}")
        pose, linear_velocity, angular_velocity = _pose(words[1:4]), _number(words[4]), _number(words[5])
        scan, self.previous_scan = self.previous_scan, None
        if scan is not None and scan.pose == pose:
            self.log.is_slam_output |= _number(words[7]) * 1e9 < scan.time_ns
            if self.log.is_slam_output:
                self.logged_odometry = self.marked_pose = pose
                return
        self.marked_pose = None
        self.raw_odometry = (
            pose
            if self.logged_odometry is None
            else _compose(self.raw_odometry, _relative_pose(self.logged_odometry, pose))
        )
        self.logged_odometry = pose
        self.log.entries.append(
            OdometryEntry(
                self.increasing_stamp(parse_nanoseconds(words[7])), self.raw_odometry, linear_velocity, angular_velocity
            )
        )

    def parse_laser(self, words: list[str]) -> None:
        front = words[0] == "FLASER"
        ranges, fields = _readings(words, 1)
        if len(fields) < 8:
            raise ValueError(f"{words[0]} requires 9 fields after its readings, got {len(fields)}")
        name = "front" if front else "rear"
        parameters = self.log.parameters
        offset = _number(parameters.get(f"robot_{name}laser_offset", "0"))
        range_max = _number(parameters.get(f"robot_{name}_laser_max", str(_SICK_MAX_RANGE)))
        laser = (offset, 0.0, 0.0) if front else (offset, 0.0, math.pi)
        gaps = len(ranges) - len(ranges) % 2
        increment = math.pi / gaps if gaps else 0.0
        poses = _pose(fields[0:3]), _pose(fields[3:6])
        self.add_scan(words[0], fields[6], ranges, -math.pi / 2, increment, range_max, *poses, laser)

    def parse_robot_laser(self, words: list[str]) -> None:
        if len(words) < 9:
            raise ValueError(f"{words[0]} requires 8 fields before its readings, got {len(words) - 1}")
        start, increment, range_max = _number(words[2]), _number(words[4]), _number(words[5])
        ranges, fields = _readings(words, 8)
        _, fields = _readings(fields, 0)  # remission
        if len(fields) < 12:
            raise ValueError(f"{words[0]} requires 14 fields after its readings, got {len(fields)}")
        laser_pose, robot_pose = _pose(fields[0:3]), _pose(fields[3:6])
        self.add_scan(
            words[0],
            fields[11],
            ranges,
            start,
            increment,
            range_max,
            laser_pose,
            robot_pose,
            _relative_pose(robot_pose, laser_pose),
        )

    def add_scan(
        self,
        keyword: str,
        stamp: str,
        ranges: NDArray[np.float32],
        angle_min: float,
        increment: float,
        range_max: float,
        pose: CarmenPose,
        odometry: CarmenPose,
        laser: CarmenPose,
    ) -> None:
        if self.marked_pose is not None and pose != self.marked_pose:
            self.raw_odometry = _compose(self.raw_odometry, _relative_pose(self.marked_pose, pose))
            self.logged_odometry = self.marked_pose = pose
            self.n_estimated += 1
        self.raw_odometry_by_entry[len(self.log.entries)] = self.raw_odometry
        self.scan_keywords[len(self.log.entries)] = keyword
        time_ns = self.increasing_stamp(parse_nanoseconds(stamp))
        name = _LASERS[keyword]
        self.previous_scan = LaserEntry(time_ns, name, ranges, angle_min, increment, range_max, pose, odometry, laser)
        self.log.entries.append(self.previous_scan)

    def increasing_stamp(self, time_ns: int) -> int:
        """Return the line's time; a decreasing or negative time is replaced by the time of the previous line."""
        if time_ns < self.last_ns:
            self.n_late += 1
            return self.last_ns
        self.last_ns = time_ns
        return time_ns


def _robot_pose(entry: LaserEntry | OdometryEntry) -> CarmenPose:
    return entry.odometry if isinstance(entry, LaserEntry) else entry.pose


def parse_nanoseconds(text: str) -> int:
    """Convert a stamp in seconds to exact nanoseconds; a float cannot represent 1e9 s with nanosecond digits."""
    integer_part, point, fraction = text.partition(".")
    if (
        integer_part.isdecimal()
        and (not point or fraction.isdecimal())
        and integer_part.isascii()
        and len(integer_part) < 18
    ):
        return int(integer_part) * 10**9 + int(fraction[:9].ljust(9, "0") or "0")
    seconds = float(text)
    if not abs(seconds) < 9e9:
        raise ValueError(f"'{text}' is not a stamp in seconds")
    return round(seconds * 1e9)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"'{text}' is not finite")
    return value


def _pose(words: list[str]) -> CarmenPose:
    return _number(words[0]), _number(words[1]), _number(words[2])


def _readings(words: list[str], index: int) -> tuple[NDArray[np.float32], list[str]]:
    """Return the counted readings from word `index` on, and the remaining words."""
    if len(words) <= index:
        raise ValueError("the number of readings is missing")
    count = int(words[index])
    if not 0 <= count <= MAX_BEAMS or index + 1 + count > len(words):
        raise ValueError(f"the line announces {count} readings, but {len(words) - index - 1} fields follow")
    values = [float(word) for word in words[index + 1 : index + 1 + count]]
    return np.asarray(values, dtype=np.float32), words[index + 1 + count :]


def _compose(first: CarmenPose, second: CarmenPose) -> CarmenPose:
    """Return the pose `second`, given in the frame of `first`, in the frame of `first`'s parent."""
    pose = SE2(*first) @ SE2(*second)
    return pose.x, pose.y, pose.theta


def _relative_pose(first: CarmenPose, second: CarmenPose) -> CarmenPose:
    """Return `second` relative to `first`."""
    pose = SE2(*first).inverse() @ SE2(*second)
    return pose.x, pose.y, pose.theta


_MAX_TEXT = 1 << 30
_PUBLISHER = "carmen"
_TYPES = {
    "/scan": "sensor_msgs/msg/LaserScan",
    "/rear_scan": "sensor_msgs/msg/LaserScan",
    "/odom": "nav_msgs/msg/Odometry",
    "/tf": "tf2_msgs/msg/TFMessage",
    "/tf_static": "tf2_msgs/msg/TFMessage",
    "/corrected_pose": "geometry_msgs/msg/PoseStamped",
}
_FRAMES = {"scan": "laser", "rear_scan": "rear_laser"}


class CarmenRecording(Recording):
    """CARMEN log file (``.clf`` or ``.log``, optionally gzipped).

    Topics: ``/scan`` (and ``/rear_scan``), ``/odom`` with ``/tf`` odom → base_link, ``/tf_static`` base_link → laser.
    The output of a SLAM program also has its estimate as ``/corrected_pose`` in the frame ``map``.

    Args:
        path: The file.

    Raises:
        RecordingError: The file cannot be read, or a line is malformed (the message states its number).
    """

    format = "carmen"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        log = parse_carmen_log(self._lines(), str(path))
        self.metadata = log.parameters
        self.warnings += log.warnings
        self._log = log
        statistics: dict[str, ChannelStatistics] = {}
        for time_ns, topic, _ in _log_messages(log):
            statistics.setdefault(topic, ChannelStatistics()).add(time_ns)
        self.channels = tuple(
            RecordedChannel(
                topic,
                _TYPES[topic],
                _PUBLISHER,
                schema(_TYPES[topic]),
                latched=topic == "/tf_static",
                count=channel_statistics.count,
                start_ns=channel_statistics.start_ns,
                end_ns=channel_statistics.end_ns,
            )
            for topic, channel_statistics in sorted(statistics.items())
        )

    def _lines(self) -> Iterator[str]:
        """Iterate over the lines of the file; a truncated gzip stream ends the iteration with a warning."""
        read = 0
        try:
            with self.path.open("rb") as raw:
                is_gzipped = raw.read(2) == b"\x1f\x8b"
                raw.seek(0)
                file = gzip.GzipFile(fileobj=raw) if is_gzipped else raw
                with io.TextIOWrapper(file, encoding="ascii", errors="replace", newline="\n") as text:
                    while line := text.readline(_MAX_LINE):
                        read += len(line)
                        if read > _MAX_TEXT:
                            raise RecordingError(
                                f"the file has more than {_MAX_TEXT} characters", location=str(self.path)
                            )
                        yield line
        except EOFError:
            self.is_complete = False
            self.warnings.append("the gzipped file is truncated; the complete part was read")
        except (OSError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or error
            raise RecordingError(f"cannot be read: {reason}", location=str(self.path)) from error

    def _raw_messages(self, channels: Collection[RecordedChannel], start_ns: int, end_ns: int) -> Iterator[RawMessage]:
        by_topic = {channel.topic: channel for channel in channels}
        for time_ns, topic, make in _log_messages(self._log):
            if topic in by_topic and start_ns <= time_ns <= end_ns:
                yield time_ns, by_topic[topic], serialize(make())

    def _decoded_messages(self, decoders: Any, start_ns: int, end_ns: int) -> Iterator[RecordedMessage]:
        topics = {channel.topic for channel in decoders}
        for time_ns, topic, make in _log_messages(self._log):
            if topic in topics and start_ns <= time_ns <= end_ns:
                yield RecordedMessage(time_ns, topic, make(), _PUBLISHER)

    def _make_decoder(self, channel: RecordedChannel) -> MessageDecoder:
        name = channel.type
        return lambda data: deserialize(data, name)


_LogMessage = tuple[int, str, Callable[[], Any]]


def _log_messages(log: CarmenLog) -> Iterator[_LogMessage]:
    """Iterate over time, topic and factory function of the messages in a log, in order; most are never built."""
    scans = [entry for entry in log.entries if isinstance(entry, LaserEntry)]
    lasers = {scan.name: scan.laser for scan in reversed(scans)}
    if lasers:
        first_ns = log.entries[0].time_ns
        mounted = [(_se3(pose), "base_link", _FRAMES[name]) for name, pose in sorted(lasers.items(), reverse=True)]
        yield first_ns, "/tf_static", partial(transforms_to_msg, mounted, first_ns)
    periods = _periods(scans)
    last_odometry_ns = -1
    for entry in log.entries:
        time_ns = entry.time_ns
        if isinstance(entry, OdometryEntry):
            last_odometry_ns = time_ns
            yield from _odometry_messages(time_ns, entry.pose, entry.linear_velocity, entry.angular_velocity)
            continue
        if last_odometry_ns != time_ns:
            last_odometry_ns = time_ns
            yield from _odometry_messages(time_ns, entry.odometry, 0.0, 0.0)
        if log.is_slam_output:
            yield time_ns, "/corrected_pose", partial(_corrected_pose_message, time_ns, entry.pose)
        yield time_ns, f"/{entry.name}", partial(_scan_message, entry, periods[entry.name])


def _periods(scans: list[LaserEntry]) -> dict[str, float]:
    """Compute the median time between the scans of each laser [s]."""
    periods = {}
    for name in sorted({scan.name for scan in scans}):
        times = np.array([scan.time_ns for scan in scans if scan.name == name], dtype=np.int64)
        periods[name] = float(np.median(np.diff(times))) * 1e-9 if len(times) > 1 else 0.0
    return periods


def _scan_message(line: LaserEntry, period: float) -> Any:
    message = message_type("sensor_msgs/msg/LaserScan")()
    message.header = make_header(_FRAMES[line.name], line.time_ns)
    message.angle_min = line.angle_min
    message.angle_increment = line.angle_increment
    message.angle_max = line.angle_min + line.angle_increment * max(len(line.ranges) - 1, 0)
    message.scan_time = period
    message.range_max = line.range_max
    message.ranges = line.ranges
    return message


def _odometry_messages(
    time_ns: int, pose: CarmenPose, linear_velocity: float, angular_velocity: float
) -> Iterator[_LogMessage]:
    yield time_ns, "/odom", partial(_odometry_message, time_ns, pose, linear_velocity, angular_velocity)
    yield time_ns, "/tf", partial(_transform_message, time_ns, pose)


def _odometry_message(time_ns: int, pose: CarmenPose, linear_velocity: float, angular_velocity: float) -> Any:
    message = message_type("nav_msgs/msg/Odometry")()
    message.header.stamp, message.header.frame_id = time_to_msg(time_ns), "odom"
    message.child_frame_id = "base_link"
    message.pose.pose = pose_to_msg(_se3(pose))
    message.twist.twist.linear.x, message.twist.twist.angular.z = linear_velocity, angular_velocity
    return message


def _transform_message(time_ns: int, pose: CarmenPose) -> Any:
    return transforms_to_msg([(_se3(pose), "odom", "base_link")], time_ns)


def _corrected_pose_message(time_ns: int, pose: CarmenPose) -> Any:
    return pose_stamped_to_msg(_se3(pose), "map", time_ns)


def _se3(pose: CarmenPose) -> SE3:
    return SE3.from_xyz_rpy((pose[0], pose[1], 0.0), (0.0, 0.0, pose[2]))
