"""Metrics of navigation goals, also of those that an external navigator executes."""

from __future__ import annotations

import copy
import math
from array import array
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError, MessageError, RoboyardError
from roboyard.evaluation.collector import (
    MessageHandler,
    Metric,
    MetricCollector,
    MetricValue,
    PlanarPose,
    RobotContext,
    TimelineEvent,
)
from roboyard.evaluation.topics import EXTERNAL_REQUEST_TOPIC, EXTERNAL_RESPONSE_TOPIC
from roboyard.geometry import SE2, wrap_angle
from roboyard.messages import deserialize, message_type, msg, to_nanoseconds
from roboyard.messages.convert.action_goals import uuid_from_msg
from roboyard.messages.convert.poses import pose_to_xy_yaw

if TYPE_CHECKING:
    from roboyard.navigation import Costmap, Footprint


_CLEARANCE_RESOLUTION = 0.02
_FINAL_STATES = ("succeeded", "aborted", "canceled")
_POSE_ACTIONS = ("navigate_to_pose", "approach_pose", "navigate_through_poses", "move_base")
_MIN_POSE_SPACING = 0.03
"""Distance between poses at which the clearance is computed; a rotation by 1 rad counts as 0.3 m [m]."""
_PREEMPTED = "preempted"
"""Error code of goals that a newer goal replaced; navigators may leave it out."""


