"""Frames, lasers and odometry of a recording, read without a bus."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.bus import TransformBuffer, TransformError
from roboyard.errors import MessageError
from roboyard.geometry import SE2, SE3, wrap_angle
from roboyard.mapping.scan import LaserScan
from roboyard.mapping.trajectory import PoseTrajectory
from roboyard.messages import to_nanoseconds
from roboyard.messages.convert import pose_to_se2, transform_to_se3

_STATIC_TOLERANCE: Final = 1e-6
_MAX_FRAMES: Final = 10_000
_BASE_FRAME_NAMES: Final = ("base_footprint", "base_link", "base")


def normalize_frame_name(frame: str) -> str:
    """Return the name of a frame without the leading slash of ROS 1."""
    return frame.lstrip("/")


@dataclass(slots=True)
class FrameEdge:
    """Transform from a frame to its parent.

    Attributes:
        parent: Name of the parent.
        pose: Last ``T_parent_child``.
        is_static: Whether it has never moved.
        n_transforms: Number of transforms.
    """

    parent: str
    pose: SE3
    is_static: bool = True
    n_transforms: int = 1


@dataclass(slots=True)
class RecordedFrameTree:
    """Tree of the frames of a recording, without times.

    Attributes:
        edges: By the name of the child.
        n_invalid: Number of transforms that are none: not finite, or without a turn of length 1.
    """

    edges: dict[str, FrameEdge] = field(default_factory=dict)
    n_invalid: int = 0

    def add(self, message: Any) -> None:
        """Take a tf2_msgs/TFMessage."""
        for item in message.transforms:
            parent, child = normalize_frame_name(item.header.frame_id), normalize_frame_name(item.child_frame_id)
            try:
                pose = transform_to_se3(item.transform)
            except MessageError:
                self.n_invalid += 1
                continue
            edge = self.edges.get(child)
            if edge is None or edge.parent != parent:
                if parent and child and child not in self.chain_to_root(parent) and len(self.edges) < _MAX_FRAMES:
                    self.edges[child] = FrameEdge(parent, pose)
                continue
            edge.n_transforms += 1
            if edge.is_static:
                edge.is_static = pose.almost_equal(edge.pose, _STATIC_TOLERANCE)
            edge.pose = pose

    def chain_to_root(self, frame: str) -> list[str]:
        """Return the frame, its parent, and so on, up to the root."""
        chain = [normalize_frame_name(frame)]
        while (edge := self.edges.get(chain[-1])) is not None and edge.parent not in chain:
            chain.append(edge.parent)
        return chain

    def path_between(self, target: str, frame: str) -> tuple[list[str], list[str]] | None:
        """Return the frames from each of the two up to below their common ancestor; None if they have none."""
        up, down = self.chain_to_root(target), self.chain_to_root(frame)
        common = next((name for name in up if name in down), None)
        return None if common is None else (up[: up.index(common)], down[: down.index(common)])

    def pose_in(self, target: str, frame: str) -> SE3 | None:
        """Return the last ``T_target_frame``; None if the two are not connected."""
        path = self.path_between(target, frame)
        if path is None:
            return None
        to_target, to_frame = (self._chain_pose(names) for names in path)
        return to_target.inverse() @ to_frame

    def moving_frames(self, target: str, frame: str) -> list[str]:
        """Return the frames between the two that move relative to their parents."""
        up, down = self.path_between(target, frame) or ([], [])
        return [name for name in up + down if not self.edges[name].is_static]

    def _chain_pose(self, names: list[str]) -> SE3:
        pose = SE3.identity()
        for name in names:
            pose = self.edges[name].pose @ pose
        return pose

    def odometry_edge(self, laser_frame: str) -> tuple[str, str] | None:
        """Return the names of the odometry frame above a laser and of the frame that moves in it; None if there is
        none.
        """
        chain = self.chain_to_root(laser_frame)
        for child, parent in pairwise(chain):
            if "odom" in parent.rpartition("/")[2]:
                return parent, child
        return None

    def base_frame(self, laser_frame: str) -> str:
        """Return the robot's frame: the frame that odometry moves, one with a usual name, or the last that is fixed."""
        edge = self.odometry_edge(laser_frame)
        if edge is not None:
            return edge[1]
        chain = self.chain_to_root(laser_frame)
        for name in _BASE_FRAME_NAMES:
            for frame in chain:
                if frame.rpartition("/")[2] == name:
                    return frame
        for frame, above in zip(chain, [*chain[1:], ""], strict=True):
            if not above or not self.edges[frame].is_static:
                return frame
        return chain[0]


