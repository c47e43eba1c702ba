"""The explorer node: it finds frontiers in each map and sends goals to the navigator until no frontier is left."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final

import numpy as np

from roboyard.bus import Future, GoalFuture, GoalHandle, Node, TransformError, resource
from roboyard.bus.actions import PREEMPTED
from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.description.extent import FootprintPolygon
from roboyard.errors import RoboyardError, UnknownNameError
from roboyard.geometry import SE2
from roboyard.grids.regions import label_components
from roboyard.messages import action, msg
from roboyard.messages.convert import (
    MarkerStyle,
    make_header,
    points_marker,
    pose_stamped_to_msg,
    pose_to_msg,
)
from roboyard.messages.convert.action_goals import GoalStatus
from roboyard.messages.convert.grids import occupancy_grid_from_msg
from roboyard.navigation.errors import PoseUnknownError
from roboyard.navigation.exploration import (
    ExplorationPhase,
    ExplorationProgress,
    Explorer,
    FrontierConfig,
    FrontierMap,
    ViewpointSelectionConfig,
    ViewpointSelector,
    find_frontiers,
    select_viewpoint,
)
from roboyard.navigation.exploration.frontiers import unknown_area_by_direction, viewpoint_candidates
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.planners import grid_search

_FRONTIER_COLOR, _VIEWPOINT_COLOR, _GOAL_COLOR = (
    (0.85, 0.47, 0.1, 1.0),
    (0.04, 0.43, 0.45, 0.8),
    (0.73, 0.22, 0.31, 1.0),
)
_MARKER_HEIGHT: Final = 0.05


def status_to_msg(
    progress: ExplorationProgress,
    start: SE2,
    radius: float,
    frame: str,
    time_ns: int,
    *,
    phase: str = "",
    cause: str = "",
) -> Any:
    """Return the progress as roboyard_msgs/ExplorationStatus; ``phase`` replaces the phase of the progress."""
    return msg.ExplorationStatus(
        header=make_header(frame, time_ns),
        phase=phase or progress.phase.value,
        error_code=cause,
        start=pose_to_msg(start),
        radius=radius,
        known_area=progress.known_area,
        frontiers=progress.n_frontiers,
        goals_sent=progress.n_goals,
        goals_failed=progress.n_failures,
    )


def frontiers_to_msg(frontier_map: FrontierMap, goal: SE2 | None, frame: str, time_ns: int) -> Any:
    """Return visualization_msgs/MarkerArray: frontiers as cubes, viewpoints as spheres, the goal as an arrow."""
    cells = np.concatenate(frontier_map.cells) if frontier_map.cells else np.zeros((0, 2))
    viewpoints = np.array([view.pose.xy for view in frontier_map.viewpoints]).reshape(-1, 2)
    cell_size = frontier_map.frame.resolution
    arrow = np.zeros((0, 2))
    if goal is not None:
        arrow = goal @ np.array([[0.0, 0.0], [0.5, 0.0]])
    markers = [
        (
            msg.Marker.CUBE_LIST,
            frontier_map.frame.cell_centers(cells),
            _FRONTIER_COLOR,
            (cell_size, cell_size, cell_size),
        ),
        (msg.Marker.SPHERE_LIST, viewpoints, _VIEWPOINT_COLOR, (0.15, 0.15, 0.15)),
        (msg.Marker.ARROW, arrow, _GOAL_COLOR, (0.06, 0.14, 0.2)),
    ]
    return msg.MarkerArray(
        [
            points_marker(
                points, MarkerStyle(kind, color, scale), namespace="exploration", marker_id=number, frame=frame,
                time_ns=time_ns, height=_MARKER_HEIGHT,
            )
            for number, (kind, points, color, scale) in enumerate(markers)
        ]
    )  # fmt: skip


_MAX_MAP_WAIT_NS: Final = 10_000_000_000
"""Maximum wait for a new map after an arrival; then the explorer uses the old one [ns]."""


class ExplorerNodeConfig(Config):
    """Configuration of `ExplorerNode`."""

    frontiers: FrontierConfig = parameter(factory=FrontierConfig, doc="Parameters of the search for frontiers.")
    viewpoint_selection: ViewpointSelectionConfig = parameter(
        factory=ViewpointSelectionConfig, doc="Parameters of the selection of viewpoints."
    )
    autostart: bool = parameter(
        True, doc="Start as soon as a map and the pose in it are known (explore_lite starts so)."
    )
    return_to_start: bool = parameter(True, doc="Return to the start after an exploration that `autostart` started.")
    radii_from_footprint: bool = parameter(
        True, doc="Derive the radii from the footprint in the robot's file, if it states one."
    )
    padding: float = parameter(
        0.05, unit="m", low=0.0, high=10.0, doc="Addition to the inscribed radius of the footprint."
    )
    rotation_padding: float = parameter(
        0.15, unit="m", low=0.0, high=10.0, doc="Addition to the circumscribed radius of the footprint."
    )
    map_frame: str = parameter("map", doc="Frame of the map.")
    base_frame: str = parameter("base_link", doc="Frame of the base.")
    action_name: str = parameter("navigate_to_pose", doc="Action of the navigator.")
    settle_time: float = parameter(
        0.8, unit="s", low=0.0, high=60.0, runtime=True, doc="Time from a measurement to the map that contains it."
    )
    planning_latency: float = parameter(
        0.1, unit="s", low=1e-3, high=60.0, doc="Declared duration of the search for frontiers."
    )
    max_goals: int = parameter(1000, low=1, high=1_000_000, doc="Maximum number of goals.")


class ExplorerNode(Node[ExplorerNodeConfig]):
    """Explores an unknown environment and returns to the start.

    in: map (nav_msgs/OccupancyGrid, published again as it grows), /tf map_frame → base_frame
    out: exploration (roboyard_msgs/ExplorationStatus, latched), frontiers (visualization_msgs/MarkerArray, latched)
    action: explore (roboyard_msgs/Explore): starts an exploration, with feedback; can be canceled
    client of: navigate_to_pose (nav2_msgs/NavigateToPose)

    With each map the explorer selects the next viewpoint; a goal whose frontier has been observed meanwhile is
    replaced on the way.  A goal of another client for the navigator ends the exploration.  A subclass that overrides
    `select_viewpoint` selects viewpoints by a rule of its own.
    """

    footprint: FootprintPolygon | None = resource(tuple, optional=True)

    state_fields = (
        "_is_start_pending",
        "_start_pose",
        "_map",
        "_map_ns",
        "_min_map_time_ns",
        "_goal_pose",
        "_waits_ns",
    )

    select_viewpoint: ViewpointSelector = staticmethod(select_viewpoint)

    def setup(self) -> None:
        """Create publishers, subscribers, actions and the timer."""
        expect_kernels(label_components, viewpoint_candidates, unknown_area_by_direction, grid_search.search_grid)
        self._frontier_config = self.config.frontiers
        if self.config.radii_from_footprint and self.footprint is not None and len(self.footprint):
            footprint = Footprint(np.asarray(self.footprint))
            radius, turning = (
                footprint.inscribed_radius + self.config.padding,
                footprint.circumscribed_radius + self.config.rotation_padding,
            )
            self._frontier_config = replace(
                self.config.frontiers, inscribed_radius=radius, circumscribed_radius=max(turning, radius)
            )
        self._is_start_pending = self.config.autostart
        self._explorer: Explorer | None = None
        self._start_pose: tuple[float, float, float] = (0.0, 0.0, 0.0)
        self._map: Any = None
        self._map_ns = self._min_map_time_ns = self._waits_ns = 0
        self._is_searching = False
        self._goal_future: GoalFuture | None = None
        self._goal_pose: tuple[float, float, float] | None = None
        self._handle: GoalHandle | None = None
        self._status = self.publisher("exploration", msg.ExplorationStatus, latched=True)
        self._markers = self.publisher("frontiers", msg.MarkerArray, latched=True)
        self._navigator = self.action_client(
            self.config.action_name, action.NavigateToPose, on_goal_restored=self._await_goal
        )
        self.action_server("explore", action.Explore, self._on_goal, on_goal_restored=self._accept_goal)
        self.subscribe("map", msg.OccupancyGrid, self._on_map)
        self.timer(1.0, self._tick)
        self.report_health("ok", "waiting for a map" if self._is_start_pending else "waiting for a goal")

    # -- start and end -------------------------------------------------------------------------------------------------
    def _on_goal(self, handle: GoalHandle) -> None:
        if self._pose() is None:
            handle.reject(
                f"the pose of the robot in '{self.frame(self.config.map_frame)}' is unknown", PoseUnknownError.cause
            )
            return
        handle.accept()
        self._accept_goal(handle)
        self._cancel_goal()
        self._start_exploration(stay_at_end=bool(handle.goal.stay_at_end))

    def _accept_goal(self, handle: GoalHandle) -> None:
        handle.on_cancel = lambda goal: self._finish("canceled")
        self._handle = handle

    def _start_exploration(self, *, stay_at_end: bool) -> None:
        pose = self._pose()
        if pose is None:
            return
        self._is_start_pending = False
        self._start_pose = pose.to_tuple()
        self._explorer = self._make_explorer(None if stay_at_end else pose)
        self._min_map_time_ns = 0
        self.log.info(f"exploration started at ({pose.x:.2f}, {pose.y:.2f})")
        self._publish_status()
        self._search_frontiers()

    def _make_explorer(self, start: SE2 | None) -> Explorer:
        return Explorer(
            start,
            self._frontier_config,
            self.config.viewpoint_selection,
            max_goals=self.config.max_goals,
            selector=self.select_viewpoint,
        )

    def _finish(self, phase: str = "", cause: str = "") -> None:
        """End the exploration, finished or canceled."""
        explorer, handle, self._explorer, self._handle = self._explorer, self._handle, None, None
        if explorer is None:
            return
        self._cancel_goal()
        phase = phase or explorer.phase.value
        cause = cause or ("" if phase == "done" else "not_back" if phase == "failed" else phase)
        status = self._status_message(explorer, phase, cause)
        self._status.publish(status)
        text = f"{phase}: {status.known_area:.1f} m² of free space known, {status.goals_sent} goals sent"
        self.report_health("ok" if phase == "done" else "warn", text, cause=cause)
        self.log.info(text)
        if handle is None or not handle.is_active:
            return
        result = action.Explore.Result(error_code=cause, status=status)
        if phase == "done":
            handle.succeed(result)
        elif phase == "canceled":
            handle.set_canceled(result, cause)
        else:
            handle.abort(result, cause)

    # -- frontiers -----------------------------------------------------------------------------------------------------
    def _on_map(self, message: Any) -> None:
        if message.header.frame_id not in (self.frame(self.config.map_frame), self.config.map_frame):
            frame = message.header.frame_id
            self.log.error(
                f"a map of frame '{frame}' is ignored: map_frame is '{self.frame(self.config.map_frame)}'",
                throttle=10.0,
            )
            return
        self._map, self._map_ns = message, self.now_ns
        self._search_frontiers()

    def _tick(self) -> None:
        if self._is_start_pending and self._map is not None:
            self._start_exploration(stay_at_end=not self.config.return_to_start)
        elif self._explorer is not None and self._goal_future is None:
            if self._explorer.phase is ExplorationPhase.EXPLORING and self._explorer.goal is None:
                self._search_frontiers()
            else:
                self._send_goal()

    def _search_frontiers(self) -> None:
        """Search for frontiers in the last map, if it is newer than the last arrival."""
        explorer, pose = self._explorer, self._pose()
        if (
            explorer is None
            or explorer.phase is not ExplorationPhase.EXPLORING
            or self._is_searching
            or self._map is None
            or pose is None
        ):
            return
        if self._map_ns < self._min_map_time_ns and self.now_ns < self._min_map_time_ns + _MAX_MAP_WAIT_NS:
            return
        try:
            grid = occupancy_grid_from_msg(self._map)
        except RoboyardError as error:
            self.log.error(f"a map is ignored: {error}", throttle=10.0)
            return
        self._is_searching = True
        self.offload(
            find_frontiers,
            grid,
            pose,
            self._frontier_config,
            latency=self.config.planning_latency,
            on_done=self._on_frontiers,
        )

    def _on_frontiers(self, future: Future) -> None:
        self._is_searching = False
        explorer = self._explorer
        if explorer is None or explorer.phase is not ExplorationPhase.EXPLORING:
            return
        if self._min_map_time_ns > self._map_ns and self.now_ns < self._min_map_time_ns + _MAX_MAP_WAIT_NS:
            return  # the robot arrived meanwhile: the searched map is older than that
        frontier_map: FrontierMap = future.result
        explorer.set_frontiers(frontier_map)
        self._markers.publish(
            frontiers_to_msg(frontier_map, explorer.goal, self.frame(self.config.map_frame), self.now_ns)
        )
        self._publish_status()
        self._send_goal()

    # -- driving -------------------------------------------------------------------------------------------------------
    def _send_goal(self) -> None:
        """Send the goal of the explorer to the navigator, unless the navigator has it already."""
        explorer = self._explorer
        if explorer is None:
            return
        if explorer.is_finished:
            self._finish()
            return
        goal = explorer.goal
        if goal is None or (self._goal_future is not None and self._goal_pose == goal.to_tuple()):
            return
        if not self._navigator.is_available():
            self.report_health("warn", f"no action server for {self._navigator.name}")
            return
        self._goal_pose = goal.to_tuple()
        message = action.NavigateToPose.Goal(
            pose=pose_stamped_to_msg(goal, self.frame(self.config.map_frame), self.now_ns)
        )
        self._await_goal(self._navigator.send(message))

    def _await_goal(self, future: GoalFuture) -> None:
        self._goal_future = future
        future.add_done_callback(lambda _: self._on_result(future))

    def _cancel_goal(self) -> None:
        """Cancel the present goal of the navigator."""
        goal_future, self._goal_future = self._goal_future, None
        if goal_future is not None and not goal_future.done():
            goal_future.cancel()

    def _on_result(self, future: GoalFuture) -> None:
        explorer = self._explorer
        if future is not self._goal_future or explorer is None:
            return  # a newer goal has taken its place
        self._goal_future = None
        if isinstance(future.error, UnknownNameError):
            return  # the navigator left; the next tick looks for it again
        if future.succeeded:
            explorer.report_arrival()
        elif future.status is GoalStatus.CANCELED or future.error_code == PREEMPTED:
            self._finish("failed", "interrupted")
            return
        else:
            goal = self._goal_pose or (math.nan, math.nan, math.nan)
            self.log.info(f"goal ({goal[0]:.2f}, {goal[1]:.2f}) was not reached: {future.error_message}")
            explorer.report_failure()
        self._min_map_time_ns = self.now_ns + round(self.config.settle_time * 1e9)
        if explorer.is_finished:
            self._finish()
        else:
            self._publish_status()

    # -- status --------------------------------------------------------------------------------------------------------
    def _pose(self) -> SE2 | None:
        try:
            return SE2.from_se3(
                self.transforms.lookup(self.frame(self.config.map_frame), self.frame(self.config.base_frame))
            )
        except TransformError:
            return None

    def _status_message(self, explorer: Explorer, phase: str = "", cause: str = "") -> Any:
        frame, start = self.frame(self.config.map_frame), SE2(*self._start_pose)
        return status_to_msg(
            explorer.progress,
            start,
            self._frontier_config.inscribed_radius,
            frame,
            self.now_ns,
            phase=phase,
            cause=cause,
        )

    def _publish_status(self) -> None:
        if self._explorer is None:
            return
        status = self._status_message(self._explorer)
        self._status.publish(status)
        if self._handle is not None:
            self._handle.publish_feedback(action.Explore.Feedback(status=status))
        text = f"{status.phase}: {status.known_area:.1f} m² known, {status.frontiers} frontiers left"
        self.report_health("ok", text, failures=status.goals_failed)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return super().save_state() | {"explorer": None if self._explorer is None else self._explorer.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore a state that `save_state` returned."""
        saved = state["explorer"]
        if saved is not None:
            self._explorer = self._make_explorer(None)
            self._explorer.load_state(saved)
        super().load_state(state)
