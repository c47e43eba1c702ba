"""What a recording tells about one robot, as arrays: where it was, thought it was, was told to go, what it touched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np

from roboyard.geometry import SE2, wrap_angle
from roboyard.geometry.arrays import Array
from roboyard.messages.time import to_nanoseconds
from roboyard.record import Recording
from roboyard.scenarios.metrics import Contacts, RobotTopics
from roboyard.scenarios.metrics.rejections import MessageChecker
from roboyard.scenarios.planar import planar, scan_points, yaw_of


@dataclass(frozen=True, slots=True)
class Track:
    """Poses over time: ``time`` (n,) [s], ``x``, ``y`` (n,) [m], ``yaw`` (n,) [rad, unwrapped], ``v``, ``w`` (n,)."""

    time: Array
    x: Array
    y: Array
    yaw: Array
    v: Array
    w: Array

    def __len__(self) -> int:
        return len(self.time)

    def pose(self, time: float) -> SE2:
        """The pose at ``time`` [s], interpolated."""
        x, y, yaw = (float(np.interp(time, self.time, values)) for values in (self.x, self.y, self.yaw))
        return SE2(x, y, wrap_angle(yaw))


@dataclass(frozen=True, slots=True)
class Scan:
    """One lidar scan in the world: ``time`` [s], ``points`` (n, 2) [m], ``origin`` (2,) [m]."""

    time: float
    points: Array
    origin: Array


@dataclass(frozen=True, slots=True)
class Touch:
    """A contact episode's begin: time [s], place of the robot [m], and who touched what."""

    time: float
    x: float
    y: float
    what: str


@dataclass(frozen=True, slots=True)
class Story:
    """All that the report draws of one robot.

    Attributes:
        robot: Its name.
        truth: True motion, in the world.
        odometry: What it thought, aligned with the truth at the first common moment.
        commands: (n, 3) time [s], v [m/s], w [rad/s] as sent to the drive.
        touches: Contact episodes.
        scan: A scan from the middle of the run.
    """

    robot: str
    truth: Track
    odometry: Track
    commands: Array
    touches: tuple[Touch, ...]
    scan: Scan | None

    @property
    def moved(self) -> bool:
        """Whether it was told to drive, or moved from where it stood."""
        return len(self.commands) > 0 or bool(np.ptp(self.truth.x) + np.ptp(self.truth.y) > 1e-3)

    @property
    def errors(self) -> tuple[Array, Array, Array]:
        """Time [s], position error [m] and heading error [rad] of odometry against truth."""
        truth, odometry = self.truth, self.odometry
        if not len(truth) or not len(odometry):
            nothing = np.zeros(0)
            return nothing, nothing, nothing
        x, y = np.interp(odometry.time, truth.time, truth.x), np.interp(odometry.time, truth.time, truth.y)
        yaw = np.interp(odometry.time, truth.time, truth.yaw)
        return (
            odometry.time,
            np.hypot(odometry.x - x, odometry.y - y),
            np.asarray(wrap_angle(odometry.yaw - yaw)),
        )


def read_story(recording: Recording, robot: str, namespace: str, topics: dict[str, str] | None = None) -> Story:
    """Read what concerns ``robot``; topics that are not in the recording give empty arrays.

    Args:
        recording: Open.
        robot: Its name in the run.
        namespace: "" or "/name".
        topics: Standard names that lie elsewhere, e.g. {"odom": "/base/odom"}.

    Raises:
        RecordingError: it is damaged.
    """
    names = RobotTopics.of(robot, namespace, topics)
    command = next((name for name in (names.drive, names.command) if name in recording.topics), "")
    truth, odometry, checker = _Odometry(), _Odometry(), MessageChecker()
    checker.compare_stamps({names.odometry: names.truth})
    commands: list[tuple[float, float, float]] = []
    contacts = Contacts(names.contacts)
    takers: dict[str, Callable[[Any, int], None]] = {
        names.truth: truth.take,
        names.odometry: odometry.take,
        command: lambda m, t: commands.append((t * 1e-9, m.linear.x, m.angular.z)),
        **contacts.handlers(),
    }
    wanted = [name for name in takers if name in recording.topics]
    for item in recording.messages(wanted) if wanted else ():
        if checker.fault_of(item.topic, item.message, item.time_ns) is None:
            takers[item.topic](item.message, item.time_ns)
    true_track = truth.track()
    return Story(
        robot,
        true_track,
        _aligned(odometry.track(), true_track),
        np.asarray(commands, dtype=float).reshape(-1, 3),
        tuple(_touch(episode, true_track) for episode in contacts.episodes),
        _read_scan(recording, namespace, true_track),
    )


