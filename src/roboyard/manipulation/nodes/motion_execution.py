"""Execution of one motion at a time: planned, followed by the arm's controller, monitored, stopped and planned
again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Any, Final

import numpy as np

from roboyard.bus import Future, GoalFuture, GoalHandle, Node
from roboyard.bus.actions import PREEMPTED
from roboyard.bus.offload import OffloadedTask
from roboyard.errors import RoboyardError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision.planning_scene import find_blockage
from roboyard.manipulation.nodes.motion_messages import ArmMotionState, sample_trajectory_msg, trajectory_to_msg
from roboyard.manipulation.nodes.moveit_errors import ArmMotionError, error_cause
from roboyard.manipulation.nodes.planning_scene_monitor import PlanningSceneMonitor
from roboyard.manipulation.planning import MotionPlan
from roboyard.manipulation.planning.planning_request import PlanningRequest, plan_request
from roboyard.messages import action, msg
from roboyard.messages.convert import make_header, pose_to_msg
from roboyard.messages.time import to_nanoseconds

_MAX_REPORTED_CLEARANCE: Final = 0.5
"""A larger clearance is not measured [m]."""
_CLEARANCE_PERIOD_NS: Final = 200_000_000
"""Period of the published clearance."""
START_TOLERANCE: Final = 0.02
"""Maximum distance between the measured joints and the start of a motion [rad or m]."""


@dataclass(slots=True)
class ArmMotionTask:
    """A goal and its progress.

    Attributes:
        action_name: Name of the action.
        handle: The goal.
        request: The planning request; None for a given trajectory, or before it is read again.
        execute: Whether the plan is executed.
        replans_left: How often it may still be planned again when an obstacle blocks it.
        replan_delay: Delay before that [s].
        seed: Seed of its plans.
        requested_start: (n,) start state of the plan, instead of the measured one.
        state: What is done for the goal.
        accepted_ns: Time at which the goal was accepted.
        due_ns: Time of the next plan, in the state WAITING.
        sent_ns: Time at which the motion starts or started.
        checked_version: Version of the scene with which the motion was checked last.
        trajectory: The last planned trajectory_msgs/JointTrajectory.
        times: (k,) times of waypoints between which the joints move straight [s].
        points: (k, n) joint positions there.
        duration: Duration of the last planned motion [s].
        path_length: Length of the last planned motion in joint space.
        n_checks: Number of states that were checked for collisions.
        n_plans: Number of plans.
        n_replans: Number of plans after an obstacle had blocked the motion.
        stop_reason: Cause and message of the stop.
    """

    action_name: str
    handle: GoalHandle
    request: PlanningRequest | None
    execute: bool = True
    replans_left: int = 0
    replan_delay: float = 0.5
    seed: int = 0
    requested_start: Array | None = None
    state: ArmMotionState = ArmMotionState.PLANNING
    accepted_ns: int = 0
    due_ns: int = 0
    sent_ns: int = 0
    checked_version: int = -1
    trajectory: Any = None
    times: Array = field(default_factory=lambda: np.zeros(0))
    points: Array = field(default_factory=lambda: np.zeros((0, 0)))
    duration: float = 0.0
    path_length: float = 0.0
    n_checks: int = 0
    n_plans: int = 0
    n_replans: int = 0
    stop_reason: tuple[str, str] = ("", "")

    @property
    def start_time_ns(self) -> int:
        """Start of a motion with given times; 0: at once."""
        return 0 if self.trajectory is None else to_nanoseconds(self.trajectory.header.stamp)


_SAVED_FIELDS: Final = tuple(name for name in ArmMotionTask.__dataclass_fields__ if name not in ("handle", "request"))


@dataclass(frozen=True, slots=True)
class MotionExecutorConfig:
    """Settings of a `MotionExecutor`.

    Attributes:
        controller: Name of the arm's control_msgs/FollowJointTrajectory action.
        planning_latency: Declared duration of planning [s].
    """

    controller: str
    planning_latency: float


class MotionExecutor:
    """Plans motions, lets the arm's controller follow them, and monitors them (MoveIt: PlanExecution with its
    TrajectoryExecutionManager).

    One goal is active at a time: a newer goal preempts it, waits in the state QUEUED until the arm stands still, and is
    planned from there.  While the arm moves, the remaining motion is checked whenever the scene changes; a blocked
    motion is stopped, and planned again as often as its goal permits.

    Args:
        node: Node that sends and receives.
        monitor: Monitor of the planning scene.
        config: Controller and declared duration of planning.
        scene_timeout: Returns the maximum age of the octomap while the arm moves [s]; 0: there is no octomap.
        read_request: Returns a task's request again after a state was loaded.
        on_finished: Called with a finished task, and its error or None.
    """

    def __init__(
        self,
        node: Node,
        monitor: PlanningSceneMonitor,
        config: MotionExecutorConfig,
        *,
        scene_timeout: Callable[[], float],
        read_request: Callable[[ArmMotionTask], PlanningRequest],
        on_finished: Callable[[ArmMotionTask, RoboyardError | None], None],
    ) -> None:
        self._node, self._monitor, self._planning_latency = node, monitor, config.planning_latency
        self._scene_timeout, self._read_request, self._on_finished = scene_timeout, read_request, on_finished
        self.task: ArmMotionTask | None = None
        self._planning: OffloadedTask | None = None
        self._stop_event = Event()
        self._execution: GoalFuture | None = None
        self._restored_execution: GoalFuture | None = None
        self._due_ns = 0
        self._type: Any = action.FollowJointTrajectory
        self._client = node.action_client(config.controller, self._type, on_goal_restored=self._on_restored)
        self._status_publisher = node.publisher("~/status", msg.ArmStatus, latched=True)
        self._clearance_publisher = node.publisher("~/clearance", msg.Float64)
        self._path_publisher = node.publisher("display_planned_path", msg.moveit_msgs.DisplayTrajectory, latched=True)

    # -- goals ---------------------------------------------------------------------------------------------------------
    def check_ready(self) -> None:
        """Raises ArmMotionError: no server follows trajectories, or the joint positions are unknown."""
        if not self._client.is_available():
            raise ArmMotionError(
                f"no server of {self._client.name}", "no_controller", valid="the arm's trajectory node"
            )
        self._monitor.measured_joints()

    def start(self, task: ArmMotionTask) -> None:
        """Start an accepted goal; a motion under way is stopped first."""
        if self.task is not None:
            self._cancel_planning()
            self._finish(ArmMotionError("preempted by a newer goal", PREEMPTED))
        task.accepted_ns = self._node.now_ns
        task.handle.on_cancel = self._on_cancel
        self.task = task
        if self._execution is not None:
            task.state = ArmMotionState.QUEUED
            self._execution.cancel()
        else:
            self._start(task)

    def reject(self, action_name: str, error: RoboyardError) -> None:
        """Report that a goal was rejected."""
        self._publish_status(action_name, ArmMotionState.REJECTED, error, None)

    def _start(self, task: ArmMotionTask) -> None:
        """Plan the motion, or execute the given trajectory."""
        if task.trajectory is not None and task.n_plans == 0:
            self._execute(task)
            return
        task.state = ArmMotionState.PLANNING
        try:
            request = task.request = task.request or self._read_request(task)
            scene = self._monitor.current_scene(request.tool)
            start = self._monitor.measured_joints() if task.requested_start is None else task.requested_start
        except RoboyardError as error:
            self._finish(error)
            return
        self._stop_event = Event()
        task.checked_version = self._monitor.version
        self._report_state(ArmMotionState.PLANNING)
        self._planning = self._node.offload(
            plan_request, scene, start, request, self._stop_event.is_set,
            latency=self._planning_latency, on_done=partial(self._on_plan, task), cancel_event=self._stop_event,
        )  # fmt: skip

    def _cancel_planning(self) -> None:
        if self._planning is not None:
            self._stop_event.set()
            self._planning.cancel()
            self._planning = None

    # -- plans ---------------------------------------------------------------------------------------------------------
    def _on_plan(self, task: ArmMotionTask, future: Future) -> None:
        self._planning = None
        if task is not self.task:
            return
        result = future.result
        task.n_plans += 1
        if isinstance(result, MotionPlan):
            self._store_plan(task, result)
            if not task.execute:
                self._finish(None)
            else:
                self._execute(task)
        elif task.n_replans and task.replans_left:
            self._wait_for_replanning(task, result)
        else:
            self._finish(result)

    def _store_plan(self, task: ArmMotionTask, plan: MotionPlan) -> None:
        task.duration, task.path_length = plan.trajectory.duration, plan.path.length
        task.n_checks += plan.n_checks
        start_time_ns = 0 if task.request is None else task.request.start_time_ns
        task.trajectory = trajectory_to_msg(plan.trajectory, self._monitor.frame, start_time_ns)
        self._path_publisher.publish(
            msg.moveit_msgs.DisplayTrajectory(
                model_id=self._monitor.scene.semantics.model.name,
                trajectory=[msg.moveit_msgs.RobotTrajectory(joint_trajectory=task.trajectory)],
            )
        )

    def _execute(self, task: ArmMotionTask) -> None:
        """Send the trajectory to the controller, if it can still be followed."""
        try:
            task.times, task.points = sample_trajectory_msg(task.trajectory, self._monitor.joints)
            deviation = np.abs(task.points[0] - self._monitor.measured_joints())
            if deviation.max() > START_TOLERANCE:
                name = self._monitor.joints[int(np.argmax(deviation))]
                raise ArmMotionError(
                    f"{name} is {deviation.max():.3g} from the start of the motion",
                    "bad_plan",
                    valid=f"at most {START_TOLERANCE}",
                )
            delay_ns = self._node.now_ns - task.start_time_ns if task.start_time_ns else 0
            if delay_ns > 0:
                raise ArmMotionError(
                    f"its start time was {delay_ns * 1e-9:.2f} s ago", "too_late", valid="a later start"
                )
            self._check(task, 0.0)
        except ArmMotionError as error:
            if error.cause == "in_the_way" and task.replans_left:
                self._wait_for_replanning(task, error)
            else:
                self._finish(error)
            return
        except RoboyardError as error:
            self._finish(error)
            return
        task.state, task.sent_ns = ArmMotionState.EXECUTING, max(self._node.now_ns, task.start_time_ns)
        self._execution = self._client.send(self._type.Goal(trajectory=task.trajectory))
        self._execution.add_done_callback(self._on_executed)
        self._report_state(ArmMotionState.EXECUTING)

    def _check(self, task: ArmMotionTask, elapsed: float) -> None:
        """Raises ArmMotionError if an obstacle blocks the remaining part of the motion."""
        scene_age_ns = self._node.now_ns - self._monitor.sensed_ns
        if self._scene_timeout() and scene_age_ns > round(self._scene_timeout() * 1e9):
            raise ArmMotionError(
                f"no octomap was received for {scene_age_ns * 1e-9:.1f} s", "scene_unknown", valid="an octomap"
            )
        tool = None if task.request is None else task.request.tool
        scene = self._monitor.current_scene(tool)
        if task.checked_version == self._monitor.version and task.request is not None:
            return
        task.checked_version = self._monitor.version
        blockage = find_blockage(scene, task.times, task.points, elapsed)
        if blockage is not None:
            one, other = blockage.pair
            raise ArmMotionError(f"{one} would touch {other} in {blockage.time - elapsed:.2f} s", "in_the_way")

    # -- execution -----------------------------------------------------------------------------------------------------
    def update(self) -> None:
        """Check the motion under way; called periodically."""
        task = self.task
        if task is None:
            return
        now_ns = self._node.now_ns
        if task.state is ArmMotionState.WAITING and now_ns >= task.due_ns:
            self._start(task)
        elif task.state is ArmMotionState.EXECUTING:
            try:
                self._check(task, (now_ns - task.sent_ns) * 1e-9)
            except RoboyardError as error:
                task.stop_reason = (error_cause(error), str(error))
                self._halt(task)
            else:
                self._publish_feedback(task)
                self._publish_clearance(task)

    def _halt(self, task: ArmMotionTask) -> None:
        """Stop the arm by its controller, within the joints' limits."""
        task.state = ArmMotionState.STOPPING
        self._report_state(ArmMotionState.STOPPING)
        if self._execution is not None:
            self._execution.cancel()

    def _on_executed(self, future: Future) -> None:
        """The controller has finished."""
        execution, self._execution = self._execution, None
        task = self.task
        if task is None or execution is None:
            return
        if task.state is ArmMotionState.QUEUED:
            self._start(task)
        elif task.state is ArmMotionState.STOPPING:
            self._on_stopped(task)
        elif execution.error is None and execution.succeeded:
            self._finish(None)
        else:
            reason = str(execution.error) if execution.error is not None else execution.error_message
            is_stopped = reason == "stopped"  # by the controller's stop service
            message = "the arm was stopped" if is_stopped else f"the arm did not follow: {reason}"
            self._finish(ArmMotionError(message, "cancelled" if is_stopped else "not_followed"))

    def _on_stopped(self, task: ArmMotionTask) -> None:
        error = ArmMotionError(task.stop_reason[1], task.stop_reason[0])
        if task.handle.is_cancel_requested:
            self._finish(None, is_canceled=True)
        elif (
            task.stop_reason[0] in ("in_the_way", "scene_unknown")
            and task.replans_left
            and task.action_name == "move_action"
        ):
            self._wait_for_replanning(task, error)
        else:
            self._finish(error)

    def _wait_for_replanning(self, task: ArmMotionTask, error: RoboyardError) -> None:
        """Plan again after the delay."""
        self._node.log.info(f"plans again in {task.replan_delay:g} s: {error}")
        task.n_replans += 1
        task.replans_left -= 1
        task.requested_start = None
        task.seed += 1
        task.request = None
        task.state, task.due_ns = ArmMotionState.WAITING, self._node.now_ns + round(task.replan_delay * 1e9)
        self._report_state(ArmMotionState.WAITING, error)

    def _on_cancel(self, handle: GoalHandle) -> None:
        task = self.task
        if task is None or handle is not task.handle:
            return
        if task.state is ArmMotionState.EXECUTING:
            task.stop_reason = ("cancelled", "cancelled")
            self._halt(task)
        elif task.state is not ArmMotionState.STOPPING:
            self._cancel_planning()
            self._finish(None, is_canceled=True)

    # -- end -----------------------------------------------------------------------------------------------------------
    def _finish(self, error: RoboyardError | None, *, is_canceled: bool = False) -> None:
        task = self.task
        if task is None:
            return
        state = (
            ArmMotionState.CANCELED
            if is_canceled
            else ArmMotionState.SUCCEEDED
            if error is None
            else ArmMotionState.ABORTED
        )
        if error is not None:
            self._node.log.warn(f"gave up {task.action_name}: {error}")
        self._node.report_health("ok" if error is None else "warn", state.value if error is None else str(error))
        self._report_state(state, error)
        self.task = None
        self._on_finished(task, ArmMotionError("cancelled", "cancelled") if is_canceled else error)

    # -- status --------------------------------------------------------------------------------------------------------
    def _publish_clearance(self, task: ArmMotionTask) -> None:
        """Publish the distance of the arm from the world."""
        if self._node.now_ns < self._due_ns:
            return
        self._due_ns = self._node.now_ns + _CLEARANCE_PERIOD_NS
        scene = self._monitor.current_scene(None if task.request is None else task.request.tool)
        q = np.clip(self._monitor.measured_joints(), scene.chain.lower, scene.chain.upper)
        self._clearance_publisher.publish(msg.Float64(data=scene.world_distance(q, _MAX_REPORTED_CLEARANCE)))

    def _publish_feedback(self, task: ArmMotionTask) -> None:
        if task.action_name == "move_action":
            task.handle.publish_feedback(action.MoveGroup.Feedback(state="MONITOR"))
        else:
            task.handle.publish_feedback(action.ExecuteTrajectory.Feedback(state="MONITOR"))

    def _report_state(self, state: ArmMotionState, error: RoboyardError | None = None) -> None:
        task = self.task
        if task is None:
            return
        if state is ArmMotionState.PLANNING and task.action_name == "move_action":
            task.handle.publish_feedback(action.MoveGroup.Feedback(state="PLANNING"))
        self._publish_status(task.action_name, state, error, task)

    def _publish_status(
        self, action_name: str, state: ArmMotionState, error: RoboyardError | None, task: ArmMotionTask | None
    ) -> None:
        self._status_publisher.publish(
            arm_status_to_msg(self._monitor, self._node.now_ns, action_name, state, error, task)
        )

    # -- state ---------------------------------------------------------------------------------------------------------
    def _on_restored(self, future: GoalFuture) -> None:
        self._restored_execution = future

    def save_state(self) -> dict[str, Any] | None:
        """Return the motion under way as plain data; the goal itself is saved by its action server."""
        task = self.task
        return {
            "motion": None
            if task is None
            else {name: getattr(task, name) for name in _SAVED_FIELDS} | {"state": task.state.value},
            "following": self._execution is not None,
            "due": self._due_ns,
        }

    def load_state(self, saved: dict[str, Any], handle: GoalHandle | None) -> None:
        """Restore what ``save_state`` returned, after the actions have restored their goals."""
        self._due_ns = saved["due"]
        self._execution, self._restored_execution = self._restored_execution if saved["following"] else None, None
        if self._execution is not None:
            self._execution.add_done_callback(self._on_executed)
        self.task = None
        if saved["motion"] is not None and handle is not None:
            motion = saved["motion"] | {"state": ArmMotionState(saved["motion"]["state"])}
            self.task = ArmMotionTask(handle=handle, request=None, **motion)
            handle.on_cancel = self._on_cancel


