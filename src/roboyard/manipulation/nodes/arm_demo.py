"""Demonstration nodes of arms: a sequence of goals, and a mobile robot that reaches and jogs at several poses."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.bus import GoalFuture, Node, TransformError, resource
from roboyard.config import Config, parameter
from roboyard.description import World
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2, SE3
from roboyard.manipulation.collision import CoalChecker, obstacles_from_world
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.nodes.motion_messages import pose_constraints_to_msg
from roboyard.manipulation.nodes.planning_scene_monitor import parse_pose
from roboyard.manipulation.planning.goal_sampling import SampledJog, sample_goal, sample_jog
from roboyard.manipulation.semantics.planning_groups import SemanticDescription
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_stamped_to_msg, pose_to_msg


class ArmGoalSequenceNodeConfig(Config):
    """Configuration of `ArmGoalSequenceNode`."""

    goals: int = parameter(10, low=1, high=100_000, doc="Number of goals.")
    poses: tuple[str, ...] = parameter((), doc="Named poses of the group; empty: sampled poses.")
    region: tuple[float, ...] = parameter(
        (), unit="m", doc="Corners x y z x y z of a box in the world, or of several boxes, used in turn."
    )
    sample_everywhere: bool = parameter(True, runtime=True, doc="Sample every second pose outside of the regions, too.")
    period: float = parameter(0.0, unit="s", low=0.0, high=1e4, runtime=True, doc="Minimum time between goals.")
    robot_pose: tuple[float, ...] = parameter((), doc="Pose x y z roll pitch yaw of the robot's root in the world.")
    group: str = parameter("", doc="Group of joints that moves; empty: the first group of the robot.")
    clearance: float = parameter(
        0.01, unit="m", low=0.0, high=1.0, runtime=True, doc="Clearance of the sampled states."
    )
    speed_scaling: float = parameter(1.0, low=0.01, high=1.0, runtime=True, doc="Velocity scaling of the joints.")
    start_time: float = parameter(0.5, unit="s", low=0.0, high=1e6, doc="Time of the first goal.")
    dwell_time: float = parameter(0.2, unit="s", low=0.0, high=1e4, runtime=True, doc="Time at each goal.")
    max_attempts: int = parameter(1, low=1, high=100, runtime=True, doc="Maximum number of attempts at a goal.")


class ArmGoalSequenceNode(Node[ArmGoalSequenceNodeConfig]):
    """Sends goals to the move_group node, one after the other.

    actions: move_action (client)
    in: joint_states (sensor_msgs/JointState), for the joints that are not the group's
    out: ~/reached (std_msgs/UInt32): how many goals were reached so far, latched

    The goals are the named ``poses`` in turn; without any, sampled poses of the tool: each is the pose in a joint state
    without collisions (checked with coal), every second one in ``region``, or each of them.
    """

    groups: SemanticDescription = resource(SemanticDescription)
    world: World | None = resource(World, optional=True)

    state_fields = ("_goal_index", "_n_reached", "_next_goal_time", "_n_attempts", "_joint_positions")

    def setup(self) -> None:
        """Create the action client and the inputs."""
        if len(self.config.region) % 6:
            raise ConfigError(f"{len(self.config.region)} numbers", location="region", valid="x y z x y z for each")
        group = self.groups.group(self.config.group or None)
        for name in self.config.poses:
            group.pose(name)
        self._scene: PlanningScene | None = None
        self._checker: CoalChecker | None = None
        self._goal_index = self._n_reached = self._n_attempts = 0
        self._constraints: Any = None
        self._next_goal_time: float | None = self.config.start_time
        self._joint_positions: dict[str, float] = {}
        self.subscribe("joint_states", msg.JointState, self._on_joints)
        self._arm_client = self.action_client("move_action", action.MoveGroup, on_goal_restored=self._on_goal_sent)
        self._reached_publisher = self.publisher("~/reached", msg.UInt32, latched=True)
        self.timer(rate=20.0, callback=self._tick)

    def _on_joints(self, message: Any) -> None:
        if self._scene is None:
            self._joint_positions.update(zip(message.name, map(float, message.position), strict=False))

    def _tick(self) -> None:
        if (
            self._next_goal_time is None
            or self.now < self._next_goal_time - 1e-9
            or self._goal_index >= self.config.goals
        ):
            return
        self._next_goal_time = None
        if self._constraints is None:
            self._constraints = self._select_constraints()
        goal = action.MoveGroup.Goal()
        goal.request.goal_constraints = [self._constraints]
        goal.request.max_velocity_scaling_factor = self.config.speed_scaling
        self._on_goal_sent(self._arm_client.send(goal))

    def _select_constraints(self) -> Any:
        kinds = msg.moveit_msgs
        if self.config.poses:
            return kinds.Constraints(name=self.config.poses[self._goal_index % len(self.config.poses)])
        if self._scene is None or self._checker is None:
            obstacles = [] if self.world is None else obstacles_from_world(self.world)
            chain = self.groups.chain(self.config.group or None)
            other_joints = {joint.name for joint in self.groups.model.joints} - set(chain.joints)
            fixed_positions = {name: value for name, value in self._joint_positions.items() if name in other_joints}
            self._scene = PlanningScene.create(
                self.groups,
                self.config.group or None,
                T_world_robot=parse_pose(self.config.robot_pose),
                obstacles=obstacles,
                fixed_positions=fixed_positions,
            )
            self._checker = CoalChecker(self._scene)
        regions = np.reshape(self.config.region, (-1, 2, 3))
        is_unrestricted = not len(regions) or (self.config.sample_everywhere and self._goal_index % 2 == 1)
        region = (
            None if is_unrestricted else regions[self._goal_index // (1 + self.config.sample_everywhere) % len(regions)]
        )
        sampled_goal = sample_goal(
            self._scene, self._checker, self.random, region=region, clearance=self.config.clearance
        )
        root = self.groups.root_link
        T_world_root = parse_pose(self.config.robot_pose) @ self.groups.model.link(root).T_model_link
        return tool_pose_constraints(self._scene, T_world_root.inverse() @ sampled_goal.T_world_tool, self.frame(root))

    def _on_goal_sent(self, goal: GoalFuture) -> None:
        goal.add_done_callback(lambda _: self._on_goal_done(goal))

    def _on_goal_done(self, goal: GoalFuture) -> None:
        if goal.error is not None:
            self.log.warn(f"goal {self._goal_index + 1} was rejected: {goal.error}")
        is_reached = goal.error is None and goal.succeeded
        self._n_attempts += 1
        if is_reached:
            self._n_reached += 1
            self._reached_publisher.publish(msg.UInt32(data=self._n_reached))
        if is_reached or self._n_attempts >= self.config.max_attempts:
            self._goal_index, self._n_attempts, self._constraints = self._goal_index + 1, 0, None
        earliest_time = self.config.start_time + self._goal_index * self.config.period if self._n_attempts == 0 else 0.0
        self._next_goal_time = max(self.now + self.config.dwell_time, earliest_time)

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return super().save_state() | {"constraints": self._constraints}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what ``save_state`` returned."""
        super().load_state(state)
        self._constraints = state["constraints"]


