"""Task planning: the time to find the cheapest plan, and that of pyperplan for the same problems.

Objects lie at places drawn at random in an area of 10 m × 10 m, at most one at each place, and each is desired at
another place drawn at random, which may be occupied.  A robot drives in straight lines, picks and places one object at
a time.  The time includes grounding, the pairs of compatible facts and the search, but no compilation of kernels.  The
plans are the cheapest; pyperplan, which does not consider costs, returns any plan (greedy best-first search with the FF
heuristic) for PDDL files that it parses.  Times are those of the thread's clock: the median of all draws, and the
slowest one.
"""

from __future__ import annotations

import logging
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from roboyard.task_planning import EMPTY_HAND, PlanningDomain, PlanningGoal, TransportModel, make_plan

SIZES = (((4, 8), 20.0), ((8, 12), 200.0))
DRAWS = 11


def draw_problem(n_objects: int, n_places: int, seed: int) -> tuple[PlanningDomain, dict[str, Any], PlanningGoal]:
    """Draw a domain, an initial state and a goal."""
    rng = np.random.default_rng(seed)
    xy = rng.uniform(0.0, 10.0, (n_places, 2))
    names = tuple(f"p{index}" for index in range(n_places))
    objects = tuple(f"t{index}" for index in range(n_objects))
    distances = {(a, b): float(np.hypot(*(xy[i] - xy[j]))) for i, a in enumerate(names) for j, b in enumerate(names)}
    start_places, goal_places = rng.permutation(n_places), rng.permutation(n_places)
    world: dict[str, Any] = {"robot": names[0], "hand": EMPTY_HAND} | {f"on {name}": EMPTY_HAND for name in names}
    world |= {f"on {names[start_places[index]]}": name for index, name in enumerate(objects)}
    goal = PlanningGoal("tidy", {f"on {names[goal_places[index]]}": name for index, name in enumerate(objects)})
    return TransportModel(names, objects, lambda a, b: distances[a, b]).domain(), world, goal


def check_plan(world: dict[str, Any], goal: PlanningGoal, steps: Any) -> None:
    """Execute a plan, so that only plans that reach the goal are counted.

    Raises:
        RuntimeError: A precondition does not hold, or the goal is not reached.
    """
    state = dict(world)
    for step in steps:
        if any(state.get(name) != value for name, value in step.preconditions.items()):
            raise RuntimeError(f"{step.name} is not possible")
        state.update(step.effects)
    if not goal.is_satisfied(state):
        raise RuntimeError("the goal is not reached")


def measure(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor time of a call [ms], and its result."""
    start_ns = time.thread_time_ns()
    result = call()
    return (time.thread_time_ns() - start_ns) * 1e-6, result


DOMAIN = """(define (domain carry) (:requirements :strips :typing) (:types place thing)
(:predicates (robot ?p - place) (empty) (holds ?t - thing) (on ?t - thing ?p - place) (free ?p - place))
(:action drive :parameters (?a ?b - place) :precondition (robot ?a) :effect (and (robot ?b) (not (robot ?a))))
(:action take :parameters (?t - thing ?p - place) :precondition (and (robot ?p) (empty) (on ?t ?p))
 :effect (and (holds ?t) (free ?p) (not (empty)) (not (on ?t ?p))))
(:action put :parameters (?t - thing ?p - place) :precondition (and (robot ?p) (holds ?t) (free ?p))
 :effect (and (on ?t ?p) (empty) (not (holds ?t)) (not (free ?p)))))
"""


def write_problem(world: dict[str, Any], goal: PlanningGoal) -> str:
    places = [name.removeprefix("on ") for name in world if name.startswith("on ")]
    place_of = {value: name.removeprefix("on ") for name, value in world.items() if name.startswith("on ")}
    objects = [name for name in place_of if name != EMPTY_HAND]
    facts = [f"(robot {world['robot']})", "(empty)", *(f"(on {name} {place_of[name]})" for name in objects)]
    facts += [f"(free {place})" for place in places if world[f"on {place}"] == EMPTY_HAND]
    desired = " ".join(f"(on {value} {name.removeprefix('on ')})" for name, value in goal.desired_state.items())
    declarations = f"{' '.join(places)} - place {' '.join(objects)} - thing"
    objects_and_state = f"(:objects {declarations}) (:init {' '.join(facts)})"
    return f"(define (problem p) (:domain carry) {objects_and_state} (:goal (and {desired})))"


def make_peer_call(world: dict[str, Any], goal: PlanningGoal) -> Callable[[], Any]:
    from pyperplan.heuristics.relaxation import hFFHeuristic
    from pyperplan.planner import search_plan
    from pyperplan.search import greedy_best_first_search

    logging.disable(logging.INFO)
    folder = Path(tempfile.mkdtemp())
    (folder / "domain.pddl").write_text(DOMAIN)
    (folder / "problem.pddl").write_text(write_problem(world, goal))
    files = str(folder / "domain.pddl"), str(folder / "problem.pddl")
    return lambda: search_plan(*files, greedy_best_first_search, hFFHeuristic)


def measure_plans(nightly: bool) -> dict[str, Any]:
    figures, details = [], []
    make_plan(*draw_problem(2, 3, 0))
    for (n_objects, n_places), limit in SIZES:
        times, peer_times, lengths, peer_lengths = [], [], [], []
        missing = None
        for seed in range(3 * DRAWS if nightly else DRAWS):
            domain, world, goal = draw_problem(n_objects, n_places, seed)
            duration, plan = measure(lambda: make_plan(domain, world, goal))  # noqa: B023 - called at once
            check_plan(world, goal, plan.steps)
            times.append(duration)
            lengths.append(len(plan.steps))
            if seed < DRAWS:
                try:
                    duration, peer_plan = measure(make_peer_call(world, goal))
                    peer_times.append(duration)
                    peer_lengths.append(len(peer_plan))
                except ImportError as error:
                    missing = str(error)
        figure: dict[str, Any] = {
            "name": f"plan for {n_objects} things, {n_places} places", "value": statistics.median(times), "unit": "ms",
            "target": f"<= {limit:g}", "peer": "pyperplan",
        }  # fmt: skip
        if peer_times:
            figure["peer_value"] = statistics.median(peer_times)
            figure["ratio"] = figure["peer_value"] / figure["value"]
        elif missing:
            figure["missing"] = missing
        figures.append(figure)
        n_within_limit = sum(duration <= limit for duration in times)
        within_limit = f"{n_within_limit} of {len(times)} within {limit:g} ms"
        text = f"{n_objects} objects, {n_places} places: {within_limit}, slowest {max(times):.0f} ms"
        text += f"; {statistics.mean(lengths):.1f} steps in the cheapest plans"
        details.append(text + (f"; {statistics.mean(peer_lengths):.1f} in those of pyperplan" if peer_lengths else ""))
    return {"figures": figures, "details": details}


PARTS = [measure_plans]
