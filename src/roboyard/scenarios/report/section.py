"""A part of the report that only some robots have: what it is drawn from, and what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from roboyard.record import Recording
from roboyard.scenarios.floor import Floor
from roboyard.scenarios.metrics import RobotTopics
from roboyard.scenarios.metrics.mapping import Plan
from roboyard.scenarios.report.story import Story
from roboyard.simulation import Simulation


@dataclass(frozen=True, slots=True)
class Source:
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
    story: Story
    topics: RobotTopics
    floor: Floor | None
    plan: Plan | None
    said: Mapping[str, Any]
    simulation: Simulation | None = None

    @property
    def namespace(self) -> str:
        """The robot's, "" or "/name"."""
        return self.topics.namespace


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text below their head; columns named in ``numbers`` are flush right."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Section:
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
    pictures: tuple[tuple[str, str], ...] = ()
    table: Table | None = None
    note: str = ""


Part: TypeAlias = Callable[[Source], Section | None]
"""Draws one part of the report; None where the robot has nothing of it. RecordingError for a damaged recording."""
