"""The explorer node: maps in, goals for the navigator out, until nothing is left to see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from roboyard.bus import Future, GoalFuture, GoalHandle, GoalStatus, Node, TransformError, resource
from roboyard.bus.actions import PREEMPTED
from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.description.extent import FootprintPolygon
from roboyard.errors import RoboyardError, UnknownNameError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry, OccupancyGrid
from roboyard.grids.regions import label_components
from roboyard.messages import action, msg
from roboyard.messages.convert import grid_origin, grid_to_array, pose_stamped_to_msg
from roboyard.navigation.errors import PoseUnknown
from roboyard.navigation.exploration import ChoiceConfig, Explorer, FrontierConfig, Frontiers, find_frontiers
from roboyard.navigation.exploration.frontier_kernels import standing_places, unseen_by_direction
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.nodes.exploration_messages import frontiers_to_msg, status_to_msg
from roboyard.navigation.planning import octile

_OLD_MAP_NS: Final = 10_000_000_000
"""So long after arriving it waits for a new map; then the old one must do [ns]."""


class ExplorerNodeConfig(Config):
    """Configuration of `ExplorerNode`."""

    frontiers: FrontierConfig = parameter(factory=FrontierConfig, doc="Search for frontiers.")
    choice: ChoiceConfig = parameter(factory=ChoiceConfig, doc="Choice among viewpoints.")
    autostart: bool = parameter(True, doc="Begin as soon as there is a map and a pose in it.")
    return_to_start: bool = parameter(True, doc="Return to the start after an exploration that began by itself.")
    own_size: bool = parameter(True, doc="Derive the radii from the robot's outline where it is known.")
    padding: float = parameter(
        0.05, unit="m", low=0.0, high=10.0, doc="Addition to the outline where the robot drives."
    )
    room: float = parameter(0.15, unit="m", low=0.0, high=10.0, doc="Addition to the outline where the robot turns.")
    map_frame: str = parameter("map", doc="Frame of the map.")
    base_frame: str = parameter("base_link", doc="Frame of the base.")
    action_name: str = parameter("navigate_to_pose", doc="Action of the navigator.")
    settle: float = parameter(
        0.8, unit="s", low=0.0, high=60.0, runtime=True, doc="Time after which a map contains what the sensors saw."
    )
    latency: float = parameter(0.1, unit="s", low=1e-3, high=60.0, doc="Declared duration of the search for frontiers.")
    budget: int = parameter(1000, low=1, high=1_000_000, doc="Largest number of goals.")


class ExplorerNode(Node[ExplorerNodeConfig]):
    """Explores the unknown place that the robot stands in, and returns to where it set out.

    in: map (nav_msgs/OccupancyGrid, anew while it grows), /tf map_frame → base_frame
    out: exploration (roboyard_msgs/ExplorationStatus, latched), frontiers (visualization_msgs/MarkerArray, latched)
    action: explore (roboyard_msgs/Explore): begins, tells how it stands, and can be cancelled
    client of: navigate_to_pose (nav2_msgs/NavigateToPose)

    With each map it looks where to go next; a goal whose frontier has been seen from afar is replaced under way.
    Somebody else's goal for the navigator ends the exploration.
    """

    footprint: FootprintPolygon | None = resource(tuple, optional=True)

    state_fields = ("_wanted", "_start", "_map", "_map_ns", "_fresh_ns", "_sent_to", "_waits_ns")

    def setup(self) -> None:
        """Connect."""
        expect_kernels(label_components, standing_places, unseen_by_direction, octile.search)
        self._config = self.config.frontiers
        if self.config.own_size and self.footprint is not None and len(self.footprint):
            shape = Footprint(np.asarray(self.footprint))
            radius, turning = (
                shape.inscribed_radius + self.config.padding,
                shape.circumscribed_radius + self.config.room,
            )
            self._config = replace(self.config.frontiers, radius=radius, turning_radius=max(turning, radius))
        self._wanted = self.config.autostart
        self._explorer: Explorer | None = None
        self._start: tuple[float, float, float] = (0.0, 0.0, 0.0)
        self._map: Any = None
        self._map_ns = self._fresh_ns = self._waits_ns = 0
        self._searching = False
        self._sent: GoalFuture | None = None
        self._sent_to: tuple[float, float, float] | None = None
        self._handle: GoalHandle | None = None
        self._status = self.publisher("exploration", msg.ExplorationStatus, latched=True)
        self._markers = self.publisher("frontiers", msg.MarkerArray, latched=True)
        self._navigator = self.action_client(
            self.config.action_name, action.NavigateToPose, on_goal_restored=self._follow
        )
        self.action_server("explore", action.Explore, self._on_goal, on_goal_restored=self._take_up)
        self.subscribe("map", msg.OccupancyGrid, self._on_map)
        self.timer(1.0, self._tick)
        self.report_health("ok", "waits for a map" if self._wanted else "waits for a goal")

    # -- beginning and ending ------------------------------------------------------------------------------------------
    def _on_goal(self, handle: GoalHandle) -> None:
        if self._pose() is None:
            handle.reject(
                f"where the robot is in '{self.frame(self.config.map_frame)}' is not known", PoseUnknown.cause
            )
            return
        handle.accept()
        self._take_up(handle)
        self._withdraw()
        self._begin(stay=bool(handle.goal.stay_at_end))

    def _take_up(self, handle: GoalHandle) -> None:
        handle.on_cancel = lambda goal: self._end("canceled")
        self._handle = handle

    def _begin(self, *, stay: bool) -> None:
        pose = self._pose()
        if pose is None:
            return
        self._wanted = False
        self._start = (pose.x, pose.y, pose.theta)
        self._explorer = Explorer(None if stay else pose, self._config, self.config.choice, budget=self.config.budget)
        self._fresh_ns = 0
        self.log.info(f"explores, from ({pose.x:.2f}, {pose.y:.2f})")
        self._tell()
        self._consider()

    def _end(self, phase: str = "", cause: str = "") -> None:
        """It is over, or somebody wants it to be."""
        explorer, handle, self._explorer, self._handle = self._explorer, self._handle, None, None
        if explorer is None:
            return
        self._withdraw()
        phase = phase or explorer.phase
        cause = cause or ("" if phase == "done" else "not_back" if phase == "failed" else phase)
        status = self._message(explorer, phase, cause)
        self._status.publish(status)
        text = f"{phase}: {status.known_area:.1f} m² of free ground known, {status.goals_sent} places set out for"
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

    # -- looking -------------------------------------------------------------------------------------------------------
    def _on_map(self, message: Any) -> None:
        if message.header.frame_id not in (self.frame(self.config.map_frame), self.config.map_frame):
            frame = message.header.frame_id
            self.log.error(
                f"left out a map of frame '{frame}': it explores '{self.frame(self.config.map_frame)}'", throttle=10.0
            )
            return
        self._map, self._map_ns = message, self.now_ns
        self._consider()

    def _tick(self) -> None:
        if self._wanted and self._map is not None:
            self._begin(stay=not self.config.return_to_start)
        elif self._explorer is not None and self._sent is None:
            if self._explorer.phase == "explore" and self._explorer.goal is None:
                self._consider()
            else:
                self._drive()

    def _consider(self) -> None:
        """Look for frontiers in the last map, if it tells something new."""
        explorer, pose = self._explorer, self._pose()
        if explorer is None or explorer.phase != "explore" or self._searching or self._map is None or pose is None:
            return
        if self._map_ns < self._fresh_ns and self.now_ns < self._fresh_ns + _OLD_MAP_NS:
            return
        try:
            cells = np.array(grid_to_array(self._map))
            resolution = round(float(self._map.info.resolution), 7)  # 32 bits in the message
            grid = OccupancyGrid(cells, GridGeometry(resolution, cells.shape, grid_origin(self._map)))
        except RoboyardError as error:
            self.log.error(f"left out a map: {error}", throttle=10.0)
            return
        self._searching = True
        self.offload(find_frontiers, grid, pose, self._config, latency=self.config.latency, on_done=self._found)

    def _found(self, future: Future) -> None:
        self._searching = False
        explorer = self._explorer
        if explorer is None or explorer.phase != "explore":
            return
        if self._fresh_ns > self._map_ns and self.now_ns < self._fresh_ns + _OLD_MAP_NS:
            return  # it arrived meanwhile: what was found does not know what is seen from there
        found: Frontiers = future.result
        explorer.take(found)
        self._markers.publish(frontiers_to_msg(found, explorer.goal, self.frame(self.config.map_frame), self.now_ns))
        self._tell()
        self._drive()

    # -- driving -------------------------------------------------------------------------------------------------------
    def _drive(self) -> None:
        """See to it that the navigator drives where the explorer wants."""
        explorer = self._explorer
        if explorer is None:
            return
        if explorer.over:
            self._end()
            return
        goal = explorer.goal
        if goal is None or (self._sent is not None and self._sent_to == (goal.x, goal.y, goal.theta)):
            return
        if not self._navigator.is_available():
            self.report_health("warn", f"nobody offers {self._navigator.name}")
            return
        self._sent_to = (goal.x, goal.y, goal.theta)
        wanted = action.NavigateToPose.Goal(
            pose=pose_stamped_to_msg(goal, self.frame(self.config.map_frame), self.now_ns)
        )
        self._follow(self._navigator.send(wanted))

    def _follow(self, future: GoalFuture) -> None:
        self._sent = future
        future.add_done_callback(lambda _: self._on_result(future))

    def _withdraw(self) -> None:
        """Cancel what the navigator was asked for."""
        sent, self._sent = self._sent, None
        if sent is not None and not sent.done():
            sent.cancel()

    def _on_result(self, future: GoalFuture) -> None:
        explorer = self._explorer
        if future is not self._sent or explorer is None:
            return  # a newer goal has taken its place
        self._sent = None
        if isinstance(future.error, UnknownNameError):
            return  # the navigator left; the next tick looks for it again
        if future.succeeded:
            explorer.arrived()
        elif future.status is GoalStatus.CANCELED or future.error_code == PREEMPTED:
            self._end("failed", "interrupted")
            return
        else:
            self.log.info(f"did not get to ({self._sent_to[0]:.2f}, {self._sent_to[1]:.2f}): {future.error_message}"
                          if self._sent_to else future.error_message)  # fmt: skip
            explorer.failed()
        self._fresh_ns = self.now_ns + round(self.config.settle * 1e9)
        if explorer.over:
            self._end()
        else:
            self._tell()

    # -- what it tells -------------------------------------------------------------------------------------------------
    def _pose(self) -> SE2 | None:
        try:
            return SE2.from_se3(
                self.transforms.lookup(self.frame(self.config.map_frame), self.frame(self.config.base_frame))
            )
        except TransformError:
            return None

    def _message(self, explorer: Explorer, phase: str = "", cause: str = "") -> Any:
        frame, start = self.frame(self.config.map_frame), SE2(*self._start)
        return status_to_msg(
            explorer.progress, start, self._config.radius, frame, self.now_ns, phase=phase, cause=cause
        )

    def _tell(self) -> None:
        if self._explorer is None:
            return
        status = self._message(self._explorer)
        self._status.publish(status)
        if self._handle is not None:
            self._handle.publish_feedback(action.Explore.Feedback(status=status))
        text = f"{status.phase}: {status.known_area:.1f} m² known, {status.frontiers} frontiers left"
        self.report_health("ok", text, failures=status.goals_failed)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return super().save_state() | {"explorer": None if self._explorer is None else self._explorer.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        saved = state["explorer"]
        if saved is not None:
            self._explorer = Explorer(None, self._config, self.config.choice, budget=self.config.budget)
            self._explorer.load_state(saved)
        super().load_state(state)
