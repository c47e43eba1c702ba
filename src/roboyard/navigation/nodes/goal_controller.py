"""The goal controller node: orders of the tracker become goals of the navigator."""

from __future__ import annotations

from typing import Any

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
from roboyard.messages.convert import grid_origin, grid_to_array, pose_stamped_to_msg, pose_to_se2
from roboyard.messages.time import time_to_msg
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.homing import Cancel, CancelBefore, GoalConfig, GoalController, Order, Send, nearest_reachable
from roboyard.navigation.homing.goals import Act

_MARGIN = 0.05
"""Beyond the robot's corners, where it shall be able to turn [m]."""


class GoalControllerNodeConfig(Config):
    """Configuration of `GoalControllerNode`."""

    goals: GoalConfig = parameter(factory=GoalConfig, flatten="", doc="How persistently orders are carried out.")
    action_name: str = parameter("navigate_to_pose", doc="Action of the navigator.")
    base_frame: str = parameter("base_link", doc="Frame of the base.")
    rate: float = parameter(10.0, unit="Hz", low=0.1, high=1000.0, doc="Rate of the checks of the robot's motion.")


class GoalControllerNode(Node[GoalControllerNodeConfig]):
    """Sends the tracker's points to the navigator, watches, cancels, reports.

    in: homing/order (latched: a node started anew goes on with the last one), global_costmap/costmap, /tf
    out: homing/report   action: navigate_to_pose (client)
    """

    footprint: FootprintPolygon | None = resource(tuple, optional=True)

    state_fields = ("_frame", "_order", "_costmap")

    def setup(self) -> None:
        """Connect."""
        expect_kernels(squared_distance_transform, label_components)  # of the place nearest to a goal
        self._controller = GoalController(self.config.goals, self._nearest)
        self._base = self.frame(self.config.base_frame)
        self._frame = ""
        self._order: Any = None
        self._costmap: Any = None
        self._goal: GoalFuture | None = None
        self._navigator = self.action_client(
            self.config.action_name, action.NavigateToPose, on_goal_restored=self._take_up
        )
        self._cancel_type = service_type("action_msgs/srv/CancelGoal")
        self._cancel = self.service_client(f"{self.config.action_name}/_action/cancel_goal", self._cancel_type)
        self._reports = self.publisher("homing/report", msg.HomingReport)
        self.subscribe("global_costmap/costmap", msg.OccupancyGrid, self._on_costmap)
        self.subscribe("homing/order", msg.HomingOrder, self._on_order)
        self.timer(rate=self.config.rate, callback=self._look)
        self.report_health("ok", "no goal")

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return super().save_state() | {"controller": self._controller.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        super().load_state(state)
        self._controller.load_state(state["controller"], None if self._order is None else _order_of(self._order))
        token = self._controller.token
        if self._goal is not None and token is not None:  # taken up again by the client
            self._listen(self._goal, token)

    def _take_up(self, goal: GoalFuture) -> None:
        self._goal = goal

    # -- what comes in -------------------------------------------------------------------------------------------------
    def _on_order(self, message: Any) -> None:
        self._order, self._frame = message, message.pose.header.frame_id
        self._do(self._controller.take(_order_of(message), self.now_ns))

    def _on_costmap(self, message: Any) -> None:
        self._costmap = message
        self._do(self._controller.look(self.now_ns))

    def _look(self) -> None:
        pose = self._pose(self._frame)
        if pose is not None:
            self._do(self._controller.at(pose, self.now_ns))

    def _pose(self, frame: str) -> SE2 | None:
        try:
            return SE2.from_se3(self.transforms.lookup(frame, self._base))
        except TransformError:
            return None

    def _nearest(self, target: SE2) -> SE2 | None:
        """By the navigator's costmap, if it has said one."""
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
        wanted = T_grid_order @ target
        room = Footprint(np.array(self.footprint)).circumscribed_radius + _MARGIN if self.footprint else 0.0
        place = None if start is None else nearest_reachable(cells, frame, start, wanted, room=room)
        if place is wanted:
            return target
        return None if place is None else T_grid_order.inverse() @ place

    # -- what goes out -------------------------------------------------------------------------------------------------
    def _do(self, acts: list[Act]) -> None:
        for act in acts:
            if isinstance(act, Send):
                self._send(act)
            elif isinstance(act, Cancel):
                if self._goal is not None:
                    self._goal.cancel()
            elif isinstance(act, CancelBefore):
                info = msg.GoalInfo(stamp=time_to_msg(act.time_ns))
                self._cancel.call(self._cancel_type.Request(goal_info=info))
            else:
                report = act.report
                self._reports.publish(
                    msg.HomingReport(
                        id=report.number, outcome=report.outcome.value, distance=report.distance,
                        reason=report.reason,
                    )
                )  # fmt: skip
        if acts:
            self._tell()

    def _send(self, act: Send) -> None:
        pose = pose_stamped_to_msg(act.pose, self._frame, self.now_ns)
        self._goal = self._navigator.send(action.NavigateToPose.Goal(pose=pose))
        self._listen(self._goal, act.token)

    def _listen(self, goal: GoalFuture, token: int) -> None:
        def ended(_: Any) -> None:
            tried = not isinstance(goal.error, UnknownNameError)  # nobody there to take it
            if not tried:
                self.log.warn(f"nobody serves {self._navigator.name}: waiting for it", throttle=10.0)
            reason = _reason(goal)
            self._do(self._controller.ended(token, self.now_ns, succeeded=goal.succeeded, reason=reason, tried=tried))

        goal.add_done_callback(ended)

    def _tell(self) -> None:
        order, goal = self._controller.order, self._controller.goal.value
        target = order.target if order is not None else None
        what = "no goal" if target is None else f"{goal} for ({target.x:.2f}, {target.y:.2f})"
        self.report_health("ok", what)


def _order_of(message: Any) -> Order:
    target = pose_to_se2(message.pose.pose) if message.is_active else None
    return Order(int(message.id), target, bool(message.is_home), bool(message.returning))


def _reason(goal: GoalFuture) -> str:
    if goal.error is not None:
        return str(goal.error)
    return goal.error_message or getattr(goal.result, "error_msg", "") or goal.status.name.lower()
