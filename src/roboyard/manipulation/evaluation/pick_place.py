"""Metrics and report section of picking and placing, and of the recovery after faults."""

from __future__ import annotations

import base64
import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from roboyard.evaluation.collector import (
    MessageHandler,
    Metric,
    MetricCollector,
    MetricValue,
    RobotContext,
    TimelineEvent,
)
from roboyard.evaluation.figures import BAD, COMMAND, GOOD, MUTED, figure_style, new_figure, render_svg
from roboyard.evaluation.section import ReportSection, ReportTable, SectionContext
from roboyard.evaluation.topics import OBJECT_POSES_TOPIC, PLACE_POSES_TOPIC
from roboyard.geometry import SE3
from roboyard.messages.convert import pose_to_se3, transform_to_se3, vector_to_array
from roboyard.record import Recording

_NOT_ATTEMPTED_CAUSES = (
    "view_empty",
    "disagreement",
    "cancelled",
    "preempted",
    "place_occupied",
    "bay_full",
    "gripper_occupied",
    "bays_empty",
)
"""Error codes of skills that ended before anything was attempted."""
_PLACE_SETTLING_NS = 600_000_000
"""A placed object is judged so long after it was released [ns]."""
_PLACE_SEARCH_RADIUS = 0.03
"""A reported position belongs to a place with a smaller distance [m]."""
_UPRIGHT_MIN_COSINE = math.cos(math.radians(10.0))
"""Smallest cosine of the tilt of a standing object."""
_PLACE_TOLERANCE = 0.01
"""An object with a larger distance from its target is not placed [m]."""
_MIN_LIFT = 0.015
"""An object counts as picked if it is higher than at the start of the skill by more [m]."""
_EPISODE_GAP_NS = 200_000_000
_FLOOR_HEIGHT = 0.02
"""An object whose origin is not higher stands or lies on the floor [m]."""


@dataclass(slots=True)
class PickPlaceAttempt:
    """One pick or place.

    Attributes:
        time: Of its end [s].
        skill: "pick" or "place".
        duration: Of the skill [s].
        is_done: Whether the skill reports success.
        cause: Error code of the skill; "" without.
        text: The same in a sentence.
        bay: Bay of the object on the robot; 0: unknown.
        object_name: The object's true name; "": unknown.
        error: Distance of the object from its target, in the plane [m]; None: not measured.
        is_upright: Whether the object stands upright there.
        is_lifted: Of a pick: whether an object is truly lifted.
    """

    time: float
    skill: str
    duration: float
    is_done: bool
    cause: str
    text: str
    bay: int
    object_name: str = ""
    error: float | None = None
    is_upright: bool = True
    is_lifted: bool = True

    @property
    def is_successful(self) -> bool:
        """Whether the skill reports success and the ground truth agrees."""
        return (
            self.is_done
            and self.is_upright
            and self.is_lifted
            and (self.error is None or self.error <= _PLACE_TOLERANCE)
        )

    @property
    def outcome(self) -> str:
        """How it ended by the ground truth, in words."""
        if not self.is_done:
            return f"failed: {self.cause or self.text or 'no cause'}"
        if not self.is_lifted:
            return "failed: no object was lifted"
        name = self.object_name or "the object"
        if not self.is_upright:
            return f"failed: {name} does not stand upright"
        distance = "" if self.error is None else f", {1e3 * self.error:.1f} mm from its target"
        return f"{'succeeded' if self.is_successful else 'failed'}: {name}{distance}"


