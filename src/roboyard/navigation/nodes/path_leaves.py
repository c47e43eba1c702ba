"""Leaves of behavior trees that read, cut and judge paths, with Nav2's names and ports."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from roboyard.behavior.basic_types import FAILURE, RUNNING, SKIPPED, SUCCESS, NodeStatus
from roboyard.behavior.errors import PortError
from roboyard.behavior.nodes.leaf_host import UNUSED_OUTPUT, UNUSED_PORT, BusLeaf
from roboyard.behavior.ports import Port, input_port, output_port
from roboyard.behavior.tree_node import ConditionNode, DecoratorNode, SyncActionNode
from roboyard.geometry import SE2
from roboyard.messages import msg
from roboyard.messages.convert import grid_origin, grid_to_array, path_to_array

_PATH_PORT = input_port(object, doc="The path (nav_msgs/Path).")
_INSCRIBED_COST = 99
"""Cost of cells in which the center of the robot means a collision."""
_FRAME_PORTS: dict[str, Port] = {
    "global_frame": UNUSED_PORT,
    "robot_base_frame": UNUSED_PORT,
    "max_robot_pose_search_dist": UNUSED_PORT,
}


def path_lengths(path: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the arc length along a path at each of its (n, 3) poses [m]."""
    steps = np.hypot(*np.diff(path[:, :2], axis=0).T)
    return np.concatenate(([0.0], np.cumsum(steps)))


def nearest_pose_index(path: NDArray[np.float64], pose: SE2) -> int:
    """Return the index of the one of a path's (n, 3) poses that is nearest to a pose."""
    return int(np.argmin(np.hypot(path[:, 0] - pose.x, path[:, 1] - pose.y)))


def cut_path(path: Any, first: int, last: int) -> Any:
    """Return the poses [first, last) of a nav_msgs/Path as a path."""
    return msg.Path(header=path.header, poses=list(path.poses[first:last]))


class IsGoalNearby(BusLeaf, ConditionNode):
    """Succeeds if the rest of the path is short.

    Nav2: the nearest pose of the whole path is used.
    """

    ports: ClassVar = {
        "path": _PATH_PORT,
        "proximity_threshold": input_port(
            float, 1.0, "Length of the rest of the path below which the goal is near [m]."
        ),
        **_FRAME_PORTS,
    }

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        robot_pose = self.robot_pose()
        try:
            path = path_to_array(self.get_input("path"))
        except PortError:
            return FAILURE
        if robot_pose is None or not len(path):
            return FAILURE
        distances = path_lengths(path)
        return (
            SUCCESS
            if distances[-1] - distances[nearest_pose_index(path, robot_pose)] < self.get_input("proximity_threshold")
            else FAILURE
        )


class TruncatePath(SyncActionNode):
    """Removes the end of a path.

    Nav2: the same.
    """

    ports: ClassVar = {
        "input_path": _PATH_PORT,
        "distance": input_port(float, 1.0, "Length that is removed [m]."),
        "output_path": output_port(object, doc="The new path (nav_msgs/Path)."),
    }

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        path = self.get_input("input_path")
        poses = path_to_array(path)
        if not len(poses):
            return FAILURE
        distances = path_lengths(poses)
        self.set_output(
            "output_path",
            cut_path(path, 0, max(1, int(np.sum(distances <= distances[-1] - self.get_input("distance"))))),
        )
        return SUCCESS


class TruncatePathLocal(BusLeaf, SyncActionNode):
    """Outputs the part of a path that is near the robot.

    Nav2: the nearest pose is found by distance; angles have no weight.
    """

    ports: ClassVar = {
        "input_path": _PATH_PORT,
        "distance_forward": input_port(float, 8.0, "Length that is kept in front of the robot [m]; -1: all."),
        "distance_backward": input_port(float, 4.0, "Length that is kept behind the robot [m]."),
        "pose": input_port(SE2, doc="Pose `x;y;yaw` that replaces that of the robot.", optional=True),
        "angular_distance_weight": UNUSED_PORT,
        "transform_tolerance": UNUSED_PORT,
        "robot_base_frame": UNUSED_PORT,
        "max_robot_pose_search_dist": UNUSED_PORT,
        "output_path": output_port(object, doc="The new path (nav_msgs/Path)."),
    }

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        path = self.get_input("input_path")
        poses = path_to_array(path)
        reference_pose = self.get_input("pose") if "pose" in self.inputs else self.robot_pose()
        if reference_pose is None or not len(poses):
            return FAILURE
        distances, forward = path_lengths(poses), self.get_input("distance_forward")
        nearest_index = nearest_pose_index(poses, reference_pose)
        is_in_range = distances >= distances[nearest_index] - self.get_input("distance_backward")
        if forward >= 0.0:
            is_in_range &= distances <= distances[nearest_index] + forward
        is_in_range[nearest_index] = True
        indices = np.flatnonzero(is_in_range)
        self.set_output("output_path", cut_path(path, int(indices[0]), int(indices[-1]) + 1))
        return SUCCESS


