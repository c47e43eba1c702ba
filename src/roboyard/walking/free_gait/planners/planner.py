"""Contract of step planners, their registry, and the base class of planners that are one compiled kernel.

`StepPlanner` states what a planner gets, what it may change, and what it promises; `check_step_planner` tests it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, ClassVar, Final, Literal, NamedTuple, Protocol, cast

import numpy as np

from roboyard.compute import CompiledFunction, expect_kernels
from roboyard.config import check, load
from roboyard.config.registry import Registry
from roboyard.errors import ConfigError
from roboyard.walking.free_gait.partial_plans import derive_key
from roboyard.walking.free_gait.plan_draft import copy_draft
from roboyard.walking.free_gait.problem import StepPlanningProblem
from roboyard.walking.free_gait.search import (
    SearchCapacity,
    StepPlanSearch,
    best_plan,
    empty_search,
    search_statistics,
)
from roboyard.walking.free_gait.step_plan import SearchStatistics, StepPlan


@dataclass(frozen=True)
class PlannerTraits:
    """What a planner declares about itself, for the table of all planners.

    Attributes:
        idea: How it searches, in one clause.
        references: Literature.
        completeness: Whether it finds a plan where there is one: "none": no guarantee; "probabilistic": with
            probability 1 as the budget grows, among the plans that it can sample; "resolution": on its graph.
        optimality: What it guarantees about the cost of its plans; "none": nothing.
    """

    idea: str
    references: tuple[str, ...] = ()
    completeness: Literal["none", "probabilistic", "resolution"] = "none"
    optimality: str = "none"


class StepSearch(ABC):
    """One search of a planner: it is advanced in parts, and has its best plan so far at any time."""

    @abstractmethod
    def advance(self, max_events: int) -> None:
        """Try about this number of further events; what was begun may be finished.

        A search that has nothing left to try returns without counting an event.
        """

    @property
    @abstractmethod
    def statistics(self) -> SearchStatistics:
        """Numbers of events, candidates, arrivals, evaluations and rejections so far; they never fall."""

    @property
    @abstractmethod
    def best_cost(self) -> float:
        """Cost of the best plan so far [s], infinite without one; it never rises."""

    @abstractmethod
    def best_plan(self) -> StepPlan | None:
        """Return the best plan so far; None without one."""


class StepPlanner(ABC):
    """Contract of a planner of step plans.

    `plan_steps` splits its budget into parts, starts one search for each, with a key of its own, advances all of them
    on any number of threads or computers, and returns the best of their plans.  Therefore a planner promises:

    - A search only reads the problem, and changes nothing but itself.
    - The same problem, key and number of events give the same plan, whatever other searches do meanwhile.  Random
      numbers come from the key alone.
    - A search is anytime: it may be stopped between two calls of `StepSearch.advance`; more events never make its best
      plan worse.
    - A plan starts at the problem's start and feet, or with its committed events, ends at its goal, keeps the limits of
      the robot, and its cost is that of the problem's weights.
    - Where there is no plan, it returns none; `plan_steps` explains why.

    Planners are frozen dataclasses; their fields are the parameters, declared with `roboyard.config.parameter`.
    """

    traits: ClassVar[PlannerTraits] = PlannerTraits("undeclared")

    def __post_init__(self) -> None:
        """Check the parameters. Raises ConfigError: one is of the wrong type or out of its bounds."""
        check(self, f"step planner {type(self).__name__}")

    @abstractmethod
    def start_search(self, problem: StepPlanningProblem, key: int) -> StepSearch:
        """Return a search that has tried nothing yet.

        Args:
            problem: The planning problem.
            key: Source of all random numbers of the search, 0 to 2^64 - 1.
        """

    def expect_kernels(self) -> None:  # noqa: B027 - planners without kernels have nothing to do
        """Have the kernels of the planner compiled in advance; without kernels there is nothing to do."""


STEP_PLANNERS: Final[Registry[type[StepPlanner]]] = Registry(
    "step planner", group="roboyard.step_planners", base=lambda: StepPlanner
)
"""Classes derived from `StepPlanner` by name; installed packages add theirs as entry points."""


def make_step_planner(name: str, settings: Mapping[str, Any] | None = None) -> StepPlanner:
    """Return the planner of a name with other values of some of its parameters.

    Raises:
        UnknownNameError: There is no such planner.
        ConfigError: There is no such parameter, or a value is of the wrong type or out of its bounds.
    """
    planner_class: Any = STEP_PLANNERS[name]
    location, has_parameters = f"step planner {name}", is_dataclass(STEP_PLANNERS[name])
    if settings and not has_parameters:
        raise ConfigError("takes no parameters", location=location, valid="no parameters")
    planner: StepPlanner = (
        load(planner_class, dict(settings or {}), source_name=location) if has_parameters else planner_class()
    )
    return planner


class SearchKernel(Protocol):
    """Kernel that continues a search by about a number of events."""

    def __call__(self, search: StepPlanSearch, parameters: Any, key: np.uint64, max_events: int, /) -> None:
        """Continue the search; random numbers come from the key and the counters of the search."""


class KernelStepPlanner(StepPlanner):
    """Base class of planners that are one compiled kernel over the arrays of `StepPlanSearch`.

    A derived class names its kernel, ``search_kernel = staticmethod(search_mine)``, and the NamedTuple of its
    parameters, whose fields are those of the class; None: the kernel receives an empty tuple.
    """

    search_kernel: ClassVar[SearchKernel]
    parameters_type: ClassVar[type[NamedTuple] | None] = None

    @property
    @abstractmethod
    def capacity(self) -> SearchCapacity:
        """Memory of a search."""

    def kernel_parameters(self) -> tuple[Any, ...]:
        """Return the parameters of the kernel."""
        if self.parameters_type is None:
            return ()
        names = cast("Any", self.parameters_type)._fields
        return cast("Any", self.parameters_type)(*(getattr(self, name) for name in names))  # type: ignore[no-any-return]

    def start_search(self, problem: StepPlanningProblem, key: int) -> KernelStepSearch:
        """Return a search that has tried nothing yet."""
        return KernelStepSearch(self, problem, key)

    def expect_kernels(self) -> None:
        """Have the kernels of the planner compiled in advance."""
        expect_kernels(cast("CompiledFunction[..., None]", self.search_kernel), copy_draft, derive_key)


class KernelStepSearch(StepSearch):
    """Search of a planner that is one compiled kernel.

    Args:
        planner: The planner.
        problem: The planning problem.
        key: Source of all random numbers.
    """

    arrays: StepPlanSearch
    """State of the search as arguments of kernels."""

    def __init__(self, planner: KernelStepPlanner, problem: StepPlanningProblem, key: int) -> None:
        self._kernel, self._parameters, self._key = planner.search_kernel, planner.kernel_parameters(), np.uint64(key)
        self._problem = problem
        self.arrays = empty_search(problem.context, problem.leg_arrays, planner.capacity)
        if problem.committed is not None:
            draft, path = problem.committed
            copy_draft(draft, self.arrays.committed)
            self.arrays.committed_path[: len(path)], self.arrays.committed_path_size[0] = path, len(path)

    def advance(self, max_events: int) -> None:
        """Try about this number of further events."""
        self._kernel(self.arrays, self._parameters, self._key, max_events)

    @property
    def statistics(self) -> SearchStatistics:
        """Numbers of events, candidates, arrivals, evaluations and rejections so far."""
        return search_statistics(self.arrays)

    @property
    def best_cost(self) -> float:
        """Cost of the best plan so far [s], infinite without one."""
        return float(self.arrays.best_cost[0])

    def best_plan(self) -> StepPlan | None:
        """Return the best plan so far; None without one."""
        return best_plan(self._problem, self.arrays)
