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
from roboyard.scenarios.batch.statistics import wilson_interval
from roboyard.scenarios.batch.worker import TrialJob, TrialResult, run_trial

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
    return {"time": 0.0, "type": what, "trigger": on, **more}


def _belt(name: str, to: float, nth: int, later: float, back: float) -> tuple[dict[str, Any], ...]:
    """A belt that moves otherwise from some seconds after the arm sets out to ride along, and as ever again later."""
    moments = ((to, later), (0.03, back))
    return tuple(
        _on("device_command", "track_conveyor.track", occurrence=nth, name=name, value=speed, trigger_delay=time)
        for speed, time in moments
    )


CAMERA = {"sensor": "camera"}
LEFT = {"joint": "gripper_finger_joint_l"}
STUCK = ("gripper_stuck",)
BLIND = ("camera_silent", "no_depth")
FAR = "robots.arm.xacro_args={tray_x: '-0.1'}"
HEAVY = "objects.object.model=heavy_cylinder"
CASES = (
    Case("knocked over", "align", (_on("knock_over", "align.rotate"),), 2),
    Case("knocked over", "grasp.move_above", (_on("knock_over", "grasp.move_above"),), 2),
    Case("knocked over", "grasp.descend", (_on("knock_over", "grasp.descend"),), 2),
    Case("falls over", "release.retreat, placed", (_on("knock_over", "release.retreat", occurrence=2),), 2),
    Case("taken away", "align", (_on("remove_object", "align.rotate"),), 2),
    Case("taken away", "grasp.descend", (_on("remove_object", "grasp.descend"),), 2),
    Case("taken away", "grasp.descend, in a bay", (_on("remove_object", "grasp.descend", occurrence=3),), 2),
    Case("slips", "grasp.lift", (_on("drop_object", "grasp.lift"),), 2),
    Case("slips", "release.move_above, to a bay", (_on("drop_object", "release.move_above"),), 2),
    Case("slips", "release.move_above, to a place", (_on("drop_object", "release.move_above", occurrence=3),), 2),
    Case("pushed together", "align", (_on("push_objects_together", "align.rotate"),), 2, 0, ("rests",)),
    Case("pushed together", "grasp.descend", (_on("push_objects_together", "grasp.descend"),), 2, 0, ("rests",)),
    Case("place covered", "place.align", (_on("cover_place", "place.align"),)),
    Case("place wiped out", "release.move_above, to a place", (_on("remove_place", "place.check_occupancy"),)),
    Case(
        "all places wiped out",
        "unstow",
        (_on("remove_place", "unstow"), _on("remove_place", "grasp.descend", occurrence=2)),
        1,
        0,
        ("rests",),
    ),
    Case(
        "place occupied",
        "release.move_above, to a place",
        (_on("occupy_place", "release.move_above", occurrence=3),),
        2,
    ),
    Case("bay full", "release.move_above, to a bay", (_on("occupy_place", "release.move_above"),), 2),
    Case("camera silent, 8 s", "pick", (_on("sensor_dropout", "pick", **CAMERA, **{"duration": 8.0}),)),
    Case("camera silent", "place, for good", (_on("sensor_dropout", "place", **CAMERA),), 1, 0, BLIND),
    Case("no depth, 8 s", "align.detect", (_on("depth_dropout", "align.rotate", **CAMERA, **{"duration": 8.0}),)),
    Case("no depth", "pick, for good", (_on("depth_dropout", "pick", **CAMERA),), 1, 0, BLIND),
    Case("light off, 15 s", "pick", (_on("low_light", "pick", **CAMERA, **{"duration": 15.0}),)),
    Case(
        "depth noise 30 mm, 15 s", "pick", (_on("sensor_noise", "pick", **CAMERA, stddev=0.03, **{"duration": 15.0}),)
    ),
    Case(
        "finger stuck, 10 s",
        "grasp.close_gripper",
        (_on("joint_locked", "grasp.close_gripper", **LEFT, **{"duration": 10.0}),),
    ),
    Case(
        "fingers without force",
        "grasp.lift",
        (
            _on("joint_degraded", "grasp.lift", **LEFT, effort_scale=0.0),
            _on("joint_degraded", "grasp.attach_object", joint="gripper_finger_joint_r", effort_scale=0.0),
        ),
        1,
        0,
        STUCK,
    ),
    Case(
        "arm stop pressed",
        "grasp.move_above, moving",
        (_on("call_service", "grasp.move_above", trigger_delay=0.6),),
        1,
        0,
        ("cancelled",),
    ),
    Case(
        "arm stop pressed",
        "release.move_above, moving",
        (_on("call_service", "release.move_above", trigger_delay=0.6),),
        1,
        0,
        ("cancelled",),
    ),
    Case(
        "joint 5 limp, 5 s",
        "grasp.move_above",
        (_on("joint_degraded", "grasp.move_above", joint="arm_joint_5", effort_scale=0.0, **{"duration": 5.0}),),
    ),
    Case(
        "joint 1 blocked",
        "release.move_above, for good",
        (_on("joint_locked", "release.move_above", joint="arm_joint_1"),),
        1,
        0,
        ("not_followed", "rests"),
        held=True,
    ),
    Case(
        "slips, then no depth for 5 s",
        "release.move_above, look",
        (
            _on("drop_object", "release.move_above"),
            _on("depth_dropout", "look", occurrence=2, **CAMERA, **{"duration": 5.0}),
        ),
        2,
    ),
    Case(
        "knocked over, other taken away",
        "grasp.descend, align",
        (_on("knock_over", "grasp.descend"), _on("remove_object", "align.rotate", occurrence=2)),
        3,
    ),
    Case("too heavy", "from the start", (), 1, 0, ("rests",), (HEAVY,)),
    Case("bays out of reach", "from the start", (), 1, 0, ("not_reachable", "rests"), (FAR,)),
    Case(
        "belt stops, 8 s",
        "track_conveyor.track, on the way down",
        _belt("inlet", 0.0, 1, 1.5, 9.5),
        0,
        2,
        scenario=BELTS,
    ),
    Case(
        "belt stops, 8 s", "track_conveyor.track, fingers close", _belt("inlet", 0.0, 1, 2.4, 9.5), 0, 2, scenario=BELTS
    ),
    Case(
        "belt speeds up, 8 s",
        "track_conveyor.track, on the way down",
        _belt("inlet", 0.05, 1, 1.0, 9.0),
        0,
        2,
        scenario=BELTS,
    ),
    Case(
        "belt stops, 8 s", "track_conveyor.track, setting down", _belt("outlet", 0.0, 4, 1.5, 9.5), 0, 2, scenario=BELTS
    ),
)
MOMENTARY_LOSS = ("knock_over", "drop_object")


