"""A tour for an arm on a driving robot: at each place it reaches, is jogged and folds; then the robot drives on."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.bus import GoalFuture, Node, TransformError, resource
from roboyard.config import Config, parameter
from roboyard.description import World
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2
from roboyard.manipulation.collision import ExactChecker, obstacles_of
from roboyard.manipulation.groups import Groups
from roboyard.manipulation.nodes.arm_mission import tool_goal
from roboyard.manipulation.planning.goal_sampling import Jog, draw_goal, draw_jog
from roboyard.manipulation.scene import PlanningScene
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_stamped_to_msg


class ArmTourNodeConfig(Config):
    """Configuration of `ArmTourNode`."""

    places: tuple[float, ...] = parameter(
        (), doc="Poses x, y [m], yaw [rad] in the map to drive to, one after the other."
    )
    regions: tuple[float, ...] = parameter(
        (), unit="m", doc="Boxes x y z x y z in the map for the drawn poses at each place, the first included."
    )
    goals: int = parameter(3, low=0, high=1000, doc="Number of poses at each place.")
    jogs: int = parameter(2, low=0, high=1000, doc="Number of jogs at each place.")
    folded: str = parameter("folded", doc="Named pose of the arm while the robot drives.")
    group: str = parameter("", doc="Group of joints that moves; empty: the first group of the robot.")
    map_frame: str = parameter("map", doc="Frame of the map.")
    clearance: float = parameter(
        0.05, unit="m", low=0.0, high=1.0, runtime=True, doc="Clearance of drawn poses and jogs."
    )
    speed: float = parameter(1.0, low=0.01, high=1.0, runtime=True, doc="Share of the joints' speeds.")
    jog_rate: float = parameter(20.0, unit="Hz", low=1.0, high=100.0, doc="Rate of the messages that jog.")
    start: float = parameter(0.5, unit="s", low=0.0, high=1e6, doc="Time of the first goal.")
    rest: float = parameter(0.2, unit="s", low=0.0, high=1e4, runtime=True, doc="Time at each goal.")
    jog_rest: float = parameter(
        1.8, unit="s", low=0.5, high=100.0, runtime=True, doc="Time after a jog in which the joint comes to rest."
    )


class ArmTourNode(Node[ArmTourNodeConfig]):
    """Goes with an arm from place to place, as somebody does who shows what it can do.

    actions: move_action (moveit_msgs/MoveGroup), navigate_to_pose (nav2_msgs/NavigateToPose), client of both
    in: joint_states (sensor_msgs/JointState), /tf
    out: move_velocity (metralabs_msgs/IDAndFloat): what jogs joints; ~/done (std_msgs/UInt32, latched): places done

    It begins where the robot stands.  At each place the tool is brought to ``goals`` poses, drawn as `ArmMissionNode`
    draws them, but about where the robot believes to stand; then ``jogs`` times a joint is driven at a speed, until
    commands cease; then the arm goes to the pose ``folded`` and the robot to the next of ``places``.  A jog is drawn so
    that its way is clear.  When a drive or the folding fails the tour is over: nobody drives with an arm stretched out.
    """

    groups: Groups = resource(Groups)
    world: World = resource(World)

    state_fields = ("_place", "_done", "_due", "_until", "_jog", "_positions", "_waits")

    def setup(self) -> None:
        """Connect."""
        if len(self.config.places) % 3:
            raise ConfigError(f"{len(self.config.places)} numbers", location="places", valid="x, y, yaw for each")
        stops = len(self.config.places) // 3 + 1
        if len(self.config.regions) not in (0, 6 * stops):
            raise ConfigError(
                f"{len(self.config.regions)} numbers", location="regions", valid=f"none, or 6 for {stops} places"
            )
        self.groups.group(self.config.group or None).pose(self.config.folded)
        self._place = self._done = 0
        self._due: float | None = self.config.start
        self._until = 0.0
        self._jog: Jog | None = None
        self._waits = ""
        self._positions: dict[str, float] = {}
        self.subscribe("joint_states", msg.JointState, self._on_joints)
        self._arm = self.action_client("move_action", action.MoveGroup, on_goal_restored=self._follow)
        self._base = self.action_client("navigate_to_pose", action.NavigateToPose, on_goal_restored=self._follow)
        self._speeds = self.publisher("move_velocity", msg.IDAndFloat)
        self._told = self.publisher("~/done", msg.UInt32, latched=True)
        self.timer(rate=self.config.jog_rate, callback=self._tick)

    @property
    def _stops(self) -> int:
        return len(self.config.places) // 3 + 1

    def _on_joints(self, message: Any) -> None:
        self._positions.update(zip(message.name, map(float, message.position), strict=False))

    # -- one thing after the other -------------------------------------------------------------------------------------
    def _tick(self) -> None:
        if self._jog is not None:
            self._drive_joint(self._jog)
        elif self._due is not None and self.now >= self._due - 1e-9 and self._place < self._stops:
            self._due = None
            self._begin()

    def _begin(self) -> None:
        """The next thing: a pose, a jog, the folding, or the drive to the next place."""
        kinds = msg.moveit_msgs
        try:
            if self._done < self.config.goals:
                self._ask_arm(self._drawn_goal())
            elif self._done < self.config.goals + self.config.jogs:
                self._begin_jog()
            elif self._done == self.config.goals + self.config.jogs:
                self._waits = "fold"
                self._ask_arm(kinds.Constraints(name=self.config.folded))
            else:
                x, y, yaw = self.config.places[3 * self._place - 3 : 3 * self._place]
                self._waits, self._done = "drive", 0
                stamped = pose_stamped_to_msg(SE2(x, y, yaw), self.frame(self.config.map_frame), self.now_ns)
                self._follow(self._base.send(action.NavigateToPose.Goal(pose=stamped)))
        except TransformError:
            self._due = self.now + 1.0  # it does not know yet where it stands
        except InputError as error:
            self.log.error(f"the tour is over: {error}")

    def _scene(self) -> PlanningScene:
        """The known world about the place where the robot believes to stand. Raises TransformError."""
        root = self.groups.root
        T = self.transforms.lookup(self.frame(self.config.map_frame), self.frame(root))
        chain = self.groups.chain(self.config.group or None)
        others = {joint.name for joint in self.groups.model.joints} - set(chain.joints)
        held = {name: value for name, value in self._positions.items() if name in others}
        return PlanningScene.of(
            self.groups,
            self.config.group or None,
            T_world_robot=T @ self.groups.model.link(root).T_model_link.inverse(),
            obstacles=obstacles_of(self.world),
            held=held,
        )

    def _drawn_goal(self) -> Any:
        scene = self._scene()
        boxes = np.reshape(self.config.regions, (-1, 2, 3))
        region = boxes[self._place] if len(boxes) else None
        drawn = draw_goal(scene, ExactChecker(scene), self.random, region=region, clearance=self.config.clearance)
        return tool_goal(scene, drawn.T_world_tool, self.frame(self.config.map_frame))

    def _ask_arm(self, constraints: Any) -> None:
        goal = action.MoveGroup.Goal()
        goal.request.goal_constraints = [constraints]
        goal.request.max_velocity_scaling_factor = self.config.speed
        self._follow(self._arm.send(goal))

    # -- jogging -------------------------------------------------------------------------------------------------------
    def _begin_jog(self) -> None:
        scene = self._scene()
        here = np.array([self._positions[name] for name in scene.chain.joints])
        self._jog = draw_jog(scene.with_margin(self.config.clearance), here, self.random)
        self._until = self.now + self._jog.seconds

    def _drive_joint(self, jog: Jog) -> None:
        if self.now < self._until - 1e-9:
            self._speeds.publish(msg.IDAndFloat(id=jog.joint + 1, value=jog.speed))
        else:  # silence stops it
            self._jog, self._done, self._due = None, self._done + 1, self.now + self.config.jog_rest

    # -- how it went ---------------------------------------------------------------------------------------------------
    def _follow(self, goal: GoalFuture) -> None:
        goal.add_done_callback(lambda _: self._ended(goal))

    def _ended(self, goal: GoalFuture) -> None:
        waits, self._waits = self._waits, ""
        if goal.error is not None or not goal.succeeded:
            why = goal.error if goal.error is not None else goal.error_message
            self.log.warn(f"{waits or 'a pose'} at place {self._place}: {why}")
            if waits:
                self.log.error("the tour is over")
                return
        if waits != "drive":
            self._done += 1
        if waits == "fold":
            self._place += 1
            self._told.publish(msg.UInt32(data=self._place))
        self._due = self.now + self.config.rest