class PickPlaceMetrics(MetricCollector):
    """Judges picks and places by the events of skills and the true poses of objects.

    Args:
        namespace: Of the robot, "" or "/name".
        truth_topic: Of its true nav_msgs/Odometry.
        contacts_topic: Of its true contacts.
    """

    metrics = (
        Metric(
            "pick_attempts",
            "count",
            "Picks that were attempted: not those that saw no object or were canceled; no value, as of all metrics of"
            " skills, of a robot without skills.",
        ),
        Metric("picks_succeeded", "count", "Picks that succeeded, with an object truly lifted.", "higher"),
        Metric("place_attempts", "count", "Places that were attempted."),
        Metric(
            "places_succeeded",
            "count",
            "Places after which the object stands upright, within 10 mm of its target.",
            "higher",
        ),
        Metric(
            "place_error_mean_mm",
            "mm",
            "Mean distance from the middle between two discs, or the requested target, to the object's true position "
            "0.6 s after it was released; on a moving carrier, from where the target is then.",
            "lower",
        ),
        Metric("place_error_p95_mm", "mm", "95th percentile of these distances.", "lower"),
        Metric(
            "objects_per_hour",
            "1/h",
            "Rate of places that succeeded, from the start of the first skill to the end of the last place.",
            "higher",
        ),
        Metric(
            "collisions",
            "count",
            "Contacts of the robot with anything, but for its fingers with objects and for objects that stand upright"
            " in a bay.",
            "lower",
        ),
    )
    overrides = ("recoveries",)
    position = 160

    @classmethod
    def create(cls, robot: RobotContext) -> Self:
        """Return the collector of any robot."""
        return cls(robot.namespace, robot.topics.truth, robot.topics.contacts)

    def __init__(self, namespace: str, truth_topic: str, contacts_topic: str) -> None:
        self._topics = (
            f"{namespace}/skills/events",
            OBJECT_POSES_TOPIC,
            PLACE_POSES_TOPIC,
            truth_topic,
            contacts_topic,
        )
        self.attempts: list[PickPlaceAttempt] = []
        # index of the attempt, time of the check [ns], name of the place or "", reported position
        self._pending_checks: list[tuple[int, int, str, tuple[float, float]]] = []
        self._start_times: dict[int, float] = {}
        self._heights_before_pick: dict[str, float] = {}  # at the start of the last pick
        self._object_poses: dict[str, tuple[float, float, float, float]] = {}  # x, y, z, cosine of the tilt
        self._root_link = ""
        self._place_positions: dict[str, tuple[float, float]] = {}
        self._root_pose = (SE3.identity().translation.tolist(), SE3.identity().rotation.tolist())
        self._first_event_time: float | None = None
        self._last_place_time = 0.0
        self._recoveries = self._collisions = 0
        self._contact_pairs: list[tuple[str, str]] = []
        self._last_contact_ns: dict[tuple[str, str], int] = {}
        self._has_events = False

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Return the topics of skill events and of true objects, places, odometry and contacts."""
        handlers = (self._on_event, self._on_objects, self._on_places, self._on_truth, self._on_contacts)
        return dict(zip(self._topics, handlers, strict=True))

    def _on_objects(self, message: Any, time_ns: int) -> None:
        self._check_placed_objects(time_ns)
        self._object_poses = {}
        for transform in message.transforms:
            pose = transform_to_se3(transform.transform)
            x, y, z = (float(value) for value in pose.translation)
            self._object_poses[transform.child_frame_id] = (x, y, z, float(pose.rotation_matrix()[2, 2]))

    def _on_places(self, message: Any, time_ns: int) -> None:
        self._place_positions = {
            str(t.child_frame_id): (t.transform.translation.x, t.transform.translation.y) for t in message.transforms
        }

    def _on_truth(self, message: Any, time_ns: int) -> None:
        if self._has_events:  # else it is not needed
            self._root_link = str(message.child_frame_id).rpartition("/")[2]
            pose = pose_to_se3(message.pose.pose)
            self._root_pose = (pose.translation.tolist(), pose.rotation.tolist())
        if self._pending_checks:
            self._check_placed_objects(time_ns)

    def _on_event(self, message: Any, time_ns: int) -> None:
        self._has_events = True
        time = time_ns * 1e-9
        if self._first_event_time is None:
            self._first_event_time = time
        self._check_placed_objects(time_ns)
        if message.event == "started":
            self._start_times[int(message.id)] = time
            if message.skill == "pick":
                self._heights_before_pick = {name: object_pose[2] for name, object_pose in self._object_poses.items()}
        elif message.event == "recovered":
            self._recoveries += 1
        elif message.event == "finished":
            start_time = self._start_times.pop(int(message.id), time)
            if message.skill in ("pick", "place") and (
                message.success or message.error_code not in _NOT_ATTEMPTED_CAUSES
            ):
                self._add_attempt(message, time_ns, time - start_time)

    def _add_attempt(self, message: Any, time_ns: int, duration: float) -> None:
        attempt = PickPlaceAttempt(
            time_ns * 1e-9, str(message.skill), duration, bool(message.success), str(message.error_code),
            str(message.message), int(message.bay),
        )  # fmt: skip
        self.attempts.append(attempt)
        if message.success and message.skill == "pick" and self._heights_before_pick:
            lifts = {
                name: object_pose[2] - self._heights_before_pick.get(name, object_pose[2])
                for name, object_pose in self._object_poses.items()
            }
            lifted_object = max(lifts, key=lambda name: lifts[name], default="")
            attempt.is_lifted = bool(lifted_object) and lifts[lifted_object] > _MIN_LIFT
            attempt.object_name = lifted_object if attempt.is_lifted else ""
        if message.success and message.skill == "place":
            self._last_place_time = attempt.time
            if message.has_position:
                self._pending_checks.append(
                    (len(self.attempts) - 1, time_ns + _PLACE_SETTLING_NS, *self._target_place(message.position))
                )

    def _target_place(self, reported_position: Any) -> tuple[str, tuple[float, float]]:
        """Return the place that is meant, or "", and the reported position in the world [m]."""
        T_world_root = SE3(self._root_pose[1], self._root_pose[0])
        x, y, _ = (float(value) for value in T_world_root @ vector_to_array(reported_position))
        distances = {name: math.hypot(u - x, v - y) for name, (u, v) in self._place_positions.items()}
        nearest_place = min(distances, key=lambda name: distances[name], default="")
        return nearest_place if nearest_place and distances[nearest_place] <= _PLACE_SEARCH_RADIUS else "", (x, y)

    def _check_placed_objects(self, time_ns: int) -> None:
        while self._pending_checks and time_ns >= self._pending_checks[0][1]:
            index, _, place, reported_position = self._pending_checks.pop(0)
            x, y = self._place_positions.get(place, reported_position)
            attempt = self.attempts[index]
            if not self._object_poses:
                continue
            name, (u, v, _, upright_cosine) = min(
                self._object_poses.items(), key=lambda item: math.hypot(item[1][0] - x, item[1][1] - y)
            )
            attempt.object_name, attempt.error, attempt.is_upright = (
                name,
                math.hypot(u - x, v - y),
                upright_cosine > _UPRIGHT_MIN_COSINE,
            )

    def _on_contacts(self, message: Any, time_ns: int) -> None:
        pairs = sorted(
            {
                (str(state.collision1_name), str(state.collision2_name))
                for state in message.states
                if self._is_collision(state)
            }
        )
        for pair in self._contact_pairs:
            self._last_contact_ns[pair] = time_ns
        for pair in pairs:
            last_ns = self._last_contact_ns.get(pair)
            if pair not in self._contact_pairs and (last_ns is None or time_ns - last_ns > _EPISODE_GAP_NS):
                self._collisions += 1
        self._contact_pairs = pairs

    def _is_collision(self, state: Any) -> bool:
        robot_collision, other_collision = str(state.collision1_name), str(state.collision2_name)
        object_pose = self._object_poses.get(other_collision.partition("::")[0])
        if object_pose is None:
            return True
        is_in_bay = (
            robot_collision.split("::")[1:2] == [self._root_link]
            and object_pose[2] > _FLOOR_HEIGHT
            and object_pose[3] > _UPRIGHT_MIN_COSINE
        )
        return not (is_in_bay or "finger" in robot_collision)

    def finish(self, time_ns: int) -> None:
        """Judge the object that was placed last by its present pose."""
        self._check_placed_objects(time_ns + _PLACE_SETTLING_NS)

    def values(self) -> dict[str, MetricValue | None]:
        """Return the metrics; none of a robot without skills, whose recoveries are the navigator's."""
        if not self._has_events:
            return {}
        picks = [attempt for attempt in self.attempts if attempt.skill == "pick"]
        places = [attempt for attempt in self.attempts if attempt.skill == "place"]
        successful_places = [attempt for attempt in places if attempt.is_successful]
        errors = np.array([1e3 * attempt.error for attempt in places if attempt.is_done and attempt.error is not None])
        hours = (self._last_place_time - (self._first_event_time or 0.0)) / 3600.0
        return {
            "pick_attempts": len(picks),
            "picks_succeeded": sum(attempt.is_successful for attempt in picks),
            "place_attempts": len(places),
            "places_succeeded": len(successful_places),
            "place_error_mean_mm": float(errors.mean()) if len(errors) else None,
            "place_error_p95_mm": float(np.percentile(errors, 95)) if len(errors) else None,
            "objects_per_hour": len(successful_places) / hours if hours > 0.0 else None,
            "recoveries": self._recoveries,
            "collisions": self._collisions,
        }

    def events(self) -> Sequence[TimelineEvent]:
        """Return the attempts with their outcomes, at their ends."""
        return [TimelineEvent(attempt.time, attempt.skill, attempt.outcome) for attempt in self.attempts]

    def save_state(self) -> dict[str, Any]:
        """Return everything but the names of topics, as plain data."""
        saved = {key: value for key, value in vars(self).items() if key not in ("_topics", "attempts")}
        return copy.deepcopy({**saved, "rows": [asdict(row) for row in self.attempts]})

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        attributes = copy.deepcopy(state)
        self.attempts = [PickPlaceAttempt(**row) for row in attributes.pop("rows")]
        vars(self).update(attributes)