@dataclass(slots=True)
class PoseSamples:
    """Poses in the plane over time, in flat arrays, since there may be millions."""

    times_ns: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))
    n_invalid: int = 0

    def __len__(self) -> int:
        return len(self.times_ns)

    def add(self, time_ns: int, x: float, y: float, theta: float) -> None:
        """Add a pose; one that is not finite is counted and dropped."""
        if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(theta)):
            self.n_invalid += 1
            return
        self.times_ns.append(time_ns)
        self.values.extend((x, y, theta))

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return times (n,) [ns] and poses (n, 3) [m, rad]."""
        times = np.array(self.times_ns, dtype=np.int64)
        return times, np.array(self.values, dtype=np.float64).reshape(-1, 3)


_MIN_USABLE_COSINE: Final = math.cos(math.radians(60.0))
_MIN_LEVEL_COSINE: Final = math.cos(math.radians(3.0))
_CACHE_TIME: Final = 1e9


@dataclass(frozen=True, slots=True)
class LaserMount:
    """Mounting pose of a laser on its base.

    Attributes:
        T_base_laser: Its place in the plane.
        upside_down: Its beams turn the other way round.
    """

    T_base_laser: SE2
    upside_down: bool = False

    @classmethod
    def from_transform(cls, T_base_laser: SE3) -> LaserMount:
        """Create the mounting pose from a transform in space; only its part in the plane counts."""
        R = T_base_laser.rotation_matrix()
        heading = math.atan2(R[1, 0], R[0, 0])
        return cls(SE2(T_base_laser.x, T_base_laser.y, heading), bool(R[2, 2] < 0.0))


def tilt_angle(T_base_laser: SE3) -> float:
    """Return the angle between the plane of a laser's beams and the floor [rad]."""
    return math.acos(min(1.0, abs(float(T_base_laser.rotation_matrix()[2, 2]))))


class LaserMounts:
    """Mounting poses of all lasers at any time.

    Args:
        frames: The recording's tree.
        base: The robot's own frame.
        lasers: Frame of each laser by its topic.
        warnings: Gets sentences about lasers without a known or with a tilted place.
    """

    def __init__(self, frames: RecordedFrameTree, base: str, lasers: dict[str, str], warnings: list[str]) -> None:
        self.lasers = lasers
        self.base = base
        self.usable: set[str] = set()
        self._last_mounts: dict[str, LaserMount] = {}
        self._buffer = TransformBuffer(cache_time=_CACHE_TIME)
        self._edges: dict[str, str] = {}
        for topic, frame in lasers.items():
            pose = frames.pose_in(base, frame)
            if pose is None:
                warnings.append(
                    f"no transform from {base or 'the base'} to {frame or topic}: the frames are taken for the same"
                )
                pose = SE3.identity()
            elif math.cos(tilt_angle(pose)) < _MIN_USABLE_COSINE:
                warnings.append(f"{topic} is not read: tilted by {math.degrees(tilt_angle(pose)):.0f} degrees")
                continue
            elif math.cos(tilt_angle(pose)) < _MIN_LEVEL_COSINE:
                warnings.append(
                    f"{topic} is tilted by {math.degrees(tilt_angle(pose)):.0f} degrees, and taken for horizontal"
                )
            self.usable.add(topic)
            self._last_mounts[topic] = LaserMount.from_transform(pose)
            if frames.moving_frames(base, frame):
                warnings.append(f"{topic} moves on its base: its pose is looked up for each scan")
                up, down = frames.path_between(base, frame) or ([], [])
                for name in up + down:
                    self._edges[name] = frames.edges[name].parent
                    if frames.edges[name].is_static:
                        self._buffer.insert(frames.edges[name].pose, self._edges[name], name, 0, static=True)
        self._static_frames = {name for name in self._edges if frames.edges[name].is_static}

    @property
    def has_moving_lasers(self) -> bool:
        """Return whether a laser moves on its base, so that transforms have to be read."""
        return bool(self._edges)

    def add(self, message: Any) -> None:
        """Take a tf2_msgs/TFMessage."""
        for item in message.transforms:
            child, parent = normalize_frame_name(item.child_frame_id), normalize_frame_name(item.header.frame_id)
            if child in self._static_frames or self._edges.get(child) != parent:
                continue
            try:
                pose = transform_to_se3(item.transform)
            except MessageError:
                continue
            self._buffer.insert(pose, parent, child, to_nanoseconds(item.header.stamp))

    def mount_at(self, topic: str, time_ns: int) -> LaserMount:
        """Return the mounting pose at a time; where it is unknown, the last one before."""
        if self._edges:
            try:
                return LaserMount.from_transform(self._buffer.lookup(self.base, self.lasers[topic], time_ns))
            except TransformError:
                pass
        return self._last_mounts[topic]


