"""Metrics and report section of people beside a robot arm: separation, speed, contact force."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.evaluation.collector import (
    MessageHandler,
    Metric,
    MetricCollector,
    MetricValue,
    RobotContext,
    TimelineEvent,
)
from roboyard.evaluation.figures import (
    BAD,
    COMMAND,
    GOOD,
    MUTED,
    ODOMETRY,
    SCAN,
    TRUTH,
    figure_style,
    new_figure,
    render_svg,
)
from roboyard.evaluation.plugin import PageSection, RunPlugin
from roboyard.evaluation.section import ReportSection, ReportTable, SectionContext
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.kinematics import Chain
from roboyard.kinematics.chain_kernels import compute_all_frames
from roboyard.messages.convert import person_capsules_from_msg
from roboyard.people.skeleton import segment_name
from roboyard.record import Recording
from roboyard.safety.collaborative.capsule_distance import compute_capsule_distances, compute_capsule_distances_kernel
from roboyard.safety.collaborative.capsules import LinkCapsules, PersonCapsules
from roboyard.safety.collaborative.contact_limits import TRANSIENT_DURATION, contact_area, region_limits
from roboyard.safety.collaborative.hand_guiding import find_guiding_person
from roboyard.safety.collaborative.separation import (
    SeparationParameters,
    evaluate_separation,
    evaluate_separation_kernel,
    stopping_time,
)

LineSegments = list[list[list[float]]]
APPROACH_DISTANCE = 0.5
"""A smaller distance is an approach [m]."""
_APPROACH_HYSTERESIS = 0.2
"""An approach ends where the distance is larger by so much [m]."""
_MAX_CONTACT_GAP = 0.05
"""A force on a person is the robot's if its distance is smaller [m]."""
_MAX_SAMPLE_INTERVAL = 0.25
"""Largest time that one sample counts for [s]."""
_CONTACT_RELEASE_TIME = 0.2
"""Contacts with a shorter pause between them count as one [s]."""
_COMMAND_TIMEOUT = 0.1
"""A robot without a motion command for so long is commanded to be at rest [s]."""
_GUIDING_TIMEOUT_NS = 200_000_000
"""Hand guiding ends so long after the last message that enables it [ns]."""
BODY_GROUPS: Mapping[str, str] = {
    "head": "head", "neck": "head", "chest": "trunk", "abdomen": "trunk", "pelvis": "trunk", "upper_arm": "arms",
    "forearm": "arms", "hand": "hands", "thigh": "legs", "shank": "legs", "foot": "legs",
}  # fmt: skip
"""Group of each segment of a body."""