_FAULT_SETTLING_NS = 1_200_000_000
"""Motions of objects count as caused by a fault for so long after its start [ns]."""
_LYING_MAX_COSINE = 0.5
"""Largest cosine of the tilt of a lying object."""
_UNMOVED_TOLERANCE = 0.015
"""An object with a smaller distance from its initial position stands there still or again [m]."""
_MIN_DISPLACEMENT = 0.02
"""An object that moves farther along the floor within 0.2 s was moved by others than the robot [m]."""
_MOTIONLESS_TOLERANCE = 5e-4
"""An object that moves less within 0.2 s stands still [m]."""
_MAX_IDLE_PHASES = 3
"""A loop that rests so often with no skill done in between has come to rest."""
ObjectPose = tuple[float, float, float, float]
"""x, y, z [m] and cosine of the tilt."""


class FaultRecoveryMetrics(MetricCollector):
    """Judges the final state of objects, by the ground truth, and of skills, by their events, also after faults.

    Args:
        namespace: Of the robot, "" or "/name".
        truth_topic: Of its true nav_msgs/Odometry.
        contacts_topic: Of its true contacts.
    """

    metrics = (
        Metric(
            "objects_placed",
            "count",
            "Objects that stand upright at the end on a place, or where a removed place was.",
            "higher",
        ),
        Metric(
            "objects_safe",
            "count",
            "Objects that stand at the end on a place, in a bay, or where they stood before or were put by others.",
            "higher",
        ),
        Metric("objects_lying", "count", "Objects that lie on the floor at the end.", "lower"),
        Metric("objects_held", "count", "Objects that are off the floor and in no bay at the end."),
        Metric("objects_astray", "count", "All other objects that are still there at the end.", "lower"),
        Metric(
            "objects_fallen",
            "count",
            "How often an object that stood or was held upright fell over, later than 1.2 s after the start of a "
            "fault.",
            "lower",
        ),
        Metric(
            "fallen_object_contacts",
            "count",
            "How often the robot touched a lying object, later than 1.2 s after its fall.",
            "lower",
        ),
        Metric(
            "recovery_time",
            "s",
            "Time from the start of the last fault to the next pick, stow, unstow or place that succeeded.",
            "lower",
        ),
        Metric("max_skill_silence", "s", "Longest time without an event of the skills under way.", "lower"),
        Metric(
            "at_rest",
            "boolean",
            "Whether the outermost skill has ended, or the loop rests for the third time since a skill succeeded.",
            "higher",
        ),
        Metric("end_cause", "text", "Error code of the outermost skill's end; `rests`: the loop rests."),
        Metric(
            "failure_causes",
            "text",
            "All error codes of skills since the first fault, or since the start without a fault.",
        ),
    )
    position = 170

    @classmethod
    def create(cls, robot: RobotContext) -> Self:
        """Return the collector of any robot."""
        return cls(robot.namespace, robot.topics.truth, robot.topics.contacts)

    def __init__(self, namespace: str, truth_topic: str, contacts_topic: str) -> None:
        self._topics = (
            f"{namespace}/skills/events",
            OBJECT_POSES_TOPIC,
            PLACE_POSES_TOPIC,
            "/rosout",
            truth_topic,
            contacts_topic,
        )
        self._object_poses: dict[str, ObjectPose] = {}
        self._initial_poses: dict[str, ObjectPose] = {}
        self._lying_since_ns: dict[str, int] = {}
        self._place_positions: dict[str, tuple[float, float]] = {}
        self._bay_positions: dict[int, tuple[float, float]] = {}
        self._root_pose = (SE3.identity().translation.tolist(), SE3.identity().rotation.tolist())
        self._fault_ns: int | None = None
        self._last_event_ns: int | None = None
        self._last_touch_ns = -_FAULT_SETTLING_NS
        self._has_events = self._at_rest = False
        self._end_cause = ""
        self._failure_causes: list[str] = []
        self._recovery_time: float | None = None
        self._max_event_gap = 0.0
        self._n_fallen = self._n_lying_touched = self._n_idle_phases = 0

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Return the topics of skill events, of true objects, places, odometry and contacts, and of the log."""
        handlers = (
            self._on_event, self._on_objects, self._on_places, self._on_log, self._on_truth, self._on_contacts,
        )  # fmt: skip
        return dict(zip(self._topics, handlers, strict=True))

    # -- ground truth --------------------------------------------------------------------------------------------------
    def _on_truth(self, message: Any, time_ns: int) -> None:
        if self._has_events:  # else it is not needed
            pose = pose_to_se3(message.pose.pose)
            self._root_pose = (pose.translation.tolist(), pose.rotation.tolist())

    def _on_log(self, message: Any, time_ns: int) -> None:
        if str(message.name).rpartition("/")[2] == "faults" and not str(message.msg).startswith("over: "):
            if self._fault_ns is None:
                self._failure_causes.clear()
            self._fault_ns, self._recovery_time = time_ns, None

    def _on_places(self, message: Any, time_ns: int) -> None:
        for transform in message.transforms:  # a removed place was still a target
            self._place_positions[str(transform.child_frame_id)] = (
                transform.transform.translation.x,
                transform.transform.translation.y,
            )

    def _on_objects(self, message: Any, time_ns: int) -> None:
        previous_poses, self._object_poses = self._object_poses, {}
        is_fault_recent = self._fault_ns is not None and time_ns - self._fault_ns <= _FAULT_SETTLING_NS
        for transform in message.transforms:
            pose = transform_to_se3(transform.transform)
            x, y, z = (float(value) for value in pose.translation)
            object_pose, name = (x, y, z, float(pose.rotation_matrix()[2, 2])), str(transform.child_frame_id)
            self._object_poses[name] = object_pose
            previous = previous_poses.get(name)
            if previous is None or (
                max(previous[2], z) < _FLOOR_HEIGHT and _horizontal_distance(previous, object_pose) > _MIN_DISPLACEMENT
            ):
                self._initial_poses[name] = object_pose
            if (
                object_pose[3] > _UPRIGHT_MIN_COSINE
                and previous is not None
                and _horizontal_distance(previous, object_pose) + abs(previous[2] - z) < _MOTIONLESS_TOLERANCE
            ):
                self._lying_since_ns.pop(name, None)  # an object that is carried has not been stood up
            elif _is_lying(object_pose) and name not in self._lying_since_ns:
                self._lying_since_ns[name] = time_ns
                self._n_fallen += not is_fault_recent

    def _on_contacts(self, message: Any, time_ns: int) -> None:
        for state in message.states if self._lying_since_ns else ():
            lying_since_ns = self._lying_since_ns.get(str(state.collision2_name).partition("::")[0], time_ns)
            if time_ns - lying_since_ns > _FAULT_SETTLING_NS:
                self._n_lying_touched += time_ns - self._last_touch_ns > _FAULT_SETTLING_NS
                self._last_touch_ns = time_ns

    # -- skills --------------------------------------------------------------------------------------------------------
    def _on_event(self, message: Any, time_ns: int) -> None:
        self._has_events = True
        self.finish(time_ns)
        self._last_event_ns = time_ns
        is_finished, is_top_level = message.event == "finished", not message.parent_id
        if message.skill == "release" and message.bay and message.has_position:
            self._bay_positions[int(message.bay)] = message.position.x, message.position.y
        is_handling_done = is_finished and message.success and message.skill in ("pick", "place", "stow", "unstow")
        if is_top_level and message.event in ("started", "phase", "finished"):
            self._n_idle_phases += message.phase == "idle"
            self._at_rest = is_finished or (message.phase == "idle" and self._n_idle_phases >= _MAX_IDLE_PHASES)
            self._end_cause = str(message.error_code) if is_finished else "rests" if self._at_rest else ""
        if is_handling_done:
            self._n_idle_phases = 0
        if self._fault_ns is not None and time_ns <= self._fault_ns:
            return
        if (
            message.error_code
            and message.event in ("recovered", "finished")
            and message.error_code not in self._failure_causes
        ):
            self._failure_causes.append(str(message.error_code))
        if is_handling_done and self._fault_ns is not None and self._recovery_time is None:
            self._recovery_time = (time_ns - self._fault_ns) * 1e-9

    def finish(self, time_ns: int) -> None:
        """Count the silence until now."""
        if self._last_event_ns is not None and not self._at_rest:
            self._max_event_gap = max(self._max_event_gap, (time_ns - self._last_event_ns) * 1e-9)

    # -- results -------------------------------------------------------------------------------------------------------
    def values(self) -> dict[str, MetricValue | None]:
        """Return the metrics; none of a robot without skills."""
        if not self._has_events:
            return {}
        states = [self._classify_object(name, pose) for name, pose in self._object_poses.items()]
        return {
            "objects_placed": states.count("placed"),
            "objects_safe": states.count("placed") + states.count("safe"),
            "objects_lying": states.count("lying"),
            "objects_held": states.count("held"),
            "objects_astray": states.count("astray"),
            "objects_fallen": self._n_fallen,
            "fallen_object_contacts": self._n_lying_touched,
            "recovery_time": self._recovery_time,
            "max_skill_silence": self._max_event_gap,
            "at_rest": self._at_rest,
            "end_cause": self._end_cause,
            "failure_causes": ", ".join(self._failure_causes),
        }

    def _classify_object(self, name: str, pose: ObjectPose) -> str:
        x, y, z, upright_cosine = pose
        if _is_lying(pose):
            return "lying"
        u, v, _ = (SE3(self._root_pose[1], self._root_pose[0]).inverse() @ np.array((x, y, z))).tolist()
        is_upright = upright_cosine > _UPRIGHT_MIN_COSINE
        if is_upright and any(math.dist((u, v), bay) <= _PLACE_TOLERANCE for bay in self._bay_positions.values()):
            return "safe"
        if z > _FLOOR_HEIGHT:
            return "held"
        if is_upright and any(math.dist((x, y), place) <= _PLACE_TOLERANCE for place in self._place_positions.values()):
            return "placed"
        return (
            "safe"
            if is_upright and _horizontal_distance(pose, self._initial_poses[name]) <= _UNMOVED_TOLERANCE
            else "astray"
        )


def _is_lying(pose: ObjectPose) -> bool:
    return pose[3] <= _LYING_MAX_COSINE and pose[2] <= _FLOOR_HEIGHT


def _horizontal_distance(first: ObjectPose, second: ObjectPose) -> float:
    return math.hypot(first[0] - second[0], first[1] - second[1])


_MAX_CAMERA_IMAGES = 6
"""Largest number of camera images: those before failed attempts, and the first ones."""
_CAMERA_TOPIC = "discs/image/compressed"


def pick_place_section(context: SectionContext) -> ReportSection | None:
    """Show picks and places of one robot; None if it attempted none.

    Raises:
        RecordingError: The recording is damaged.
    """
    metrics = context.collector(PickPlaceMetrics)
    if metrics is None or not metrics.attempts:
        return None
    rows = tuple(_attempt_row(number, attempt) for number, attempt in enumerate(metrics.attempts, 1))
    header = ("#", "end [s]", "skill", "duration [s]", "bay", "object", "error [mm]", "result", "cause")
    errors = [1e3 * attempt.error for attempt in metrics.attempts if attempt.is_done and attempt.error is not None]
    return ReportSection(
        "Picks and places",
        (_place_errors_figure(metrics.attempts),) if errors else (),
        _camera_images(context.recording, context.namespace, metrics.attempts),
        ReportTable(header, rows, frozenset(("#", "end [s]", "duration [s]", "bay", "error [mm]"))),
        "Errors are true ones: from the middle between the two discs to where the object stands 0.6 s after it was "
        "released. The images are those of the wrist camera with the detections drawn in.",
    )


def _attempt_row(number: int, attempt: PickPlaceAttempt) -> tuple[str, ...]:
    error = "" if attempt.error is None else f"{1e3 * attempt.error:.2f}"
    outcomes = (
        ("done", attempt.is_successful), ("failed", not attempt.is_done), ("nothing lifted", not attempt.is_lifted),
        ("fell over", not attempt.is_upright), ("off target", True),
    )  # fmt: skip
    outcome = next(text for text, is_true in outcomes if is_true)
    reason = f"{attempt.cause}: {attempt.text}" if attempt.cause and attempt.text else attempt.cause
    bay = str(attempt.bay) if attempt.bay else ""
    return (
        str(number),
        f"{attempt.time:.1f}",
        attempt.skill,
        f"{attempt.duration:.1f}",
        bay,
        attempt.object_name,
        error,
        outcome,
        reason,
    )


def _place_errors_figure(attempts: list[PickPlaceAttempt]) -> str:
    """Draw the errors of places in their order, and their distribution."""
    errors = np.array([1e3 * attempt.error for attempt in attempts if attempt.is_done and attempt.error is not None])
    with figure_style():
        figure, (axes, counts) = new_figure(8.6, 2.6, columns=2, use_common_axes=False)
        axes.plot(np.arange(1, len(errors) + 1), errors, "o", ms=4, color=COMMAND)
        axes.axhline(float(errors.mean()), color=GOOD, lw=1.0, label=f"mean {errors.mean():.2f} mm")
        p95 = float(np.percentile(errors, 95))
        axes.axhline(p95, color=BAD, lw=1.0, label=f"95 % below {p95:.2f} mm")
        axes.set_ylim(0.0, None)
        axes.set_xlabel("place")
        axes.set_ylabel("error [mm]")
        axes.legend(loc="upper left", bbox_to_anchor=(0.0, 1.16), ncols=2, handlelength=1.2)
        counts.hist(errors, bins=min(20, max(5, len(errors) // 2)), color=MUTED)
        counts.set_xlabel("error [mm]")
        counts.set_ylabel("places")
        return render_svg(figure, "Errors of the places in their order, and their distribution")


def _camera_images(
    recording: Recording, namespace: str, attempts: list[PickPlaceAttempt]
) -> tuple[tuple[str, str], ...]:
    """Return the last image before each failed attempt, and the first images."""
    topic = f"{namespace}/{_CAMERA_TOPIC}"
    if topic not in recording.topics:
        return ()
    times = [item.time_ns for item in recording.messages([topic])]
    failed = [round(attempt.time * 1e9) for attempt in attempts if not attempt.is_successful]
    before = [max((time for time in times if time <= end), default=None) for end in failed]
    selected_times = list(
        dict.fromkeys([time for time in before if time is not None][: _MAX_CAMERA_IMAGES // 2] + times)
    )[:_MAX_CAMERA_IMAGES]
    images = []
    for item in recording.messages([topic]):
        if item.time_ns in selected_times:
            suffix = ", before a failed attempt" if item.time_ns in before else ""
            images.append((_image_source(item.message), f"{item.time_ns * 1e-9:.1f} s{suffix}"))
    return tuple(images)


def _image_source(message: Any) -> str:
    return "data:image/jpeg;base64," + base64.b64encode(bytes(message.data)).decode()