class _Odometry:
    """Gathers nav_msgs/Odometry."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, float, float, float, float, float]] = []

    def take(self, message: Any, time_ns: int) -> None:
        pose, twist = planar(message.pose.pose), message.twist.twist
        time_ns = to_nanoseconds(message.header.stamp) or time_ns
        self.rows.append((time_ns * 1e-9, pose.x, pose.y, pose.theta, twist.linear.x, twist.angular.z))

    def track(self) -> Track:
        rows = np.asarray(self.rows, dtype=float).reshape(-1, 6)
        return Track(rows[:, 0], rows[:, 1], rows[:, 2], np.unwrap(rows[:, 3]), rows[:, 4], rows[:, 5])


def _aligned(odometry: Track, truth: Track) -> Track:
    """The odometry in the world: its first pose laid on the true pose of that moment."""
    if not len(odometry) or not len(truth):
        return odometry
    start = SE2(float(odometry.x[0]), float(odometry.y[0]), wrap_angle(float(odometry.yaw[0])))
    T_world_odom = truth.pose(float(odometry.time[0])) @ start.inverse()
    points = T_world_odom @ np.column_stack([odometry.x, odometry.y])
    turns = np.round((T_world_odom.theta + odometry.yaw[0] - truth.yaw[0]) / (2 * pi)) * 2 * pi
    yaw = odometry.yaw + T_world_odom.theta - turns
    return Track(odometry.time, points[:, 0], points[:, 1], yaw, odometry.v, odometry.w)


def _touch(episode: tuple[int, str, str], truth: Track) -> Touch:
    time = episode[0] * 1e-9
    place = truth.pose(time) if len(truth) else SE2()
    return Touch(time, place.x, place.y, f"{episode[1]} touches {episode[2]}")


def _read_scan(recording: Recording, namespace: str, truth: Track) -> Scan | None:
    """The planar scan nearest to the middle of the run, seen from where the robot truly was."""
    names = [
        name
        for name, topic in recording.topics.items()
        if topic.type == "sensor_msgs/msg/LaserScan" and name.startswith(f"{namespace}/") and topic.count
    ]
    if not names or not len(truth):
        return None
    middle = int(0.5e9 * (truth.time[0] + truth.time[-1]))
    item = next(iter(recording.messages([names[0]], start_ns=middle)), None)
    item = item or next(iter(recording.messages([names[0]])), None)
    if item is None:
        return None
    message = item.message
    time_ns = to_nanoseconds(message.header.stamp) or item.time_ns
    T_world_sensor = truth.pose(time_ns * 1e-9) @ _sensor_pose(recording, message.header.frame_id)
    return Scan(time_ns * 1e-9, T_world_sensor @ scan_points(message), np.array([T_world_sensor.x, T_world_sensor.y]))


def _sensor_pose(recording: Recording, frame: str) -> SE2:
    """T_base_sensor by following fixed transforms up to their root; the base's own pose is the root's."""
    parents: dict[str, tuple[str, SE2]] = {}
    if "/tf_static" not in recording.topics:
        return SE2()
    for item in recording.messages(["/tf_static"]):
        for transform in item.message.transforms:
            T = transform.transform
            parents[transform.child_frame_id] = (
                transform.header.frame_id,
                SE2(T.translation.x, T.translation.y, yaw_of(T.rotation)),
            )
    pose, seen = SE2(), 0
    while frame in parents and seen < 100:
        frame, step = parents[frame]
        pose, seen = step @ pose, seen + 1
    return pose


def thinned(n: int, most: int = 1500) -> slice:
    """Every k-th of ``n`` samples, so that no more than ``most`` are left."""
    return slice(None, None, max(1, -(-n // most)))
