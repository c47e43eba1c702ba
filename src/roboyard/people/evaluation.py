"""Metrics and report section of the work that robots do beside people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from roboyard.evaluation.collector import MessageHandler, Metric, MetricCollector, MetricValue, RobotContext
from roboyard.evaluation.figures import BAD, COMMAND, GOOD, MUTED, TRUTH, figure_style, new_figure, render_svg
from roboyard.evaluation.plugin import PageSection, RunPlugin
from roboyard.evaluation.section import ReportSection, ReportTable, SectionContext
from roboyard.evaluation.topics import OBJECT_POSES_TOPIC

CYCLE_TASK = "cycle"
"""The task of a robot's work cycles."""
WORK_PLACE_TOLERANCE = 0.03
"""An object that was brought to its target is truly no farther from it [m]."""
MIN_IDLE_TIME = 0.5
"""A shorter rest is no idle time: the actor plans or changes tasks [s]."""
_SETTLING_TIME_NS = 400_000_000
_MIN_MOTION_SPEED = 0.01
"""A joint with a larger speed moves [rad/s or m/s]."""
_IDLE_STATES = ("idle", "setup")
Intervals = list[list[float]]
"""Starts and ends in order [s]."""
_WIDTH = 8.6
_MAX_SCENE_IMAGES = 24
"""Largest number of approaches that are rendered: those of the smallest distance."""


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A piece of work.

    Attributes:
        actor: Who does it.
        task: What kind of work.
        start_time: When it started [s].
        end_time: When it ended; None while it is under way [s].
        is_done: Whether its actor reported it as done.
        is_object_in_place: Whether the object truly stood at its target, where a target was given.
        object_name: The object's name, or empty.
        target_position: Where the object was to be, or empty [m].
    """

    actor: str
    task: str
    start_time: float
    end_time: float | None = None
    is_done: bool = False
    is_object_in_place: bool = True
    object_name: str = ""
    target_position: tuple[float, ...] = ()

    @property
    def is_successful(self) -> bool:
        """Whether it was reported as done, and the ground truth agrees."""
        return self.end_time is not None and self.is_done and self.is_object_in_place


class WorkMetrics(MetricCollector):
    """Judges work by its events (roboyard_msgs/WorkEvent), true object positions, and who moved when.

    Rests shorter than 0.5 s are no idle time.

    Args:
        namespace: Of the robot, "" or "/name".
    """

    metrics = (
        Metric(
            "cycles",
            "count",
            "Items of the robot's work (task `cycle` of [/work](../systems/cell.md#what-is-measured)) that were done,"
            " with the part truly at its target; no value, as of the next eight, without work.",
            "higher",
        ),
        Metric("cycle_time", "s", "Mean duration of a cycle; no value without cycles.", "lower"),
        Metric("throughput", "1/h", "Rate of cycles.", "higher"),
        Metric("work_ended", "count", "Items of the work of robots and people that ended."),
        Metric("work_done", "ratio", "Share of these that was done, with the object truly at its target.", "higher"),
        Metric(
            "work_incorrect",
            "count",
            "Items that were reported as done though the object was more than 3 cm from its target.",
            "lower",
        ),
        Metric("robot_idle", "ratio", "Share of the time in which no joint of the robot moved.", "lower"),
        Metric(
            "human_idle",
            "ratio",
            "Share of the time in which people were idle, in the mean; no value, as of the next, without people.",
            "lower",
        ),
        Metric("concurrent_activity", "ratio", "Share of the time in which robot and people were active.", "higher"),
    )
    position = 200

    @classmethod
    def create(cls, robot: RobotContext) -> Self:
        """Return the collector of any robot."""
        return cls(robot.namespace)

    def __init__(self, namespace: str) -> None:
        self._topics = ("/work", f"{namespace}/joint_states")
        self.items: list[WorkItem] = []
        self.active_intervals: dict[str, Intervals] = {"": []}
        self.end_time = 0.0
        self._object_positions: dict[str, tuple[float, float, float]] = {}
        self._pending_checks: list[tuple[int, int]] = []
        self._person_states: dict[str, str] = {}

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Return the topics of work events, joint states and true object poses."""
        work, joints = self._topics
        return {work: self._on_work, joints: self._on_joints, OBJECT_POSES_TOPIC: self._on_objects}

    def on_person_added(self, name: str) -> Mapping[str, MessageHandler]:
        """Return the topic of the person's state."""
        self.active_intervals[name] = []
        return {f"/{name}/state": lambda message, time_ns: self._on_person(name, message, time_ns)}

    # -- activity ------------------------------------------------------------------------------------------------------
    def _on_joints(self, message: Any, time_ns: int) -> None:
        if len(message.velocity) and float(abs(message.velocity).max()) > _MIN_MOTION_SPEED:
            _extend_intervals(self.active_intervals[""], time_ns * 1e-9, time_ns * 1e-9)

    def _on_person(self, name: str, message: Any, time_ns: int) -> None:
        time = time_ns * 1e-9
        if self._person_states.get(name, "idle") not in _IDLE_STATES:
            _extend_intervals(self.active_intervals[name], time, time)
        if message.state not in _IDLE_STATES:
            _extend_intervals(self.active_intervals[name], time, time)
        self._person_states[name] = str(message.state)

    # -- work ----------------------------------------------------------------------------------------------------------
    def _on_work(self, message: Any, time_ns: int) -> None:
        time, actor, task = time_ns * 1e-9, str(message.actor), str(message.task)
        if message.state == "started":
            self.items.append(WorkItem(actor, task, time))
            return
        open_items = [
            k for k, item in enumerate(self.items) if (item.actor, item.task, item.end_time) == (actor, task, None)
        ]
        if not open_items:
            return
        index, is_done, object_name = open_items[-1], message.state == "done", str(message.object)
        goal_point = message.goal_points[0] if is_done and object_name and len(message.goal_points) else None
        target_position = () if goal_point is None else (float(goal_point.x), float(goal_point.y), float(goal_point.z))
        self.items[index] = replace(
            self.items[index],
            end_time=time,
            is_done=is_done,
            is_object_in_place=not target_position,
            object_name=object_name,
            target_position=target_position,
        )
        if target_position:
            self._pending_checks.append((time_ns, index))

    def _on_objects(self, message: Any, time_ns: int) -> None:
        self._check_placed_objects(time_ns)
        translations = ((transform.child_frame_id, transform.transform.translation) for transform in message.transforms)
        self._object_positions = {
            str(name): (float(position.x), float(position.y), float(position.z)) for name, position in translations
        }

    def _check_placed_objects(self, time_ns: int) -> None:
        """Compare positions of objects that were released long enough ago with their targets."""
        while self._pending_checks and self._pending_checks[0][0] + _SETTLING_TIME_NS <= time_ns:
            index = self._pending_checks.pop(0)[1]
            item = self.items[index]
            position = self._object_positions.get(item.object_name)
            is_in_place = position is not None and math.dist(position, item.target_position) <= WORK_PLACE_TOLERANCE
            self.items[index] = replace(item, is_object_in_place=is_in_place)

    def finish(self, time_ns: int) -> None:
        """Check the objects that were released last, and note the end of the run [ns]."""
        self._check_placed_objects(time_ns + _SETTLING_TIME_NS)
        self.end_time = time_ns * 1e-9

    def values(self) -> dict[str, MetricValue | None]:
        """Return the metrics; none without work."""
        if not self.items:
            return {}
        cycles = [item for item in self.items if item.task == CYCLE_TASK and item.is_successful]
        finished_items = [item for item in self.items if item.end_time is not None]
        robot_active = self.active_intervals[""]
        person_active = [intervals for name, intervals in self.active_intervals.items() if name]
        end = self.end_time or max(item.end_time or item.start_time for item in self.items)
        anyone_active = merge_intervals([interval for intervals in person_active for interval in intervals])
        return {
            "cycles": len(cycles),
            "cycle_time": sum((item.end_time or 0.0) - item.start_time for item in cycles) / len(cycles)
            if cycles
            else None,
            "throughput": 3600.0 * len(cycles) / end if end > 0.0 else None,
            "work_ended": len(finished_items),
            "work_done": sum(item.is_successful for item in finished_items) / len(finished_items)
            if finished_items
            else None,
            "work_incorrect": sum(item.is_done and not item.is_object_in_place for item in finished_items),
            "robot_idle": 1.0 - total_duration(robot_active) / end if end > 0.0 else None,
            "human_idle": 1.0 - sum(map(total_duration, person_active)) / (end * len(person_active))
            if person_active and end > 0.0
            else None,
            "concurrent_activity": total_duration(intersect_intervals(robot_active, anyone_active)) / end
            if person_active and end > 0.0
            else None,
        }


