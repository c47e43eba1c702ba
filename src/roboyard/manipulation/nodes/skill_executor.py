"""The collision-aware method of the skill server: executes skill requests one at a time as goals of other nodes'
actions, each with a timeout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from roboyard.bus import GoalFuture
from roboyard.config import parameter
from roboyard.description import Box, Cylinder
from roboyard.errors import ConfigError
from roboyard.geometry import SE2, SE3
from roboyard.manipulation.collision import AttachedBody, Obstacle
from roboyard.manipulation.nodes.motion_messages import pose_constraints_to_msg
from roboyard.manipulation.nodes.motion_requests import STRAIGHT_PLANNER, TIMED_PLANNER
from roboyard.manipulation.nodes.planning_scene_monitor import object_to_msg
from roboyard.manipulation.nodes.skill_method import SkillMethod, SkillMethodConfig, SkillServerContext
from roboyard.manipulation.skills import (
    SUCCESS,
    ArmMotionRequest,
    ConveyorLane,
    ConveyorTrackingRequest,
    DelayRequest,
    DetectDiscsRequest,
    DriveRequest,
    FinishSkill,
    GripperRequest,
    JointTarget,
    NamedTarget,
    Point,
    SceneUpdateRequest,
    Skill,
    SkillConfig,
    SkillContext,
    SkillGoal,
    SkillRequest,
    SkillResult,
    SkillResultCode,
    TargetDetection,
    ToolTarget,
    conveyor_lanes,
    make_skill,
    skill_names,
)
from roboyard.messages import action, msg, to_nanoseconds
from roboyard.messages.convert import make_header, pose_stamped_to_msg, pose_to_msg
from roboyard.messages.convert.action_goals import GoalStatus
from roboyard.messages.time import duration_to_msg

CODE_BY_DETECTION_ERROR: Final = {
    "view_empty": SkillResultCode.VIEW_EMPTY,
    "disagreement": SkillResultCode.DISAGREEMENT,
    "depth_unknown": SkillResultCode.NO_DEPTH,
    "depth_silent": SkillResultCode.NO_DEPTH,
    "depth_info_silent": SkillResultCode.NO_DEPTH,
    "camera_silent": SkillResultCode.CAMERA_SILENT,
    "camera_info_silent": SkillResultCode.CAMERA_SILENT,
    "wrong_encoding": SkillResultCode.CAMERA_SILENT,
    "no_transform": SkillResultCode.CAMERA_SILENT,
    "too_slow": SkillResultCode.CAMERA_SILENT,
    "canceled": SkillResultCode.CANCELLED,
}
"""Result codes of skills for the error codes of LookForDiscs; others count as CAMERA_SILENT."""
CODE_BY_MOTION_ERROR: Final = {
    "start_in_collision": SkillResultCode.IN_COLLISION,
    "goal_in_collision": SkillResultCode.IN_COLLISION,
    "line_blocked": SkillResultCode.IN_COLLISION,
    "in_the_way": SkillResultCode.IN_COLLISION,
    "budget_spent": SkillResultCode.IN_COLLISION,
    "start_outside_limits": SkillResultCode.NOT_REACHABLE,
    "goal_outside_limits": SkillResultCode.NOT_REACHABLE,
    "goal_unreachable": SkillResultCode.NOT_REACHABLE,
    "too_fast": SkillResultCode.NOT_REACHABLE,
    "too_late": SkillResultCode.OUT_OF_REACH,
    "cancelled": SkillResultCode.CANCELLED,
    "preempted": SkillResultCode.PREEMPTED,
    "no_controller": SkillResultCode.NO_SERVER,
    "bad_goal": SkillResultCode.BAD_GOAL,
    "unknown_group": SkillResultCode.BAD_GOAL,
    "unknown_link": SkillResultCode.BAD_GOAL,
    "not_followed": SkillResultCode.NOT_FOLLOWED,
    "constraint_broken": SkillResultCode.NOT_FOLLOWED,
    "effort_exceeded": SkillResultCode.NOT_FOLLOWED,
}
"""Result codes of skills for the causes of failed motions; others count as NOT_FOLLOWED."""
GRASPED_NAME: Final = "held"
FLOOR_NAME: Final = "ground"
_OBJECT_PREFIX: Final = "thing_"
_FLOOR_SIZE: Final = (4.0, 4.0, 0.1)


# -- detections --------------------------------------------------------------------------------------------------------
def detection_goal(request: DetectDiscsRequest, frame: str, timeout: float) -> Any:
    """Return a roboyard_msgs/LookForDiscs goal with positions in ``frame``."""
    min_agreeing = max(1, request.num_images // 2)  # an object between dark discs is not detected in every image
    return action.LookForDiscs.Goal(
        polarity=request.polarity,
        mode=request.mode,
        frame_id=frame,
        num_images=request.num_images,
        min_agreeing=min_agreeing,
        timeout=timeout,
        may_move=request.may_move,
    )


def detection_result(future: GoalFuture) -> SkillResult:
    """Return the result of a detection."""
    if future.error is not None:
        return SkillResult(SkillResultCode.NO_SERVER, str(future.error))
    result = future.result
    if result.error_code == "canceled":
        return SkillResult(CODE_BY_DETECTION_ERROR[result.error_code], result.message)
    if result.error_code:
        return SkillResult(
            CODE_BY_DETECTION_ERROR.get(result.error_code, SkillResultCode.CAMERA_SILENT),
            f"{result.error_code}: {result.message}",
        )
    speeds = [(v.x, v.y) for v in result.velocities] or [(0.0, 0.0)] * len(result.positions)
    detections = zip(result.positions, result.diameters, result.distances, speeds, strict=True)
    time_ns = to_nanoseconds(result.header.stamp)
    return SkillResult(
        detections=tuple(
            TargetDetection((p.x, p.y, p.z), float(d), float(pair_distance), v, time_ns)
            for p, d, pair_distance, v in detections
        )
    )


# -- motions -----------------------------------------------------------------------------------------------------------
def motion_goal(request: ArmMotionRequest, joints: tuple[str, ...], tool_frame: str, frame: str) -> Any:
    """Return a moveit_msgs/MoveGroup goal for the first reachable target."""
    goal = action.MoveGroup.Goal()
    goal.request.goal_constraints = [_target_constraints(one, joints, tool_frame, frame) for one in request.targets]
    goal.request.max_velocity_scaling_factor = request.speed_scaling
    if request.is_straight:
        goal.request.planner_id = STRAIGHT_PLANNER
    return goal


def tracking_goal(request: ConveyorTrackingRequest, tool_frame: str, frame: str) -> Any:
    """Return a moveit_msgs/MoveGroup goal with timed tool poses."""
    kinds = msg.moveit_msgs
    points = [
        kinds.CartesianTrajectoryPoint(
            point=kinds.CartesianPoint(
                pose=_pointing_down_pose(tool_pose.target),
                velocity=msg.Twist(linear=msg.Vector3(x=tool_pose.velocity[0], y=tool_pose.velocity[1])),
            ),
            time_from_start=duration_to_msg(tool_pose.time_ns - request.start_time_ns),
        )
        for tool_pose in request.tool_poses
    ]
    trajectory = kinds.CartesianTrajectory(
        header=make_header(frame, request.start_time_ns), tracked_frame=tool_frame, points=points
    )
    goal = action.MoveGroup.Goal()
    goal.request.planner_id = TIMED_PLANNER
    goal.request.reference_trajectories = [kinds.GenericTrajectory(cartesian_trajectory=[trajectory])]
    return goal


def _pointing_down_pose(target: ToolTarget) -> Any:
    return pose_to_msg(SE3.from_xyz_rpy(target.position, (math.pi, 0.0, target.yaw)))


def _target_constraints(
    target: JointTarget | NamedTarget | ToolTarget, joints: tuple[str, ...], tool_frame: str, frame: str
) -> Any:
    kinds = msg.moveit_msgs
    if isinstance(target, NamedTarget):
        return kinds.Constraints(name=target.name)
    if isinstance(target, JointTarget):
        pairs = zip(joints, target.positions, strict=True)
        return kinds.Constraints(joint_constraints=[kinds.JointConstraint(joint_name=n, position=v) for n, v in pairs])
    return pose_constraints_to_msg(tool_frame, _pointing_down_pose(target), frame)


def motion_result(future: GoalFuture) -> SkillResult:
    """Return the result of a motion."""
    if future.succeeded and future.error is None:
        return SkillResult()
    message = str(future.error) if future.error is not None else future.error_message
    if future.status is GoalStatus.CANCELED:
        return SkillResult(SkillResultCode.CANCELLED, message or "cancelled")
    if future.error is not None and not future.error_code:
        return SkillResult(SkillResultCode.NO_SERVER, message)
    return SkillResult(CODE_BY_MOTION_ERROR.get(future.error_code, SkillResultCode.NOT_FOLLOWED), message)


# -- scene -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class SceneMessageContext:
    """Frames, sizes and links that the messages of the planning scene need.

    Attributes:
        frame: Frame of the robot's root.
        tool_frame: Link or frame of the tool, its z axis along the fingers.
        touch_links: Links that may touch the held object.
        config: Sizes of objects.
        floor_height: Height of the floor [m].
    """

    frame: str
    tool_frame: str
    touch_links: tuple[str, ...]
    config: SkillConfig
    floor_height: float


def scene_messages(
    request: SceneUpdateRequest,
    previous_names: tuple[str, ...],
    context: SceneMessageContext,
    lanes: Sequence[ConveyorLane],
) -> tuple[list[Any], tuple[str, ...]]:
    """Return the moveit_msgs/PlanningScene messages of a scene update, and the names of the objects then.

    Args:
        request: Objects around the arm, and the held object.
        previous_names: Names of the last update; ``GRASPED_NAME`` is among them if an object was held.
        context: Frames, sizes and links.
        lanes: Conveyor lanes that the arm avoids.
    """
    frame, tool_frame, touch_links, config, floor_height = (
        context.frame,
        context.tool_frame,
        context.touch_links,
        context.config,
        context.floor_height,
    )
    kinds = msg.moveit_msgs
    removal = kinds.CollisionObject.REMOVE
    messages: list[Any] = []
    if GRASPED_NAME in previous_names:  # a detached object becomes an obstacle, which is removed, too
        removed_object = kinds.CollisionObject(id=GRASPED_NAME, operation=removal)
        robot_state = kinds.RobotState(
            is_diff=True,
            attached_collision_objects=[kinds.AttachedCollisionObject(link_name=tool_frame, object=removed_object)],
        )
        messages.append(kinds.PlanningScene(is_diff=True, robot_state=robot_state))
        messages.append(_scene_diff([removed_object]))
    removals = [
        kinds.CollisionObject(id=name, operation=removal) for name in previous_names if name.startswith(_OBJECT_PREFIX)
    ]
    shape = Cylinder(config.object_radius, config.object_height)
    obstacles = [
        Obstacle(f"{_OBJECT_PREFIX}{k}", shape, SE3(translation=(x, y, z - 0.5 * config.object_height)))
        for k, (x, y, z) in enumerate(request.objects)
    ]
    obstacles += [_lane_obstacle(k, lane, floor_height) for k, lane in enumerate(lanes)]
    names = [one.name for one in obstacles]
    if FLOOR_NAME not in previous_names:
        obstacles.append(
            Obstacle(FLOOR_NAME, Box(_FLOOR_SIZE), SE3(translation=(0.0, 0.0, floor_height - 0.5 * _FLOOR_SIZE[2])))
        )
    message = _scene_diff([*removals, *(object_to_msg(one, frame, 0) for one in obstacles)])
    if request.grasped_extent is not None:
        extent_above, extent_below = request.grasped_extent
        body = Cylinder(config.object_radius, extent_above + extent_below)
        attached_body = AttachedBody(
            GRASPED_NAME, tool_frame, body, SE3(translation=(0.0, 0.0, 0.5 * (extent_below - extent_above)))
        )
        message.robot_state = kinds.RobotState(
            is_diff=True,
            attached_collision_objects=[
                kinds.AttachedCollisionObject(
                    link_name=tool_frame,
                    object=object_to_msg(attached_body, tool_frame, 0),
                    touch_links=list(touch_links),
                )
            ],
        )
        names.append(GRASPED_NAME)
    messages.append(message)
    return messages, (*names, FLOOR_NAME)


def _lane_obstacle(number: int, lane: ConveyorLane, floor_height: float) -> Obstacle:
    """Return the space of the moving objects on a conveyor."""
    x, y, end_x, end_y, width, height = lane
    size = (math.hypot(end_x - x, end_y - y), width, height - floor_height)
    pose = SE3.from_xyz_rpy(
        (0.5 * (x + end_x), 0.5 * (y + end_y), 0.5 * (height + floor_height)),
        (0.0, 0.0, math.atan2(end_y - y, end_x - x)),
    )
    return Obstacle(f"{_OBJECT_PREFIX}lane_{number}", Box(size), pose)


def _scene_diff(objects: list[Any]) -> Any:
    kinds = msg.moveit_msgs
    return kinds.PlanningScene(
        is_diff=True, world=kinds.PlanningSceneWorld(collision_objects=objects),
        robot_state=kinds.RobotState(is_diff=True),
    )  # fmt: skip


def point_to_msg(point: Point | None) -> Any:
    """Return a geometry_msgs/Point; the origin if there is no position."""
    x, y, z = point if point is not None else (0.0, 0.0, 0.0)
    return msg.Point(x=x, y=y, z=z)


_RESULT_TIMEOUT: Final = 3.0
"""Timeout of a result after a cancellation [s]."""


_REQUEST_WORDS: Final = {
    DetectDiscsRequest: "detection", ArmMotionRequest: "motion", GripperRequest: "gripper motion",
    ConveyorTrackingRequest: "conveyor tracking", DriveRequest: "drive",
}  # fmt: skip
"""Kinds of requests, in messages."""


@dataclass(frozen=True)
class SkillActionNames:
    """Actions of other nodes that the skills use."""

    detection_action: str = parameter("look", doc="Action roboyard_msgs/LookForDiscs of the disc detector.")
    move_action: str = parameter("move_action", doc="Action moveit_msgs/MoveGroup of move_group.")
    gripper_action: str = parameter("gripper/gripper_cmd", doc="Action control_msgs/GripperCommand of the gripper.")
    navigate_action: str = parameter("navigate_to_pose", doc="Action nav2_msgs/NavigateToPose of the navigator.")


@dataclass(frozen=True)
class SkillTimeouts:
    """Timeouts of the requests of the skills."""

    detection_timeout: float = parameter(3.0, unit="s", low=0.1, high=1e3, doc="Timeout of a detection.")
    motion_timeout: float = parameter(40.0, unit="s", low=0.1, high=1e4, doc="Timeout of a motion.")
    grip_timeout: float = parameter(6.0, unit="s", low=0.1, high=1e3, doc="Timeout of a gripper motion.")
    drive_timeout: float = parameter(180.0, unit="s", low=0.1, high=1e5, doc="Timeout of a drive.")


@dataclass(frozen=True, kw_only=True)
class CollisionAwareSkillMethodConfig(SkillMethodConfig):
    """Planned motions around all detected objects, with contact sensing; every skill recovers from failures.

    Take it for any arm with a wrist camera and a parallel gripper.
    """

    type: str = parameter("collision_aware", doc="Name of the method.")
    actions: SkillActionNames = parameter(factory=SkillActionNames, flatten="", doc="Actions of other nodes.")
    timeouts: SkillTimeouts = parameter(factory=SkillTimeouts, flatten="", doc="Timeouts of the requests.")
    gripper_state_topic: str = parameter("gripper/state", doc="Topic std_msgs/String of the gripper's state.")
    conveyor_topics: tuple[str, ...] = parameter(
        (), doc="Topics std_msgs/Float64 of the conveyors' speeds [m/s], one for each of 'conveyor_areas'."
    )
    finger_force_topics: tuple[str, ...] = parameter(
        (),
        doc="Topics geometry_msgs/WrenchStamped of the finger forces, z along the finger; empty: contacts are not "
        "measured.",
    )
    contact_force: float = parameter(
        4.0, unit="N", low=0.0, high=1e4,
        doc="Change of the sum of these forces that counts as a contact during the descent.",
    )  # fmt: skip
    area_poses: dict[str, tuple[float, float, float]] = parameter(
        factory=dict,
        unit=("m", "m", "rad"),
        doc="Poses (x, y, yaw) of the work areas and of start_end in the map; none: the robot does not drive.",
    )
    map_frame: str = parameter("map", doc="Frame of these poses.")

    def make_method(self, server: SkillServerContext) -> SkillMethod:
        """Return the method. Raises ConfigError if a named pose is missing, or topics and conveyors do not match."""
        skills, group = server.skills, server.semantics.group(server.group or None)
        for name in (*skills.view_poses, skills.bay_view_pose, skills.rest_pose):
            group.pose(name)
        if self.conveyor_topics and len(self.conveyor_topics) != len(skills.conveyor_areas):
            raise ConfigError(
                f"{len(self.conveyor_topics)} topics for {len(skills.conveyor_areas)} conveyors",
                location=f"{server.node.full_name}, parameter 'method.conveyor_topics'",
                valid="one for each of skills.conveyor_areas, or none",
            )
        return CollisionAwareSkillMethod(server, self)


class CollisionAwareSkillMethod(SkillMethod):
    """The registered skills, with requests as goals of other nodes' actions."""

    def __init__(self, server: SkillServerContext, config: CollisionAwareSkillMethodConfig) -> None:
        self._server = server
        self.skill_names = skill_names()
        self.executor: ActionSkillExecutor = ActionSkillExecutor(server, config)

    def create_skill(self, name: str, goal: SkillGoal) -> Skill:
        """Return one of the registered skills. Raises InputError."""
        return make_skill(name, goal, self._server.skills, len(self._server.arm.bay_positions))

    def create_finish_skill(self, result: SkillResult) -> Skill:
        """Return the skill that empties the gripper and moves the arm to its rest pose."""
        return FinishSkill(result)

    def extend_context(self, context: SkillContext) -> SkillContext:
        """Return the inputs of a skill's step with the conveyor speeds."""
        return replace(context, conveyor_speeds=dict(self.executor.conveyor_speeds))