@lru_cache(maxsize=64)
def _body_groups(parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(BODY_GROUPS[segment_name(part)] for part in parts)


@dataclass(frozen=True, slots=True)
class PersonApproach:
    """The moment of the smallest distance while a person and the robot were near each other.

    Attributes:
        time: Of the moment [s].
        person: Name of the person.
        body_part: Part of the person's body.
        link: Link of the robot.
        distance: Between them [m]; 0 or less where they touched.
        robot_speed: Of the link [m/s].
        approach_speed: Speed of the body part towards the link [m/s].
        protective_distance: Protective separation distance [m].
        robot_segments: (n) axes of the capsules of the robot's links, two ends each, in the base of its arm [m].
        body_segments: (b) axes of the capsules of the body, likewise.
        force: Largest force during the whole approach [N].
    """

    time: float
    person: str
    body_part: str
    link: str
    distance: float
    robot_speed: float
    approach_speed: float
    protective_distance: float
    robot_segments: LineSegments
    body_segments: LineSegments
    force: float = 0.0


@dataclass(slots=True)
class _PersonContact:
    """A contact with one body part: start, last time [ns], whether the robot approached, and exceeded a limit."""

    start_ns: int
    last_ns: int
    is_robot_approaching: bool
    is_limit_exceeded: bool = False


class CollaborativeSafetyMetrics(MetricCollector):
    """Evaluates an arm beside people by the true bodies, as often as they are published, and the true state of the arm.

    The protective separation distance is computed with the parameters that the safety node publishes, or with the
    default ones where there is no such node.

    Args:
        namespace: Of the robot, "" or "/name".
        arm_truth: The ground truth of the arm; without it only protective stops are counted.
    """

    metrics = (
        Metric(
            "ssm_violation_s",
            "s",
            "Time in which a link of the arm was faster than 20 mm/s and nearer to a person than the protective "
            "separation distance ([computed like the safety node](../explanation/speed-and-separation.md)); without "
            "hand-overs, without the person who guides the arm by hand, and without an arm that is commanded to stand"
            " still and pushed; no value, as of the other metrics of people, without people beside an arm.",
            "lower",
        ),
        Metric("handover_s", "s", "Duration of hand-overs."),
        Metric("protective_stops", "count", "Protective stops of the safety node.", "lower"),
        Metric("max_force_n", "N", "Largest contact force between the arm and a person.", "lower"),
        Metric("max_pressure", "N/m²", "Largest contact force divided by the area of contact.", "lower"),
        Metric(
            "limit_ratio",
            "",
            "Largest force or pressure divided by the limit of the body region, in contacts in which the arm moved "
            "towards the person by itself.",
            "lower",
        ),
        Metric(
            "limit_exceeded",
            "count",
            "Contacts in which the arm moved towards the person by itself and exceeded the region's limit of pressure"
            " or of force (of an impact; after 0.5 s of a clamping).",
            "lower",
        ),
        Metric("person_touches", "count", "Contacts between the arm and people.", "lower"),
        Metric("approaches", "count", "How often a person came nearer than 0.5 m."),
        Metric("min_separation_head", "m", "Least distance of the arm from heads and necks of people.", "higher"),
        Metric("min_separation_trunk", "m", "Least distance of the arm from trunks of people.", "higher"),
        Metric("min_separation_arms", "m", "Least distance of the arm from arms of people.", "higher"),
        Metric("min_separation_hands", "m", "Least distance of the arm from hands of people.", "higher"),
        Metric("min_separation_legs", "m", "Least distance of the arm from legs of people.", "higher"),
    )
    overrides = ("min_separation",)
    position = 120

    @classmethod
    def create(cls, robot: RobotContext) -> Self:
        """Return the collector of any robot."""
        return cls(robot.namespace, robot.resource("arm_truth"))

    def __init__(self, namespace: str, arm_truth: ArmGroundTruth | None) -> None:
        self._namespace, self._arm_truth = namespace, arm_truth
        self._separation_parameters, self._joint_deceleration = SeparationParameters(), np.zeros(0)
        self._is_handover = self._was_handover = False
        self._hand_guiding_ns = -_GUIDING_TIMEOUT_NS - 1
        self._distance_by_person: dict[str, float] = {}
        self._previous_bodies: dict[str, tuple[int, Array]] = {}
        self._min_separation: dict[str, float] = {}
        self._separation_over_time = BinnedMinimum()
        self._violation_time = self._handover_time = 0.0
        self._violation_until_ns: dict[str, int] = {}
        self._last_sample_ns = 0
        self._protective_stops: int | None = None
        self._contacts: dict[tuple[str, str], _PersonContact] = {}
        self._max_force = self._max_pressure = self._max_limit_ratio = 0.0
        self._n_contacts = self._n_limits_exceeded = 0
        self._approaching_pairs: dict[str, NDArray[np.bool_]] = {}
        self._motion_command_ns: int | None = None
        self._current_approaches: dict[str, PersonApproach] = {}
        self.approaches: list[PersonApproach] = []

    def save_state(self) -> dict[str, Any]:
        """Return everything but the arm, as plain data."""
        attributes = {key: value for key, value in vars(self).items() if key != "_arm_truth"}
        rows = {
            "_separation_parameters": asdict(self._separation_parameters),
            "_contacts": [(key, asdict(contact)) for key, contact in self._contacts.items()],
            "_current_approaches": {name: asdict(approach) for name, approach in self._current_approaches.items()},
            "approaches": [asdict(approach) for approach in self.approaches],
            "_separation_over_time": asdict(self._separation_over_time),
        }
        return copy.deepcopy(attributes | rows)

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        attributes = copy.deepcopy(state)
        self._separation_parameters = SeparationParameters(**attributes.pop("_separation_parameters"))
        self._contacts = {tuple(key): _PersonContact(**contact) for key, contact in attributes.pop("_contacts")}
        self._current_approaches = {
            name: PersonApproach(**approach) for name, approach in attributes.pop("_current_approaches").items()
        }
        self.approaches = [PersonApproach(**approach) for approach in attributes.pop("approaches")]
        self._separation_over_time = BinnedMinimum(**attributes.pop("_separation_over_time"))
        vars(self).update(attributes)

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Return the topics of the safety node, of hand-overs and of motion commands."""
        return {
            f"{self._namespace}/collaborative_safety/state": self._on_safety_state,
            f"{self._namespace}/handover": self._on_handover,
            f"{self._namespace}/arm/controller_state": self._on_controller,
            f"{self._namespace}/servo/desired_joint_velocity": self._on_servo_target,
            f"{self._namespace}/hand_guiding/enable": self._on_hand_guiding,
        }

    def on_person_added(self, name: str) -> Mapping[str, MessageHandler]:
        """Return the topic of the person's true body."""
        if self._arm_truth is not None and self._arm_truth.joint_names():
            expect_kernels(evaluate_separation_kernel, compute_capsule_distances_kernel, compute_all_frames)
        return {f"/truth/{name}/body": self.on_body}

    def _on_controller(self, message: Any, time_ns: int) -> None:
        if any(message.reference.velocities):
            self._motion_command_ns = time_ns

    def _on_servo_target(self, message: Any, time_ns: int) -> None:
        if any(message.velocities):
            self._motion_command_ns = time_ns

    def _on_hand_guiding(self, message: Any, time_ns: int) -> None:
        self._hand_guiding_ns = time_ns if message.data else -_GUIDING_TIMEOUT_NS - 1

    def _on_handover(self, message: Any, time_ns: int) -> None:
        self._is_handover = bool(message.data)

    def _on_safety_state(self, message: Any, time_ns: int) -> None:
        self._protective_stops = int(message.stop_count)
        # the ground truth has every body part, so that nothing can intrude unseen
        self._separation_parameters = SeparationParameters(
            reaction_time=message.reaction_time, person_speed=message.person_speed
        )
        self._joint_deceleration = np.array(message.deceleration, dtype=np.float64)

    # -- people --------------------------------------------------------------------------------------------------------
    def on_body(self, message: Any, time_ns: int) -> None:
        """Evaluate one person, a roboyard_msgs/PersonBody, with the present state of the robot."""
        motion = None if self._arm_truth is None else self._arm_truth.state()
        if motion is None:
            return
        chain, capsules, T_base_world, q, velocity = motion
        parts, ends, radii = person_capsules_from_msg(message)
        R, t = T_base_world.rotation_matrix(), np.asarray(T_base_world.xyz)
        segments, name = ends @ R.T + t, str(message.name)
        previous_ns, previous_segments = self._previous_bodies.get(name, (time_ns, segments))
        elapsed = (time_ns - previous_ns) * 1e-9
        segment_velocity = (segments - previous_segments) / elapsed if elapsed > 0.0 else np.zeros_like(segments)
        self._previous_bodies[name] = (time_ns, segments)
        body = PersonCapsules((name,) * len(parts), parts, segments, radii, segment_velocity)
        if self._separation_parameters.person_speed == 0.0:
            body = body.with_pelvis_velocity()
        pair_distances = compute_capsule_distances(chain, capsules, q[None], velocity[None], body)
        if len(self._joint_deceleration) != len(q):
            self._joint_deceleration = chain.max_acceleration
        separation = evaluate_separation(
            pair_distances, self._separation_parameters, float(stopping_time(velocity, self._joint_deceleration))
        )
        distance, approach_speed, speed, protective_distance = (
            pair_distances.distance[0],
            pair_distances.person_approach_speed[0],
            pair_distances.max_speed[0],
            separation.protective_distance,
        )
        self._update_separation(parts, separation.min_distance, time_ns)
        is_approaching = separation.is_approaching
        was_approaching = self._approaching_pairs.get(name, is_approaching)
        self._approaching_pairs[name] = is_approaching
        is_robot_approaching = (
            is_approaching | was_approaching if was_approaching.shape == is_approaching.shape else is_approaching
        )
        force = self._measure_contact_forces(
            message, time_ns, distance, is_robot_approaching & (not self._is_commanded_to_stop(time_ns)), capsules
        )
        i, j = separation.nearest_pair
        self._distance_by_person[name] = float(distance[i, j])
        is_hand_guiding = (
            time_ns - self._hand_guiding_ns <= _GUIDING_TIMEOUT_NS
            and find_guiding_person(self._distance_by_person) == name
        )
        self._accumulate_violation_time(
            name, time_ns, separation.is_violated and not is_hand_guiding and not self._is_pushed(time_ns)
        )
        nearest = self._current_approaches.get(name)
        if float(distance[i, j]) < (APPROACH_DISTANCE if nearest is None else nearest.distance):
            frames = chain.frames(q)[capsules.frame_indices]
            robot_segments = np.einsum("nij,nkj->nki", frames[:, :3, :3], capsules.ends) + frames[:, None, :3, 3]
            self._current_approaches[name] = PersonApproach(
                time_ns * 1e-9,
                name,
                parts[j],
                capsules.links[i],
                float(distance[i, j]),
                float(speed[i]),
                float(approach_speed[i, j]),
                float(protective_distance[i, j]),
                robot_segments.round(3).tolist(),
                segments.round(3).tolist(),
                max(force, 0.0 if nearest is None else nearest.force),
            )
        elif nearest is not None and float(distance[i, j]) > APPROACH_DISTANCE + _APPROACH_HYSTERESIS:
            self.approaches.append(self._current_approaches.pop(name))
        elif nearest is not None and force > nearest.force:
            self._current_approaches[name] = replace(nearest, force=force)

    def _is_pushed(self, time_ns: int) -> bool:
        """Return whether a person touches the arm while it is commanded to be at rest."""
        is_touched = any(
            time_ns - contact.last_ns <= _CONTACT_RELEASE_TIME * 1e9 for contact in self._contacts.values()
        )
        return is_touched and self._is_commanded_to_stop(time_ns)

    def _is_commanded_to_stop(self, time_ns: int) -> bool:
        return self._motion_command_ns is not None and time_ns - self._motion_command_ns > _COMMAND_TIMEOUT * 1e9

    def _update_separation(self, parts: tuple[str, ...], distances: Array, time_ns: int) -> None:
        group_distances: dict[str, float] = {}
        for group, distance in zip(_body_groups(parts), distances.tolist(), strict=True):
            group_distances[group] = min(group_distances.get(group, math.inf), max(distance, 0.0))
        self._separation_over_time.add(time_ns * 1e-9, group_distances)
        for group, distance in group_distances.items():
            self._min_separation[group] = min(self._min_separation.get(group, math.inf), distance)

    def _accumulate_violation_time(self, person: str, time_ns: int, is_violation: bool) -> None:
        """Add the time since the last sample of any person as far as a person was too near to the moving robot."""
        start_ns = max(self._last_sample_ns, time_ns - round(_MAX_SAMPLE_INTERVAL * 1e9))
        if time_ns > start_ns:
            violation_until_ns = max(self._violation_until_ns.values(), default=0)
            if self._was_handover:
                self._handover_time += (time_ns - start_ns) * 1e-9
            else:
                self._violation_time += max(min(violation_until_ns, time_ns) - start_ns, 0) * 1e-9
        self._last_sample_ns = max(self._last_sample_ns, time_ns)
        self._was_handover = self._is_handover  # holds until the next sample, as the robot's motion does
        self._violation_until_ns[person] = time_ns + round(_MAX_SAMPLE_INTERVAL * 1e9) if is_violation else 0

    def _measure_contact_forces(
        self,
        message: Any,
        time_ns: int,
        distance: Array,
        is_robot_approaching: NDArray[np.bool_],
        capsules: LinkCapsules,
    ) -> float:
        """Count and evaluate the contact forces since the last message, and return the largest [N].

        Args:
            message: The body.
            time_ns: Of the message [ns].
            distance: (n, b) between links and body parts [m].
            is_robot_approaching: (n, b) whether the link moved towards the body part by itself.
            capsules: Of the robot's links.
        """
        max_force = 0.0
        if not any(message.contact_regions):
            return max_force
        for j, (force, region) in enumerate(zip(message.peak_forces, message.contact_regions, strict=True)):
            magnitude = math.sqrt(force.x**2 + force.y**2 + force.z**2)
            i = int(np.argmin(distance[:, j]))
            if magnitude <= 0.0 or not region or distance[i, j] > _MAX_CONTACT_GAP:
                continue
            is_approaching = bool(is_robot_approaching[i, j])
            key = (str(message.name), str(message.parts[j]))
            contact = self._contacts.get(key)
            if contact is None or time_ns - contact.last_ns > _CONTACT_RELEASE_TIME * 1e9:
                contact = self._contacts[key] = _PersonContact(time_ns, time_ns, is_approaching)
                self._n_contacts += 1
            contact.last_ns, contact.is_robot_approaching = time_ns, contact.is_robot_approaching or is_approaching
            limits, pressure = region_limits(region), magnitude / float(contact_area(capsules.radii[i]))
            force_limit = (
                limits.max_impact_force
                if (time_ns - contact.start_ns) * 1e-9 <= TRANSIENT_DURATION
                else limits.max_clamping_force
            )
            limit_ratio = max(magnitude / force_limit, pressure / limits.max_pressure)
            if contact.is_robot_approaching:
                self._max_limit_ratio = max(self._max_limit_ratio, limit_ratio)
            if contact.is_robot_approaching and not contact.is_limit_exceeded and limit_ratio > 1.0:
                contact.is_limit_exceeded = True
                self._n_limits_exceeded += 1
            self._max_force, self._max_pressure = max(self._max_force, magnitude), max(self._max_pressure, pressure)
            max_force = max(max_force, magnitude)
        return max_force

    def finish(self, time_ns: int) -> None:
        """Count the approaches that last until the end."""
        self.approaches += self._current_approaches.values()
        self._current_approaches = {}

    def separation_over_time(self) -> dict[str, Any] | None:
        """Return the least distance to each body group in intervals of `span` [s]; None without people."""
        if not self._min_separation:
            return None
        return {"span": self._separation_over_time.bin_duration, "separation": self._separation_over_time.to_json()}

    def details(self) -> dict[str, Any]:
        """Return the approaches, and the separation over time under `people`, where there were any."""
        separation = self.separation_over_time()
        approaches = {"approaches": [asdict(approach) for approach in self.approaches]} if self.approaches else {}
        return approaches | ({} if separation is None else {"people": separation})

    def events(self) -> Sequence[TimelineEvent]:
        """Return the approaches that were nearer than the protective separation distance, at their nearest moments."""
        return [
            TimelineEvent(
                approach.time,
                "person_approach",
                f"{approach.body_part} of {approach.person} came within {max(approach.distance, 0.0):.3f} m of "
                f"{approach.link}; the protective distance was {approach.protective_distance:.3f} m",
            )
            for approach in (*self.approaches, *self._current_approaches.values())
            if approach.distance < approach.protective_distance
        ]

    # -- results -------------------------------------------------------------------------------------------------------
    def values(self) -> dict[str, MetricValue | None]:
        """Return the metrics; without people only the count of protective stops, where there is a safety node."""
        parts = {f"min_separation_{group}": distance for group, distance in self._min_separation.items()}
        if not self._min_separation:
            return {"protective_stops": self._protective_stops}
        return {
            "min_separation": min(self._min_separation.values()),
            "ssm_violation_s": self._violation_time,
            "handover_s": self._handover_time,
            "protective_stops": self._protective_stops or 0,
            "max_force_n": self._max_force,
            "max_pressure": self._max_pressure,
            "limit_ratio": self._max_limit_ratio,
            "limit_exceeded": self._n_limits_exceeded,
            "person_touches": self._n_contacts,
            "approaches": len(self.approaches) + len(self._current_approaches),
            **parts,
        }


MAX_BINS = 300
"""Largest number of intervals; when they are full, each two become one."""


@dataclass(slots=True)
class BinnedMinimum:
    """Minima of several values in intervals of equal length.

    Attributes:
        bin_duration: Length of an interval [s].
        minima: By name of the value, its minimum in each interval; infinite without a sample.
    """

    bin_duration: float = 0.5
    minima: dict[str, list[float]] = field(default_factory=dict)

    def add(self, time: float, values: Mapping[str, float]) -> None:
        """Take values of a moment [s]."""
        while time >= MAX_BINS * self.bin_duration:
            self.bin_duration *= 2.0
            self.minima = {
                name: [min(row[k : k + 2]) for k in range(0, len(row), 2)] for name, row in self.minima.items()
            }
        index = int(time / self.bin_duration)
        for name, value in values.items():
            row = self.minima.setdefault(name, [])
            row += [math.inf] * (index + 1 - len(row))
            row[index] = min(row[index], value)

    def to_json(self) -> dict[str, list[float | None]]:
        """Return the minima by name, to a millimeter; None without a sample."""
        return {
            name: [round(value, 3) if math.isfinite(value) else None for value in row]
            for name, row in self.minima.items()
        }


_WIDTH = 8.6
_MAX_DRAWN_APPROACHES = 8
"""Largest number of approaches that are drawn: those of the smallest distance."""
_BODY_GROUP_COLORS = {"head": BAD, "trunk": TRUTH, "arms": COMMAND, "hands": GOOD, "legs": ODOMETRY}
_MAX_DRAWN_DISTANCE = 3.0
"""Largest distance of the axes [m]."""


def collaborative_safety_section(context: SectionContext) -> ReportSection | None:
    """Show separation, safety node and approaches; None without people near the arm.  Raises RecordingError."""
    separation = context.document.get("people")
    if not separation:
        return None
    # where people work, the section about work shows the approaches
    recorded_approaches = () if "/work" in context.recording.topics else context.document.get("approaches", ())
    approaches = sorted(recorded_approaches, key=lambda approach: float(approach["distance"]))
    figures = [separation_figure(separation)]
    safety_states = read_safety_states(context.recording, context.namespace)
    if len(safety_states):
        figures.append(safety_state_figure(safety_states))
    if approaches:
        figures.append(approaches_figure(approaches[:_MAX_DRAWN_APPROACHES]))
    header = (
        "time [s]",
        "person",
        "body part",
        "link",
        "distance [m]",
        "Sp [m]",
        "link [m/s]",
        "approach [m/s]",
        "force [N]",
    )
    rows = tuple(
        _approach_row(approach) for approach in sorted(approaches, key=lambda approach: float(approach["time"]))
    )
    return ReportSection(
        "People beside the arm",
        tuple(figures),
        table=ReportTable(header, rows, frozenset(header) - {"person", "body part", "link"}) if rows else None,
        note="Distances are true ones between capsules around links and body parts. Sp is the protective separation "
        "distance. Each row is the moment of the smallest distance of one approach.",
    )


def _approach_row(approach: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        f"{approach['time']:.2f}",
        str(approach["person"]),
        str(approach["body_part"]).replace("_", " "),
        str(approach["link"]),
        f"{approach['distance']:.3f}",
        f"{approach['protective_distance']:.2f}",
        f"{approach['robot_speed']:.3f}",
        f"{approach['approach_speed']:.2f}",
        f"{approach['force']:.0f}" if approach["force"] else "",
    )


def read_safety_states(recording: Recording, namespace: str) -> Array:
    """Read states (k, 5) of a safety node: time [s], distance and Sp of the tightest pair [m], scaling, stopped."""
    topic = f"{namespace}/collaborative_safety/state"
    items = recording.messages([topic]) if topic in recording.topics else []
    rows = [
        (item.time_ns * 1e-9, state.min_separation, state.protective_distance, state.speed_scaling, state.is_stopped)
        for item in items
        for state in (item.message,)
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, 5)


def separation_figure(separation: Mapping[str, Any]) -> str:
    """Draw the least distance to each body group over time."""
    with figure_style():
        figure, axes = new_figure(_WIDTH, 2.2)
        for name, row in separation["separation"].items():
            values = np.array([np.nan if value is None else min(value, _MAX_DRAWN_DISTANCE) for value in row])
            axes.plot(
                np.arange(len(values)) * separation["span"],
                values,
                color=_BODY_GROUP_COLORS.get(name, MUTED),
                lw=1.2,
                label=name,
            )
        axes.set_ylim(0.0, None)
        axes.set_ylabel("separation [m]")
        axes.set_xlabel("simulated time [s]")
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=5, handlelength=1.2)
        return render_svg(figure, "Least distance between the arm and body parts over time")


