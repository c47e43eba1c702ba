"""Odometry of a recording, at the moments of its scans."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import MessageError
from roboyard.geometry import SE2, wrap_angle
from roboyard.mapping.nodes.log_frames import Samples, plain
from roboyard.mapping.trajectory import Trajectory
from roboyard.messages import to_nanoseconds
from roboyard.messages.convert import pose_to_se2, transform_to_se3

GAP_NS: Final = 1_000_000_000
"""Between two poses further apart in time nobody knows where the robot was, unless it did not move [ns]."""
END_NS: Final = 200_000_000
"""So long before the first and after the last pose, that pose still holds [ns]."""
_STILL: Final = 0.01


class OdometryLog:
    """Poses of odometry in the order in which they were recorded.

    Attributes:
        by_stamp: With their own stamps.
        by_record: With the times at which they were recorded.
    """

    def __init__(self) -> None:
        self.by_stamp = Samples()
        self.by_record = Samples()

    def __len__(self) -> int:
        return len(self.by_stamp)

    def add_odometry(self, message: Any, time_ns: int) -> None:
        """Take a nav_msgs/Odometry recorded at ``time_ns``."""
        try:
            pose = pose_to_se2(message.pose.pose)
        except MessageError:
            self.by_stamp.broken += 1
            return
        self._add(to_nanoseconds(message.header.stamp), time_ns, pose)

    def add_transforms(self, message: Any, time_ns: int, parent: str, child: str) -> None:
        """Take the transforms ``parent`` to ``child`` of a tf2_msgs/TFMessage recorded at ``time_ns``."""
        for item in message.transforms:
            if plain(item.child_frame_id) == child and plain(item.header.frame_id) == parent:
                try:
                    pose = SE2.from_se3(transform_to_se3(item.transform))
                except MessageError:
                    self.by_stamp.broken += 1
                    continue
                self._add(to_nanoseconds(item.header.stamp), time_ns, pose)

    def _add(self, stamp: int, time_ns: int, pose: SE2) -> None:
        self.by_stamp.add(stamp, pose.x, pose.y, pose.theta)
        self.by_record.add(time_ns, pose.x, pose.y, pose.theta)

    def track(self, recorded: bool) -> Trajectory:
        """The poses whose times ascend; of several at one time the last.

        Args:
            recorded: By the times of recording, not by the stamps.
        """
        times, poses = (self.by_record if recorded else self.by_stamp).arrays()
        if not len(times):
            return Trajectory(times, poses)
        highest = np.maximum.accumulate(times)
        last = np.append(np.diff(highest) > 0, True)  # the last pose of each run that does not rise
        keep = np.flatnonzero(last)
        # within a run, the last pose that has the run's own time rather than one that went back
        places = np.where(times == highest, np.arange(len(times)), 0)
        return Trajectory(highest[keep], poses[np.maximum.accumulate(places)[keep]])

    def at(
        self, times_ns: NDArray[np.int64], before: NDArray[np.int64], recorded: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Poses (m, 3) at the times of scans, and (m,) which are known.

        Args:
            times_ns: (m,) [ns].
            before: (m,) number of poses that were recorded before each scan: where stamps repeat, a scan belongs to the
                pose that was recorded with it.
            recorded: By the times of recording, not by the stamps.
        """
        track = self.track(recorded)
        poses, known = track.at(times_ns, beyond_ns=END_NS)
        if len(track) > 1:
            after = np.clip(np.searchsorted(track.times_ns, times_ns), 1, len(track) - 1)
            wide = track.times_ns[after] - track.times_ns[after - 1] > GAP_NS
            step = track.poses[after] - track.poses[after - 1]
            moved = (np.hypot(step[:, 0], step[:, 1]) > _STILL) | (np.abs(wrap_angle(step[:, 2])) > _STILL)
            nearest = np.minimum(track.times_ns[after] - times_ns, times_ns - track.times_ns[after - 1])
            known &= ~(wide & moved & (nearest > END_NS))
        own_times, own_poses = (self.by_record if recorded else self.by_stamp).arrays()
        paired = before > 0
        paired[paired] = own_times[before[paired] - 1] == times_ns[paired]
        poses[paired] = own_poses[before[paired] - 1]
        return poses, known | paired
