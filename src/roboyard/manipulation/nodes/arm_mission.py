"""A mission for an arm: poses that its tool shall be brought to, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.bus import GoalFuture, Node, resource
from roboyard.config import Config, parameter
from roboyard.description import World
from roboyard.errors import ConfigError
from roboyard.geometry import SE3
from roboyard.manipulation.collision import ExactChecker, obstacles_of
from roboyard.manipulation.groups import Groups
from roboyard.manipulation.nodes.motion_messages import pose_constraints
from roboyard.manipulation.nodes.scene_keeper import place_of
from roboyard.manipulation.planning.goal_sampling import draw_goal
from roboyard.manipulation.scene import PlanningScene
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_to_msg


class ArmMissionNodeConfig(Config):
    """Configuration of `ArmMissionNode`."""

    goals: int = parameter(10, low=1, high=100_000, doc="Number of goals.")
    poses: tuple[str, ...] = parameter((), doc="Named poses of the group; empty: drawn poses.")
    region: tuple[float, ...] = parameter(
        (), unit="m", doc="Corners x y z x y z of a box in the world, or of several boxes, used in turn."
    )
    everywhere: bool = parameter(True, runtime=True, doc="Draw every second pose anywhere, outside of the regions too.")
    period: float = parameter(0.0, unit="s", low=0.0, high=1e4, runtime=True, doc="Smallest time between goals.")
    place: tuple[float, ...] = parameter((), doc="Pose x y z roll pitch yaw of the robot's root in the world.")
    group: str = parameter("", doc="Group of joints that moves; empty: the first group of the robot.")
    clearance: float = parameter(0.01, unit="m", low=0.0, high=1.0, runtime=True, doc="Clearance of the drawn states.")
    speed: float = parameter(1.0, low=0.01, high=1.0, runtime=True, doc="Share of the joints' speeds.")
    start: float = parameter(0.5, unit="s", low=0.0, high=1e6, doc="Time of the first goal.")
    rest: float = parameter(0.2, unit="s", low=0.0, high=1e4, runtime=True, doc="Time at each goal.")
    tries: int = parameter(1, low=1, high=100, runtime=True, doc="Largest number of times that a goal is sent.")


class ArmMissionNode(Node[ArmMissionNodeConfig]):
    """Sends goals to the move node, as somebody does who picks poses for the tool.

    actions: move_action (client)
    in: joint_states (sensor_msgs/JointState), for the joints that are not the group's
    out: ~/reached (std_msgs/UInt32): how many goals were reached so far, latched

    Named ``poses`` in turn, round and round; or without any, poses drawn at random: each is the tool's pose in a state
    of the joints that is free as coal sees it, every second one in ``region``, or each of them.
    """

    groups: Groups = resource(Groups)
    world: World | None = resource(World, optional=True)

    state_fields = ("_next", "_reached", "_due", "_tried", "_positions")

    def setup(self) -> None:
        """Connect."""
        if len(self.config.region) % 6:
            raise ConfigError(f"{len(self.config.region)} numbers", location="region", valid="x y z x y z for each")
        group = self.groups.group(self.config.group or None)
        for name in self.config.poses:
            group.pose(name)
        self._scene: PlanningScene | None = None
        self._checker: ExactChecker | None = None
        self._next = self._reached = self._tried = 0
        self._constraints: Any = None
        self._due: float | None = self.config.start
        self._positions: dict[str, float] = {}
        self.subscribe("joint_states", msg.JointState, self._on_joints)
        self._client = self.action_client("move_action", action.MoveGroup, on_goal_restored=self._follow)
        self._done = self.publisher("~/reached", msg.UInt32, latched=True)
        self.timer(rate=20.0, callback=self._tick)

    def _on_joints(self, message: Any) -> None:
        if self._scene is None:
            self._positions.update(zip(message.name, map(float, message.position), strict=False))

    def _tick(self) -> None:
        if self._due is None or self.now < self._due - 1e-9 or self._next >= self.config.goals:
            return
        self._due = None
        if self._constraints is None:
            self._constraints = self._choose()
        goal = action.MoveGroup.Goal()
        goal.request.goal_constraints = [self._constraints]
        goal.request.max_velocity_scaling_factor = self.config.speed
        self._follow(self._client.send(goal))

    def _choose(self) -> Any:
        kinds = msg.moveit_msgs
        if self.config.poses:
            return kinds.Constraints(name=self.config.poses[self._next % len(self.config.poses)])
        if self._scene is None or self._checker is None:
            around = [] if self.world is None else obstacles_of(self.world)
            chain = self.groups.chain(self.config.group or None)
            others = {joint.name for joint in self.groups.model.joints} - set(chain.joints)
            held = {name: value for name, value in self._positions.items() if name in others}
            self._scene = PlanningScene.of(
                self.groups,
                self.config.group or None,
                T_world_robot=place_of(self.config.place),
                obstacles=around,
                held=held,
            )
            self._checker = ExactChecker(self._scene)
        regions = np.reshape(self.config.region, (-1, 2, 3))
        anywhere = not len(regions) or (self.config.everywhere and self._next % 2 == 1)
        region = None if anywhere else regions[self._next // (1 + self.config.everywhere) % len(regions)]
        drawn = draw_goal(self._scene, self._checker, self.random, region=region, clearance=self.config.clearance)
        root = self.groups.root
        T_world_root = place_of(self.config.place) @ self.groups.model.link(root).T_model_link
        return tool_goal(self._scene, T_world_root.inverse() @ drawn.T_world_tool, self.frame(root))

    def _follow(self, goal: GoalFuture) -> None:
        goal.add_done_callback(lambda _: self._ended(goal))

    def _ended(self, goal: GoalFuture) -> None:
        if goal.error is not None:
            self.log.warn(f"goal {self._next + 1} was refused: {goal.error}")
        reached = goal.error is None and goal.succeeded
        self._tried += 1
        if reached:
            self._reached += 1
            self._done.publish(msg.UInt32(data=self._reached))
        if reached or self._tried >= self.config.tries:
            self._next, self._tried, self._constraints = self._next + 1, 0, None
        due = self.config.start + self._next * self.config.period if self._tried == 0 else 0.0
        self._due = max(self.now + self.config.rest, due)

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return super().save_state() | {"constraints": self._constraints}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        super().load_state(state)
        self._constraints = state["constraints"]


def tool_goal(scene: PlanningScene, T_frame_tool: SE3, frame: str) -> Any:
    """moveit_msgs/Constraints for the pose of a group's tip."""
    return pose_constraints(scene.group.tip, pose_to_msg(T_frame_tool), frame)