def safety_state_figure(states: Array) -> str:
    """Draw distance and Sp of the tightest pair above and the speed scaling below; stops are shaded."""
    with figure_style():
        figure, (distance_axes, scaling_axes) = new_figure(_WIDTH, 3.0, rows=2)
        time = states[:, 0]
        distance_axes.plot(time, np.minimum(states[:, 1], _MAX_DRAWN_DISTANCE), color=TRUTH, lw=1.2, label="separation")
        distance_axes.plot(
            time, np.minimum(states[:, 2], _MAX_DRAWN_DISTANCE), color=BAD, lw=1.2, label="Sp at the current speeds"
        )
        scaling_axes.plot(time, states[:, 3], color=COMMAND, lw=1.2)
        ends = np.append(time[1:], time[-1])
        for axes in (distance_axes, scaling_axes):
            for start, end in zip(time[states[:, 4] > 0.0], ends[states[:, 4] > 0.0], strict=True):
                axes.axvspan(start, end, color=BAD, alpha=0.12, lw=0)
        distance_axes.set_ylabel("tightest pair [m]")
        distance_axes.set_ylim(0.0, None)
        scaling_axes.set_ylabel("speed scaling")
        scaling_axes.set_ylim(-0.05, 1.05)
        scaling_axes.set_xlabel("simulated time [s]; shaded: protective stops")
        distance_axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, handlelength=1.2)
        return render_svg(figure, "Distance and protective distance by the safety node, and its speed scaling")