@dataclass(slots=True)
class ScanDefects:
    """Numbers of scans by kind of defect."""

    n_empty: int = 0
    n_invalid_angles: int = 0
    n_invalid_limits: int = 0

    def report(self, warnings: list[str]) -> None:
        """Return one sentence for each kind of defect."""
        for count, problem in (
            (self.n_empty, "dropped: no beam"),
            (self.n_invalid_angles, "dropped: angles not finite or all equal"),
            (self.n_invalid_limits, "with range_max not above range_min: the range is taken for unlimited"),
        ):
            if count:
                warnings.append(f"{count} scans {problem}")


def make_scan_converter(topic: str, defects: ScanDefects) -> Callable[[Any], LaserScan | None]:
    """Return a function that converts messages of a topic to scans of a laser at the origin of its base, at time 0.

    Args:
        topic: The topic, name of the laser.
        defects: Counts scans that cannot be used, which become None.
    """

    def convert(message: Any) -> LaserScan | None:
        ranges = _ranges(message)
        angle_min, angle_max, angle_increment = (
            float(message.angle_min),
            float(message.angle_max),
            float(message.angle_increment),
        )
        if not len(ranges):
            defects.n_empty += 1
            return None
        if angle_increment == 0.0 and len(ranges) > 1:  # a driver that leaves it to the reader
            angle_increment = (angle_max - angle_min) / (len(ranges) - 1)
        if not (math.isfinite(angle_min) and math.isfinite(angle_increment)) or (
            angle_increment == 0.0 and len(ranges) > 1
        ):
            defects.n_invalid_angles += 1
            return None
        range_min, range_max = float(message.range_min), float(message.range_max)
        range_min = range_min if math.isfinite(range_min) else 0.0
        if not range_max > range_min:
            defects.n_invalid_limits += 1
            range_max = math.inf
        time_increment = float(message.time_increment)
        return LaserScan(
            0,
            ranges,
            angle_min,
            angle_increment,
            range_min,
            range_max,
            time_increment=time_increment if math.isfinite(time_increment) and time_increment >= 0.0 else 0.0,
            laser_name=topic,
        )

    return convert


def _ranges(message: Any) -> NDArray[np.float32]:
    """Return the ranges (n,); of several echoes of a beam the first."""
    ranges = message.ranges
    if len(ranges) and hasattr(ranges[0], "echoes"):
        first = [float(item.echoes[0]) if len(item.echoes) else math.inf for item in ranges]
        return np.array(first, dtype=np.float32)
    return np.array(ranges, dtype=np.float32)


MAX_GAP_NS: Final = 1_000_000_000
"""Between two poses further apart in time nobody knows where the robot was, unless it did not move [ns]."""
MAX_EXTRAPOLATION_NS: Final = 200_000_000
"""So long before the first and after the last pose, that pose still holds [ns]."""
_MOTION_TOLERANCE: Final = 0.01