class GetPoseFromPath(SyncActionNode):
    """Outputs one pose of a path; fails if the index is out of range.

    Nav2: the same.
    """

    ports: ClassVar = {
        "path": _PATH_PORT,
        "index": input_port(int, 0, "Index of the pose; -1: the last."),
        "pose": output_port(SE2, doc="The pose `x;y;yaw` [m, rad]."),
    }

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        poses, index = path_to_array(self.get_input("path")), self.get_input("index")
        if not -len(poses) <= index < len(poses):
            return FAILURE
        self.set_output("pose", SE2(*map(float, poses[index])))
        return SUCCESS


class ConcatenatePaths(SyncActionNode):
    """Concatenates two paths, of which one may be missing.

    Nav2: the same.
    """

    ports: ClassVar = {
        "input_path1": input_port(object, doc="First path (nav_msgs/Path).", optional=True),
        "input_path2": input_port(object, doc="Second path (nav_msgs/Path).", optional=True),
        "output_path": output_port(object, doc="The new path (nav_msgs/Path)."),
    }

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        paths = []
        for port in ("input_path1", "input_path2"):
            try:
                paths.append(self.get_input(port))
            except PortError:
                continue
        if not paths:
            return FAILURE
        self.set_output(
            "output_path", msg.Path(header=paths[0].header, poses=[one for path in paths for one in path.poses])
        )
        return SUCCESS


class ValidatePath(BusLeaf, ConditionNode):
    """Succeeds if a path is free of collisions in the global costmap of the navigator.

    Nav2: the node checks the topic `global_costmap/costmap` itself, at the poses of the path; it calls no
    service.
    """

    ports: ClassVar = {
        "path": _PATH_PORT,
        "max_cost": UNUSED_PORT,
        "consider_unknown_as_obstacle": input_port(bool, False, "Whether unknown cells are obstacles."),
        "layer_name": UNUSED_PORT,
        "footprint": UNUSED_PORT,
        "stop_at_first_collision": UNUSED_PORT,
        "max_lookahead_distance": UNUSED_PORT,
        "service_name": UNUSED_PORT,
        "server_timeout": UNUSED_PORT,
        "collision_poses": UNUSED_OUTPUT,
    }
    state_fields = ("_costmap",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._costmap: Any = None
        if self.host is not None:
            self.release_with_tree(
                self.host.node.subscribe("global_costmap/costmap", msg.OccupancyGrid, self._on_costmap)
            )

    def _on_costmap(self, message: Any) -> None:
        self._costmap = message

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        try:
            path = path_to_array(self.get_input("path"))
        except PortError:
            return FAILURE
        if self._costmap is None or not len(path):
            return FAILURE
        cells = self._costs_along_path(path)
        unknown = self.get_input("consider_unknown_as_obstacle")
        return FAILURE if np.any(cells >= _INSCRIBED_COST) or (unknown and np.any(cells < 0)) else SUCCESS

    def _costs_along_path(self, path: NDArray[np.float64]) -> NDArray[np.int8]:
        """Return the costs of the cells of a path's poses; -1 outside of the costmap."""
        grid, T_grid_map = grid_to_array(self._costmap), grid_origin(self._costmap).inverse()
        if not grid.size:
            return np.full(len(path), -1, np.int8)
        cos, sin = math.cos(T_grid_map.theta), math.sin(T_grid_map.theta)
        x = T_grid_map.x + cos * path[:, 0] - sin * path[:, 1]
        y = T_grid_map.y + sin * path[:, 0] + cos * path[:, 1]
        rows, columns = (np.floor(one / self._costmap.info.resolution).astype(int) for one in (y, x))
        inside = (rows >= 0) & (columns >= 0) & (rows < grid.shape[0]) & (columns < grid.shape[1])
        return np.where(inside, grid[np.where(inside, rows, 0), np.where(inside, columns, 0)], np.int8(-1))


class PathLongerOnApproach(DecoratorNode):
    """Ticks its child if a new path to the same goal is much longer than the last one, and the goal was near.

    Nav2: the same.
    """

    ports: ClassVar = {
        "path": _PATH_PORT,
        "prox_len": input_port(float, 3.0, "Length of the last path below which the goal is near [m]."),
        "length_factor": input_port(float, 2.0, "Ratio of the lengths above which the new path is much longer."),
    }
    state_fields = ("_last_path",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._last_path: tuple[float, tuple[float, ...]] | None = None

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        path = path_to_array(self.get_input("path"))
        new = (float(path_lengths(path)[-1]), tuple(map(float, path[-1]))) if len(path) else None
        self.set_status(RUNNING)
        last = self._last_path
        if new and last and new[1] == last[1]:
            is_near, is_longer = (
                last[0] < self.get_input("prox_len"),
                new[0] > self.get_input("length_factor") * last[0],
            )
            if is_near and is_longer:
                child_status = self.children[0].execute_tick()
                if child_status is not RUNNING and child_status is not SKIPPED:
                    self._last_path = new
                    self.reset_child()
                return child_status
        self._last_path = new
        return SUCCESS
