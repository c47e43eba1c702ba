"""The homing tracker, which monitors the operator and orders the return, and the goal controller, which sends the
orders to the navigator.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from roboyard.bus import Node, TransformError, resource
from roboyard.bus.actions import GoalFuture
from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.description.extent import FootprintPolygon
from roboyard.errors import UnknownNameError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.grids.distance_field import squared_distance_transform
from roboyard.grids.regions import label_components
from roboyard.messages import action, msg, service_type
from roboyard.messages.convert import (
    grid_origin,
    grid_to_array,
    make_header,
    path_to_msg,
    pose_stamped_to_msg,
    pose_to_se2,
)
from roboyard.messages.convert.action_goals import ACTIVE_STATUSES
from roboyard.messages.time import time_to_msg, to_nanoseconds
from roboyard.navigation.costmap.reachability import find_substitute_goal_pose
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.homing import (
    CancelGoalCommand,
    CancelGoalsBeforeCommand,
    GoalController,
    GoalControllerConfig,
    GoalKind,
    HomingConfig,
    HomingManager,
    HomingOrder,
    HomingPhase,
    HomingPolicy,
    LinkConfig,
    OrderOutcome,
    OrderReport,
    SendGoalCommand,
)
from roboyard.navigation.homing.goal_controller import GoalControllerCommand

MISSION_ACTIONS = ("navigate_to_pose", "navigate_through_poses", "follow_waypoints")


class HomingTrackerNodeConfig(Config):
    """Configuration of `HomingTrackerNode`."""

    homing: HomingConfig = parameter(factory=HomingConfig, flatten="", doc="Configuration of the return.")
    link: LinkConfig = parameter(factory=LinkConfig, flatten="", doc="Configuration of the link monitor.")
    autonomous_nodes: tuple[str, ...] = parameter(
        ("navigator",), doc="Nodes whose cmd_vel does not count as a heartbeat of the operator."
    )
    use_stamped: bool = parameter(False, doc="Whether the messages of cmd_vel are TwistStamped.")
    map_frame: str = parameter("map", doc="Frame of the map.")
    odom_frame: str = parameter("odom", doc="Frame in which the odometry starts.")
    base_frame: str = parameter("base_link", doc="Frame of the base.")
    rate: float = parameter(20.0, unit="Hz", low=1.0, high=1000.0, doc="Rate of the checks of pose and link.")


class HomingTrackerNode(Node[HomingTrackerNodeConfig]):
    """Monitors the operator's link, stores the driven trail, and orders the return when the link is lost.

    in: cmd_vel of all nodes but ``autonomous_nodes`` (heartbeats), joy, teleop/heartbeat (std_msgs/Header),
        homing/report, /tf map → base or odom → base, status of the navigator's actions (active missions)
    out: homing/order, homing/status, homing/trail (nav_msgs/Path), all latched

    The trail is stored in the frame of the map if there is one, else in that of the odometry; it is transformed when a
    map arrives.  A subclass that overrides `make_policy` returns by a policy of its own.
    """

    state_fields = ("_frame", "_active_missions", "_published_state")

    def make_policy(self) -> HomingPolicy | None:
        """Return the policy of the return; None: the one that the parameters state."""
        return None

    def setup(self) -> None:
        """Create publishers, subscribers and the timer."""
        self._manager = HomingManager(self.config.homing, self.config.link, self.make_policy())
        self._map, self._odom, self._base = map(
            self.frame, (self.config.map_frame, self.config.odom_frame, self.config.base_frame)
        )
        self._frame = ""
        self._active_missions: dict[str, bool] = {}
        self._published_state: tuple[Any, ...] = ()
        self._orders = self.publisher("homing/order", msg.HomingOrder, latched=True)
        self._status = self.publisher("homing/status", msg.HomingStatus, latched=True)
        self._trail = self.publisher("homing/trail", msg.Path, latched=True)
        twist = msg.TwistStamped if self.config.use_stamped else msg.Twist
        self.subscribe("cmd_vel", twist, self._on_command, with_source=True)
        self.subscribe("joy", msg.Joy, self._on_joy, with_source=True)
        self.subscribe("teleop/heartbeat", msg.Header, self._on_heartbeat, with_source=True)
        self.subscribe("homing/report", msg.HomingReport, self._on_report)
        for mission_action in MISSION_ACTIONS:
            self.subscribe(
                f"{mission_action}/_action/status", msg.GoalStatusArray, self._make_status_callback(mission_action)
            )
        self.timer(rate=self.config.rate, callback=self._check_pose, immediate=True)
        self._publish_order()
        self._publish_status()

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return super().save_state() | {"tracker": self._manager.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore a state that `save_state` returned."""
        super().load_state(state)
        self._manager.load_state(state["tracker"])
        self._published_order_number = self._manager.order.number

    # -- inputs --------------------------------------------------------------------------------------------------------
    def _on_command(self, command: Any, source: str) -> None:
        if source.rsplit("/", 1)[-1] not in self.config.autonomous_nodes:
            self._on_operator_message(source, to_nanoseconds(command.header.stamp) if self.config.use_stamped else None)

    def _on_joy(self, joy: Any, source: str) -> None:
        self._on_operator_message(source, to_nanoseconds(joy.header.stamp))

    def _on_heartbeat(self, beat: Any, source: str) -> None:
        self._on_operator_message(source, to_nanoseconds(beat.stamp))

    def _on_operator_message(self, source: str, stamp_ns: int | None) -> None:
        if not self._manager.on_operator_message(source, self.now_ns, stamp_ns):
            self.log.debug(
                f"a message of {source} is delayed, repeated or out of order: it is no heartbeat", throttle=5.0
            )
        self._publish_changes()

    def _on_report(self, report: Any) -> None:
        try:
            outcome = OrderOutcome(report.outcome)
        except ValueError:
            self.log.error(f"a report with the unknown outcome {report.outcome!r} is ignored", throttle=5.0)
            return
        self._manager.on_report(OrderReport(report.id, outcome, report.distance, report.reason), self.now_ns)
        self._publish_changes()

    def _make_status_callback(self, mission_action: str) -> Any:
        def on_status(status: Any) -> None:
            self._active_missions[mission_action] = any(goal.status in ACTIVE_STATUSES for goal in status.status_list)
            if self._manager.phase in (
                HomingPhase.OPERATED,
                HomingPhase.FINISHING_MISSION,
            ):  # in other phases the goals are those of the return
                self._manager.set_mission_active(any(self._active_missions.values()), self.now_ns)
                self._publish_changes()

        return on_status

    def _check_pose(self) -> None:
        pose = self._pose()
        if pose is None:
            self._manager.update(self.now_ns)
        else:
            self._manager.set_pose(pose, self.now_ns)
        self._publish_changes()

    def _pose(self) -> SE2 | None:
        """Return ``T_map_base``, or ``T_odom_base`` while there is no map."""
        for frame in (self._map, self._odom):
            try:
                pose = SE2.from_se3(self.transforms.lookup(frame, self._base))
            except TransformError:
                if frame == self._frame:
                    return None  # the trail cannot be compared with poses in another frame
                continue
            if frame != self._frame:
                self._change_frame(frame)
            return pose
        return None

    def _change_frame(self, frame: str) -> None:
        """Use another frame from now on, and transform the trail to it."""
        if self._frame:
            T_new_old = SE2.from_se3(self.transforms.lookup(frame, self._frame))
            self._manager.change_frame(T_new_old, self.now_ns)
            self.log.info(f"the trail continues in the frame {frame}")
        self._frame = frame

    # -- outputs -------------------------------------------------------------------------------------------------------
    def _publish_changes(self) -> None:
        manager = self._manager
        if manager.order.number != self._published_order_number:
            self._publish_order()
        state = self._status_values()
        if state != self._published_state:
            self._log_changes(self._published_state, state)
            self._publish_status()

    def _status_values(self) -> tuple[Any, ...]:
        manager = self._manager
        return (
            manager.link.state.value,
            manager.phase.value,
            manager.link.outages,
            manager.link.losses,
            len(manager.trail),
            manager.n_reached,
            manager.n_skipped,
            manager.n_returns,
            manager.missed.distance if manager.missed is not None else 0.0,
        )

    def _publish_order(self) -> None:
        order = self._manager.order
        self._published_order_number = order.number
        pose = pose_stamped_to_msg(order.target or SE2(), self._frame or self._map, self.now_ns)
        is_active = order.target is not None
        self._orders.publish(
            msg.HomingOrder(
                id=order.number,
                is_active=is_active,
                is_home=order.is_home,
                returning=order.returning,
                pose=pose,
            )
        )

    def _publish_status(self) -> None:
        before, self._published_state = self._published_state, self._status_values()
        link, phase, outages, losses, stored, reached, skipped, returns, missed = self._published_state
        frame = self._frame or self._map
        self._status.publish(
            msg.HomingStatus(
                header=make_header(frame, self.now_ns), link=link, phase=phase, outages=outages, losses=losses,
                stored=stored, reached=reached, skipped=skipped, returns=returns, missed_distance=missed,
            )
        )  # fmt: skip
        if not before or before[4] != stored:
            self._trail.publish(path_to_msg(self._manager.trail.points, frame, self.now_ns))
        self.report_health("warn" if link == "lost" else "ok", f"link {link}, {phase}", stored=stored, skipped=skipped)

    def _log_changes(self, before: tuple[Any, ...], after: tuple[Any, ...]) -> None:
        """Write the changes of the state to the log."""
        if not before:
            return
        manager, (link, phase) = self._manager, after[:2]
        if link == "lost" and before[0] != "lost":
            reactions = {"mission": "the mission is finished first", "waiting": "there is no target, the robot stops"}
            reaction = reactions.get(phase, f"the robot returns along {after[4]} points")
            self.log.warn(f"the link to the operator is lost: {reaction}")
        elif before[0] == "lost" and link != "lost":
            was_returning = manager.order.returning
            self.log.info(f"the operator is connected again{', the return is canceled' if was_returning else ''}")
        elif phase == "home" and before[1] != "home":
            self.log.info("home is reached")
        if after[6] > before[6]:
            skipped_point = manager.skipped[-1]
            position, distance = skipped_point.point, skipped_point.distance
            self.log.warn(
                f"point ({position.x:.2f}, {position.y:.2f}) was not reached, remaining distance {distance:.2f} m: "
                f"{skipped_point.reason}"
            )
        if manager.missed is not None and phase == "waiting" and before[1] != "waiting":
            missed = manager.missed
            self.log.warn(
                f"home was not reached, remaining distance {missed.distance:.2f} m: {missed.reason}; retrying later"
            )


