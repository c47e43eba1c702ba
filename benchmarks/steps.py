"""Step planning: speed on level ground, success and time to the first plan on stepping stones, and validity of plans.

Stepping stones: 2 m to the goal, of which 1.3 m are cells of 6 cm, each a foothold with probability p; a search has one
second of one core (three on level ground).  Times are CPU times of the thread, so that other load on the machine hardly
changes them.
"""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.bringup.legged_robot import load_free_gait_model
from roboyard.errors import RoboyardError
from roboyard.grids.terrain import Terrain, generate_terrain
from roboyard.walking.free_gait.foothold_map import FootholdMap
from roboyard.walking.free_gait.partial_plans import derive_key
from roboyard.walking.free_gait.plan_checker import PlanCheckLimits, PlanCheckReport, check_plan
from roboyard.walking.free_gait.planners.planner import KernelStepSearch, make_step_planner
from roboyard.walking.free_gait.planning import EVENTS_PER_PART, plan_steps
from roboyard.walking.free_gait.problem import StepPlanningProblem
from roboyard.walking.free_gait.robot_model import FreeGaitModel
from roboyard.walking.free_gait.step_plan import StepPlan

Array = NDArray[np.float64]
Task = tuple[Terrain, tuple[float, float]]
"""Terrain and goal."""
GOAL = (2.0, 0.0)
CHUNK, FINE_CHUNK = 2_000, 200
TERRAINS, NIGHTLY = 12, 200
PLANNERS = (
    "splitting", "random-sampling", "greedy", "branch-and-bound", "local-search", "tabu", "annealing", "genetic",
    "mcts", "ara-star",
)  # fmt: skip
REPORTED_TIMES = (0.05, 0.2, 1.0, 3.0)
"""Times after which the costs of the best plans are compared [s]."""


@dataclass
class SearchResult:
    """Result of one search: time to the first plan [s], total time [s], what it tried, and faults of its plan."""

    first_plan_time: float
    total_time: float
    events: int
    candidates: int
    is_solved: bool
    n_faults: int


def wilson_interval(n_successes: int, n_trials: int, z: float = 1.96) -> tuple[float, float]:
    """Return the 95 % confidence interval of a success rate (Wilson 1927)."""
    if n_trials == 0:
        return 0.0, 1.0
    p, zz = n_successes / n_trials, z * z / n_trials
    center, half = p + 0.5 * zz, z * math.sqrt(p * (1.0 - p) / n_trials + 0.25 * zz / n_trials)
    return (center - half) / (1.0 + zz), (center + half) / (1.0 + zz)


def make_stones(fraction: float, seed: int) -> Terrain:
    """Return stepping stones that cover a fraction of the cells."""
    rng = np.random.default_rng([0x57E9, seed, round(1e3 * fraction)])
    return generate_terrain(
        "stones", (1.32, 2.4), rng, corner=(0.34, -1.2), cell_size=0.06, height_range=0.3, fraction=fraction
    )


def make_blocks(seed: int) -> Terrain:
    """Return blocks as in the scenario `akrobat-free-gait`."""
    rng = np.random.default_rng([0xB10C, seed])
    return generate_terrain("blocks", (1.4, 2.4), rng, corner=(0.4, -1.2), cell_size=0.2, height_range=0.1)


def make_problem(robot_model: FreeGaitModel, terrain: Terrain, goal: tuple[float, float]) -> StepPlanningProblem:
    """Return the problem from the origin to a goal [m]."""
    foothold_map = FootholdMap.from_terrain(terrain, robot_model, [(0.0, 0.0), goal])
    return StepPlanningProblem.create(robot_model, foothold_map, (0.0, 0.0), goal)


def run_search(
    robot_model: FreeGaitModel, terrain: Terrain, goal: tuple[float, float], planner: str, seed: int, seconds: float
) -> SearchResult:
    """Search for a CPU time of the thread [s]."""
    problem = make_problem(robot_model, terrain, goal)
    search = make_step_planner(planner).start_search(problem, int(derive_key(np.uint64(seed), 0)))
    start, first_plan_time = time.thread_time(), math.inf
    while time.thread_time() - start < seconds:
        search.advance(CHUNK)
        if math.isinf(first_plan_time) and math.isfinite(search.best_cost):
            first_plan_time = time.thread_time() - start
    total_time, statistics, plan, n_faults = time.thread_time() - start, search.statistics, search.best_plan(), 0
    if plan is not None:
        n_faults = len(check(plan, robot_model, terrain, goal).faults)
    return SearchResult(
        first_plan_time, total_time, statistics.events, statistics.candidates, plan is not None, n_faults
    )


