"""Nav2's leaves and decorators about paths: how long, how near, whether still free."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from roboyard.behavior.errors import PortError
from roboyard.behavior.kinds import Action, Condition, Decorator
from roboyard.behavior.node import TreeNode
from roboyard.behavior.nodes.sending import UNUSED, OnBus
from roboyard.behavior.ports import Port, input_port, output_port
from roboyard.behavior.status import FAILURE, RUNNING, SKIPPED, SUCCESS, Status
from roboyard.geometry import SE2
from roboyard.messages import msg
from roboyard.messages.convert import grid_origin, grid_to_array, path_to_array

_PATH = input_port(object, doc="nav_msgs/Path")
_TOUCHES = 99
"""What a cell of a costmap says where the robot's middle means that it touches something."""
_FRAMES: dict[str, Port] = {"global_frame": UNUSED, "robot_base_frame": UNUSED, "max_robot_pose_search_dist": UNUSED}


def lengths(path: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far along the path each of its (n, 3) poses is [m]."""
    steps = np.hypot(*np.diff(path[:, :2], axis=0).T)
    return np.concatenate(([0.0], np.cumsum(steps)))


def nearest(path: NDArray[np.float64], pose: SE2) -> int:
    """Which of a path's (n, 3) poses is nearest to a pose."""
    return int(np.argmin(np.hypot(path[:, 0] - pose.x, path[:, 1] - pose.y)))


def cut(path: Any, first: int, last: int) -> Any:
    """A nav_msgs/Path of some of its poses, from one to another that is left out."""
    return msg.Path(header=path.header, poses=list(path.poses[first:last]))


class IsGoalNearby(OnBus, Condition):
    """Whether less of the path is left than so much."""

    ports: ClassVar = {"path": _PATH, "proximity_threshold": input_port(float, 1.0, "Of what is left [m]"), **_FRAMES}

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        here = self.here()
        try:
            path = path_to_array(self.input("path"))
        except PortError:
            return FAILURE
        if here is None or not len(path):
            return FAILURE
        far = lengths(path)
        return SUCCESS if far[-1] - far[nearest(path, here)] < self.input("proximity_threshold") else FAILURE


class TruncatePath(Action):
    """Takes the end off a path."""

    ports: ClassVar = {
        "input_path": _PATH,
        "distance": input_port(float, 1.0, "How much [m]"),
        "output_path": output_port(object, doc="nav_msgs/Path"),
    }

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        path = self.input("input_path")
        poses = path_to_array(path)
        if not len(poses):
            return FAILURE
        far = lengths(poses)
        self.output("output_path", cut(path, 0, max(1, int(np.sum(far <= far[-1] - self.input("distance"))))))
        return SUCCESS


class TruncatePathLocal(OnBus, Action):
    """Cuts out of a path what is near the robot."""

    ports: ClassVar = {
        "input_path": _PATH,
        "distance_forward": input_port(float, 8.0, "Kept before it [m]; -1: all"),
        "distance_backward": input_port(float, 4.0, "Kept behind it [m]"),
        "pose": input_port(SE2, doc="x;y;yaw in the place of the robot's", optional=True),
        "angular_distance_weight": UNUSED,
        "transform_tolerance": UNUSED,
        "robot_base_frame": UNUSED,
        "max_robot_pose_search_dist": UNUSED,
        "output_path": output_port(object, doc="nav_msgs/Path"),
    }

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        path = self.input("input_path")
        poses = path_to_array(path)
        here = self.input("pose") if "pose" in self.inputs else self.here()
        if here is None or not len(poses):
            return FAILURE
        far, forward = lengths(poses), self.input("distance_forward")
        middle = nearest(poses, here)
        kept = far >= far[middle] - self.input("distance_backward")
        if forward >= 0.0:
            kept &= far <= far[middle] + forward
        kept[middle] = True
        which = np.flatnonzero(kept)
        self.output("output_path", cut(path, int(which[0]), int(which[-1]) + 1))
        return SUCCESS


class GetPoseFromPath(Action):
    """One pose of a path."""

    ports: ClassVar = {
        "path": _PATH,
        "index": input_port(int, 0, "Which; -1: the last"),
        "pose": output_port(SE2, doc="x;y;yaw"),
    }

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        poses, index = path_to_array(self.input("path")), self.input("index")
        if not -len(poses) <= index < len(poses):
            return FAILURE
        self.output("pose", SE2(*map(float, poses[index])))
        return SUCCESS


class ConcatenatePaths(Action):
    """Joins two paths, of which one may be missing."""

    ports: ClassVar = {
        "input_path1": input_port(object, doc="nav_msgs/Path", optional=True),
        "input_path2": input_port(object, doc="nav_msgs/Path", optional=True),
        "output_path": output_port(object, doc="nav_msgs/Path"),
    }

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        paths = []
        for port in ("input_path1", "input_path2"):
            try:
                paths.append(self.input(port))
            except PortError:
                continue
        if not paths:
            return FAILURE
        self.output(
            "output_path", msg.Path(header=paths[0].header, poses=[one for path in paths for one in path.poses])
        )
        return SUCCESS


class ValidatePath(OnBus, Condition):
    """Whether a path is still free in the navigator's costmap."""

    ports: ClassVar = {
        "path": _PATH,
        "max_cost": UNUSED,
        "consider_unknown_as_obstacle": input_port(bool, False),
        "layer_name": UNUSED,
        "footprint": UNUSED,
        "stop_at_first_collision": UNUSED,
        "max_lookahead_distance": UNUSED,
        "service_name": UNUSED,
        "server_timeout": UNUSED,
        "collision_poses": output_port(object),
    }
    state_fields = ("_costmap",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._costmap: Any = None
        if self.desk is not None:
            self.keep(self.desk.node.subscribe("global_costmap/costmap", msg.OccupancyGrid, self._take))

    def _take(self, message: Any) -> None:
        self._costmap = message

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        try:
            path = path_to_array(self.input("path"))
        except PortError:
            return FAILURE
        if self._costmap is None or not len(path):
            return FAILURE
        cells = self._cells(path)
        unknown = self.input("consider_unknown_as_obstacle")
        return FAILURE if np.any(cells >= _TOUCHES) or (unknown and np.any(cells < 0)) else SUCCESS

    def _cells(self, path: NDArray[np.float64]) -> NDArray[np.int8]:
        """What the costmap says below a path's poses; -1 outside of it."""
        grid, T_grid_map = grid_to_array(self._costmap), grid_origin(self._costmap).inverse()
        cos, sin = math.cos(T_grid_map.theta), math.sin(T_grid_map.theta)
        x = T_grid_map.x + cos * path[:, 0] - sin * path[:, 1]
        y = T_grid_map.y + sin * path[:, 0] + cos * path[:, 1]
        rows, columns = (np.floor(one / self._costmap.info.resolution).astype(int) for one in (y, x))
        inside = (rows >= 0) & (columns >= 0) & (rows < grid.shape[0]) & (columns < grid.shape[1])
        return np.where(inside, grid[np.where(inside, rows, 0), np.where(inside, columns, 0)], np.int8(-1))


class PathLongerOnApproach(Decorator):
    """Does its child where a new path to the same goal is much longer than the last one, and the goal was near."""

    ports: ClassVar = {
        "path": _PATH,
        "prox_len": input_port(float, 3.0, "How near: length of the last path [m]"),
        "length_factor": input_port(float, 2.0, "How much longer"),
    }
    state_fields = ("_last",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._last: tuple[float, tuple[float, ...]] | None = None

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        path = path_to_array(self.input("path"))
        new = (float(lengths(path)[-1]), tuple(map(float, path[-1]))) if len(path) else None
        self.set_status(RUNNING)
        last = self._last
        if new and last and new[1] == last[1]:
            near, longer = last[0] < self.input("prox_len"), new[0] > self.input("length_factor") * last[0]
            if near and longer:
                answer = self.children[0].execute()
                if answer is not RUNNING and answer is not SKIPPED:
                    self._last = new
                    self.reset_child()
                return answer
        self._last = new
        return SUCCESS


READY: tuple[type[TreeNode], ...] = (
    IsGoalNearby, TruncatePath, TruncatePathLocal, GetPoseFromPath, ConcatenatePaths, ValidatePath,
    PathLongerOnApproach,
)  # fmt: skip
