"""``roboyard plan steps``, ``check plan`` and ``show plan``: walks over uneven ground, planned and looked at again."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.grammar import JsonOption
from roboyard.cli.steps_outputs import (
    AnimationOption,
    MovementOption,
    Outputs,
    PictureOption,
    check_file,
    write_text,
)

if TYPE_CHECKING:
    from roboyard.scenarios.ground import TerrainEntry
    from roboyard.scenarios.steps_file import HeightMapFile
    from roboyard.walking.steps.checker import Verdict

_MOST = 2**53 - 1
_BUDGET = 200_000
_QUICK = 2_000_000
"""More events than a core tries in a second."""
_LONGEST = 86_400.0
Length = Annotated[float | None, typer.Option(metavar="M", help="Of the ground, as a scenario's key of that name.")]


def steps(
    kind: Annotated[str, typer.Argument(metavar="KIND|FILE", help="Ground: a kind of terrain, a .npy or a picture.")],
    goal: Annotated[str, typer.Option("--to", metavar="X,Y", help="Where the body shall go [m].")],
    start: Annotated[str, typer.Option("--from", metavar="X,Y[,THETA]", help="Where it is [m, rad].")] = "0,0",
    robot: Annotated[str, typer.Option(metavar="NAME|FILE", help="With legs.")] = "akrobat",
    planner: Annotated[str, typer.Option(metavar="NAME", help="splitting, greedy, genetic, …")] = "splitting",
    budget: Annotated[
        int | None, typer.Option(min=1, max=_MOST, help="Events to try; default: 200000, or what --seconds allow.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(metavar="S", help="Take the best plan of so long a search.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=_MOST, help="Of what the planner draws.")] = 0,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Cores; the plan is the same.")] = 1,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDR", help="Over a Ray cluster: its head's HOST:PORT, or local.")
    ] = None,
    energy: Annotated[float, typer.Option(metavar="W", help="Weight of the joints' work in a plan's cost.")] = 0.0,
    leg_loss: Annotated[float, typer.Option(metavar="W", help="Weight of how it stands if a foot gives way.")] = 0.0,
    failed_leg: Annotated[str | None, typer.Option(metavar="NAME", help="Never stand on this leg.")] = None,
    ground_seed: Annotated[int, typer.Option(min=0, help="That the ground is drawn with.")] = 0,
    origin: Annotated[
        str | None, typer.Option(metavar="X,Y", help="Corner of the ground of the least x and y.")
    ] = None,
    size: Annotated[str | None, typer.Option(metavar="X,Y", help="Of the ground, of a kind [m].")] = None,
    height_range: Length = None,
    cell_size: Length = None,
    fraction: Annotated[float | None, typer.Option(help="Of the ground, as a scenario's key of that name.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE.yaml", help="Write the plan; .json also.")] = None,
    picture: PictureOption = None,
    animation: AnimationOption = None,
    movement: MovementOption = None,
    json: JsonOption = False,
) -> None:
    """Steps over uneven ground: where to set which foot, and when.

    The plan is looked at once more by a checker that shares no code with the planner.
    Ctrl-C ends the search; the best plan so far is told and written, complete.

    Exit code 0: there is a plan, and it is right; 1: none was found; 2: ground, start or goal cannot be used;
    130: ended by Ctrl-C.
    """
    from roboyard.cli.terminal import emit, fields, note
    from roboyard.cli.watched_search import watched
    from roboyard.errors import InputError
    from roboyard.scenarios.robot_steps import find_rig
    from roboyard.scenarios.steps_file import ground_of, heights_of, steps_text
    from roboyard.walking.errors import NoPlan
    from roboyard.walking.steps.checker import Limits, check_plan
    from roboyard.walking.steps.planning import plan_steps
    from roboyard.walking.steps.problem import Problem, Rating
    from roboyard.walking.steps.upkeep import leg_loss_margins, work

    check_file("--out", out, (".yaml", ".yml", ".json"))
    outputs = Outputs(picture, animation, movement)
    if seconds is not None and not 0.0 < seconds <= _LONGEST:
        raise InputError(f"--seconds {seconds:g}", valid=f"more than 0, up to {_LONGEST:g} s")
    first, last = _numbers("--from", start, (2, 3)), _numbers("--to", goal, (2,))
    heading = first[2] if len(first) == 3 else 0.0
    entry = _ground(
        kind, origin, size, {"height_range": height_range, "cell_size": cell_size, "fraction": fraction}, ground_seed
    )
    heights, rig = heights_of(entry), find_rig(robot, failed_leg=failed_leg)
    ground = ground_of(entry, rig, [first[:2], last], heading)
    problem = Problem.of(rig, ground, first[:2], last, Rating(energy=energy, leg_loss=leg_loss))
    events = budget or (_BUDGET if seconds is None else math.ceil(seconds * _QUICK * workers))
    try:
        with watched(events, seconds, quiet=json) as watch:
            plan = plan_steps(
                problem, planner, budget=events, seed=seed, workers=workers, cluster=cluster, stop=watch.stop,
                told=watch.told,
            )  # fmt: skip
    except NoPlan as error:
        if watch.interrupted:
            raise KeyboardInterrupt from None
        if json:
            emit({"plan": None, "why": error.message, "cells": [list(cell) for cell in error.cells]})
        else:
            note(f"roboyard: no plan: {error}")
        raise typer.Exit(1) from None
    seen = check_plan(plan, rig.walker, rig.body, heights, (last[0], last[1]), Limits(margin=rig.margin))
    if out is not None:
        write_text(out, steps_text(plan, rig.walker, robot, (last[0], last[1]), entry, failed_leg))
    outputs.write(plan, rig, ground, (last[0], last[1]))
    joules, stands = work(plan, rig), float((leg_loss_margins(plan)[1] > 0.0).mean())
    took, ended = plan.effort, "by Ctrl-C" if watch.interrupted else "by --seconds" if watch.late else None
    if json:
        emit({
            "plan": {"duration": plan.duration, "length": plan.length, "steps": len(plan.swings), "cost": plan.cost},
            "margin": seen.margin, "tilt": seen.tilt, "rate": seen.rate, "work": joules, "stands_on_one_less": stands,
            "faults": [f"{one.kind}: {one.what}" for one in seen.faults],
            "planner": planner, "events": took.events, "candidates": took.candidates, "arrivals": took.arrivals,
            "ended": ended, "out": out, "picture": picture, **outputs.named,
        })  # fmt: skip
    else:
        fields(
            [
                ("duration", f"{plan.duration:.1f} s for {plan.length:.2f} m, {len(plan.swings)} steps"),
                ("cost", f"{plan.cost:.1f} s with how near it is to tipping, and the ground"),
                ("margin", _margin(seen)),
                ("if a foot gave way", f"it would stand for {100.0 * stands:.0f} % of the time"),
                ("work", f"{joules:.0f} J of the joints"),
                (
                    "search",
                    f"{took.events} events, {took.candidates} candidates, {took.arrivals} arrived"
                    + (f"; ended {ended} after {watch.elapsed:.1f} s" if ended else ""),
                ),
                ("checked", _said(seen)),
                *([("out", str(out))] if out is not None else []),
                *((name, str(file)) for name, file in outputs.named.items()),
            ]
        )
    if watch.interrupted:
        raise KeyboardInterrupt
    if seen.faults:
        raise typer.Exit(1)


def check_steps(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A plan of steps: .yaml or .json.")],
    json: JsonOption = False,
) -> None:
    """A plan of steps: whether a robot can walk it.

    Joints, their speeds, the support polygon, footholds and collisions, worked out anew every 10 ms.

    Exit code 1: it cannot; 2: the file is wrong.
    """
    from roboyard.cli.terminal import emit, fields
    from roboyard.scenarios.robot_steps import find_rig
    from roboyard.scenarios.steps_file import heights_of, load_steps
    from roboyard.walking.steps.checker import Limits, check_plan

    said = load_steps(file)
    rig = find_rig(said.robot, failed_leg=said.failed_leg)
    plan = said.plan(rig.walker)
    seen = check_plan(plan, rig.walker, rig.body, heights_of(said.ground), said.goal, Limits(margin=rig.margin))
    if json:
        emit({
            "ok": not seen.faults, "file": file, "duration": plan.duration, "steps": len(plan.swings),
            "looks": seen.looks, "margin": seen.margin, "tilt": seen.tilt, "rate": seen.rate,
            "faults": [
                {"kind": one.kind, "time": one.time, "what": one.what, "count": one.count} for one in seen.faults
            ],
        })  # fmt: skip
    else:
        fields(
            [
                ("robot", said.robot),
                ("takes", f"{plan.duration:.1f} s, {len(plan.swings)} steps"),
                ("margin", _margin(seen)),
                ("joints", f"at {100.0 * seen.rate:.0f} % of their speed at most"),
                ("checked", _said(seen)),
            ]
        )
    if seen.faults:
        raise typer.Exit(1)


def show_steps(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A plan of steps: .yaml or .json.")],
    picture: PictureOption = None,
    animation: AnimationOption = None,
    movement: MovementOption = None,
    json: JsonOption = False,
) -> None:
    """A plan of steps: where it leads, and its steps.

    The picture: tracks of body and feet, when which foot is down, where on its way the body could be meanwhile, and how
    firmly it stands.  The animation: body, legs and the polygon of the feet that are down.
    """
    from roboyard.cli.terminal import emit, fields, table
    from roboyard.scenarios.robot_steps import find_rig
    from roboyard.scenarios.steps_file import ground_of, load_steps

    outputs, said = Outputs(picture, animation, movement), load_steps(file)
    rig = find_rig(said.robot, failed_leg=said.failed_leg)
    plan = said.plan(rig.walker)
    if outputs.named:
        ends = [plan.track[0, 1:3].tolist(), said.goal]
        outputs.write(plan, rig, ground_of(said.ground, rig, ends, plan.heading), said.goal)
    names = [leg.name for leg in rig.walker.legs]
    if json:
        emit({
            "file": file, "robot": said.robot, "goal": said.goal, "duration": plan.duration, "length": plan.length,
            "steps": [{"leg": names[one.leg], "lifts": one.lifts, "lands": one.lands, "target": one.target}
                      for one in plan.swings],
            **outputs.named,
        })  # fmt: skip
        return
    fields(
        [
            ("robot", said.robot),
            ("goal", f"({said.goal[0]:.2f}, {said.goal[1]:.2f}) m"),
            ("takes", f"{plan.duration:.1f} s for {plan.length:.2f} m, {len(plan.swings)} steps"),
            *((f"{key}", value) for key, value in said.about.items()),
            *((name, str(file)) for name, file in outputs.named.items()),
        ]
    )
    table(
        ["leg", "lifts [s]", "lands [s]", "x [m]", "y [m]", "z [m]"],
        [
            [names[one.leg], f"{one.lifts:.2f}", f"{one.lands:.2f}", *(f"{value:.3f}" for value in one.target)]
            for one in plan.swings
        ],
        {"lifts [s]", "lands [s]", "x [m]", "y [m]", "z [m]"},
    )


def _margin(seen: Verdict) -> str:
    return f"{seen.margin:.3f} m at least from above; in space {math.degrees(seen.tilt):.0f}° until it tips over"


def _said(seen: Verdict) -> str:
    if not seen.faults:
        return f"nothing is wrong at {seen.looks} moments"
    return "; ".join(f"{one.kind} at {one.time:.2f} s: {one.what}" for one in seen.faults)


def _numbers(option: str, text: str, counts: tuple[int, ...]) -> list[float]:
    from roboyard.errors import InputError

    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in counts or not all(math.isfinite(number) and abs(number) < 1e4 for number in numbers):
        raise InputError(
            f"{option} {text[:80]!r}", valid=f"{' or '.join(map(str, counts))} numbers with commas, below 10000"
        )
    return numbers


def _ground(
    kind: str, origin: str | None, size: str | None, said: dict[str, float | None], seed: int
) -> TerrainEntry | HeightMapFile:
    from roboyard.config import load, yaml_from_data
    from roboyard.errors import InputError
    from roboyard.grids.terrain import TERRAIN_TYPES
    from roboyard.scenarios.ground import TerrainEntry
    from roboyard.scenarios.steps_file import HeightMapFile

    given: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    if kind in TERRAIN_TYPES:
        if origin is not None:
            given["origin"] = _numbers("--origin", origin, (2,))
        if size is not None:
            given["size"] = _numbers("--size", size, (2,))
        return load(TerrainEntry, yaml_from_data({"type": kind, "seed": seed, **given}))
    if not Path(kind).suffix:
        raise InputError(f"no ground {kind!r}", valid=f"{', '.join(TERRAIN_TYPES)}, or a file of heights: .npy, .png")
    for option, value in (("--size", size), ("--fraction", said["fraction"])):
        if value is not None:
            raise InputError(
                f"{option} with a file of heights", valid=f"{option} with a kind: {', '.join(TERRAIN_TYPES)}"
            )
    if origin is not None:
        given["origin"] = _numbers("--origin", origin, (2,))
    return load(HeightMapFile, yaml_from_data({"file": str(Path(kind).resolve()), **given}))