def tool_pose_constraints(scene: PlanningScene, T_frame_tool: SE3, frame: str) -> Any:
    """Return the moveit_msgs/Constraints of the pose of a group's tip."""
    return pose_constraints_to_msg(scene.group.tip, pose_to_msg(T_frame_tool), frame)


class MobileArmDemoNodeConfig(Config):
    """Configuration of `MobileArmDemoNode`."""

    base_poses: tuple[float, ...] = parameter(
        (), doc="Poses x, y [m], yaw [rad] of the base in the map, one after the other."
    )
    regions: tuple[float, ...] = parameter(
        (), unit="m", doc="Boxes x y z x y z in the map for the sampled poses at each base pose, the first included."
    )
    goals: int = parameter(3, low=0, high=1000, doc="Number of arm goals at each base pose.")
    n_jogs: int = parameter(2, low=0, high=1000, doc="Number of jogs at each base pose.")
    drive_pose: str = parameter("folded", doc="Named pose of the arm while the robot drives.")
    group: str = parameter("", doc="Group of joints that moves; empty: the first group of the robot.")
    map_frame: str = parameter("map", doc="Frame of the map.")
    clearance: float = parameter(
        0.05, unit="m", low=0.0, high=1.0, runtime=True, doc="Clearance of sampled poses and jogs."
    )
    speed_scaling: float = parameter(1.0, low=0.01, high=1.0, runtime=True, doc="Velocity scaling of the joints.")
    jog_rate: float = parameter(20.0, unit="Hz", low=1.0, high=100.0, doc="Rate of the jog messages.")
    start_time: float = parameter(0.5, unit="s", low=0.0, high=1e6, doc="Time of the first goal.")
    dwell_time: float = parameter(0.2, unit="s", low=0.0, high=1e4, runtime=True, doc="Time at each goal.")
    jog_dwell_time: float = parameter(
        1.8, unit="s", low=0.5, high=100.0, runtime=True, doc="Time after a jog in which the joint comes to rest."
    )


