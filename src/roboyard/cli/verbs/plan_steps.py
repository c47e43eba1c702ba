"""``roboyard plan steps`` and ``check plan``: a walk over uneven ground, planned step by step, and looked at again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.grammar import JsonOption

if TYPE_CHECKING:
    from roboyard.scenarios.ground import TerrainEntry
    from roboyard.scenarios.steps_file import HeightMap

Length = Annotated[float | None, typer.Option(metavar="M", help="Of the ground, as a scenario's key of that name.")]


def steps(
    kind: Annotated[str, typer.Argument(metavar="KIND|FILE", help="Ground: a kind of terrain, a .npy or a picture.")],
    goal: Annotated[str, typer.Option("--to", metavar="X,Y", help="Where the body shall go [m].")],
    start: Annotated[str, typer.Option("--from", metavar="X,Y[,THETA]", help="Where it is [m, rad].")] = "0,0",
    robot: Annotated[str, typer.Option(metavar="NAME|FILE", help="With legs.")] = "akrobat",
    planner: Annotated[str, typer.Option(metavar="NAME", help="splitting, random-sampling or greedy.")] = "splitting",
    budget: Annotated[int, typer.Option(min=1, help="Events to try.")] = 200_000,
    seed: Annotated[int, typer.Option(min=0, help="Of what the planner draws.")] = 0,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Cores; the plan is the same.")] = 1,
    ground_seed: Annotated[int, typer.Option(min=0, help="That the ground is drawn with.")] = 0,
    at: Annotated[str | None, typer.Option(metavar="X,Y", help="Corner of the ground of the least x and y.")] = None,
    size: Annotated[str | None, typer.Option(metavar="X,Y", help="Of the ground, of a kind [m].")] = None,
    relief: Length = None,
    cell: Length = None,
    share: Annotated[float | None, typer.Option(help="Of the ground, as a scenario's key of that name.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE.yaml", help="Write the plan; .json also.")] = None,
    picture: Annotated[Path | None, typer.Option(metavar="FILE.png", help="Draw it.")] = None,
    json: JsonOption = False,
) -> None:
    """Steps over uneven ground: where to set which foot, and when.

    The plan is looked at once more by a checker that shares no code with the planner.

    Exit code 0: there is a plan, and it is right; 1: none was found; 2: ground, start or goal cannot be used.
    """
    from roboyard.cli.terminal import emit, fields, note
    from roboyard.errors import InputError
    from roboyard.scenarios.ground import TerrainEntry
    from roboyard.scenarios.robot_steps import find_rig
    from roboyard.scenarios.steps_file import heights_of, steps_text
    from roboyard.walking.errors import NoPlan
    from roboyard.walking.steps.checker import Limits, check_plan
    from roboyard.walking.steps.ground import Ground
    from roboyard.walking.steps.planning import plan_steps
    from roboyard.walking.steps.problem import Problem

    if picture is not None and picture.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"--picture {picture}", valid="a name that ends in .png or .svg")
    first, last = _numbers("--from", start, (2, 3)), _numbers("--to", goal, (2,))
    heading = first[2] if len(first) == 3 else 0.0
    rig = find_rig(robot)
    entry = _ground(kind, at, size, {"relief": relief, "cell": cell, "share": share}, ground_seed)
    terrain = None
    if isinstance(entry, TerrainEntry):
        terrain = entry.make(ground_seed)
        ground = Ground.of_terrain(terrain, rig, [first[:2], last], heading=heading)
    else:
        ground = Ground.of(entry.heights(), entry.corner, rig, cell=entry.cell, heading=heading)
    problem = Problem.of(rig, ground, first[:2], last)
    try:
        plan = plan_steps(problem, planner, budget=budget, seed=seed, workers=workers)
    except NoPlan as error:
        if json:
            emit({"plan": None, "why": error.what, "cells": [list(cell) for cell in error.cells]})
        else:
            note(f"roboyard: no plan: {error}")
        raise typer.Exit(1) from None
    heights = heights_of(terrain, None if isinstance(entry, TerrainEntry) else entry)
    seen = check_plan(plan, rig.walker, rig.body, heights, (last[0], last[1]), Limits(margin=rig.margin))
    if out is not None:
        _write(out, steps_text(plan, rig.walker, robot, (last[0], last[1]), entry))
    if picture is not None:
        from roboyard.cli.steps_picture import draw_steps

        draw_steps(picture, plan, rig, ground, problem)
    took = plan.effort
    if json:
        emit({
            "plan": {"duration": plan.duration, "length": plan.length, "steps": len(plan.swings), "cost": plan.cost},
            "margin": seen.margin, "rate": seen.rate, "faults": [f"{one.kind}: {one.what}" for one in seen.faults],
            "planner": planner, "events": took.events, "candidates": took.candidates, "arrivals": took.arrivals,
            "out": out, "picture": picture,
        })  # fmt: skip
    else:
        fields(
            [
                ("duration", f"{plan.duration:.1f} s for {plan.length:.2f} m, {len(plan.swings)} steps"),
                ("cost", f"{plan.cost:.1f} s with how near it is to tipping, and the ground"),
                ("margin", f"{seen.margin:.3f} m at least"),
                ("search", f"{took.events} events, {took.candidates} candidates, {took.arrivals} arrived"),
                ("checked", _said(seen)),
                *((name, str(file)) for name, file in (("out", out), ("picture", picture)) if file is not None),
            ]
        )
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
    rig = find_rig(said.robot)
    plan = said.plan(rig.walker)
    terrain = said.terrain.make(0) if said.terrain is not None else None
    seen = check_plan(plan, rig.walker, rig.body, heights_of(terrain, said.map), said.goal, Limits(margin=rig.margin))
    if json:
        emit({
            "ok": not seen.faults, "file": file, "duration": plan.duration, "steps": len(plan.swings),
            "looks": seen.looks, "margin": seen.margin, "rate": seen.rate,
            "faults": [
                {"kind": one.kind, "time": one.time, "what": one.what, "count": one.count} for one in seen.faults
            ],
        })  # fmt: skip
    else:
        fields(
            [
                ("robot", said.robot),
                ("takes", f"{plan.duration:.1f} s, {len(plan.swings)} steps"),
                ("margin", f"{seen.margin:.3f} m at least"),
                ("joints", f"at {100.0 * seen.rate:.0f} % of their speed at most"),
                ("checked", _said(seen)),
            ]
        )
    if seen.faults:
        raise typer.Exit(1)


def _said(seen: Any) -> str:
    if not seen.faults:
        return f"nothing is wrong at {seen.looks} moments"
    return "; ".join(f"{one.kind} at {one.time:.2f} s: {one.what}" for one in seen.faults)


def _numbers(option: str, text: str, counts: tuple[int, ...]) -> list[float]:
    import math

    from roboyard.errors import InputError

    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in counts or not all(math.isfinite(number) and abs(number) < 1e4 for number in numbers):
        raise InputError(f"{option} {text[:80]!r}", valid=f"{' or '.join(map(str, counts))} numbers with commas")
    return numbers


def _ground(
    kind: str, at: str | None, size: str | None, said: dict[str, float | None], seed: int
) -> TerrainEntry | HeightMap:
    from roboyard.config import from_data, load
    from roboyard.errors import InputError
    from roboyard.grids.terrain_kinds import KINDS
    from roboyard.scenarios.ground import TerrainEntry
    from roboyard.scenarios.steps_file import HeightMap

    given: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    if kind in KINDS:
        if at is not None:
            given["at"] = _numbers("--at", at, (2,))
        if size is not None:
            given["size"] = _numbers("--size", size, (2,))
        return load(TerrainEntry, from_data({"kind": kind, "seed": seed, **given}))
    if not Path(kind).suffix:
        raise InputError(f"no ground {kind!r}", valid=f"{', '.join(KINDS)}, or a file of heights: .npy, .png")
    if at is not None:
        given["corner"] = _numbers("--at", at, (2,))
    given.pop("share", None)
    return load(HeightMap, from_data({"file": str(Path(kind).resolve()), **given}))


def _write(file: Path, text: str) -> None:
    from roboyard.errors import InputError

    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", where=str(file), valid="a file in a folder") from None
