"""Plans of actions for goals: how long the cheapest takes to find, beside pyperplan.

Things lie at places drawn at random in 10 m by 10 m, one at each at most, and each is wanted at another place drawn at
random, where another may lie.  A robot drives (straight ways), takes and puts, one thing at a time.  The time is that
of all of it: actions made from the domain, pairs of facts, the search; kernels are there before.  The plan is the
cheapest; pyperplan, which has no costs, is asked for any plan (greedy best-first with the FF heuristic), from PDDL
files that it parses.  Times are of the thread's own clock; the median over the draws counts, the slowest is said.
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


def drawn(count: int, places: int, seed: int) -> tuple[PlanningDomain, dict[str, Any], PlanningGoal]:
    """Things that want to be elsewhere."""
    rng = np.random.default_rng(seed)
    xy = rng.uniform(0.0, 10.0, (places, 2))
    names = tuple(f"p{index}" for index in range(places))
    things = tuple(f"t{index}" for index in range(count))
    way = {(a, b): float(np.hypot(*(xy[i] - xy[j]))) for i, a in enumerate(names) for j, b in enumerate(names)}
    begin, end = rng.permutation(places), rng.permutation(places)
    world: dict[str, Any] = {"robot": names[0], "hand": EMPTY_HAND} | {f"on {name}": EMPTY_HAND for name in names}
    world |= {f"on {names[begin[index]]}": thing for index, thing in enumerate(things)}
    goal = PlanningGoal("tidy", {f"on {names[end[index]]}": thing for index, thing in enumerate(things)})
    return TransportModel(names, things, lambda a, b: way[a, b]).domain(), world, goal


def checked(world: dict[str, Any], goal: PlanningGoal, steps: Any) -> None:
    """Carry a plan out, so that no plan counts that is none."""
    now = dict(world)
    for step in steps:
        if any(now.get(name) != value for name, value in step.needs.items()):
            raise RuntimeError(f"{step.name} is not possible")
        now.update(step.effects)
    if not goal.is_satisfied(now):
        raise RuntimeError("the goal is not reached")


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.thread_time_ns()
    result = call()
    return (time.thread_time_ns() - begin) * 1e-6, result


DOMAIN = """(define (domain carry) (:requirements :strips :typing) (:types place thing)
(:predicates (robot ?p - place) (empty) (holds ?t - thing) (on ?t - thing ?p - place) (free ?p - place))
(:action drive :parameters (?a ?b - place) :precondition (robot ?a) :effect (and (robot ?b) (not (robot ?a))))
(:action take :parameters (?t - thing ?p - place) :precondition (and (robot ?p) (empty) (on ?t ?p))
 :effect (and (holds ?t) (free ?p) (not (empty)) (not (on ?t ?p))))
(:action put :parameters (?t - thing ?p - place) :precondition (and (robot ?p) (holds ?t) (free ?p))
 :effect (and (on ?t ?p) (empty) (not (holds ?t)) (not (free ?p)))))
"""


def as_pddl(world: dict[str, Any], goal: PlanningGoal) -> str:
    places = [name.removeprefix("on ") for name in world if name.startswith("on ")]
    lie = {value: name.removeprefix("on ") for name, value in world.items() if name.startswith("on ")}
    things = [thing for thing in lie if thing != EMPTY_HAND]
    facts = [f"(robot {world['robot']})", "(empty)", *(f"(on {thing} {lie[thing]})" for thing in things)]
    facts += [f"(free {place})" for place in places if world[f"on {place}"] == EMPTY_HAND]
    wants = " ".join(f"(on {thing} {name.removeprefix('on ')})" for name, thing in goal.desired_state.items())
    objects = f"{' '.join(places)} - place {' '.join(things)} - thing"
    return f"(define (problem p) (:domain carry) (:objects {objects}) (:init {' '.join(facts)}) (:goal (and {wants})))"


def theirs(world: dict[str, Any], goal: PlanningGoal) -> Callable[[], Any]:
    from pyperplan.heuristics.relaxation import hFFHeuristic
    from pyperplan.planner import search_plan
    from pyperplan.search import greedy_best_first_search

    logging.disable(logging.INFO)
    folder = Path(tempfile.mkdtemp())
    (folder / "domain.pddl").write_text(DOMAIN)
    (folder / "problem.pddl").write_text(as_pddl(world, goal))
    files = str(folder / "domain.pddl"), str(folder / "problem.pddl")
    return lambda: search_plan(*files, greedy_best_first_search, hFFHeuristic)


def plans(nightly: bool) -> dict[str, Any]:
    figures, details = [], []
    make_plan(*drawn(2, 3, 0))
    for (count, places), most in SIZES:
        ours, peers, lengths, others = [], [], [], []
        missing = None
        for seed in range(3 * DRAWS if nightly else DRAWS):
            domain, world, goal = drawn(count, places, seed)
            took, plan = timed(lambda: make_plan(domain, world, goal))  # noqa: B023 - called at once
            checked(world, goal, plan.steps)
            ours.append(took)
            lengths.append(len(plan.steps))
            if seed < DRAWS:
                try:
                    took, found = timed(theirs(world, goal))
                    peers.append(took)
                    others.append(len(found))
                except ImportError as error:
                    missing = str(error)
        figure: dict[str, Any] = {
            "name": f"plan for {count} things, {places} places", "value": statistics.median(ours), "unit": "ms",
            "target": f"<= {most:g}", "peer": "pyperplan",
        }  # fmt: skip
        if peers:
            figure["peer_value"] = statistics.median(peers)
            figure["ratio"] = figure["peer_value"] / figure["value"]
        elif missing:
            figure["missing"] = missing
        figures.append(figure)
        within = sum(took <= most for took in ours)
        words = (
            f"{count} things, {places} places: {within} of {len(ours)} within {most:g} ms, slowest {max(ours):.0f} ms"
        )
        words += f"; {statistics.mean(lengths):.1f} steps, the cheapest"
        details.append(words + (f"; pyperplan's {statistics.mean(others):.1f}, any" if others else ""))
    return {"figures": figures, "details": details}


PARTS = [plans]