class NavigationMetrics(MetricCollector):
    """Computes the metrics of navigation goals from the status of the navigator and the ground truth; the frames of map
    and world are the same.

    Where an external program takes the navigator's place, its goals are read from the calls of its actions.

    Args:
        robot: The robot; without ground truth there is no clearance and no shortest path.
    """

    metrics = (
        Metric(
            "navigation_goals",
            "count",
            "Goals that the navigator was given; no value, as of all metrics of navigation, if it was given none.",
        ),
        Metric("goals_reached", "count", "Goals that were reached.", "higher"),
        Metric(
            "goals_failed",
            "count",
            "Goals that the navigator refused or gave up; not those that a newer goal replaced or a client canceled.",
            "lower",
        ),
        Metric("goals_preempted", "count", "Goals that a newer goal replaced while the robot was under way to them."),
        Metric(
            "navigation_failure",
            "text",
            "Error code of the last goal that failed, as `no_path`; empty if none failed.",
        ),
        Metric("final_error", "m", "Distance of the true position from the goal when the last goal ended.", "lower"),
        Metric("final_heading_error", "rad", "Error of the true heading when the last goal ended.", "lower"),
        Metric("navigation_time", "s", "Time from each goal to its end, of all goals together.", "lower"),
        Metric(
            "shortest_path",
            "m",
            "Length of the shortest paths to the goals that were reached, for a robot of this outline in the true "
            "floor plan.",
        ),
        Metric("path_driven", "m", "Length of the true paths to the goals that were reached.", "lower"),
        Metric(
            "min_clearance",
            "m",
            "Least distance of the robot's outline from what stood at its lidar's height at that moment and stands "
            "there at the end of the run, to 2 cm.",
            "higher",
        ),
        Metric("replans", "count", "Paths that were planned anew under way.", "lower"),
        Metric(
            "recoveries",
            "count",
            "Recovery actions of the navigator, or of skills that resolved a failure.",
            "lower",
        ),
    )
    position = 80

    @classmethod
    def create(cls, robot: RobotContext) -> Self:
        """Return the collector of any robot."""
        return cls(robot)

    def __init__(self, robot: RobotContext) -> None:
        self._robot = robot
        self._topics = (robot.topics.truth, robot.topics.navigation)
        self._external_navigator = ExternalNavigatorAdapter(robot.namespace, _POSE_ACTIONS, self._on_status)
        self.failure_cause = ""
        self._counts = {
            "navigation_goals": 0, "goals_reached": 0, "goals_failed": 0, "goals_preempted": 0, "replans": 0,
            "recoveries": 0,
        }  # fmt: skip
        self._navigation_time = self._path_driven = 0.0
        self._true_pose: PlanarPose | None = None
        self._start_pose: PlanarPose | None = None
        self._distance_since_start = 0.0
        self._is_run_finished = False
        self._final_errors: tuple[float, float] | None = None
        self._reached_goals: list[tuple[PlanarPose, PlanarPose]] = []
        self._track: array[float] = array("d")
        self._placements: list[tuple[int, dict[str, tuple[float, ...]]]] = []  # of other models, from which pose on
        self._events: list[tuple[float, str, str]] = []  # arguments of `TimelineEvent`

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Return the topics of true odometry, of the navigator's status, and of calls of an external navigator."""
        subscriptions = dict(zip(self._topics, (self._on_truth, self._on_status), strict=True))
        return {**subscriptions, **self._external_navigator.handlers()}

    def _on_truth(self, message: Any, time_ns: int) -> None:
        pose = pose_to_xy_yaw(message.pose.pose)
        if self._true_pose is not None and self._start_pose is not None:
            self._distance_since_start += math.hypot(pose[0] - self._true_pose[0], pose[1] - self._true_pose[1])
        self._true_pose = pose
        track = self._track
        if len(track) < 3 or _pose_change(pose, (track[-3], track[-2], track[-1])) > _MIN_POSE_SPACING:
            if self._robot.truth is not None:
                placements = dict(self._robot.truth.model_placements())
                if not self._placements or self._placements[-1][1] != placements:
                    self._placements.append((len(track) // 3, placements))
            track.extend(pose)

    def _on_status(self, message: Any, time_ns: int) -> None:
        if message.task not in _POSE_ACTIONS:
            return
        if message.state == "rejected":
            self._counts["navigation_goals"] += 1
            self._counts["goals_failed"] += 1
            self.failure_cause = message.error_code
            self._add_event(time_ns, "goal_failed", message)
        elif message.state == "started":
            self._counts["navigation_goals"] += 1
            self._add_event(time_ns, "goal_started", message)
            self._start_pose, self._distance_since_start = self._true_pose, 0.0
        elif message.state in _FINAL_STATES:
            self._finish_goal(message, time_ns)

    def _add_event(self, time_ns: int, kind: str, message: Any) -> None:
        """Add an event about the goal of a roboyard_msgs/NavigationStatus."""
        x, y, _ = pose_to_xy_yaw(message.goal)
        cause = f": {message.error_code}" if message.error_code else ""
        self._events.append((time_ns * 1e-9, kind, f"{message.task} to ({x:.2f}, {y:.2f}) m{cause}"))

    def _finish_goal(self, message: Any, time_ns: int) -> None:
        goal = pose_to_xy_yaw(message.goal)
        self._counts["replans"] += int(message.replans)
        self._counts["recoveries"] += int(message.recoveries)
        self._navigation_time += float(message.elapsed)
        if self._true_pose is not None:
            distance = math.hypot(self._true_pose[0] - goal[0], self._true_pose[1] - goal[1])
            self._final_errors = (distance, abs(wrap_angle(self._true_pose[2] - goal[2])))
        if message.state == "succeeded":
            self._counts["goals_reached"] += 1
            self._add_event(time_ns, "goal_reached", message)
            self._path_driven += self._distance_since_start
            if self._start_pose is not None:
                self._reached_goals.append((self._start_pose, goal))
        elif message.state == "aborted" and message.error_code in ("", _PREEMPTED):
            self._counts["goals_preempted"] += 1
            self._add_event(time_ns, "goal_preempted", message)
        elif message.state == "aborted":
            self._counts["goals_failed"] += 1
            self.failure_cause = message.error_code
            self._add_event(time_ns, "goal_failed", message)
        else:
            self._add_event(time_ns, "goal_canceled", message)
        self._start_pose = None

    def values(self) -> dict[str, MetricValue | None]:
        """Return the metrics; none if the navigator was given no goal."""
        if not self._counts["navigation_goals"]:
            return {}
        position_error, heading_error = self._final_errors or (None, None)
        values: dict[str, MetricValue | None] = {
            **self._counts,
            "final_error": position_error,
            "final_heading_error": heading_error,
            "navigation_failure": self.failure_cause,
            "navigation_time": self._navigation_time,
            "path_driven": self._path_driven,
        }
        return values | (self._compare_floor_plan() if self._is_run_finished else {})

    def events(self) -> Sequence[TimelineEvent]:
        """Return when goals started, and when they were reached, failed, or were preempted or canceled."""
        return [TimelineEvent(*event) for event in self._events]

    def finish(self, time_ns: int) -> None:
        """Compare with the floor plan, too, from now on: that takes seconds."""
        self._is_run_finished = True

    def _compare_floor_plan(self) -> dict[str, MetricValue | None]:
        from roboyard.navigation import Footprint

        if self._robot.truth is None or len(self._robot.footprint) < 3 or not self._track:
            return {}
        try:
            footprint = Footprint(np.array(self._robot.footprint))
            costmap, _ = self._floor_plan_costmap(footprint)
            min_clearance = self._min_clearance(footprint)
        except RoboyardError:
            return {}
        return {"min_clearance": min_clearance, "shortest_path": _shortest_path_length(costmap, self._reached_goals)}

    def _floor_plan_costmap(
        self, footprint: Footprint, excluded_models: Collection[str] = ()
    ) -> tuple[Costmap, NDArray[np.float64]]:
        """Return the floor plan as a costmap without costs, and each cell's distance to the next occupied one [m]."""
        from scipy import ndimage

        from roboyard.grids import GridGeometry
        from roboyard.navigation import Costmap
        from roboyard.navigation.costmap import FREE, INSCRIBED, LETHAL

        if self._robot.truth is None:
            raise InputError("no ground truth", valid="a simulated run")
        plan = self._robot.truth.floor_plan(self._robot.lidar_height, _CLEARANCE_RESOLUTION, excluded_models)
        distances = ndimage.distance_transform_edt(~plan.occupied) * plan.resolution
        cells = np.where(plan.occupied, LETHAL, np.where(distances <= footprint.inscribed_radius, INSCRIBED, FREE))
        geometry = GridGeometry(plan.resolution, plan.occupied.shape, SE2(*plan.origin, 0.0))
        return Costmap(cells.astype(np.uint8), geometry), distances

    def _min_clearance(self, footprint: Footprint) -> float | None:
        """Return the least distance of the track from obstacles at their present poses [m]; None without any.

        A model that has come, gone or moved since the robot passed is left out of the plan for that part.
        """
        if self._robot.truth is None:
            return None
        track = np.array(self._track).reshape(-1, 3)
        final_placements = self._robot.truth.model_placements()
        poses_by_exclusion: dict[frozenset[str], list[NDArray[np.float64]]] = {}
        ends = [*(start for start, _ in self._placements[1:]), len(track)]
        for (start, placements), end in zip(self._placements, ends, strict=True):
            changed = frozenset(
                name for name, placement in final_placements.items() if placements.get(name) != placement
            )
            poses_by_exclusion.setdefault(changed, []).append(track[start:end])
        clearances = []
        for excluded_models, parts in poses_by_exclusion.items():
            costmap, distances = self._floor_plan_costmap(footprint, excluded_models)
            clearances.append(_min_clearance(costmap, distances, footprint, np.concatenate(parts)))
        return min((clearance for clearance in clearances if clearance is not None), default=None)

    def save_state(self) -> dict[str, Any]:
        """Return everything but the robot, as plain data."""
        excluded = ("_robot", "_topics", "_track", "_external_navigator")
        attributes = {name: value for name, value in vars(self).items() if name not in excluded}
        return {
            "track": np.array(self._track),
            "external_navigator": self._external_navigator.save_state(),
            **copy.deepcopy(attributes),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self._track = array("d", state["track"].tolist())
        self._external_navigator.load_state(state["external_navigator"])
        attributes = {name: value for name, value in state.items() if name not in ("track", "external_navigator")}
        vars(self).update(copy.deepcopy(attributes))


def _pose_change(pose: PlanarPose, previous: PlanarPose) -> float:
    return math.hypot(pose[0] - previous[0], pose[1] - previous[1]) + 0.3 * abs(wrap_angle(pose[2] - previous[2]))


def _min_clearance(
    costmap: Costmap, distances: NDArray[np.float64], footprint: Footprint, track: NDArray[np.float64]
) -> float | None:
    outline_points = footprint.sample_border(costmap.geometry.resolution)
    min_distance = math.inf
    for x, y, theta in track:
        cells = costmap.geometry.cells_of_points(SE2(x, y, theta) @ outline_points)
        inside = costmap.geometry.contains(cells)
        if inside.any():
            min_distance = min(min_distance, float(distances[cells[inside, 0], cells[inside, 1]].min()))
    return None if math.isinf(min_distance) else min_distance


def _shortest_path_length(costmap: Costmap, reached_goals: list[tuple[PlanarPose, PlanarPose]]) -> float | None:
    """Return the length of all shortest paths together; None if one of them does not exist in the plan [m]."""
    from roboyard.navigation import NavigationError
    from roboyard.navigation.planners import FastMarchingPlanner, TraversalCosts

    planner = FastMarchingPlanner(TraversalCosts(cost_weight=0.0))
    total = 0.0
    try:
        for start, goal in reached_goals:
            total += planner.plan(costmap, SE2(*start), SE2(*goal)).length
    except NavigationError:
        return None
    return total


_STATUS_TYPE: Final = "roboyard_msgs/msg/NavigationStatus"
_ACTION_SERVICES: Final = ("send_goal", "get_result")


class ExternalNavigatorAdapter:
    """Derives a navigator's status from the calls of its actions and their responses.

    Replans and recoveries of an external navigator are unknown and count as none.

    Args:
        namespace: Namespace of the robot, "" or "/name".
        actions: Names of the actions.
        on_status: Called with each change, a roboyard_msgs/NavigationStatus, and its time [ns].
    """

    def __init__(self, namespace: str, actions: Sequence[str], on_status: MessageHandler) -> None:
        self._action_services = {
            f"{namespace}/{task}/_action/{part}": (task, part) for task in actions for part in _ACTION_SERVICES
        }
        self._on_status = on_status
        # service, type, request and deadline [ns] by the number of the call
        self._pending_calls: dict[int, tuple[str, str, bytes, int]] = {}
        # action, type, request and start [ns] by the id of the goal
        self._active_goals: dict[bytes, tuple[str, str, bytes, int]] = {}

    def handlers(self) -> Mapping[str, MessageHandler]:
        """Return the topics of calls and of responses."""
        return {EXTERNAL_REQUEST_TOPIC: self._on_request, EXTERNAL_RESPONSE_TOPIC: self._on_response}

    def _on_request(self, call: Any, time_ns: int) -> None:
        if call.service in self._action_services:
            self._pending_calls[int(call.call_id)] = (
                call.service,
                call.type,
                bytes(call.request),
                to_nanoseconds(call.deadline),
            )

    def _on_response(self, response: Any, time_ns: int) -> None:
        pending_call = self._pending_calls.pop(int(response.call_id), None)
        if pending_call is None:
            return
        service, type_name, data, deadline_ns = pending_call
        if 0 < deadline_ns <= time_ns:
            return  # too late: the caller was told that nobody responded
        task, part = self._action_services[service]
        request = deserialize(data, f"{type_name}_Request")
        try:
            result = None if response.error else deserialize(bytes(response.response), f"{type_name}_Response")
        except MessageError:
            result = None
        uuid = uuid_from_msg(request.goal_id)
        if part == "get_result":
            self._finish_goal(uuid, result, time_ns)
        elif result is not None and result.accepted:
            self._active_goals[uuid] = (task, type_name, data, time_ns)
            self._on_status(_navigation_status(task, "started", request), time_ns)
        else:
            self._on_status(_navigation_status(task, "rejected", request, cause="refused"), time_ns)

    def _finish_goal(self, uuid: bytes, result: Any, time_ns: int) -> None:
        active_goal = self._active_goals.pop(uuid, None)
        if active_goal is None:
            return
        task, type_name, data, start_ns = active_goal
        status = msg.GoalStatus
        states = {status.STATUS_SUCCEEDED: "succeeded", status.STATUS_CANCELED: "canceled"}
        state = "aborted" if result is None else states.get(result.status, "aborted")
        cause = "" if state != "aborted" else "unanswered" if result is None else "aborted"
        request = deserialize(data, f"{type_name}_Request")
        self._on_status(_navigation_status(task, state, request, (time_ns - start_ns) * 1e-9, cause), time_ns)

    def save_state(self) -> dict[str, Any]:
        """Return the calls and goals that have not ended, as plain data."""
        return {"pending_calls": dict(self._pending_calls), "active_goals": dict(self._active_goals)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self._pending_calls, self._active_goals = dict(state["pending_calls"]), dict(state["active_goals"])


def _navigation_status(task: str, state: str, request: Any, elapsed: float = 0.0, cause: str = "") -> Any:
    return message_type(_STATUS_TYPE)(
        task=task, state=state, goal=_goal_pose(request.goal), elapsed=elapsed, error_code=cause
    )


def _goal_pose(goal: Any) -> Any:
    """Return the last pose of a goal (geometry_msgs/Pose); its field has another name in each action."""
    for name in ("pose", "target_pose"):
        if hasattr(goal, name):
            return getattr(goal, name).pose
    poses = goal.poses
    return poses[-1].pose if poses else message_type("geometry_msgs/msg/Pose")()