def _extend_intervals(intervals: Intervals, start: float, end: float) -> None:
    """Add an interval that does not start before the others; with a short gap it extends the last one."""
    if intervals and start - intervals[-1][1] < MIN_IDLE_TIME:
        intervals[-1][1] = max(intervals[-1][1], end)
    else:
        intervals.append([start, end])


def merge_intervals(intervals: Sequence[Sequence[float]]) -> Intervals:
    """Return the union of intervals, in order."""
    merged: Intervals = []
    for start, end in sorted((interval[0], interval[1]) for interval in intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def intersect_intervals(first: Intervals, second: Intervals) -> Intervals:
    """Return the intersection of two lists of intervals, each in order and without overlaps."""
    common, i, j = [], 0, 0
    while i < len(first) and j < len(second):
        start, end = max(first[i][0], second[j][0]), min(first[i][1], second[j][1])
        if start < end:
            common.append([start, end])
        if first[i][1] < second[j][1]:
            i += 1
        else:
            j += 1
    return common


def total_duration(intervals: Intervals) -> float:
    """Return the sum of the intervals' lengths [s]."""
    return sum(end - start for start, end in intervals)


def work_section(context: SectionContext) -> ReportSection | None:
    """Show the work of one robot and of people; None without work.

    Raises:
        RecordingError: The recording is damaged.
    """
    work = context.collector(WorkMetrics)
    if work is None or not work.items:
        return None
    people = context.people
    approaches = sorted(context.document.get("approaches", []), key=lambda item: item["distance"])
    figures = [_activity_figure(work, context.trace.robot, people)]
    if any(item.task == CYCLE_TASK and item.end_time is not None for item in work.items):
        figures.append(_cycle_times_figure(work))
    return ReportSection(
        "Work of robot and people",
        tuple(figures),
        _scene_images(context, approaches[:_MAX_SCENE_IMAGES]),
        _approach_table(approaches) if approaches else None,
        "Above: when robot and people moved, and their work by color: done, or failed (also where a part was not at "
        "its target). Images and table: the moment of the smallest distance of each time that a person was nearer than "
        "0.5 m, smallest first; Sp is the protective separation distance at that moment.",
    )


def _activity_figure(work: WorkMetrics, robot: str, people: tuple[str, ...]) -> str:
    """Draw when each actor moved, and when it did which work."""
    actors = [("", robot), *((name, name) for name in people)]
    with figure_style():
        figure, axes = new_figure(_WIDTH, 0.6 + 0.75 * len(actors))
        labels, ticks = [], []
        for row, (key, name) in enumerate(actors):
            spans = [(start, end - start) for start, end in work.active_intervals.get(key, [])]
            axes.broken_barh(spans, (-2 * row - 0.35, 0.7), color=TRUTH, lw=0)
            ticks.append(-2 * row)
            labels.append(f"{name} moves")
            for item in (candidate for candidate in work.items if candidate.actor == name):
                end = work.end_time if item.end_time is None else item.end_time
                color = MUTED if item.end_time is None else GOOD if item.is_successful else BAD
                axes.broken_barh(
                    [(item.start_time, end - item.start_time)], (-2 * row - 1.25, 0.5), color=color, alpha=0.6
                )
            ticks.append(-2 * row - 1)
            labels.append("works")
        axes.set_yticks(ticks, labels)
        axes.set_xlim(0.0, max(work.end_time, 1e-3))
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("simulated time [s]")
        return render_svg(figure, "Times in which robot and people moved, and times of their work")


def _cycle_times_figure(work: WorkMetrics) -> str:
    """Draw the duration of each cycle."""
    cycles = [item for item in work.items if item.task == CYCLE_TASK and item.end_time is not None]
    durations = [(item.end_time or 0.0) - item.start_time for item in cycles]
    with figure_style():
        figure, axes = new_figure(_WIDTH, 1.9)
        colors = [COMMAND if item.is_successful else BAD for item in cycles]
        axes.bar(range(1, len(cycles) + 1), durations, color=colors, width=0.7)
        mean = sum(durations) / len(durations)
        axes.axhline(mean, color=GOOD, lw=1.2, label=f"mean {mean:.1f} s")
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
        axes.set_xticks(range(1, len(cycles) + 1, 1 + len(cycles) // 20))
        axes.set_xlabel("cycle")
        axes.set_ylabel("duration [s]")
        return render_svg(figure, "Duration of each cycle")


def _scene_images(context: SectionContext, approaches: list[dict[str, Any]]) -> tuple[tuple[str, str], ...]:
    render_moment = context.render_moment
    if render_moment is None:
        return ()
    return tuple(
        (
            render_moment(approach["time"], approach["person"], approach["body_part"]),
            f"{approach['time']:.1f} s: {approach['link']} {max(approach['distance'], 0.0):.2f} m "
            f"from {approach['person']}'s {approach['body_part'].replace('_', ' ')}",
        )
        for approach in approaches
    )


def _approach_table(approaches: list[dict[str, Any]]) -> ReportTable:
    header = ("time [s]", "person", "body part", "link", "distance [m]", "link [m/s]", "Sp [m]", "force [N]")
    rows = tuple(
        (
            f"{approach['time']:.1f}",
            approach["person"],
            approach["body_part"].replace("_", " "),
            approach["link"],
            f"{max(approach['distance'], 0.0):.3f}",
            f"{approach['robot_speed']:.2f}",
            f"{approach['protective_distance']:.2f}",
            f"{approach['force']:.0f}" if approach["force"] else "",
        )
        for approach in approaches
    )
    return ReportTable(header, rows, frozenset(header) - {"person", "body part", "link"})


PLUGIN = RunPlugin("people", (WorkMetrics,), (PageSection(work_section, 10),))
