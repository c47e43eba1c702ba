"""A mission: poses that the robot shall be brought to, one after the other."""

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
from roboyard.mapping.nodes.map_messages import map_from_msg
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_stamped_to_msg
from roboyard.navigation.errors import PoseUnknown
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.places import reachable_places

_MAY_PASS: Final = (PoseUnknown.cause,)
"""Causes for which a goal is refused that may be taken a little later."""
_RADIUS: Final = 0.25
"""Of a robot about whose shape nobody says anything [m]."""
_ROOM: Final = 0.1
"""Beyond the robot's corners, at chosen places and on the way there [m]."""


class MissionNodeConfig(Config):
    """Configuration of `MissionNode`."""

    goals: tuple[float, ...] = parameter((), doc="Poses x, y [m], yaw [rad] in the map, one after the other.")
    places: int = parameter(0, low=0, high=10_000, doc="Number of goals chosen at random, if none are given.")
    scatter: float = parameter(
        0.0,
        unit="m",
        low=0.0,
        high=100.0,
        runtime=True,
        doc="Largest distance by which goals differ from seed to seed.",
    )
    start: float = parameter(1.0, unit="s", low=0.0, high=1e6, doc="Time of the first goal.")
    rest: float = parameter(0.5, unit="s", low=0.0, high=1e4, runtime=True, doc="Time at each goal.")
    patience: float = parameter(
        10.0, unit="s", low=0.0, high=1e4, runtime=True, doc="Longest wait for a navigator that is not ready."
    )
    go_on: bool = parameter(True, runtime=True, doc="Continue with the next goal after one that cannot be reached.")
    action_name: str = parameter(
        "navigate_to_pose", choices=("navigate_to_pose", "move_base"), doc="Action that brings the robot there."
    )
    map_frame: str = parameter("map", doc="Frame of the map.")
    base_frame: str = parameter("base_link", doc="Frame of the base.")


class MissionNode(Node[MissionNodeConfig]):
    """Sends goals to the navigator, as somebody does who clicks on a map.

    actions: navigate_to_pose, or move_base (client)
    out: ~/reached (std_msgs/UInt32): how many goals were reached so far, latched

    A goal that the navigator refuses since it does not know yet where the robot is, or that nobody is there to take, is
    sent again every second for ``patience``; one that is refused for another cause is over.

    Without ``goals`` it asks for ``places`` of the map (nav_msgs/OccupancyGrid on ``map``) that the robot can get to,
    chosen at random.
    """

    footprint: FootprintPolygon | None = resource(tuple, optional=True)

    state_fields = ("_goals", "_map", "_next", "_reached", "_due", "_asked")

    def setup(self) -> None:
        """Connect."""
        if len(self.config.goals) % 3 or not (self.config.goals or self.config.places):
            raise ConfigError(
                f"{len(self.config.goals)} numbers", location="goals", valid="x, y, yaw for each goal, or places"
            )
        self._next = self._reached = 0
        goals = np.reshape(self.config.goals, (-1, 3))
        scattered = self.random.uniform(-self.config.scatter, self.config.scatter, (len(goals), 2))
        self._goals = (goals + np.pad(scattered, ((0, 0), (0, 1)))).tolist()
        self._map: Any = None
        if not self._goals:
            expect_kernels(squared_distance_transform, label_components)  # of the places to drive to
            self.subscribe("map", msg.OccupancyGrid, self._on_map)
        self._due: float | None = self.config.start
        self._asked: float | None = None
        kind = action.MoveBase if self.config.action_name == "move_base" else action.NavigateToPose
        self._client = self.action_client(self.config.action_name, kind, on_goal_restored=self._follow)
        self._done = self.publisher("~/reached", msg.UInt32, latched=True)
        self.timer(rate=10.0, callback=self._tick)

    def _on_map(self, message: Any) -> None:
        self._map = message

    def _choose(self) -> None:
        """Choose goals, once there is a map and the robot is in it."""
        if self._map is None:
            return
        try:
            here = SE2.from_se3(
                self.transforms.lookup(self.frame(self.config.map_frame), self.frame(self.config.base_frame))
            )
        except TransformError:
            return
        room = (Footprint(np.array(self.footprint)).circumscribed_radius if self.footprint else _RADIUS) + _ROOM
        chosen = reachable_places(map_from_msg(self._map), here, self.config.places, self.random, room=room)
        if not chosen:
            self.log.error(f"no goals: about the robot there are no {room:.2f} m of free ground", throttle=10.0)
        self._goals = [[pose.x, pose.y, pose.theta] for pose in chosen]

    def _tick(self) -> None:
        if self._due is None or self.now < self._due - 1e-9:
            return
        if not self._goals:
            self._choose()
        if self._next >= len(self._goals):
            return
        self._due = None
        self._asked = self.now if self._asked is None else self._asked
        stamped = pose_stamped_to_msg(SE2(*self._goals[self._next]), self.frame(self.config.map_frame), self.now_ns)
        ros1 = self.config.action_name == "move_base"
        goal: Any = action.MoveBase.Goal(target_pose=stamped) if ros1 else action.NavigateToPose.Goal(pose=stamped)
        self._follow(self._client.send(goal))

    def _follow(self, goal: GoalFuture) -> None:
        goal.add_done_callback(lambda _: self._ended(goal))

    def _ended(self, goal: GoalFuture) -> None:
        if goal.error is not None:
            self._refused(goal)
            return
        if goal.succeeded:
            self._reached += 1
            self._done.publish(msg.UInt32(data=self._reached))
        elif not self.config.go_on:
            return
        self._go_on()

    def _refused(self, goal: GoalFuture) -> None:
        asked = self.now if self._asked is None else self._asked
        for_now = not isinstance(goal.error, GoalRejectedError) or goal.error_code in _MAY_PASS
        if for_now and self.now - asked < self.config.patience:
            self._due = self.now + 1.0
            return
        self.log.warn(f"goal {self._next + 1} was refused: {goal.error}")
        if self.config.go_on:
            self._go_on()

    def _go_on(self) -> None:
        self._next += 1
        self._asked = None
        self._due = self.now + self.config.rest
