"""Recovery of the youBot's skills from faults, each injected when a skill enters a phase of the complete loop.

Camera, physics, planner and skills run as in the scenarios ``youbot-faults`` and, for belts, ``youbot-belt``.  A trial
counts only if the fault was injected into the simulation; its result is judged by the true positions of all objects
at its end.
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
MAX_SILENCE = 60.0
"""Longest time without an event of the skills; after it they count as hanging [s]."""


@dataclass(frozen=True)
class Case:
    """A fault at a phase.

    Attributes:
        fault: Name of the fault in the table.
        phase: Skill and phase at which it is injected, or when.
        faults: Faults as in a scenario file.
        n_objects: Number of objects; on belts that of the scenario.
        n_placed: Number of objects on places after a recovery; 0: none is required.
        end_causes: Causes with which the loop may end instead; empty: it must recover.
        overrides: Further settings of the scenario.
        may_hold: Whether a held object may stay in the gripper, because the arm cannot set it down.
        scenario: Name of the scenario.
    """

    fault: str
    phase: str
    faults: tuple[dict[str, Any], ...]
    n_objects: int = 1
    n_placed: int = 1
    end_causes: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    may_hold: bool = False
    scenario: str = SCENARIO


def _fault(fault_type: str, trigger: str, **settings: Any) -> dict[str, Any]:
    return {"time": 0.0, "type": fault_type, "trigger": trigger, **settings}


def _belt_faults(name: str, speed: float, occurrence: int, start: float, end: float) -> tuple[dict[str, Any], ...]:
    """Return faults that give a belt another speed [m/s] between two times [s] after the start of a tracking motion."""
    changes = ((speed, start), (0.03, end))
    return tuple(
        _fault(
            "device_command", "track_conveyor.track", occurrence=occurrence, name=name, value=value, trigger_delay=time
        )
        for value, time in changes
    )


CAMERA = {"sensor": "camera"}
LEFT = {"joint": "gripper_finger_joint_l"}
STUCK = ("gripper_stuck",)
BLIND = ("camera_silent", "no_depth")
FAR = "robots.arm.xacro_args={tray_x: '-0.1'}"
HEAVY = "objects.object.model=heavy_cylinder"
CASES = (
    Case("knocked over", "align", (_fault("knock_over", "align.rotate"),), 2),
    Case("knocked over", "grasp.move_above", (_fault("knock_over", "grasp.move_above"),), 2),
    Case("knocked over", "grasp.descend", (_fault("knock_over", "grasp.descend"),), 2),
    Case("falls over", "release.retreat, placed", (_fault("knock_over", "release.retreat", occurrence=2),), 2),
    Case("taken away", "align", (_fault("remove_object", "align.rotate"),), 2),
    Case("taken away", "grasp.descend", (_fault("remove_object", "grasp.descend"),), 2),
    Case("taken away", "grasp.descend, in a bay", (_fault("remove_object", "grasp.descend", occurrence=3),), 2),
    Case("slips", "grasp.lift", (_fault("drop_object", "grasp.lift"),), 2),
    Case("slips", "release.move_above, to a bay", (_fault("drop_object", "release.move_above"),), 2),
    Case("slips", "release.move_above, to a place", (_fault("drop_object", "release.move_above", occurrence=3),), 2),
    Case("pushed together", "align", (_fault("push_objects_together", "align.rotate"),), 2, 0, ("rests",)),
    Case("pushed together", "grasp.descend", (_fault("push_objects_together", "grasp.descend"),), 2, 0, ("rests",)),
    Case("place covered", "place.align", (_fault("cover_place", "place.align"),)),
    Case("place wiped out", "release.move_above, to a place", (_fault("remove_place", "place.check_occupancy"),)),
    Case(
        "all places wiped out",
        "unstow",
        (_fault("remove_place", "unstow"), _fault("remove_place", "grasp.descend", occurrence=2)),
        1,
        0,
        ("rests",),
    ),
    Case(
        "place occupied",
        "release.move_above, to a place",
        (_fault("occupy_place", "release.move_above", occurrence=3),),
        2,
    ),
    Case("bay full", "release.move_above, to a bay", (_fault("occupy_place", "release.move_above"),), 2),
    Case("camera silent, 8 s", "pick", (_fault("sensor_dropout", "pick", **CAMERA, **{"duration": 8.0}),)),
    Case("camera silent", "place, for good", (_fault("sensor_dropout", "place", **CAMERA),), 1, 0, BLIND),
    Case("no depth, 8 s", "align.detect", (_fault("depth_dropout", "align.rotate", **CAMERA, **{"duration": 8.0}),)),
    Case("no depth", "pick, for good", (_fault("depth_dropout", "pick", **CAMERA),), 1, 0, BLIND),
    Case("light off, 15 s", "pick", (_fault("low_light", "pick", **CAMERA, **{"duration": 15.0}),)),
    Case(
        "depth noise 30 mm, 15 s",
        "pick",
        (_fault("sensor_noise", "pick", **CAMERA, stddev=0.03, **{"duration": 15.0}),),
    ),
    Case(
        "finger stuck, 10 s",
        "grasp.close_gripper",
        (_fault("joint_locked", "grasp.close_gripper", **LEFT, **{"duration": 10.0}),),
    ),
    Case(
        "fingers without force",
        "grasp.lift",
        (
            _fault("joint_degraded", "grasp.lift", **LEFT, effort_scale=0.0),
            _fault("joint_degraded", "grasp.attach_object", joint="gripper_finger_joint_r", effort_scale=0.0),
        ),
        1,
        0,
        STUCK,
    ),
    Case(
        "arm stop pressed",
        "grasp.move_above, moving",
        (_fault("call_service", "grasp.move_above", trigger_delay=0.6),),
        1,
        0,
        ("cancelled",),
    ),
    Case(
        "arm stop pressed",
        "release.move_above, moving",
        (_fault("call_service", "release.move_above", trigger_delay=0.6),),
        1,
        0,
        ("cancelled",),
    ),
    Case(
        "joint 5 limp, 5 s",
        "grasp.move_above",
        (_fault("joint_degraded", "grasp.move_above", joint="arm_joint_5", effort_scale=0.0, **{"duration": 5.0}),),
    ),
    Case(
        "joint 1 blocked",
        "release.move_above, for good",
        (_fault("joint_locked", "release.move_above", joint="arm_joint_1"),),
        1,
        0,
        ("not_followed", "rests"),
        may_hold=True,
    ),
    Case(
        "slips, then no depth for 5 s",
        "release.move_above, look",
        (
            _fault("drop_object", "release.move_above"),
            _fault("depth_dropout", "look", occurrence=2, **CAMERA, **{"duration": 5.0}),
        ),
        2,
    ),
    Case(
        "knocked over, other taken away",
        "grasp.descend, align",
        (_fault("knock_over", "grasp.descend"), _fault("remove_object", "align.rotate", occurrence=2)),
        3,
    ),
    Case("too heavy", "from the start", (), 1, 0, ("rests",), (HEAVY,)),
    Case("bays out of reach", "from the start", (), 1, 0, ("not_reachable", "rests"), (FAR,)),
    Case(
        "belt stops, 8 s",
        "track_conveyor.track, on the way down",
        _belt_faults("inlet", 0.0, 1, 1.5, 9.5),
        0,
        2,
        scenario=BELTS,
    ),
    Case(
        "belt stops, 8 s",
        "track_conveyor.track, fingers close",
        _belt_faults("inlet", 0.0, 1, 2.4, 9.5),
        0,
        2,
        scenario=BELTS,
    ),
    Case(
        "belt speeds up, 8 s",
        "track_conveyor.track, on the way down",
        _belt_faults("inlet", 0.05, 1, 1.0, 9.0),
        0,
        2,
        scenario=BELTS,
    ),
    Case(
        "belt stops, 8 s",
        "track_conveyor.track, setting down",
        _belt_faults("outlet", 0.0, 4, 1.5, 9.5),
        0,
        2,
        scenario=BELTS,
    ),
)
LAYING_FAULTS = ("knock_over", "drop_object")


def run(nightly: bool, runs: int | None = None, seed: int = 0) -> dict[str, Any]:
    """Inject each fault with several seeds, and count recoveries, safe returns, and stops with a stated cause."""
    count = runs or (20 if nightly else 2)
    found: dict[int, list[tuple[TrialResult, str]]] = {number: [] for number in range(len(CASES))}
    with tempfile.TemporaryDirectory(prefix="roboyard-faults-") as folder:
        jobs = [(number, job) for k in range(count) for number, job in _jobs(seed + k, folder)]
        for number, result in sorted(_run_all(jobs), key=lambda one: one[1].seed):
            found[number].append((result, _judge(CASES[number], result)))
    return _figures(found)


def _jobs(seed: int, folder: str) -> Iterator[tuple[int, TrialJob]]:
    for number, case in enumerate(CASES):
        cell = (
            ("stop_when=at_rest", "duration=240")
            if case.scenario == BELTS
            else (f"objects.object.count={case.n_objects}",)
        )
        overrides = (
            f"faults={json.dumps(case.faults)}", f"robots.arm.parameters.skills.loop={max(case.n_placed, 1)}",
            *cell, *case.overrides,
        )  # fmt: skip
        yield number, TrialJob(case.scenario, seed, overrides, False, f"{folder}/{number}-{seed}", "none")


def _run_all(jobs: list[tuple[int, TrialJob]]) -> Iterator[tuple[int, TrialResult]]:
    """Yield results as they are available; only a few trials run at once, so that Ctrl-C ends them soon."""
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
    """Return the result of a trial: recovered, put back, stopped, or failed with the reasons."""
    m = _metrics(result)
    if result.state != "done" or m.get("end_cause") is None:
        return f"failed: {result.reason or 'no fault happened'}"
    n_lying_expected = sum(fault["type"] in LAYING_FAULTS for fault in case.faults)
    reasons = [
        text
        for is_wrong, text in (
            (not m["at_rest"] or m["max_skill_silence"] > MAX_SILENCE, "hangs"),
            (m["collisions"], f"touched something {m['collisions']} times"),
            (m["objects_fallen"], "knocked something over"),
            (m["objects_lying"] > n_lying_expected, "something lies"),
            (m["objects_astray"] and case.scenario != BELTS, "something stands astray"),
            (m["fallen_object_contacts"] > 2, f"touched what lies {m['fallen_object_contacts']} times"),
        )
        if is_wrong
    ]
    if reasons:
        return f"failed: {', '.join(reasons)}"
    placed = (
        m["places_succeeded"] if case.scenario == BELTS else m["objects_placed"]
    )  # belts carry on what stands on them
    if case.n_placed and placed >= case.n_placed:
        return "recovered"
    if not m["objects_held"] and (m["end_cause"] in case.end_causes or m["objects_placed"]):
        return "put back"
    if m["end_cause"] in case.end_causes and (case.may_hold or m["end_cause"] != "rests"):
        return "stopped"
    return f"failed: ended by {m['end_cause'] or 'nothing'}, {m['objects_placed']} placed, {m['objects_held']} held"


def _metrics(result: TrialResult) -> dict[str, Any]:
    """Return the metrics of the arm, texts too."""
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
        stated = next(iter(causes.most_common(1)), ("", 0))[0]
        lines.append(f"{case.fault:32} {case.phase:26} {len(results):3} {counts} {mean}  {stated}")
        misses += [f"{case.fault} ({case.phase}), seed {r.seed}: {word}" for r, word in results if word[:6] == "failed"]
    runs = total.total()
    success = wilson_interval(runs - total["failed"], runs)
    longest_silence = max(
        (float(_metrics(r).get("max_skill_silence") or 0.0) for rs in found.values() for r, _ in rs), default=math.nan
    )
    return {
        "figures": [
            {"name": "recovered, put back or stopped", "value": success.value, "target": ">= 1"},
            {"name": "recovered", "value": total["recovered"] / max(runs, 1)},
            {
                "name": "longest silence of the skills",
                "value": longest_silence,
                "unit": "s",
                "target": f"<= {MAX_SILENCE:g}",
            },
        ],
        "details": [f"recovered, put back or stopped: {success}", *lines, *misses],
    }
