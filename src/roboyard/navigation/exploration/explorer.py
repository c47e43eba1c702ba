"""Exploration as a sequence of decisions: where to look next, when there is nothing left, and back to the start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from roboyard.geometry import SE2
from roboyard.grids import OccupancyGrid
from roboyard.navigation.exploration.choice import ChoiceConfig, Failure, choose
from roboyard.navigation.exploration.frontiers import FrontierConfig, Frontiers, find_frontiers

Phase = Literal["explore", "return", "done", "failed"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it has come.

    Attributes:
        phase: "explore", "return"; at the end "done", or "failed" if it did not get back.
        known: Free ground that is known [m²].
        frontiers: How many are left.
        goals: How many places it set out for.
        failures: How often it did not get there, or saw nothing new there.
    """

    phase: Phase
    known: float
    frontiers: int
    goals: int
    failures: int


class Explorer:
    """Decides where to drive; whoever drives says ``arrived`` or ``failed``, and ``look`` with each new map.

    Args:
        start: Where to return to, ``T_map_base``; None: not to return.
        frontiers: What counts as a frontier.
        choice: What counts in choosing one.
        budget: Places to set out for, at most.
    """

    def __init__(
        self,
        start: SE2 | None,
        frontiers: FrontierConfig | None = None,
        choice: ChoiceConfig | None = None,
        *,
        budget: int = 1000,
    ) -> None:
        self.start = start
        self.phase: Phase = "explore"
        self.goal: SE2 | None = None
        self.found: Frontiers | None = None
        self.goals = 0
        self.failures: list[Failure] = []
        self.frontiers = frontiers or FrontierConfig()
        self._choice = choice or ChoiceConfig()
        self._budget = budget
        self._looked_from: SE2 | None = None  # where it arrived and has not had a map since
        self._returns = 0

    @property
    def over(self) -> bool:
        """Whether there is nothing left to do."""
        return self.phase in ("done", "failed")

    @property
    def progress(self) -> Progress:
        """How far it has come."""
        found = self.found
        count, known = (0, 0.0) if found is None else (len(found.cells), found.known)
        return Progress(self.phase, known, count, self.goals, len(self.failures))

    def look(self, grid: OccupancyGrid, pose: SE2) -> SE2 | None:
        """Where to drive with what is known now; None when it is over.

        Args:
            grid: The map, made after the robot last arrived somewhere.
            pose: ``T_map_base`` now.
        """
        return self.take(find_frontiers(grid, pose, self.frontiers)) if self.phase == "explore" else self.goal

    def take(self, found: Frontiers) -> SE2 | None:
        """The same with frontiers that were found by somebody else."""
        if self.phase != "explore":
            return self.goal
        self.found = found
        if self._looked_from is not None:
            looked, self._looked_from = Failure(self._looked_from, reached=True), None
            if any(looked.concerns(view, self._choice.same) for view in found.views):
                self.failures.append(looked)  # what is still a frontier there shows nothing from there
        view = choose(found.views, self.goal, self.failures, self._choice)
        if view is None or self.goals >= self._budget:
            self._go_back()
        elif self.goal is None or view.pose.distance(self.goal) >= self._choice.same:
            self.goal = view.pose
            self.goals += 1
        return self.goal

    def arrived(self) -> None:
        """The robot is at the goal."""
        if self.phase == "explore":
            self._looked_from, self.goal = self.goal, None
        elif self.phase == "return":
            self.phase, self.goal = "done", None

    def failed(self) -> None:
        """The robot cannot get to the goal."""
        if self.goal is None:
            return
        if self.phase == "explore":
            self.failures.append(Failure(self.goal))
            self.goal = None
        elif self.phase == "return":
            self._returns += 1
            if self._returns >= self._choice.tries:
                self.phase, self.goal = "failed", None

    def finish(self) -> None:
        """Explore no further, but return."""
        if self.phase == "explore":
            self._go_back()

    def _go_back(self) -> None:
        self.phase, self.goal = ("return", self.start) if self.start is not None else ("done", None)

    def save_state(self) -> dict[str, Any]:
        """State as plain data; frontiers are looked for anew."""

        def plain(pose: SE2 | None) -> tuple[float, float, float] | None:
            return None if pose is None else (pose.x, pose.y, pose.theta)

        return {
            "poses": [plain(pose) for pose in (self.start, self.goal, self._looked_from)],
            "failures": [(plain(failure.pose), failure.reached) for failure in self.failures],
            "counts": (self.phase, self.goals, self._returns),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of ``save``."""
        self.start, self.goal, self._looked_from = (SE2(*pose) if pose else None for pose in saved["poses"])
        self.failures = [Failure(SE2(*pose), reached) for pose, reached in saved["failures"]]
        self.phase, self.goals, self._returns = saved["counts"]