def run(nightly: bool, runs: int | None = None, seed: int = 0) -> dict[str, Any]:
    """Each fault with other seeds; how many were overcome, safely put back, or stopped with a stated cause."""
    count = runs or (20 if nightly else 2)
    found: dict[int, list[tuple[TrialResult, str]]] = {number: [] for number in range(len(CASES))}
    with tempfile.TemporaryDirectory(prefix="roboyard-faults-") as folder:
        jobs = [(number, job) for k in range(count) for number, job in _jobs(seed + k, folder)]
        for number, result in sorted(_all(jobs), key=lambda one: one[1].seed):
            found[number].append((result, _judge(CASES[number], result)))
    return _figures(found)


def _jobs(seed: int, folder: str) -> Iterator[tuple[int, TrialJob]]:
    for number, case in enumerate(CASES):
        cell = (
            ("stop_when=at_rest", "duration=240")
            if case.scenario == BELTS
            else (f"objects.object.count={case.things}",)
        )
        overrides = (
            f"faults={json.dumps(case.faults)}", f"robots.arm.parameters.skills.loop={max(case.placed, 1)}",
            *cell, *case.more,
        )  # fmt: skip
        yield number, TrialJob(case.scenario, seed, overrides, False, f"{folder}/{number}-{seed}", "none")


