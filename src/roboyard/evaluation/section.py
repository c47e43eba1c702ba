"""A section of the report: what it is drawn from, and what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from roboyard.evaluation.plugin import FloorPlanProvider
from roboyard.evaluation.robot_trace import RobotTrace
from roboyard.evaluation.topics import RobotTopics
from roboyard.grids.floor_plan import TopDownMap
from roboyard.record import Recording
from roboyard.simulation import Simulation


@dataclass(frozen=True, slots=True)
class SectionContext:
    """What a run left behind of one robot.

    Attributes:
        recording: Of the whole run.
        story: Where the robot truly was, and what it was told.
        topics: Where it says what.
        floor: The world from above; None: unknown.
        plan: Cuts of what stands still in the world; None: unknown.
        said: What metrics.json says of the robot.
        simulation: Of the run, whose models can be drawn; None: it is gone.
    """

    recording: Recording
    trace: RobotTrace
    topics: RobotTopics
    top_down_map: TopDownMap | None
    floor_plan: FloorPlanProvider | None
    document: Mapping[str, Any]
    simulation: Simulation | None = None

    @property
    def namespace(self) -> str:
        """The robot's, "" or "/name"."""
        return self.topics.namespace


@dataclass(frozen=True, slots=True)
class ReportTable:
    """Rows of text below their head; columns named in ``numbers`` are flush right."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric_columns: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ReportSection:
    """What stands under one heading.

    Attributes:
        title: The heading.
        figures: Drawn as `style.svg` does, one below the other.
        pictures: Sources of ``<img>``, side by side where there is room, each with a line below.
        table: Below them.
        note: What the reader should know, in a sentence or three.
    """

    title: str
    figures: tuple[str, ...] = ()
    images: tuple[tuple[str, str], ...] = ()
    table: ReportTable | None = None
    note: str = ""


SectionBuilder: TypeAlias = Callable[[SectionContext], ReportSection | None]
"""Draws one part of the report; None where the robot has nothing of it. RecordingError for a damaged recording."""