def arm_status_to_msg(
    monitor: PlanningSceneMonitor,
    now_ns: int,
    action_name: str,
    state: ArmMotionState,
    error: RoboyardError | None,
    task: ArmMotionTask | None,
) -> Any:
    """Return a roboyard_msgs/ArmStatus; the end of the motion is included once it is planned."""
    status = msg.ArmStatus(
        header=make_header(monitor.frame, now_ns), task=action_name, group=monitor.scene.group.name, state=state.value,
        error_code="" if error is None else error_cause(error), message="" if error is None else str(error),
        joints=list(monitor.joints),
    )  # fmt: skip
    if task is None:
        return status
    status.elapsed = (now_ns - task.accepted_ns) * 1e-9
    status.duration, status.path_length = task.duration, task.path_length
    status.collision_checks, status.plans, status.replans = task.n_checks, task.n_plans, task.n_replans
    if task.trajectory is not None and len(task.trajectory.points):
        status.joints = list(task.trajectory.joint_names)
        status.goal = np.array(task.trajectory.points[-1].positions, dtype=np.float64)
        order = [status.joints.index(name) for name in monitor.joints if name in status.joints]
        scene = monitor.scene
        if len(order) == scene.chain.dof == len(status.goal) and np.isfinite(status.goal).all():
            T = SE3.from_matrix(scene.chain.forward(status.goal[order]))
            status.pose = pose_to_msg(scene.T_world_base @ T)
    return status