def approaches_figure(approaches: Sequence[Mapping[str, Any]]) -> str:
    """Draw the moment of the smallest distance of each approach from the side."""
    with figure_style():
        columns = min(len(approaches), 4)
        rows = -(-len(approaches) // columns)
        figure, panels = new_figure(_WIDTH, 2.6 * rows, rows=rows, columns=columns)
        for axes in np.ravel(panels)[len(approaches) :]:
            axes.set_visible(False)
        for axes, approach in zip(np.ravel(panels), approaches, strict=False):
            _draw_approach(axes, approach)
        return render_svg(figure, "Moments of the smallest distance between people and arm, from the side")


def _draw_approach(axes: Any, approach: Mapping[str, Any]) -> None:
    """Draw it in the vertical plane through the robot's base and the person."""
    body, robot = np.array(approach["body_segments"]), np.array(approach["robot_segments"])
    body_center = body.reshape(-1, 3)[:, :2].mean(axis=0)
    direction = body_center / max(float(np.linalg.norm(body_center)), 1e-6)
    for lines, color, width in ((body, SCAN, 5.0), (robot, TRUTH, 4.0)):
        for line in lines:
            axes.plot(line[:, :2] @ direction, line[:, 2], color=color, lw=width, solid_capstyle="round", alpha=0.8)
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlim(-0.6, 1.6)
    axes.set_ylim(min(-0.05, float(body[..., 2].min())), 2.0)
    axes.set_title(f"{approach['time']:.1f} s, {approach['person']}: {approach['distance']:.2f} m", fontsize=8.5)
    axes.tick_params(labelsize=7.5)


class ArmState(NamedTuple):
    """The true state of an arm.

    Attributes:
        chain: Of its first joint group.
        capsules: Around its links.
        T_base_world: Transform from the world to the base of the chain.
        q: (n,) joint positions [rad or m].
        velocity: (n,) joint velocities [rad/s or m/s].
    """

    chain: Chain
    capsules: LinkCapsules
    T_base_world: SE3
    q: NDArray[np.float64]
    velocity: NDArray[np.float64]


class ArmGroundTruth(Protocol):
    """The ground truth of a robot's arm: the resource `arm_truth` of robots with one."""

    def tip_poses(self, group: str) -> tuple[SE3, SE3]:
        """Return the true poses of the robot's root link and of the tip of a joint group in the world."""

    def joint_limits(self, joints: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return limits (n,) of velocity [rad/s or m/s] and acceleration [rad/s² or m/s²] of joints."""

    def root_link(self) -> str:
        """Return the name of the robot's root link."""

    def joint_names(self) -> tuple[str, ...]:
        """Return the names of the joints of its first group; none where it has no groups."""

    def state(self) -> ArmState | None:
        """Return its state of this moment; None where it has no groups."""


PLUGIN = RunPlugin("safety", (CollaborativeSafetyMetrics,), (PageSection(collaborative_safety_section, 40),))
