"""A section of the report: what it is built from, and what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from roboyard.evaluation.collector import MetricCollector, RobotContext
from roboyard.evaluation.robot_trace import RobotTrace
from roboyard.grids.floor_plan import FloorPlan, TopDownMap
from roboyard.record import Recording

CollectorT = TypeVar("CollectorT", bound=MetricCollector)


class CollectorLookup(Protocol):
    """Gives the collector of a class that was evaluated over the whole recording."""

    def __call__(self, collector_class: type[CollectorT]) -> CollectorT | None:
        """Return the robot's collector of this class; None where the robot has none."""


@dataclass(frozen=True, slots=True)
class SectionContext:
    """What the builder of a report section is given of one robot.

    Attributes:
        robot: The robot.
        recording: Of the whole run, open.
        trace: Its true track, its odometry and its commands.
        document: What metrics.json says of the robot.
        collector: Gives the robot's collector of a class, evaluated over the whole recording once for all sections;
            None where the robot has none.
        top_down_map: The world from above; None: unknown.
        floor_plan: Gives the level cut of what stands still in the world, with cells of a side [m]; None: unknown.
        render_moment: Renders the scene at a time [s], seen from beside a person's body part, as the source of an
            ``<img>``; None where there is no simulation to render.
        people: Names of the people in the recording.
    """

    robot: RobotContext
    recording: Recording
    trace: RobotTrace
    document: Mapping[str, Any]
    collector: CollectorLookup
    top_down_map: TopDownMap | None = None
    floor_plan: Callable[[float], FloorPlan] | None = None
    render_moment: Callable[[float, str, str], str] | None = None
    people: tuple[str, ...] = ()

    @property
    def namespace(self) -> str:
        """Namespace of the robot's topics: "" or "/name"."""
        return self.robot.namespace


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table of text.

    Attributes:
        header: Titles of its columns.
        rows: Its cells.
        numeric_columns: Titles of the columns that are aligned right.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric_columns: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ReportSection:
    """One section of the report.

    Attributes:
        title: Its heading.
        figures: Inline SVG as `roboyard.evaluation.figures.render_svg` returns it, one below the other.
        images: Sources of ``<img>`` with their captions, side by side where there is room.
        table: Below figures and images.
        note: What a reader has to know about them, in one to three sentences.
    """

    title: str
    figures: tuple[str, ...] = ()
    images: tuple[tuple[str, str], ...] = ()
    table: ReportTable | None = None
    note: str = ""


SectionBuilder: TypeAlias = Callable[[SectionContext], ReportSection | None]
"""Builds one section of the report; None where the robot has nothing to show.  Raises RecordingError."""