class OdometryLog:
    """Poses of odometry in the order of their recording.

    Attributes:
        by_stamp: With their own stamps.
        by_record: With the times at which they were recorded.
    """

    def __init__(self) -> None:
        self.by_stamp = PoseSamples()
        self.by_record = PoseSamples()

    def __len__(self) -> int:
        return len(self.by_stamp)

    def add_odometry(self, message: Any, time_ns: int) -> None:
        """Take a nav_msgs/Odometry recorded at ``time_ns``."""
        try:
            pose = pose_to_se2(message.pose.pose)
        except MessageError:
            self.by_stamp.n_invalid += 1
            return
        self._add(to_nanoseconds(message.header.stamp), time_ns, pose)

    def add_transforms(self, message: Any, time_ns: int, parent: str, child: str) -> None:
        """Take the transforms ``parent`` to ``child`` of a tf2_msgs/TFMessage recorded at ``time_ns``."""
        for item in message.transforms:
            if (
                normalize_frame_name(item.child_frame_id) == child
                and normalize_frame_name(item.header.frame_id) == parent
            ):
                try:
                    pose = SE2.from_se3(transform_to_se3(item.transform))
                except MessageError:
                    self.by_stamp.n_invalid += 1
                    continue
                self._add(to_nanoseconds(item.header.stamp), time_ns, pose)

    def _add(self, stamp: int, time_ns: int, pose: SE2) -> None:
        self.by_stamp.add(stamp, pose.x, pose.y, pose.theta)
        self.by_record.add(time_ns, pose.x, pose.y, pose.theta)

    def to_trajectory(self, use_record_times: bool) -> PoseTrajectory:
        """Return the poses with ascending times; of several at one time the last.

        Args:
            use_record_times: By the times of recording, not by the stamps.
        """
        times, poses = (self.by_record if use_record_times else self.by_stamp).arrays()
        if not len(times):
            return PoseTrajectory(times, poses)
        latest_times = np.maximum.accumulate(times)
        is_last = np.append(np.diff(latest_times) > 0, True)  # the last pose of each run that does not rise
        last_rows = np.flatnonzero(is_last)
        # within a run, the last pose that has the run's own time rather than one that went back
        source_rows = np.where(times == latest_times, np.arange(len(times)), 0)
        return PoseTrajectory(latest_times[last_rows], poses[np.maximum.accumulate(source_rows)[last_rows]])

    def sample(
        self, times_ns: NDArray[np.int64], n_poses_before: NDArray[np.int64], use_record_times: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return poses (m, 3) at the times of scans [m, rad], and which of them (m,) are known.

        Args:
            times_ns: (m,) [ns].
            n_poses_before: (m,) number of poses that were recorded before each scan: where stamps repeat, a scan
                belongs to the
                pose that was recorded with it.
            use_record_times: By the times of recording, not by the stamps.
        """
        trajectory = self.to_trajectory(use_record_times)
        poses, is_known = trajectory.interpolate(times_ns, max_extrapolation_ns=MAX_EXTRAPOLATION_NS)
        if len(trajectory) > 1:
            after = np.clip(np.searchsorted(trajectory.times_ns, times_ns), 1, len(trajectory) - 1)
            is_gap = trajectory.times_ns[after] - trajectory.times_ns[after - 1] > MAX_GAP_NS
            displacement = trajectory.poses[after] - trajectory.poses[after - 1]
            has_moved = (np.hypot(displacement[:, 0], displacement[:, 1]) > _MOTION_TOLERANCE) | (
                np.abs(wrap_angle(displacement[:, 2])) > _MOTION_TOLERANCE
            )
            time_to_nearest = np.minimum(
                trajectory.times_ns[after] - times_ns, times_ns - trajectory.times_ns[after - 1]
            )
            is_known &= ~(is_gap & has_moved & (time_to_nearest > MAX_EXTRAPOLATION_NS))
        all_times, all_poses = (self.by_record if use_record_times else self.by_stamp).arrays()
        is_paired = n_poses_before > 0
        is_paired[is_paired] = all_times[n_poses_before[is_paired] - 1] == times_ns[is_paired]
        poses[is_paired] = all_poses[n_poses_before[is_paired] - 1]
        return poses, is_known | is_paired
