"""The skill server: actions of an arm that detects, picks, places and stows objects."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np

from roboyard.bus import GoalHandle, Node, resource
from roboyard.config import Config, parameter
from roboyard.errors import InputError
from roboyard.manipulation.nodes.skill_executor import CollisionAwareSkillMethodConfig, point_to_msg
from roboyard.manipulation.nodes.skill_method import SkillMethodEntry, SkillServerContext
from roboyard.manipulation.semantics.planning_groups import SemanticDescription
from roboyard.manipulation.skills import (
    ArmGeometry,
    PickPlaceLoopBase,
    Skill,
    SkillConfig,
    SkillContext,
    SkillEvent,
    SkillGoal,
    SkillMemory,
    SkillRequest,
    SkillResult,
    SkillResultCode,
    SkillStack,
    skill_from_dict,
    to_dict,
)
from roboyard.manipulation.skills.requests import ABORTED
from roboyard.messages import action, msg, srv
from roboyard.messages.convert import make_header


class SkillServerNodeConfig(Config):
    """Configuration of `SkillServerNode`."""

    group: str = parameter("", doc="Group of joints that moves; empty: the first group of the robot.")
    method: SkillMethodEntry = parameter(
        CollisionAwareSkillMethodConfig(), doc="How the skills are carried out: type and parameters of the method."
    )
    skills: SkillConfig = parameter(factory=SkillConfig, doc="Configuration of the skills.")
    floor_height: float = parameter(0.0, unit="m", low=-10.0, high=10.0, doc="Height of the floor in the root frame.")
    stop_service: str = parameter("arm/stop", doc="Service that stops the arm's joints.")
    loop: int = parameter(
        -1,
        low=-1,
        high=1_000_000,
        runtime=True,
        doc="Number of objects to place in a loop that starts automatically; 0: no end; -1: no loop.",
    )
    start_time: float = parameter(1.0, unit="s", low=0.0, high=1e6, doc="Time at which that loop starts.")


class SkillServerNode(Node[SkillServerNodeConfig]):
    """Runs the skills of an arm with a wrist camera and a gripper, and reports why a skill fails.

    actions: ~/align, ~/check_load, ~/pick, ~/place, ~/stow, ~/unstow, ~/loop (roboyard_msgs/RunSkill); ~/look and the
        skills of installed packages with the method collision_aware
    service: ~/stop (std_srvs/Trigger): the arm stops at once, a held object stays in the gripper; never refused
    in: joint_states (sensor_msgs/JointState); what the method subscribes to
    out: ~/events (roboyard_msgs/SkillEvent), ~/loop_status (LoopStatus, latched); what the method publishes

    One skill runs at a time: a newer goal ends the running one.  A cancellation stops the arm with the object in the
    gripper, but a cancelled loop finishes first.

    The method collision_aware uses disc_detector's look (roboyard_msgs/LookForDiscs), move_group's move_action
    (moveit_msgs/MoveGroup), the gripper's gripper_cmd (control_msgs/GripperCommand) and ~state (std_msgs/String),
    FINGER/force (geometry_msgs/WrenchStamped), conveyor speeds (std_msgs/Float64), navigate_to_pose
    (nav2_msgs/NavigateToPose) where work areas have poses, and publishes planning_scene (moveit_msgs/PlanningScene).

    The method thesis uses the images of the camera with camera_info and depth, and publishes velocities
    (brics_actuator/JointVelocities) and positions (brics_actuator/JointPositions) of the joints and of both fingers,
    and discs/image/compressed, the last image of each detection.
    """

    groups: SemanticDescription = resource(SemanticDescription)

    state_fields = (
        "_joints",
        "_efforts",
        "_grasp_offset",
        "_n_placed",
        "_pending_skill",
        "_end_request",
        "_has_started_loop",
        "_last_loop_status",
    )

    def setup(self) -> None:
        """Create actions, services and inputs."""
        config = self.config.skills
        self._arm = ArmGeometry.create(self.groups, self.config.group or None, config.bay_frames)
        self._stack = SkillStack()
        self._memory = SkillMemory("" if config.is_mobile else config.work_areas[0])
        self._joints: tuple[float, ...] = ()
        self._efforts: tuple[float, ...] = ()
        self._grasp_offset = 0.0
        self._finger_weights = self._compute_finger_weights()
        self._n_placed = 0
        self._handle: GoalHandle | None = None
        self._pending_handle: GoalHandle | None = None
        self._pending_skill = ""
        self._end_request: tuple[SkillResult, bool] | None = None
        self._has_started_loop = False
        self._last_loop_status: tuple[Any, ...] = ()
        self._restored_handles: dict[str, GoalHandle] = {}
        self._method = self.config.method.make_method(
            SkillServerContext(
                self,
                self.groups,
                self.config.group,
                self._arm,
                config,
                lambda: self._memory,
                self.config.floor_height,
                self.on_result,
            )
        )
        self._executor = self._method.executor
        self.subscribe("joint_states", msg.JointState, self._on_joints)
        for name in self._method.skill_names:
            self.action_server(
                f"~/{name}", action.RunSkill, partial(self._on_goal, name), preempt=False,
                on_goal_restored=partial(self._on_restored, name),
            )  # fmt: skip
        self.service("~/stop", srv.Trigger, self._on_stop)
        self._stop_client = self.service_client(self.config.stop_service, srv.Trigger)
        self._event_publisher = self.publisher("~/events", msg.SkillEvent)
        self._status_publisher = self.publisher("~/loop_status", msg.LoopStatus, latched=True)
        self.timer(rate=self._method.update_rate, callback=self._tick)

    # -- goals ---------------------------------------------------------------------------------------------------------
    def _on_goal(self, name: str, handle: GoalHandle) -> None:
        try:
            self._method.create_skill(name, _skill_goal(handle.goal))
        except InputError as error:
            handle.reject(str(error), SkillResultCode.BAD_GOAL.value)
            return
        handle.accept()
        handle.on_cancel = self._on_cancel
        preempted = SkillResult(SkillResultCode.PREEMPTED, "a newer goal was received")
        if self._pending_handle is not None:
            self._finish_goal(self._pending_handle, preempted)
        self._pending_handle, self._pending_skill = handle, name
        if self._stack.is_busy:
            self._halt(preempted, may_finish=False)
        else:
            self._start_pending()

    def _start_pending(self) -> None:
        handle, self._pending_handle = self._pending_handle, None
        if handle is None:
            return
        self._handle = handle
        self._start_skill(self._method.create_skill(self._pending_skill, _skill_goal(handle.goal)))

    def _on_cancel(self, handle: GoalHandle) -> None:
        cancelled = SkillResult(SkillResultCode.CANCELLED, "cancelled")
        if handle is self._pending_handle:
            self._pending_handle = None
            self._finish_goal(handle, cancelled)
        elif handle is self._handle:
            self._halt(cancelled, may_finish=True)

    def _on_stop(self, request: Any) -> Any:
        stopped = SkillResult(SkillResultCode.CANCELLED, "stopped")
        if self._pending_handle is not None:
            pending, self._pending_handle = self._pending_handle, None
            self._finish_goal(pending, stopped)
        if self._stack.is_busy:
            self._halt(stopped, may_finish=False)
        if self._stop_client.is_available():
            self._stop_client.call(srv.Trigger.Request())
        return srv.Trigger.Response(success=True, message="stopped")

    def _halt(self, result: SkillResult, *, may_finish: bool) -> None:
        """Stop the request under way, then end all skills; a loop may still finish."""
        is_loop = isinstance(self._stack.skills[0], PickPlaceLoopBase)
        if self._end_request is not None:
            may_finish = may_finish and self._end_request[1]
        self._end_request = (result, may_finish and is_loop)
        self._executor.cancel(result)

    # -- results -------------------------------------------------------------------------------------------------------
    def _make_context(self) -> SkillContext:
        return self._method.extend_context(
            SkillContext(
                self.config.skills,
                self._memory,
                self._arm,
                self._joints,
                self._executor.is_holding,
                self._grasp_offset,
                self._efforts,
                self.now_ns,
            )
        )

    def _start_skill(self, skill: Skill) -> None:
        self._process(self._stack.start(skill, self._make_context()))

    def on_result(self, result: SkillResult) -> None:
        """Process the result of a request."""
        if self._end_request is None:
            self._process(self._stack.on_result(self._make_context(), result))
            return
        (end_result, may_finish), self._end_request = self._end_request, None
        final_result = self._stack.abort(end_result.code, end_result.message)
        self._publish_events()
        if may_finish:
            self._start_skill(self._method.create_finish_skill(end_result))
        else:
            self._on_stack_finished(final_result)

    def _process(self, action_or_result: SkillRequest | SkillResult) -> None:
        """Start the request, and process results that are available at once."""
        self._publish_events()
        while not isinstance(action_or_result, SkillResult):
            immediate_result = self._executor.start(action_or_result)
            if immediate_result is None:
                return
            action_or_result = self._stack.on_result(self._make_context(), immediate_result)
            self._publish_events()
        self._on_stack_finished(action_or_result)

    def _on_stack_finished(self, result: SkillResult) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            self._finish_goal(handle, result)
        is_ok = result.is_success or result.code in ABORTED
        self.report_health("ok" if is_ok else "warn", result.message or "done", cause=result.code.value)
        self._start_pending()

    def _finish_goal(self, handle: GoalHandle, skill_result: SkillResult) -> None:
        detected_positions = [one.position for one in skill_result.detections]
        positions = detected_positions or ([skill_result.position] if skill_result.position is not None else [])
        action_result = action.RunSkill.Result(
            success=skill_result.is_success,
            view_empty=skill_result.is_empty,
            error_code=skill_result.code.value,
            message=skill_result.message,
            recoveries=skill_result.recoveries,
            header=make_header(self.frame(self.groups.root_link), self.now_ns),
            positions=[point_to_msg(one) for one in positions],
            load=np.array(self._memory.bay_states, dtype=np.int8),
            placed=self._n_placed,
        )
        if skill_result.is_success:
            handle.succeed(action_result)
        elif handle.is_cancel_requested:
            handle.set_canceled(action_result, skill_result.message)
        else:
            handle.abort(action_result, skill_result.message, skill_result.code.value)

    def _tick(self) -> None:
        if self.config.loop >= 0 and not self._has_started_loop and self.now >= self.config.start_time - 1e-9:
            self._has_started_loop = True
            if not self._stack.is_busy:
                self._start_skill(self._method.create_skill("loop", SkillGoal(n_objects=self.config.loop)))
        self._executor.update()

    def _on_joints(self, message: Any) -> None:
        positions = dict(zip(message.name, message.position, strict=False))
        arm_joints = self._arm.chain.joints
        if all(name in positions and np.isfinite(positions[name]) for name in arm_joints):
            self._joints = tuple(float(positions[name]) for name in arm_joints)
        efforts = dict(zip(message.name, message.effort, strict=False))
        self._efforts = tuple(float(efforts[name]) for name in arm_joints if np.isfinite(efforts.get(name, np.nan)))
        if len(self._efforts) != len(arm_joints):
            self._efforts = ()
        if all(name in positions and np.isfinite(positions[name]) for name in self._finger_weights):
            self._grasp_offset = sum(weight * float(positions[name]) for name, weight in self._finger_weights.items())

    def _compute_finger_weights(self) -> dict[str, float]:
        """Return the sliding joints of the fingers, and how far each shifts their center along the tool's y axis."""
        gripper_name = self.groups.group(self.config.group or None).gripper
        gripper_joints = self.groups.gripper(gripper_name).joints if gripper_name is not None else ()
        prismatic_joints = [j for j in self.groups.model.joints if j.name in gripper_joints and j.type == "prismatic"]
        return {joint.name: float(joint.axes[0].xyz[1]) / len(prismatic_joints) for joint in prismatic_joints}

    # -- events --------------------------------------------------------------------------------------------------------
    def _publish_events(self) -> None:
        for event in self._stack.events:
            self._publish_event(event)
        self._stack.events.clear()
        skills = self._stack.skills
        if skills and isinstance(skills[0], PickPlaceLoopBase):
            self._publish_loop_status(skills[0], skills)

    def _publish_event(self, event: SkillEvent) -> None:
        result, position = event.result, event.result.position
        is_finished = event.kind == "finished"
        self._event_publisher.publish(
            msg.SkillEvent(
                header=make_header(self.frame(self.groups.root_link), self.now_ns),
                skill=event.skill,
                id=event.skill_id,
                parent_id=event.parent_id,
                event=event.kind,
                phase=event.phase,
                success=is_finished and result.is_success,
                view_empty=result.is_empty,
                error_code=result.code.value,
                message=result.message,
                bay=result.bay,
                has_position=position is not None,
                position=point_to_msg(position),
            )
        )
        if event.kind == "recovered":
            self.log.info(f"{event.skill}: {result.code.value}: {result.message}")
        elif is_finished and not event.parent_id and not result.is_success and result.code not in ABORTED:
            self.log.warn(f"{event.skill} failed: {result.code.value}: {result.message}")
        if self._handle is not None and event.kind in ("started", "phase"):
            self._handle.publish_feedback(action.RunSkill.Feedback(skill=event.skill, phase=event.phase))

    def _publish_loop_status(self, loop: PickPlaceLoopBase, skills: list[Skill]) -> None:
        self._n_placed = loop.n_placed
        activity = (
            skills[1].name if len(skills) > 1 else {"idle": "rest", "recover_start": "wait"}.get(loop.phase, "wait")
        )
        bay_states = tuple(self._memory.bay_states)
        loop_status = (
            activity,
            self._memory.work_area,
            loop.order,
            bay_states,
            loop.n_picked,
            loop.n_placed,
            self._memory.recoveries,
            loop.waiting_for,
        )
        if loop_status == self._last_loop_status:
            return
        self._last_loop_status = loop_status
        self._status_publisher.publish(
            msg.LoopStatus(
                header=make_header(self.frame(self.groups.root_link), self.now_ns),
                action=activity,
                place=self._memory.work_area,
                order=loop.order,
                load=np.array(bay_states, dtype=np.int8),
                picked=loop.n_picked,
                placed=loop.n_placed,
                recoveries=self._memory.recoveries,
                message=loop.waiting_for,
            )
        )

    # -- state ---------------------------------------------------------------------------------------------------------
    def _on_restored(self, name: str, handle: GoalHandle) -> None:
        handle.on_cancel = self._on_cancel
        self._restored_handles[handle.id.hex()] = handle

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data, with all skills under way."""
        ids = [None if one is None else one.id.hex() for one in (self._handle, self._pending_handle)]
        return super().save_state() | {
            "memory": to_dict(self._memory), "stack": [to_dict(one) for one in self._stack.skills],
            "executor": self._executor.save_state(), "goals": ids,
        }  # fmt: skip

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what ``save_state`` returned."""
        self._restored_handles.clear()
        super().load_state(state)
        self._memory = SkillMemory(**copy.deepcopy(state["memory"]))
        self._stack.skills = [skill_from_dict(one) for one in state["stack"]]
        self._executor.load_state(state["executor"])
        self._handle, self._pending_handle = (
            None if one is None else self._restored_handles[one] for one in state["goals"]
        )


def _skill_goal(goal: Any) -> SkillGoal:
    position = (goal.position.x, goal.position.y, goal.position.z) if goal.has_position else None
    return SkillGoal(
        str(goal.polarity),
        str(goal.mode),
        int(goal.num_images),
        str(goal.field),
        int(goal.bay),
        position,
        int(goal.objects),
    )
