"""Presents a CARMEN log as a recording of ROS 2 messages: scans, odometry and transforms."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from roboyard.errors import RecordingError
from roboyard.geometry import SE3
from roboyard.messages import deserialize, message_type, schema, serialize, time_to_msg
from roboyard.messages.convert import make_header, pose_stamped_to_msg, pose_to_msg, transforms_to_msg
from roboyard.record.carmen_log import CarmenLog, CarmenPose, LaserEntry, OdometryEntry, parse_carmen_log
from roboyard.record.recording import (
    ChannelStatistics,
    MessageDecoder,
    RawMessage,
    RecordedChannel,
    RecordedMessage,
    Recording,
)

_MAX_TEXT = 1 << 30
_MAX_LINE = 4 << 20
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
