"""The docking node, with the actions of Nav2's docking server: dock and undock."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from roboyard.bus import GoalFuture, GoalHandle, Node, TransformError, resource
from roboyard.bus.actions import PREEMPTED
from roboyard.bus.executor import ScheduledEvent
from roboyard.config import Config, parameter
from roboyard.control import ZERO_TWIST, PlanarTwist
from roboyard.control.drive_config import DriveLimits
from roboyard.errors import RoboyardError
from roboyard.geometry import SE2
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_stamped_to_msg, pose_to_se2
from roboyard.messages.time import duration_to_msg
from roboyard.navigation.docking import Docking, DockingConfig, DockingControlLaw, DockingPhase, staging_pose
from roboyard.navigation.navigator import resolve_motion_limits

_STAGING, _CONTROLLING, _RETRY = 1, 3, 5
_NOT_IN_DB, _NOT_VALID, _TO_STAGE, _TO_CONTROL = 901, 902, 903, 905
_PHASE_TEXTS: Final = {
    DockingPhase.ROTATING: "rotating towards the dock",
    DockingPhase.APPROACHING: "approaching the dock",
    DockingPhase.BACKING_OFF: "backing off to the staging pose",
    DockingPhase.DOCKED: "docked",
    DockingPhase.UNDOCKED: "undocked",
    DockingPhase.FAILED: "docking failed",
}


class DockingNodeConfig(Config):
    """Configuration of `DockingNode`."""

    docking: DockingConfig = parameter(factory=DockingConfig, doc="Configuration of docking.")
    docks: dict[str, tuple[float, float, float]] = parameter(
        factory=dict,
        unit=("m", "m", "rad"),
        doc="Poses (x, y, yaw) of the docked base in map_frame, by name of the dock.",
    )
    map_frame: str = parameter("map", doc="Frame of the map.")
    fixed_frame: str = parameter("odom", doc="Frame without jumps in which the robot drives.")
    base_frame: str = parameter("base_link", doc="Frame of the base.")
    rate: float = parameter(20.0, unit="Hz", low=1.0, high=200.0, doc="Rate of the published commands.")
    action_name: str = parameter("navigate_to_pose", doc="Action of the navigator.")


class DockingNode(Node[DockingNodeConfig]):
    """Docks the robot at a pose, forward or backward, and undocks it.

    in: detected_dock_pose (geometry_msgs/PoseStamped: measured pose of the dock), /tf map_frame → fixed_frame → base
    out: cmd_vel
    actions: dock_robot (nav2_msgs/DockRobot), undock_robot (nav2_msgs/UndockRobot)
    client of: navigate_to_pose (nav2_msgs/NavigateToPose), for the drive to the staging pose

    The node does not avoid obstacles between the staging pose and the dock: the collision monitor stops the robot
    before them.  A subclass that overrides `make_control_law` docks with a control law of its own.
    """

    drive_limits: DriveLimits | None = resource(DriveLimits, optional=True)

    def make_control_law(self) -> DockingControlLaw | None:
        """Return the control law of docking; None: the graceful control law with the configured gains."""
        return None

    def setup(self) -> None:
        """Create publishers, subscribers, actions and the timer."""
        self._docks = {name: SE2(*pose) for name, pose in self.config.docks.items()}
        self._limits = resolve_motion_limits(self.drive_limits).limits
        self._handle: GoalHandle | None = None
        self._staging_goal: GoalFuture | None = None
        self._deadline: ScheduledEvent | None = None
        self._docking: Docking | None = None
        self._dock_in_odom: SE2 | None = None  # in the fixed frame
        self._start_ns = 0
        self._command = self.publisher("cmd_vel", msg.Twist)
        self._navigator = self.action_client(self.config.action_name, action.NavigateToPose)
        self.action_server("dock_robot", action.DockRobot, self._on_dock)
        self.action_server("undock_robot", action.UndockRobot, self._on_undock)
        self.subscribe("detected_dock_pose", msg.PoseStamped, self._on_detected)
        self.timer(rate=self.config.rate, callback=self._tick)
        self.report_health("ok", "waiting for a goal")

    # -- goals ---------------------------------------------------------------------------------------------------------
    def _on_dock(self, handle: GoalHandle) -> None:
        goal = handle.goal
        self._accept_goal(handle)
        try:
            if goal.use_dock_id and goal.dock_id not in self._docks:
                dock_names = ", ".join(self._docks) or "none"
                self._fail(_NOT_IN_DB, f"there is no dock '{goal.dock_id}' (docks: {dock_names})")
                return
            frame = "" if goal.use_dock_id else goal.dock_pose.header.frame_id
            frame = frame or self.frame(self.config.map_frame)
            dock = self._docks[goal.dock_id] if goal.use_dock_id else pose_to_se2(goal.dock_pose.pose)
            dock_in_odom = self._lookup_pose(self.config.fixed_frame, frame) @ dock
        except (RoboyardError, TransformError) as error:
            self._fail(_NOT_VALID, f"the pose of the dock cannot be used: {error}")
            return
        self._dock_in_odom = None
        if goal.navigate_to_staging_pose:
            self._drive_to_staging_pose(dock, frame, float(goal.max_staging_time))
        else:
            self._start_docking(self._make_docking(dock_in_odom, self.config.docking))

    def _on_undock(self, handle: GoalHandle) -> None:
        self._accept_goal(handle)
        try:
            dock = self._dock_in_odom or self._lookup_pose(
                self.config.fixed_frame, self.config.base_frame
            )  # the present pose, if the node did not dock
        except TransformError as error:
            self._fail(_TO_CONTROL, f"the pose of the robot is unknown: {error}")
            return
        max_cycles = max(round(float(handle.goal.max_undocking_time) * self.config.rate), 1)
        self._dock_in_odom = None
        config = replace(self.config.docking, max_cycles=max_cycles)
        self._start_docking(self._make_docking(dock, config, is_undocking=True))

    def _accept_goal(self, handle: GoalHandle) -> None:
        previous_handle = self._handle
        self._stop()
        if previous_handle is not None:
            previous_handle.abort(error_message="preempted by a newer goal", error_code=PREEMPTED)
        handle.accept()
        handle.on_cancel = self._on_cancel
        self._handle, self._start_ns = handle, self.now_ns

    def _on_cancel(self, handle: GoalHandle) -> None:
        if handle is self._handle:
            self._stop()
            handle.set_canceled()
            self.report_health("ok", "canceled")

    # -- to the staging pose -------------------------------------------------------------------------------------------
    def _drive_to_staging_pose(self, dock: SE2, frame: str, max_duration: float) -> None:
        stamped = pose_stamped_to_msg(staging_pose(dock, self.config.docking), frame, self.now_ns)
        self.report_health("ok", "driving to the staging pose")
        self._publish_feedback(_STAGING)
        staging_goal = self._staging_goal = self._navigator.send(action.NavigateToPose.Goal(pose=stamped))
        staging_goal.add_done_callback(lambda _: self._on_staging_finished(staging_goal, dock, frame))
        self._deadline = self.call_after(min(max(max_duration, 0.0), 1e6), self._on_staging_timeout)

    def _on_staging_finished(self, staging_goal: GoalFuture, dock: SE2, frame: str) -> None:
        if staging_goal is not self._staging_goal:
            return
        self._cancel_staging_goal()
        if not staging_goal.succeeded:
            self._fail(
                _TO_STAGE,
                f"the staging pose was not reached: {staging_goal.error_message or staging_goal.error or 'aborted'}",
            )
            return
        try:  # only now: on the way here odometry has drifted
            dock_in_odom = self._lookup_pose(self.config.fixed_frame, frame) @ dock
        except TransformError as error:
            self._fail(_NOT_VALID, f"the pose of the dock cannot be used: {error}")
            return
        self._start_docking(self._make_docking(dock_in_odom, self.config.docking))

    def _on_staging_timeout(self) -> None:
        self._cancel_staging_goal()
        self._fail(_TO_STAGE, "the staging pose was not reached in time")

    def _cancel_staging_goal(self) -> None:
        staging_goal, self._staging_goal = self._staging_goal, None
        if staging_goal is not None and not staging_goal.done():
            staging_goal.cancel()
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    # -- driving -------------------------------------------------------------------------------------------------------
    def _make_docking(self, dock: SE2, config: DockingConfig, *, is_undocking: bool = False) -> Docking:
        period = 1.0 / self.config.rate
        law = self.make_control_law()
        return Docking(dock, self._limits, config, period, is_undocking=is_undocking, control_law=law)

    def _start_docking(self, docking: Docking) -> None:
        self._docking = docking
        self.report_health("ok", _PHASE_TEXTS[docking.phase])

    def _on_detected(self, message: Any) -> None:
        docking = self._docking
        if docking is None or docking.phase in (DockingPhase.BACKING_OFF, DockingPhase.UNDOCKED):
            return
        try:
            docking.dock = self._lookup_pose(self.config.fixed_frame, message.header.frame_id) @ pose_to_se2(
                message.pose
            )
        except (RoboyardError, TransformError) as error:
            self.log.warn(f"a detected pose of the dock is ignored: {error}", throttle=5.0)

    def _tick(self) -> None:
        docking, handle = self._docking, self._handle
        if docking is None or handle is None:
            return
        try:
            pose = self._lookup_pose(self.config.fixed_frame, self.config.base_frame)
        except TransformError as error:
            self._fail(_TO_CONTROL, f"the pose of the robot is unknown: {error}")
            return
        previous_phase = docking.phase
        twist = docking.compute_command(pose)
        self._send(twist)
        if docking.phase is not previous_phase:
            self.log.info(_PHASE_TEXTS[docking.phase] + (f": {docking.cause}" if docking.cause else ""))
            self.report_health("ok", _PHASE_TEXTS[docking.phase])
        self._publish_feedback(_RETRY if docking.phase is DockingPhase.BACKING_OFF else _CONTROLLING)
        if docking.phase is DockingPhase.FAILED:
            self._fail(_TO_CONTROL, docking.cause)
        elif docking.is_finished:
            self._dock_in_odom = docking.dock if docking.phase is DockingPhase.DOCKED else None
            self._stop()
            handle.succeed(self._result(handle, True, 0, docking.retries, ""))
            self.report_health("ok", _PHASE_TEXTS[docking.phase])

    # -- feedback and results ------------------------------------------------------------------------------------------
    def _publish_feedback(self, state: int) -> None:
        handle = self._handle
        if handle is None or handle.goal.__class__ is not action.DockRobot.Goal:
            return
        retries = 0 if self._docking is None else self._docking.retries
        elapsed = duration_to_msg(self.now_ns - self._start_ns)
        handle.publish_feedback(action.DockRobot.Feedback(state=state, docking_time=elapsed, num_retries=retries))

    def _fail(self, code: int, text: str) -> None:
        handle, retries = self._handle, 0 if self._docking is None else self._docking.retries
        self._stop()
        self.log.warn(text)
        self.report_health("warn", text)
        if handle is not None:
            handle.abort(self._result(handle, False, code, retries, text), text)

    def _result(self, handle: GoalHandle, success: bool, code: int, retries: int, text: str) -> Any:
        if handle.goal.__class__ is action.DockRobot.Goal:
            return action.DockRobot.Result(success=success, error_code=code, num_retries=retries, error_msg=text)
        return action.UndockRobot.Result(success=success, error_code=code, error_msg=text)

    def _stop(self) -> None:
        """Stop the robot and drop the present goal."""
        self._cancel_staging_goal()
        if self._docking is not None:
            self._send(ZERO_TWIST)
        self._docking = self._handle = None

    def _send(self, twist: PlanarTwist) -> None:
        message = msg.Twist()
        message.linear.x, message.angular.z = float(twist.vx), float(twist.wz)
        self._command.publish(message)

    def _lookup_pose(self, target: str, frame: str) -> SE2:
        configured_frames = (self.config.map_frame, self.config.fixed_frame, self.config.base_frame)
        target_frame, source_frame = (
            self.frame(name) if name in configured_frames else name for name in (target, frame)
        )
        return SE2.from_se3(self.transforms.lookup(target_frame, source_frame))