class ActionSkillExecutor:
    """Executes skill requests by the actions of other nodes.

    Args:
        server: The skill server.
        config: Actions, topics and timeouts.

    Attributes:
        is_holding: Whether the fingers measure an object.
        conveyor_speeds: Conveyor speeds by work area [m/s]; NaN until they are received.
    """

    def __init__(self, server: SkillServerContext, config: CollisionAwareSkillMethodConfig) -> None:
        node, semantics = server.node, server.semantics
        self._node, self._skill_config, self._floor_height, self._config = (
            node,
            server.skills,
            server.floor_height,
            config,
        )
        self._on_finished, self._memory = server.on_result, server.memory
        self._area_poses = {name: SE2(*pose) for name, pose in config.area_poses.items()}
        planning_group = semantics.group(server.group or None)
        self._joints, self._tool_frame = planning_group.joints, planning_group.tip
        self._touch_links = semantics.gripper(planning_group.gripper).links if planning_group.gripper else ()
        self._frame = node.frame(semantics.root_link)
        self.is_holding = False
        self._request: SkillRequest | None = None
        self._deadline_ns = 0
        self._has_moved_fingers = False
        conveyor_topics = dict(zip(server.skills.conveyor_areas, config.conveyor_topics, strict=False))
        self.conveyor_speeds = dict.fromkeys(conveyor_topics, math.nan)
        self._cancel_result: SkillResult | None = None
        self._scene_names: tuple[str, ...] = ()
        self._future: GoalFuture | None = None
        self._restored_goals: dict[str, GoalFuture] = {}
        actions: dict[str, tuple[str, Any]] = {
            "DetectDiscsRequest": (config.actions.detection_action, action.LookForDiscs),
            "ArmMotionRequest": (config.actions.move_action, action.MoveGroup),
            "GripperRequest": (config.actions.gripper_action, action.GripperCommand),
        }
        if self._area_poses:
            actions["DriveRequest"] = (config.actions.navigate_action, action.NavigateToPose)
        self._clients = {
            request_type: node.action_client(
                name, type_, on_goal_restored=partial(self._on_goal_restored, request_type)
            )
            for request_type, (name, type_) in actions.items()
        }
        self._scene_publisher = node.publisher("planning_scene", msg.moveit_msgs.PlanningScene)
        node.subscribe(config.gripper_state_topic, msg.String, self._on_gripper_state)
        for name, topic in conveyor_topics.items():
            node.subscribe(topic, msg.Float64, partial(self._on_conveyor, name))
        self._finger_forces = dict.fromkeys(config.finger_force_topics, 0.0)
        self._start_force = 0.0
        for finger in config.finger_force_topics:
            node.subscribe(finger, msg.WrenchStamped, partial(self._on_force, finger))

    @property
    def is_busy(self) -> bool:
        """Whether a request is under way."""
        return self._request is not None

    # -- requests ------------------------------------------------------------------------------------------------------
    def start(self, request: SkillRequest) -> SkillResult | None:
        """Start a request; returns the result if it is done at once, else ``on_finished`` is called later."""
        if isinstance(request, SceneUpdateRequest):
            context = SceneMessageContext(
                self._frame, self._tool_frame, self._touch_links, self._skill_config, self._floor_height
            )
            lanes = conveyor_lanes(self._skill_config, self._memory())
            messages, self._scene_names = scene_messages(request, self._scene_names, context, lanes)
            for message in messages:
                self._scene_publisher.publish(message)
            return SUCCESS
        if isinstance(request, DriveRequest) and (
            not self._area_poses or (request.area and request.area not in self._area_poses)
        ):
            return SUCCESS
        if (
            isinstance(request, ArmMotionRequest | ConveyorTrackingRequest)
            and request.is_holding
            and not self.is_holding
        ):
            return SkillResult(SkillResultCode.LOST, "the held object is no longer between the fingers")
        self._request, self._cancel_result, self._has_moved_fingers = request, None, False
        self._start_force = sum(self._finger_forces.values())
        self._deadline_ns = self._node.now_ns + round(self._timeout_of(request) * 1e9)
        if not isinstance(request, DelayRequest):
            client = self._clients[_client_name(request)]
            self._follow(client.send(self._goal_of(request)))
        return None

    def _timeout_of(self, request: SkillRequest) -> float:
        config = self._config.timeouts
        if isinstance(request, ConveyorTrackingRequest):
            return (request.tool_poses[-1].time_ns - self._node.now_ns) * 1e-9 + _RESULT_TIMEOUT
        timeouts = {
            "DetectDiscsRequest": config.detection_timeout + 1.0,
            "ArmMotionRequest": config.motion_timeout,
            "GripperRequest": config.grip_timeout,
            "DriveRequest": config.drive_timeout,
        }
        return request.duration if isinstance(request, DelayRequest) else timeouts[type(request).__name__]

    def _goal_of(self, request: SkillRequest) -> Any:
        config = self._config
        if isinstance(request, DetectDiscsRequest):
            return detection_goal(request, self._frame, config.timeouts.detection_timeout)
        if isinstance(request, ArmMotionRequest):
            return motion_goal(request, self._joints, self._tool_frame, self._frame)
        if isinstance(request, ConveyorTrackingRequest):
            return tracking_goal(request, self._tool_frame, self._frame)
        if isinstance(request, GripperRequest):
            command = msg.GripperCommand(position=request.opening, max_effort=request.force)
            return action.GripperCommand.Goal(command=command)
        drive_request = request if isinstance(request, DriveRequest) else DriveRequest()
        pose = (self._area_poses[drive_request.area] if drive_request.area else SE2()) @ SE2(*drive_request.offset)
        frame = self._node.frame(config.map_frame) if drive_request.area else self._frame
        return action.NavigateToPose.Goal(pose=pose_stamped_to_msg(pose, frame, self._node.now_ns))

    def _follow(self, future: GoalFuture) -> None:
        self._future = future
        future.add_done_callback(lambda _: self._on_goal_done(future))

    # -- results -------------------------------------------------------------------------------------------------------
    def cancel(self, result: SkillResult) -> None:
        """Stop the request under way; it ends with ``result`` once it has stopped."""
        if self._request is None or self._cancel_result is not None:
            return
        self._cancel_result = result
        if self._future is None:
            self._finish(result)
            return
        self._deadline_ns = self._node.now_ns + round(_RESULT_TIMEOUT * 1e9)
        self._future.cancel()

    def update(self) -> None:
        """Check the timeout; called periodically."""
        request = self._request
        if (
            isinstance(request, ConveyorTrackingRequest)
            and not self._has_moved_fingers
            and self._cancel_result is None
            and self._node.now_ns >= request.grip_time_ns
        ):
            self._has_moved_fingers = True
            self._clients["GripperRequest"].send(self._goal_of(request.gripper_request))
        if self._request is None or self._node.now_ns < self._deadline_ns:
            return
        if isinstance(self._request, DelayRequest):
            self._finish(SUCCESS)
        elif self._cancel_result is not None:
            self._finish(self._cancel_result)
        else:
            name = _REQUEST_WORDS[type(self._request)]
            self.cancel(SkillResult(SkillResultCode.TIMED_OUT, f"timeout of the {name}"))

    def _on_goal_done(self, future: GoalFuture) -> None:
        if future is not self._future or self._request is None:
            return
        request = self._request
        if self._cancel_result is not None:
            self._finish(self._cancel_result)
        elif isinstance(request, DetectDiscsRequest):
            self._finish(detection_result(future))
        elif isinstance(request, GripperRequest):
            self._finish(self._gripper_result(request, future))
        else:
            result = motion_result(future)
            if (
                isinstance(request, ArmMotionRequest)
                and request.is_holding
                and request.is_straight
                and result.code is SkillResultCode.NOT_FOLLOWED
            ):
                result = SkillResult(SkillResultCode.TOO_HEAVY, f"the arm cannot lift it: {result.message}")
            self._finish(result)

    def _gripper_result(self, request: GripperRequest, future: GoalFuture) -> SkillResult:
        """Return the result of a gripper motion; fingers that open must leave the object by half of the possible
        clearance.
        """
        clearance = 0.5 * request.opening - self._skill_config.object_radius
        if future.error is None and clearance > 0.0 and future.result.position < request.opening - clearance:
            message = (
                f"the distance between the fingers is {1e3 * future.result.position:.0f} mm "
                f"instead of {1e3 * request.opening:.0f}"
            )
            return SkillResult(SkillResultCode.GRIPPER_STUCK, message)
        return SUCCESS if future.error is None and future.succeeded else motion_result(future)

    def _finish(self, result: SkillResult) -> None:
        self._request = self._cancel_result = self._future = None
        self._on_finished(result)

    # -- gripper -------------------------------------------------------------------------------------------------------
    def _on_gripper_state(self, message: Any) -> None:
        self.is_holding = message.data == "holding"
        request = self._request
        if isinstance(request, ConveyorTrackingRequest) and self._has_moved_fingers:
            return
        if (
            isinstance(request, ArmMotionRequest | ConveyorTrackingRequest)
            and request.is_holding
            and not self.is_holding
        ):
            self.cancel(SkillResult(SkillResultCode.LOST, f"the gripper reports: {message.data}"))

    def _on_force(self, finger: str, message: Any) -> None:
        self._finger_forces[finger] = float(message.wrench.force.z)
        change = abs(sum(self._finger_forces.values()) - self._start_force)
        if (
            isinstance(self._request, ArmMotionRequest)
            and self._request.is_guarded
            and change > self._config.contact_force
        ):
            self.cancel(SkillResult(SkillResultCode.BLOCKED, f"contact: {change:.0f} N along the fingers"))

    # -- conveyors -----------------------------------------------------------------------------------------------------
    def _on_conveyor(self, area: str, message: Any) -> None:
        self.conveyor_speeds[area] = float(message.data)
        request = self._request
        if (
            isinstance(request, ArmMotionRequest)
            and request.conveyor_area == area
            and abs(message.data) > self._skill_config.stationary_speed
        ):
            self.cancel(
                SkillResult(
                    SkillResultCode.CONVEYOR_SPEED_CHANGED, f"the conveyor has started, at {abs(message.data):.3f} m/s"
                )
            )
        if not isinstance(request, ConveyorTrackingRequest) or request.conveyor_area != area or self._has_moved_fingers:
            return
        speed = math.hypot(*request.tool_poses[0].velocity)
        if not abs(abs(message.data) - speed) <= self._skill_config.speed_change_tolerance:
            self.cancel(
                SkillResult(
                    SkillResultCode.CONVEYOR_SPEED_CHANGED,
                    f"the conveyor moved at {speed:.3f} m/s, now at {abs(message.data):.3f}",
                )
            )

    # -- state ---------------------------------------------------------------------------------------------------------
    def _on_goal_restored(self, request_type: str, future: GoalFuture) -> None:
        self._restored_goals[request_type] = future

    def save_state(self) -> dict[str, Any]:
        """Return the request under way as plain data; the goals are saved by their clients."""
        return {
            "request": self._request,
            "deadline_ns": self._deadline_ns,
            "cancel_result": self._cancel_result,
            "scene_names": self._scene_names,
            "is_holding": self.is_holding,
            "has_goal": self._future is not None,
            "has_moved_fingers": self._has_moved_fingers,
            "conveyor_speeds": dict(self.conveyor_speeds),
            "finger_forces": dict(self._finger_forces),
            "start_force": self._start_force,
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what ``save_state`` returned, after the clients have restored their goals."""
        self._request, self._deadline_ns, self._cancel_result = (
            saved["request"],
            saved["deadline_ns"],
            saved["cancel_result"],
        )
        self._scene_names, self.is_holding = saved["scene_names"], saved["is_holding"]
        self._has_moved_fingers, self.conveyor_speeds = saved["has_moved_fingers"], dict(saved["conveyor_speeds"])
        self._finger_forces, self._start_force = dict(saved["finger_forces"]), saved["start_force"]
        self._future = None
        if saved["has_goal"]:
            self._follow(self._restored_goals[_client_name(self._request)])
        self._restored_goals.clear()


def _client_name(request: Any) -> str:
    """Return the name of the client of a request: conveyor tracking is an arm motion."""
    return "ArmMotionRequest" if isinstance(request, ConveyorTrackingRequest) else type(request).__name__