_ROTATION_MARGIN = 0.05
"""Margin around the circumscribed radius of the footprint at substitute poses [m]."""


_GOAL_TEXTS: Final = {
    GoalKind.NO_GOAL: "no goal for",
    GoalKind.ORDERED_POINT: "driving to",
    GoalKind.SUBSTITUTE: "driving to the pose nearest to",
    GoalKind.RETRY_PAUSE: "waiting to retry",
}


class GoalControllerNodeConfig(Config):
    """Configuration of `GoalControllerNode`."""

    goals: GoalControllerConfig = parameter(
        factory=GoalControllerConfig, flatten="", doc="Configuration of the goal controller."
    )
    action_name: str = parameter("navigate_to_pose", doc="Action of the navigator.")
    base_frame: str = parameter("base_link", doc="Frame of the base.")
    rate: float = parameter(10.0, unit="Hz", low=0.1, high=1000.0, doc="Rate of the checks of the robot's motion.")


class GoalControllerNode(Node[GoalControllerNodeConfig]):
    """Executes the orders of the homing tracker with goals of the navigator.

    in: homing/order (latched: a restarted node continues with the last one), global_costmap/costmap, /tf
    out: homing/report   action: navigate_to_pose (client)
    """

    footprint: FootprintPolygon | None = resource(tuple, optional=True)

    state_fields = ("_frame", "_order", "_costmap")

    def setup(self) -> None:
        """Create publishers, subscribers, clients and the timer."""
        expect_kernels(squared_distance_transform, label_components)  # of the pose nearest to a goal
        self._controller = GoalController(self.config.goals, self._find_substitute)
        self._base = self.frame(self.config.base_frame)
        self._frame = ""
        self._order: Any = None
        self._costmap: Any = None
        self._goal_future: GoalFuture | None = None
        self._navigator = self.action_client(
            self.config.action_name, action.NavigateToPose, on_goal_restored=self._restore_goal
        )
        self._cancel_type = service_type("action_msgs/srv/CancelGoal")
        self._cancel = self.service_client(f"{self.config.action_name}/_action/cancel_goal", self._cancel_type)
        self._reports = self.publisher("homing/report", msg.HomingReport)
        self.subscribe("global_costmap/costmap", msg.OccupancyGrid, self._on_costmap)
        self.subscribe("homing/order", msg.HomingOrder, self._on_order)
        self.timer(rate=self.config.rate, callback=self._check_pose)
        self.report_health("ok", "no goal")

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return super().save_state() | {"controller": self._controller.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore a state that `save_state` returned."""
        super().load_state(state)
        self._controller.load_state(state["controller"], None if self._order is None else _order_from_msg(self._order))
        token = self._controller.token
        if self._goal_future is not None and token is not None:  # restored by the client
            self._await_goal(self._goal_future, token)

    def _restore_goal(self, goal: GoalFuture) -> None:
        self._goal_future = goal

    # -- inputs --------------------------------------------------------------------------------------------------------
    def _on_order(self, message: Any) -> None:
        self._order, self._frame = message, message.pose.header.frame_id
        self._execute(self._controller.set_order(_order_from_msg(message), self.now_ns))

    def _on_costmap(self, message: Any) -> None:
        self._costmap = message
        self._execute(self._controller.on_costmap(self.now_ns))

    def _check_pose(self) -> None:
        pose = self._pose(self._frame)
        if pose is not None:
            self._execute(self._controller.set_pose(pose, self.now_ns))

    def _pose(self, frame: str) -> SE2 | None:
        try:
            return SE2.from_se3(self.transforms.lookup(frame, self._base))
        except TransformError:
            return None

    def _find_substitute(self, target: SE2) -> SE2 | None:
        """Return the reachable pose nearest to a target in the costmap of the navigator; None without a costmap."""
        grid = self._costmap
        if grid is None:
            return None
        try:
            T_grid_order = SE2.from_se3(self.transforms.lookup(grid.header.frame_id, self._frame))
        except TransformError:
            return None
        start = self._pose(grid.header.frame_id)
        cells = grid_to_array(grid)
        frame = GridGeometry(float(grid.info.resolution), (cells.shape[0], cells.shape[1]), grid_origin(grid))
        target_in_grid = T_grid_order @ target
        clearance = (
            Footprint(np.array(self.footprint)).circumscribed_radius + _ROTATION_MARGIN if self.footprint else 0.0
        )
        substitute = (
            None
            if start is None
            else find_substitute_goal_pose(cells, frame, start, target_in_grid, clearance=clearance)
        )
        if substitute is target_in_grid:
            return target
        return None if substitute is None else T_grid_order.inverse() @ substitute

    # -- outputs -------------------------------------------------------------------------------------------------------
    def _execute(self, commands: list[GoalControllerCommand]) -> None:
        for command in commands:
            if isinstance(command, SendGoalCommand):
                self._send(command)
            elif isinstance(command, CancelGoalCommand):
                if self._goal_future is not None:
                    self._goal_future.cancel()
            elif isinstance(command, CancelGoalsBeforeCommand):
                info = msg.GoalInfo(stamp=time_to_msg(command.time_ns))
                self._cancel.call(self._cancel_type.Request(goal_info=info))
            else:
                report = command.report
                self._reports.publish(
                    msg.HomingReport(
                        id=report.number, outcome=report.outcome.value, distance=report.distance,
                        reason=report.reason,
                    )
                )  # fmt: skip
        if commands:
            self._report_health()

    def _send(self, command: SendGoalCommand) -> None:
        pose = pose_stamped_to_msg(command.pose, self._frame, self.now_ns)
        self._goal_future = self._navigator.send(action.NavigateToPose.Goal(pose=pose))
        self._await_goal(self._goal_future, command.token)

    def _await_goal(self, goal: GoalFuture, token: int) -> None:
        def on_done(_: Any) -> None:
            was_attempted = not isinstance(goal.error, UnknownNameError)  # there is no server
            if not was_attempted:
                self.log.warn(f"no action server for {self._navigator.name}: waiting for it", throttle=10.0)
            reason = _failure_reason(goal)
            self._execute(
                self._controller.on_goal_finished(
                    token, self.now_ns, succeeded=goal.succeeded, reason=reason, was_attempted=was_attempted
                )
            )

        goal.add_done_callback(on_done)

    def _report_health(self) -> None:
        order, goal = self._controller.order, self._controller.goal_kind
        target = order.target if order is not None else None
        text = "no goal" if target is None else f"{_GOAL_TEXTS[goal]} ({target.x:.2f}, {target.y:.2f})"
        self.report_health("ok", text)


def _order_from_msg(message: Any) -> HomingOrder:
    target = pose_to_se2(message.pose.pose) if message.is_active else None
    return HomingOrder(int(message.id), target, bool(message.is_home), bool(message.returning))


def _failure_reason(goal: GoalFuture) -> str:
    if goal.error is not None:
        return str(goal.error)
    return goal.error_message or getattr(goal.result, "error_msg", "") or goal.status.name.lower()