def check(plan: StepPlan, robot_model: FreeGaitModel, terrain: Terrain, goal: tuple[float, float]) -> PlanCheckReport:
    """Check a plan with the independent checker."""
    limits = PlanCheckLimits(min_stability_margin=robot_model.min_stability_margin)
    return check_plan(plan, robot_model.legged_robot, robot_model.body_box, terrain.height_at, goal, limits)


@dataclass(frozen=True)
class CostHistory:
    """Searches of one planner over several terrains of a kind.

    Attributes:
        costs: (n, m) cost of the best plan so far at each of m CPU times; infinite without one [s].
        first_plan_times: (n,) time to the first plan, infinite without one [s].
        first_costs: (n,) cost of that plan [s].
    """

    costs: Array
    first_plan_times: Array
    first_costs: Array

    @property
    def n_solved(self) -> int:
        """Number of terrains with a plan at the end."""
        return int(np.isfinite(self.costs[:, -1]).sum())


def record_costs(robot_model: FreeGaitModel, tasks: list[Task], planner: str, times: Array) -> CostHistory:
    """Record the costs over the CPU time of the thread, with one search for each terrain."""
    costs = np.full((len(tasks), len(times)), math.inf)
    first_plan_times, first_costs = np.full(len(tasks), math.inf), np.full(len(tasks), math.inf)
    for k, (terrain, goal) in enumerate(tasks):
        search = make_step_planner(planner).start_search(
            make_problem(robot_model, terrain, goal), int(derive_key(np.uint64(k), 0))
        )
        start, elapsed = time.thread_time(), 0.0
        while elapsed < times[-1]:
            search.advance(FINE_CHUNK if elapsed < 0.5 else CHUNK)
            elapsed = time.thread_time() - start
            costs[k, times >= elapsed] = search.best_cost
            if math.isinf(first_plan_times[k]) and math.isfinite(search.best_cost):
                first_plan_times[k], first_costs[k] = elapsed, search.best_cost
    return CostHistory(costs, first_plan_times, first_costs)


def measure_memory(robot_model: FreeGaitModel, planner: str) -> float:
    """Return the size of all arrays of a search, without those of its problem [MiB]."""

    def count_bytes(part: Any) -> int:
        return int(part.nbytes) if isinstance(part, np.ndarray) else sum(map(count_bytes, part))

    level = generate_terrain("flat", (1.0, 1.0), np.random.default_rng(0))
    search = make_step_planner(planner).start_search(make_problem(robot_model, level, (0.4, 0.0)), 0)
    assert isinstance(search, KernelStepSearch)
    arrays = search.arrays
    own = [part for part in arrays if part is not arrays.state and part is not arrays.leg_arrays]
    return (count_bytes(own) + count_bytes(arrays.state[1:])) / 2.0**20


def measure_speed_up(robot_model: FreeGaitModel, planner: str, n_parts: int) -> float:
    """Return the ratio of the wall times of one thread and of two, for a budget of some parts."""
    level = generate_terrain("flat", (1.0, 1.0), np.random.default_rng(0))
    problem, wall_times = make_problem(robot_model, level, (1.0, 0.0)), []
    for workers in (1, 2):
        start = time.perf_counter()
        plan_steps(problem, planner, budget=n_parts * EVENTS_PER_PART, seed=1, workers=workers)
        wall_times.append(time.perf_counter() - start)
    return wall_times[0] / wall_times[1]


