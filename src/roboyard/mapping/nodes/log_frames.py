"""The frames of a recording: where its lasers are mounted, and which frame odometry moves."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import MessageError
from roboyard.geometry import SE3
from roboyard.messages.convert import transform_to_se3

_STILL: Final = 1e-6
_MAX_FRAMES: Final = 10_000
_BASES: Final = ("base_footprint", "base_link", "base")


def plain(frame: str) -> str:
    """A frame's name without the slash that ROS 1 put before it."""
    return frame.lstrip("/")


@dataclass(slots=True)
class Edge:
    """One frame in its parent.

    Attributes:
        parent: Name of the parent.
        pose: Last ``T_parent_child``.
        still: Whether it has never moved.
        count: Number of transforms.
    """

    parent: str
    pose: SE3
    still: bool = True
    count: int = 1


@dataclass(slots=True)
class Frames:
    """The tree of a recording's transforms, without the times.

    Attributes:
        edges: By the name of the child.
        broken: Number of transforms that are none: not finite, or without a turn of length 1.
    """

    edges: dict[str, Edge] = field(default_factory=dict)
    broken: int = 0

    def add(self, message: Any) -> None:
        """Take a tf2_msgs/TFMessage."""
        for item in message.transforms:
            parent, child = plain(item.header.frame_id), plain(item.child_frame_id)
            try:
                pose = transform_to_se3(item.transform)
            except MessageError:
                self.broken += 1
                continue
            edge = self.edges.get(child)
            if edge is None or edge.parent != parent:
                if parent and child and child not in self.chain(parent) and len(self.edges) < _MAX_FRAMES:
                    self.edges[child] = Edge(parent, pose)
                continue
            edge.count += 1
            if edge.still:
                edge.still = pose.almost_equal(edge.pose, _STILL)
            edge.pose = pose

    def chain(self, frame: str) -> list[str]:
        """The frame, its parent, and so on to the root."""
        chain = [plain(frame)]
        while (edge := self.edges.get(chain[-1])) is not None and edge.parent not in chain:
            chain.append(edge.parent)
        return chain

    def way(self, target: str, frame: str) -> tuple[list[str], list[str]] | None:
        """Frames from each of the two up to below what both hang under; None when they hang under nothing common."""
        up, down = self.chain(target), self.chain(frame)
        common = next((name for name in up if name in down), None)
        return None if common is None else (up[: up.index(common)], down[: down.index(common)])

    def pose_in(self, target: str, frame: str) -> SE3 | None:
        """``T_target_frame`` as it was last; None when the two are not connected."""
        way = self.way(target, frame)
        if way is None:
            return None
        to_target, to_frame = (self._product(names) for names in way)
        return to_target.inverse() @ to_frame

    def moving(self, target: str, frame: str) -> list[str]:
        """Frames between the two that move in their parents."""
        up, down = self.way(target, frame) or ([], [])
        return [name for name in up + down if not self.edges[name].still]

    def _product(self, names: list[str]) -> SE3:
        pose = SE3.identity()
        for name in names:
            pose = self.edges[name].pose @ pose
        return pose

    def odometry_edge(self, laser_frame: str) -> tuple[str, str] | None:
        """Names of the odometry frame above a laser and of the frame that moves in it; None when there is none."""
        chain = self.chain(laser_frame)
        for child, parent in pairwise(chain):
            if "odom" in parent.rpartition("/")[2]:
                return parent, child
        return None

    def base(self, laser_frame: str) -> str:
        """The robot's own frame: the one that odometry moves, one with a usual name, or the last that is fixed."""
        edge = self.odometry_edge(laser_frame)
        if edge is not None:
            return edge[1]
        chain = self.chain(laser_frame)
        for name in _BASES:
            for frame in chain:
                if frame.rpartition("/")[2] == name:
                    return frame
        for frame, above in zip(chain, [*chain[1:], ""], strict=True):
            if not above or not self.edges[frame].still:
                return frame
        return chain[0]


@dataclass(slots=True)
class Samples:
    """Poses in the plane over time, as they come in; flat arrays, since there may be millions."""

    times_ns: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))
    broken: int = 0

    def __len__(self) -> int:
        return len(self.times_ns)

    def add(self, time_ns: int, x: float, y: float, theta: float) -> None:
        """Take one pose; one that is not finite is counted and left out."""
        if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(theta)):
            self.broken += 1
            return
        self.times_ns.append(time_ns)
        self.values.extend((x, y, theta))

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Times (n,) [ns] and poses (n, 3)."""
        times = np.array(self.times_ns, dtype=np.int64)
        return times, np.array(self.values, dtype=np.float64).reshape(-1, 3)
