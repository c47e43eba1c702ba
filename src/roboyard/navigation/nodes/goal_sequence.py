"""Sends a sequence of goal poses to the navigator."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from roboyard.bus import GoalFuture, Node, TransformError, resource
from roboyard.bus.actions import GoalRejectedError
from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.description.extent import FootprintPolygon
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.grids.distance_field import squared_distance_transform
from roboyard.grids.regions import label_components
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_stamped_to_msg
from roboyard.messages.convert.grids import occupancy_grid_from_msg
from roboyard.navigation.costmap.reachability import sample_reachable_poses
from roboyard.navigation.errors import PoseUnknownError
from roboyard.navigation.footprint import DEFAULT_RADIUS, Footprint

_TEMPORARY_CAUSES: Final = (PoseUnknownError.cause,)
"""Causes of rejection that may be temporary."""
_CLEARANCE_MARGIN: Final = 0.1
"""Margin around the circumscribed radius of the footprint, at random goals and on the path to them [m]."""


class GoalSequenceNodeConfig(Config):
    """Configuration of `GoalSequenceNode`."""

    goals: tuple[float, ...] = parameter((), doc="Goal poses x, y [m], yaw [rad] in the map, in order.")
    n_random_goals: int = parameter(0, low=0, high=10_000, doc="Number of random reachable goals, if `goals` is empty.")
    goal_noise: float = parameter(
        0.0,
        unit="m",
        low=0.0,
        high=100.0,
        runtime=True,
        doc="Maximum random offset of each goal along x and y.",
    )
    start_time: float = parameter(1.0, unit="s", low=0.0, high=1e6, doc="Time of the first goal.")
    dwell_time: float = parameter(0.5, unit="s", low=0.0, high=1e4, runtime=True, doc="Time at each goal.")
    server_timeout: float = parameter(
        10.0, unit="s", low=0.0, high=1e4, runtime=True, doc="Maximum time to wait for a navigator that is not ready."
    )
    continue_on_failure: bool = parameter(True, runtime=True, doc="Continue with the next goal after a failure.")
    action_name: str = parameter(
        "navigate_to_pose", choices=("navigate_to_pose", "move_base"), doc="Action of the navigator."
    )
    map_frame: str = parameter("map", doc="Frame of the map.")
    base_frame: str = parameter("base_link", doc="Frame of the base.")


class GoalSequenceNode(Node[GoalSequenceNodeConfig]):
    """Sends goal poses to the navigator, one after the other.

    actions: navigate_to_pose, or move_base (client)
    out: ~/reached (std_msgs/UInt32: number of goals reached so far, latched)

    A goal that the navigator rejects because the pose of the robot is unknown yet, or for which there is no action
    server, is sent again every second for ``server_timeout``; a goal that is rejected for another cause has failed.

    Without ``goals`` the node draws ``n_random_goals`` random poses in the map (nav_msgs/OccupancyGrid on ``map``) that
    the robot can reach.
    """

    footprint: FootprintPolygon | None = resource(tuple, optional=True)

    state_fields = ("_goals", "_map", "_next_index", "_n_reached", "_next_send_time", "_first_request_time")

    def setup(self) -> None:
        """Create publishers, subscribers, the client and the timer."""
        if len(self.config.goals) % 3 or not (self.config.goals or self.config.n_random_goals):
            raise ConfigError(
                f"{len(self.config.goals)} numbers",
                location="goals",
                valid="x, y, yaw for each goal, or n_random_goals",
            )
        self._next_index = self._n_reached = 0
        goals = np.reshape(self.config.goals, (-1, 3))
        noise = self.random.uniform(-self.config.goal_noise, self.config.goal_noise, (len(goals), 2))
        self._goals = (goals + np.pad(noise, ((0, 0), (0, 1)))).tolist()
        self._map: Any = None
        if not self._goals:
            expect_kernels(squared_distance_transform, label_components)  # of the reachable poses
            self.subscribe("map", msg.OccupancyGrid, self._on_map)
        self._next_send_time: float | None = self.config.start_time
        self._first_request_time: float | None = None
        kind = action.MoveBase if self.config.action_name == "move_base" else action.NavigateToPose
        self._client = self.action_client(self.config.action_name, kind, on_goal_restored=self._await_goal)
        self._reached_publisher = self.publisher("~/reached", msg.UInt32, latched=True)
        self.timer(rate=10.0, callback=self._tick)

    def _on_map(self, message: Any) -> None:
        self._map = message

    def _choose_random_goals(self) -> None:
        """Draw the goals once the map and the pose of the robot in it are known."""
        if self._map is None:
            return
        try:
            robot_pose = SE2.from_se3(
                self.transforms.lookup(self.frame(self.config.map_frame), self.frame(self.config.base_frame))
            )
        except TransformError:
            return
        clearance = (
            Footprint(np.array(self.footprint)).circumscribed_radius if self.footprint else DEFAULT_RADIUS
        ) + _CLEARANCE_MARGIN
        poses = sample_reachable_poses(
            occupancy_grid_from_msg(self._map), robot_pose, self.config.n_random_goals, self.random, clearance=clearance
        )
        if not poses:
            self.log.error(
                f"no goals: there is no free space with a clearance of {clearance:.2f} m around the robot",
                throttle=10.0,
            )
        self._goals = [[pose.x, pose.y, pose.theta] for pose in poses]

    def _tick(self) -> None:
        if self._next_send_time is None or self.now < self._next_send_time - 1e-9:
            return
        if not self._goals:
            self._choose_random_goals()
        if self._next_index >= len(self._goals):
            return
        self._next_send_time = None
        self._first_request_time = self.now if self._first_request_time is None else self._first_request_time
        stamped = pose_stamped_to_msg(
            SE2(*self._goals[self._next_index]), self.frame(self.config.map_frame), self.now_ns
        )
        is_move_base = self.config.action_name == "move_base"
        goal: Any = (
            action.MoveBase.Goal(target_pose=stamped) if is_move_base else action.NavigateToPose.Goal(pose=stamped)
        )
        self._await_goal(self._client.send(goal))

    def _await_goal(self, goal: GoalFuture) -> None:
        goal.add_done_callback(lambda _: self._on_goal_finished(goal))

    def _on_goal_finished(self, goal: GoalFuture) -> None:
        if goal.error is not None:
            self._on_rejected(goal)
            return
        if goal.succeeded:
            self._n_reached += 1
            self._reached_publisher.publish(msg.UInt32(data=self._n_reached))
        elif not self.config.continue_on_failure:
            return
        self._schedule_next_goal()

    def _on_rejected(self, goal: GoalFuture) -> None:
        first_request_time = self.now if self._first_request_time is None else self._first_request_time
        is_temporary = not isinstance(goal.error, GoalRejectedError) or goal.error_code in _TEMPORARY_CAUSES
        if is_temporary and self.now - first_request_time < self.config.server_timeout:
            self._next_send_time = self.now + 1.0
            return
        self.log.warn(f"goal {self._next_index + 1} was rejected: {goal.error}")
        if self.config.continue_on_failure:
            self._schedule_next_goal()

    def _schedule_next_goal(self) -> None:
        self._next_index += 1
        self._first_request_time = None
        self._next_send_time = self.now + self.config.dwell_time