def draw_costs(file: Path, times: Array, histories: dict[str, dict[str, CostHistory]]) -> None:
    """Draw the fraction of solved terrains and the cost of the best plan, median and quartiles, over the CPU time."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(histories), 6.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, len(histories), sharex=True, squeeze=False, height_ratios=(1, 2.2))
    for (name, planners), (above, below) in zip(histories.items(), axes.T, strict=True):
        for k, (planner, history) in enumerate(planners.items()):
            color = f"C{k % 10}"
            above.step(times, np.isfinite(history.costs).mean(axis=0), where="post", color=color, linewidth=1.2)
            low, median, high = np.percentile(history.costs, [25, 50, 75], axis=0, method="inverted_cdf")
            below.fill_between(times, low, high, where=np.isfinite(high), step="post", color=color, alpha=0.12, lw=0)
            below.step(times, median, where="post", color=color, linewidth=1.4, label=planner)
        above.set(title=name, ylim=(-0.03, 1.03))
        below.set(xscale="log", xlabel="CPU time [s]")
        below.grid(alpha=0.3)
        above.grid(alpha=0.3)
    axes[0, 0].set_ylabel("fraction solved")
    axes[1, 0].set_ylabel("cost of the best plan so far [s]")
    axes[1, 0].legend(fontsize="small")
    figure.savefig(file, dpi=100)


def compare(
    nightly: bool, seed: int | None = None, terrains: int | None = None, plot: Path | None = None
) -> dict[str, Any]:
    """Compare all planners by the criteria of Herms 2004: anytime behavior, parallel search, memory, success."""
    robot_model, first, count = load_free_gait_model("akrobat"), seed or 0, terrains or (20 if nightly else 2)
    times = np.geomspace(0.02, 10.0 if nightly else 3.0, 28)
    level = generate_terrain("flat", (1.0, 1.0), np.random.default_rng(0))
    for planner in PLANNERS:
        record_costs(robot_model, [(level, (0.4, 0.0))], planner, times[:1])  # compile
    terrains_by_kind: dict[str, list[Task]] = {
        "level, 1 m": [(level, (1.0, 0.0))] * count,
        "blocks of 0.10 m": [(make_blocks(first + k), GOAL) for k in range(count)],
        "stones, p = 0.20": [(make_stones(0.20, first + k), GOAL) for k in range(count)],
        "stones, p = 0.10": [(make_stones(0.10, first + k), GOAL) for k in range(count)],
    }
    histories = {
        name: {planner: record_costs(robot_model, tasks, planner, times) for planner in PLANNERS}
        for name, tasks in terrains_by_kind.items()
    }
    if plot is not None:
        draw_costs(plot, times, histories)
    rows = []
    for name, planners in histories.items():
        columns = np.searchsorted(times, REPORTED_TIMES, side="right") - 1
        rows.append(f"{name}: median cost after " + ", ".join(f"{one:g} s" for one in REPORTED_TIMES) + "; solved")
        for planner, history in planners.items():
            medians = np.percentile(history.costs[:, columns], 50, axis=0, method="inverted_cdf")
            text = ", ".join("-" if np.isinf(value) else f"{value:.1f}" for value in medians)
            rows.append(f"  {planner:16s} {text}; {history.n_solved} of {count}")
    rows.append("planner: median time to the first plan [ms]; last cost divided by the first; speed-up by two threads;")
    rows.append("  memory [MiB]; terrains solved")
    figures = []
    for planner in PLANNERS:
        of_planner = [planners[planner] for planners in histories.values()]
        first_plan_times = np.concatenate([one.first_plan_times for one in of_planner])
        cost_ratios = np.concatenate([one.costs[:, -1] / one.first_costs for one in of_planner if one.n_solved])
        n_solved, n_searches = sum(one.n_solved for one in of_planner), count * len(of_planner)
        median_time = 1e3 * float(np.percentile(first_plan_times, 50, method="inverted_cdf"))
        rows.append(
            f"  {planner:16s} {'-' if math.isinf(median_time) else f'{median_time:.0f}'}; "
            f"{np.nanmedian(cost_ratios):.2f}; {measure_speed_up(robot_model, planner, 2):.2f}; "
            f"{measure_memory(robot_model, planner):.1f}; {n_solved} of {n_searches}"
        )
        figures.append(
            {"name": f"grounds of all kinds solved, {planner}", "value": 100.0 * n_solved / n_searches, "unit": "%"}
        )
    return {"figures": figures, "details": rows}


def check_plans(nightly: bool, seed: int | None = None, runs: int | None = None) -> dict[str, Any]:
    """Check plans of all planners over all kinds of terrain, of both robots, with the independent checker."""
    count, first = runs or (10_000 if nightly else 60), seed or 0
    robot_models = {name: load_free_gait_model(name) for name in ("akrobat", "lauron")}
    n_plans, n_faulty, details = 0, 0, []
    for k in range(first, first + count):
        robot = "lauron" if k % 4 == 3 else "akrobat"
        robot_model, planner = robot_models[robot], PLANNERS[k % len(PLANNERS)]
        kind, terrain, goal = make_random_task(k, robot_model.scale)
        try:
            plan = plan_steps(make_problem(robot_model, terrain, goal), planner, budget=20_000, seed=k)
        except RoboyardError:  # the goal cannot be reached, or the planner found no plan
            continue
        report = check(plan, robot_model, terrain, goal)
        n_plans, n_faulty = n_plans + 1, n_faulty + bool(report.faults)
        details += [
            f"task {k}, {robot}, {kind}, {planner}: {fault.kind} at {fault.time:.2f} s, {fault.description}"
            for fault in report.faults
        ]
    figures = [
        {"name": "plans of all planners that the checker looked at", "value": n_plans, "unit": ""},
        {"name": "  with a fault", "value": n_faulty, "unit": "", "target": "<= 0"},
    ]
    return {"figures": figures, "details": details}


def make_random_task(number: int, scale: float) -> tuple[str, Terrain, tuple[float, float]]:
    """Return a kind of terrain, a terrain and a goal, sampled with a seed, for a robot of a size relative to the
    Akrobat."""
    rng = np.random.default_rng([0xC4EC, number])
    kind = ("flat", "blocks", "stones", "rough", "slope", "stairs", "ditch")[int(rng.integers(7))]
    options: dict[str, dict[str, float]] = {
        "blocks": {"cell_size": 0.2, "height_range": float(rng.uniform(0.02, 0.1))},
        "stones": {"cell_size": 0.06, "height_range": 0.3, "fraction": float(rng.uniform(0.15, 0.5))},
        "rough": {"cell_size": 0.1, "height_range": float(rng.uniform(0.02, 0.12))},
        "slope": {"height_range": float(rng.uniform(0.0, 0.15))},
        "stairs": {"cell_size": 0.28, "height_range": float(rng.uniform(0.02, 0.05)), "fraction": 0.2},
        "ditch": {"cell_size": 0.06, "height_range": 0.3, "fraction": float(rng.uniform(0.03, 0.1))},
    }
    scaled = {key: value if key == "fraction" else value * scale for key, value in options.get(kind, {}).items()}
    corner, size = (0.34 * scale, -1.2 * scale), (float(rng.uniform(0.3, 1.3)) * scale, 2.4 * scale)
    distance, direction = float(rng.uniform(0.2, 2.0)) * scale, float(rng.uniform(-0.8, 0.8))
    return (
        kind,
        generate_terrain(kind, size, rng, corner=corner, **scaled),
        (distance * math.cos(direction), distance * math.sin(direction)),
    )


def run(nightly: bool, seed: int | None = None, terrains: int | None = None) -> dict[str, Any]:
    """Measure plans over level ground and stepping stones."""
    robot_model, count, first = (
        load_free_gait_model("akrobat"),
        terrains or (NIGHTLY if nightly else TERRAINS),
        seed or 0,
    )
    level = generate_terrain("flat", (1.0, 1.0), np.random.default_rng(0))
    for planner in PLANNERS:
        run_search(robot_model, level, (0.4, 0.0), planner, 0, 0.01)  # compile
    level_results = [run_search(robot_model, level, (1.0, 0.0), "random-sampling", first + k, 3.0) for k in range(3)]
    total_time = sum(one.total_time for one in level_results)
    candidate_rate = sum(one.candidates for one in level_results) / total_time
    event_time = 1e6 * total_time / sum(one.events for one in level_results)
    figures: list[dict[str, Any]] = [
        {
            "name": "level, 1 m: candidates of random sampling",
            "value": candidate_rate,
            "unit": "1/s",
            "target": ">= 10000",
        },
        {"name": "  an event", "value": event_time, "unit": "µs"},
        {
            "name": "  two threads beside one",
            "value": measure_speed_up(robot_model, "random-sampling", 20),
            "unit": "x",
            "target": ">= 1.8",
        },
    ]
    results, details = list(level_results), [f"load {os.getloadavg()[0]:.1f}; times are the thread's own"]
    for fraction, target in ((0.10, None), (0.08, ">= 95"), (0.05, ">= 70")):
        for planner in ("splitting", "greedy", "random-sampling"):
            found = [
                run_search(robot_model, make_stones(fraction, first + k), GOAL, planner, k, 1.0) for k in range(count)
            ]
            results += found
            n_solved = sum(one.is_solved for one in found)
            low, high = wilson_interval(n_solved, count)
            figures.append({
                "name": f"stones, p = {fraction:.2f}, {planner}", "value": 100.0 * n_solved / count, "unit": "%",
                "target": target if planner == "splitting" else None,
            })  # fmt: skip
            times = [1e3 * one.first_plan_time for one in found if one.is_solved]
            if planner == "splitting" and times:
                median, percentile_95 = np.percentile(times, [50, 95])
                targets = ("<= 50", "<= 250") if fraction == 0.10 else (None, None)
                figures += [
                    {"name": "  first plan, median", "value": float(median), "unit": "ms", "target": targets[0]},
                    {"name": "  95 of 100", "value": float(percentile_95), "unit": "ms", "target": targets[1]},
                ]
            details.append(
                f"p = {fraction:.2f}, {planner}: {n_solved} of {count}, 95 % within "
                f"{100 * low:.0f} to {100 * high:.0f} %"
            )
    solved = [one for one in results if one.is_solved]
    figures.append({
        "name": f"plans of {len(solved)} with a fault for the checker",
        "value": sum(one.n_faults > 0 for one in solved), "unit": "", "target": "<= 0",
    })  # fmt: skip
    return {"figures": figures, "details": details}


PARTS = (run, compare, check_plans)
