"""What the youBot's skills make of faults: each is injected when a skill comes to a phase, in the real loop, by seeds.

Camera, physics, planner and skills run as ever (scenario ``youbot-faults``, for belts ``youbot-belt``).  That a fault
really happened is what the node of faults did to the simulation; what came of it is judged by where things truly are
in the end.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any

from roboyard.compute import ProcessPool, count_usable_cores
from roboyard.scenarios.batch_worker import Job, Result, run_job
from roboyard.scenarios.statistics import wilson

SCENARIO, BELTS = "youbot-faults", "youbot-belt"
QUIET = 60.0
"""A word comes from the skills at least so often, else they hang [s]."""


@dataclass(frozen=True)
class Case:
    """A fault at a phase.

    Attributes:
        fault: Its name in the table.
        phase: Of which skill, or when.
        faults: As a scenario says them.
        things: How many there are; on belts as many as ever.
        placed: Of them stand on places if all is well again; 0: none can be asked for.
        ends: With which cause the loop may end instead; empty: it must not.
        more: Further settings.
        held: What is held may stay held, since the arm cannot set it down.
        scenario: In which.
    """

    fault: str
    phase: str
    faults: tuple[dict[str, Any], ...]
    things: int = 1
    placed: int = 1
    ends: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    held: bool = False
    scenario: str = SCENARIO


def _on(what: str, on: str, **more: Any) -> dict[str, Any]:
    return {"at": 0.0, "what": what, "on": on, **more}


def _belt(name: str, to: float, nth: int, later: float, back: float) -> tuple[dict[str, Any], ...]:
    """A belt that moves otherwise from some seconds after the arm sets out to ride along, and as ever again later."""
    moments = ((to, later), (0.03, back))
    return tuple(_on("furniture", "along.rode", nth=nth, name=name, to=speed, later=time) for speed, time in moments)


CAMERA = {"sensor": "camera"}
LEFT = {"joint": "gripper_finger_joint_l"}
STUCK = ("hand_stuck",)
BLIND = ("camera_silent", "no_depth")
FAR = "robots.arm.arguments={bays_x: '-0.1'}"
HEAVY = "things.thing.model=heavy_cylinder"
CASES = (
    Case("knocked over", "align", (_on("knock_over", "align.turned"),), 2),
    Case("knocked over", "grasp.above", (_on("knock_over", "grasp.above"),), 2),
    Case("knocked over", "grasp.low", (_on("knock_over", "grasp.low"),), 2),
    Case("falls over", "release.left, placed", (_on("knock_over", "release.left", nth=2),), 2),
    Case("taken away", "align", (_on("take_away", "align.turned"),), 2),
    Case("taken away", "grasp.low", (_on("take_away", "grasp.low"),), 2),
    Case("taken away", "grasp.low, in a bay", (_on("take_away", "grasp.low", nth=3),), 2),
    Case("slips", "grasp.lifted", (_on("slip", "grasp.lifted"),), 2),
    Case("slips", "release.above, to a bay", (_on("slip", "release.above"),), 2),
    Case("slips", "release.above, to a place", (_on("slip", "release.above", nth=3),), 2),
    Case("pushed together", "align", (_on("push_together", "align.turned"),), 2, 0, ("rests",)),
    Case("pushed together", "grasp.low", (_on("push_together", "grasp.low"),), 2, 0, ("rests",)),
    Case("place covered", "place.aligned", (_on("cover", "place.aligned"),)),
    Case("place wiped out", "release.above, to a place", (_on("erase", "place.seen_again"),)),
    Case("all places wiped out", "unstow",
         (_on("erase", "unstow"), _on("erase", "grasp.low", nth=2)), 1, 0, ("rests",)),
    Case("place occupied", "release.above, to a place", (_on("occupy", "release.above", nth=3),), 2),
    Case("bay full", "release.above, to a bay", (_on("occupy", "release.above"),), 2),
    Case("camera silent, 8 s", "pick", (_on("sensor_silent", "pick", **CAMERA, **{"for": 8.0}),)),
    Case("camera silent", "place, for good", (_on("sensor_silent", "place", **CAMERA),), 1, 0, BLIND),
    Case("no depth, 8 s", "align.seen", (_on("sensor_blind", "align.turned", **CAMERA, **{"for": 8.0}),)),
    Case("no depth", "pick, for good", (_on("sensor_blind", "pick", **CAMERA),), 1, 0, BLIND),
    Case("light off, 15 s", "pick", (_on("sensor_dark", "pick", **CAMERA, **{"for": 15.0}),)),
    Case("depth noise 30 mm, 15 s", "pick", (_on("sensor_noisy", "pick", **CAMERA, stddev=0.03, **{"for": 15.0}),)),
    Case("finger stuck, 10 s", "grasp.closed", (_on("joint_blocked", "grasp.closed", **LEFT, **{"for": 10.0}),)),
    Case("fingers without force", "grasp.lifted", (
        _on("joint_weak", "grasp.lifted", **LEFT, effort=0.0),
        _on("joint_weak", "grasp.attached", joint="gripper_finger_joint_r", effort=0.0)), 1, 0, STUCK),
    Case("arm stop pressed", "grasp.above, moving", (_on("press", "grasp.above", later=0.6),), 1, 0, ("cancelled",)),
    Case("arm stop pressed", "release.above, moving",
         (_on("press", "release.above", later=0.6),), 1, 0, ("cancelled",)),
    Case("joint 5 limp, 5 s", "grasp.above",
         (_on("joint_weak", "grasp.above", joint="arm_joint_5", effort=0.0, **{"for": 5.0}),)),
    Case("joint 1 blocked", "release.above, for good",
         (_on("joint_blocked", "release.above", joint="arm_joint_1"),), 1, 0, ("not_followed", "rests"), held=True),
    Case("slips, then no depth for 5 s", "release.above, look",
         (_on("slip", "release.above"), _on("sensor_blind", "look", nth=2, **CAMERA, **{"for": 5.0})), 2),
    Case("knocked over, other taken away", "grasp.low, align",
         (_on("knock_over", "grasp.low"), _on("take_away", "align.turned", nth=2)), 3),
    Case("too heavy", "from the start", (), 1, 0, ("rests",), (HEAVY,)),
    Case("bays out of reach", "from the start", (), 1, 0, ("not_reachable", "rests"), (FAR,)),
    Case("belt stops, 8 s", "along.rode, on the way down", _belt("inlet", 0.0, 1, 1.5, 9.5), 0, 2, scenario=BELTS),
    Case("belt stops, 8 s", "along.rode, fingers close", _belt("inlet", 0.0, 1, 2.4, 9.5), 0, 2, scenario=BELTS),
    Case("belt speeds up, 8 s", "along.rode, on the way down", _belt("inlet", 0.05, 1, 1.0, 9.0), 0, 2, scenario=BELTS),
    Case("belt stops, 8 s", "along.rode, setting down", _belt("outlet", 0.0, 4, 1.5, 9.5), 0, 2, scenario=BELTS),
)  # fmt: skip
MOMENTARY_LOSS = ("knock_over", "slip")


def run(nightly: bool, runs: int | None = None, seed: int = 0) -> dict[str, Any]:
    """Each fault with other seeds; how many were overcome, safely put back, or stopped with a stated cause."""
    count = runs or (20 if nightly else 2)
    found: dict[int, list[tuple[Result, str]]] = {number: [] for number in range(len(CASES))}
    with tempfile.TemporaryDirectory(prefix="roboyard-faults-") as folder:
        jobs = [(number, job) for k in range(count) for number, job in _jobs(seed + k, folder)]
        for number, result in sorted(_all(jobs), key=lambda one: one[1].seed):
            found[number].append((result, _judge(CASES[number], result)))
    return _figures(found)


def _jobs(seed: int, folder: str) -> Iterator[tuple[int, Job]]:
    for number, case in enumerate(CASES):
        cell = ("until=at_rest", "duration=240") if case.scenario == BELTS else (f"things.thing.count={case.things}",)
        overrides = (
            f"faults={json.dumps(case.faults)}", f"robots.arm.parameters.skills.loop={max(case.placed, 1)}",
            *cell, *case.more,
        )  # fmt: skip
        yield number, Job(case.scenario, seed, overrides, False, f"{folder}/{number}-{seed}", "none")


def _all(jobs: list[tuple[int, Job]]) -> Iterator[tuple[int, Result]]:
    """Results as they come; few are under way at once, so that Ctrl-C ends them soon."""
    with ProcessPool(min(count_usable_cores(), len(jobs)), preload=("roboyard.scenarios.batch_worker",)) as pool:
        waiting = iter(jobs)
        running: dict[Future[Result], int] = {}
        while True:
            while len(running) < 2 * pool.workers and (one := next(waiting, None)) is not None:
                running[pool.submit(run_job, one[1])] = one[0]
            if not running:
                return
            ready, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ready:
                yield running.pop(future), future.result()


def _judge(case: Case, result: Result) -> str:
    """What came of it, in a word; and, of what failed, what."""
    m = _metrics(result)
    if result.state != "done" or m.get("ended_by") is None:
        return f"failed: {result.reason or 'no fault happened'}"
    laid = sum(fault["what"] in MOMENTARY_LOSS for fault in case.faults)
    wrong = [
        text
        for bad, text in (
            (not m["at_rest"] or m["quiet_seconds"] > QUIET, "hangs"),
            (m["collisions"], f"touched something {m['collisions']} times"),
            (m["things_fallen"], "knocked something over"),
            (m["things_lying"] > laid, "something lies"),
            (m["things_astray"] and case.scenario != BELTS, "something stands astray"),
            (m["lying_touched"] > 2, f"touched what lies {m['lying_touched']} times"),
        )
        if bad
    ]
    if wrong:
        return f"failed: {', '.join(wrong)}"
    placed = m["places_ok"] if case.scenario == BELTS else m["things_placed"]  # belts carry on what stands on them
    if case.placed and placed >= case.placed:
        return "recovered"
    if not m["things_held"] and (m["ended_by"] in case.ends or m["things_placed"]):
        return "put back"
    if m["ended_by"] in case.ends and (case.held or m["ended_by"] != "rests"):
        return "stopped"
    return f"failed: ended by {m['ended_by'] or 'nothing'}, {m['things_placed']} placed, {m['things_held']} held"


def _metrics(result: Result) -> dict[str, Any]:
    """Those of the arm, words too."""
    return {name.removeprefix("arm."): value for name, value in result.metrics.items()}


def _figures(found: dict[int, list[tuple[Result, str]]]) -> dict[str, Any]:
    total: Counter[str] = Counter()
    lines = [f"{'fault':32} {'phase':26} {'n':>3} recovered put back stopped failed  seconds  stated"]
    misses = []
    for number, results in found.items():
        case = CASES[number]
        kinds = Counter(word.partition(":")[0] for _, word in results)
        total += kinds
        times = [float(v) for r, _ in results if (v := _metrics(r).get("recover_seconds")) is not None]
        mean = f"{sum(times) / len(times):8.1f}" if times else " " * 8
        causes = Counter(str(_metrics(r).get("causes") or "") for r, _ in results)
        counts = f"{kinds['recovered']:9} {kinds['put back']:8} {kinds['stopped']:7} {kinds['failed']:6}"
        said = next(iter(causes.most_common(1)), ("", 0))[0]
        lines.append(f"{case.fault:32} {case.phase:26} {len(results):3} {counts} {mean}  {said}")
        misses += [f"{case.fault} ({case.phase}), seed {r.seed}: {word}" for r, word in results if word[:6] == "failed"]
    runs = total.total()
    well = wilson(runs - total["failed"], runs)
    quiet = max(
        (float(_metrics(r).get("quiet_seconds") or 0.0) for rs in found.values() for r, _ in rs), default=math.nan
    )
    return {
        "figures": [
            {"name": "recovered, put back or stopped", "value": well.value, "target": ">= 1"},
            {"name": "recovered", "value": total["recovered"] / max(runs, 1)},
            {"name": "longest silence of the skills", "value": quiet, "unit": "s", "target": f"<= {QUIET:g}"},
        ],
        "details": [f"recovered, put back or stopped: {well}", *lines, *misses],
    }