class MobileArmDemoNode(Node[MobileArmDemoNodeConfig]):
    """Moves a robot with an arm between base poses; at each it reaches sampled goals, jogs joints, and folds the arm.

    actions: move_action (moveit_msgs/MoveGroup), navigate_to_pose (nav2_msgs/NavigateToPose), client of both
    in: joint_states (sensor_msgs/JointState), /tf
    out: move_velocity (metralabs_msgs/IDAndFloat): jog commands; ~/done (std_msgs/UInt32, latched): number of finished
        base poses

    It starts at the initial pose.  At each base pose the tool moves to ``goals`` poses, sampled as by
    `ArmGoalSequenceNode` relative to the localized pose; then a joint is jogged ``n_jogs`` times; then the arm moves to
    ``drive_pose`` and the robot to the next of ``base_poses``.  Jogs are sampled without collisions.  If a drive or the
    folding fails, the demonstration ends: the robot does not drive with an extended arm.
    """

    groups: SemanticDescription = resource(SemanticDescription)
    world: World = resource(World)

    state_fields = (
        "_stop_index",
        "_n_tasks_done",
        "_next_task_time",
        "_jog_end_time",
        "_jog",
        "_joint_positions",
        "_pending_task",
    )

    def setup(self) -> None:
        """Create action clients and inputs."""
        if len(self.config.base_poses) % 3:
            raise ConfigError(
                f"{len(self.config.base_poses)} numbers", location="base_poses", valid="x, y, yaw for each"
            )
        n_stops = len(self.config.base_poses) // 3 + 1
        if len(self.config.regions) not in (0, 6 * n_stops):
            raise ConfigError(
                f"{len(self.config.regions)} numbers", location="regions", valid=f"none, or 6 for {n_stops} places"
            )
        self.groups.group(self.config.group or None).pose(self.config.drive_pose)
        self._stop_index = self._n_tasks_done = 0
        self._next_task_time: float | None = self.config.start_time
        self._jog_end_time = 0.0
        self._jog: SampledJog | None = None
        self._pending_task = ""
        self._joint_positions: dict[str, float] = {}
        self.subscribe("joint_states", msg.JointState, self._on_joints)
        self._arm_client = self.action_client("move_action", action.MoveGroup, on_goal_restored=self._on_goal_sent)
        self._base_client = self.action_client(
            "navigate_to_pose", action.NavigateToPose, on_goal_restored=self._on_goal_sent
        )
        self._velocity_publisher = self.publisher("move_velocity", msg.IDAndFloat)
        self._done_publisher = self.publisher("~/done", msg.UInt32, latched=True)
        self.timer(rate=self.config.jog_rate, callback=self._tick)

    @property
    def _n_stops(self) -> int:
        return len(self.config.base_poses) // 3 + 1

    def _on_joints(self, message: Any) -> None:
        self._joint_positions.update(zip(message.name, map(float, message.position), strict=False))

    # -- tasks ---------------------------------------------------------------------------------------------------------
    def _tick(self) -> None:
        if self._jog is not None:
            self._publish_jog(self._jog)
        elif (
            self._next_task_time is not None
            and self.now >= self._next_task_time - 1e-9
            and self._stop_index < self._n_stops
        ):
            self._next_task_time = None
            self._start_next_task()

    def _start_next_task(self) -> None:
        """Start the next task: an arm goal, a jog, folding, or the drive to the next base pose."""
        kinds = msg.moveit_msgs
        try:
            if self._n_tasks_done < self.config.goals:
                self._send_arm_goal(self._sample_constraints())
            elif self._n_tasks_done < self.config.goals + self.config.n_jogs:
                self._start_jog()
            elif self._n_tasks_done == self.config.goals + self.config.n_jogs:
                self._pending_task = "fold"
                self._send_arm_goal(kinds.Constraints(name=self.config.drive_pose))
            else:
                x, y, yaw = self.config.base_poses[3 * self._stop_index - 3 : 3 * self._stop_index]
                self._pending_task, self._n_tasks_done = "drive", 0
                stamped = pose_stamped_to_msg(SE2(x, y, yaw), self.frame(self.config.map_frame), self.now_ns)
                self._on_goal_sent(self._base_client.send(action.NavigateToPose.Goal(pose=stamped)))
        except TransformError:
            self._next_task_time = self.now + 1.0  # the robot is not localized yet
        except InputError as error:
            self.log.error(f"the demonstration has ended: {error}")

    def _make_scene(self) -> PlanningScene:
        """Return a scene of the known world at the localized pose of the robot. Raises TransformError."""
        root = self.groups.root_link
        T = self.transforms.lookup(self.frame(self.config.map_frame), self.frame(root))
        chain = self.groups.chain(self.config.group or None)
        other_joints = {joint.name for joint in self.groups.model.joints} - set(chain.joints)
        fixed_positions = {name: value for name, value in self._joint_positions.items() if name in other_joints}
        return PlanningScene.create(
            self.groups,
            self.config.group or None,
            T_world_robot=T @ self.groups.model.link(root).T_model_link.inverse(),
            obstacles=obstacles_from_world(self.world),
            fixed_positions=fixed_positions,
        )

    def _sample_constraints(self) -> Any:
        scene = self._make_scene()
        boxes = np.reshape(self.config.regions, (-1, 2, 3))
        region = boxes[self._stop_index] if len(boxes) else None
        sampled_goal = sample_goal(
            scene, CoalChecker(scene), self.random, region=region, clearance=self.config.clearance
        )
        return tool_pose_constraints(scene, sampled_goal.T_world_tool, self.frame(self.config.map_frame))

    def _send_arm_goal(self, constraints: Any) -> None:
        goal = action.MoveGroup.Goal()
        goal.request.goal_constraints = [constraints]
        goal.request.max_velocity_scaling_factor = self.config.speed_scaling
        self._on_goal_sent(self._arm_client.send(goal))

    # -- jogging -------------------------------------------------------------------------------------------------------
    def _start_jog(self) -> None:
        scene = self._make_scene()
        position = np.array([self._joint_positions[name] for name in scene.chain.joints])
        self._jog = sample_jog(scene.with_margin(self.config.clearance), position, self.random)
        self._jog_end_time = self.now + self._jog.duration

    def _publish_jog(self, jog: SampledJog) -> None:
        if self.now < self._jog_end_time - 1e-9:
            self._velocity_publisher.publish(msg.IDAndFloat(id=jog.joint_index + 1, value=jog.speed))
        else:  # the joint stops when messages cease
            self._jog, self._n_tasks_done, self._next_task_time = (
                None,
                self._n_tasks_done + 1,
                self.now + self.config.jog_dwell_time,
            )

    # -- results -------------------------------------------------------------------------------------------------------
    def _on_goal_sent(self, goal: GoalFuture) -> None:
        goal.add_done_callback(lambda _: self._on_goal_done(goal))

    def _on_goal_done(self, goal: GoalFuture) -> None:
        task, self._pending_task = self._pending_task, ""
        if goal.error is not None or not goal.succeeded:
            reason = goal.error if goal.error is not None else goal.error_message
            self.log.warn(f"{task or 'a pose'} at place {self._stop_index}: {reason}")
            if task:
                self.log.error("the demonstration has ended")
                return
        if task != "drive":
            self._n_tasks_done += 1
        if task == "fold":
            self._stop_index += 1
            self._done_publisher.publish(msg.UInt32(data=self._stop_index))
        self._next_task_time = self.now + self.config.dwell_time