def _all(jobs: list[tuple[int, TrialJob]]) -> Iterator[tuple[int, TrialResult]]:
    """Results as they come; few are under way at once, so that Ctrl-C ends them soon."""
    with ProcessPool(min(count_usable_cores(), len(jobs)), preload=("roboyard.scenarios.batch.worker",)) as pool:
        waiting = iter(jobs)
        running: dict[Future[TrialResult], int] = {}
        while True:
            while len(running) < 2 * pool.workers and (one := next(waiting, None)) is not None:
                running[pool.submit(run_trial, one[1])] = one[0]
            if not running:
                return
            ready, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ready:
                yield running.pop(future), future.result()


def _judge(case: Case, result: TrialResult) -> str:
    """What came of it, in a word; and, of what failed, what."""
    m = _metrics(result)
    if result.state != "done" or m.get("end_cause") is None:
        return f"failed: {result.reason or 'no fault happened'}"
    laid = sum(fault["type"] in MOMENTARY_LOSS for fault in case.faults)
    wrong = [
        text
        for bad, text in (
            (not m["at_rest"] or m["max_skill_silence"] > QUIET, "hangs"),
            (m["collisions"], f"touched something {m['collisions']} times"),
            (m["objects_fallen"], "knocked something over"),
            (m["objects_lying"] > laid, "something lies"),
            (m["objects_astray"] and case.scenario != BELTS, "something stands astray"),
            (m["fallen_object_contacts"] > 2, f"touched what lies {m['fallen_object_contacts']} times"),
        )
        if bad
    ]
    if wrong:
        return f"failed: {', '.join(wrong)}"
    placed = (
        m["places_succeeded"] if case.scenario == BELTS else m["objects_placed"]
    )  # belts carry on what stands on them
    if case.placed and placed >= case.placed:
        return "recovered"
    if not m["objects_held"] and (m["end_cause"] in case.ends or m["objects_placed"]):
        return "put back"
    if m["end_cause"] in case.ends and (case.held or m["end_cause"] != "rests"):
        return "stopped"
    return f"failed: ended by {m['end_cause'] or 'nothing'}, {m['objects_placed']} placed, {m['objects_held']} held"


def _metrics(result: TrialResult) -> dict[str, Any]:
    """Those of the arm, words too."""
    return {name.removeprefix("arm."): value for name, value in result.metrics.items()}


def _figures(found: dict[int, list[tuple[TrialResult, str]]]) -> dict[str, Any]:
    total: Counter[str] = Counter()
    lines = [f"{'fault':32} {'phase':26} {'n':>3} recovered put back stopped failed  seconds  stated"]
    misses = []
    for number, results in found.items():
        case = CASES[number]
        kinds = Counter(word.partition(":")[0] for _, word in results)
        total += kinds
        times = [float(v) for r, _ in results if (v := _metrics(r).get("recovery_time")) is not None]
        mean = f"{sum(times) / len(times):8.1f}" if times else " " * 8
        causes = Counter(str(_metrics(r).get("failure_causes") or "") for r, _ in results)
        counts = f"{kinds['recovered']:9} {kinds['put back']:8} {kinds['stopped']:7} {kinds['failed']:6}"
        said = next(iter(causes.most_common(1)), ("", 0))[0]
        lines.append(f"{case.fault:32} {case.phase:26} {len(results):3} {counts} {mean}  {said}")
        misses += [f"{case.fault} ({case.phase}), seed {r.seed}: {word}" for r, word in results if word[:6] == "failed"]
    runs = total.total()
    well = wilson_interval(runs - total["failed"], runs)
    quiet = max(
        (float(_metrics(r).get("max_skill_silence") or 0.0) for rs in found.values() for r, _ in rs), default=math.nan
    )
    return {
        "figures": [
            {"name": "recovered, put back or stopped", "value": well.value, "target": ">= 1"},
            {"name": "recovered", "value": total["recovered"] / max(runs, 1)},
            {"name": "longest silence of the skills", "value": quiet, "unit": "s", "target": f"<= {QUIET:g}"},
        ],
        "details": [f"recovered, put back or stopped: {well}", *lines, *misses],
    }
