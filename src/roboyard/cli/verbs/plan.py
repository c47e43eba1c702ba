"""``roboyard plan``: a plan for a robot, without running it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.grammar import JsonOption, group
from roboyard.cli.verbs.plan_arm import arm
from roboyard.cli.verbs.plan_tasks import tasks

if TYPE_CHECKING:
    from roboyard.geometry import SE2
    from roboyard.navigation import Footprint
    from roboyard.navigation.planning import Explanation

_FAR = 1e7
"""Nobody drives farther [m]."""
app = group("Plan for a robot without running it.")
app.command("arm")(arm)
app.command("tasks")(tasks)


@app.callback()
def _plan() -> None:
    """Plan for a robot without running it."""


@app.command("path")
def path(
    map_file: Annotated[Path, typer.Argument(metavar="MAP", help="The YAML of a map, as map_server has it.")],
    start: Annotated[str, typer.Option("--from", metavar="X,Y[,THETA]", help="Where the robot is [m, rad].")],
    goal: Annotated[str, typer.Option("--to", metavar="X,Y[,THETA]", help="Where it shall go.")],
    planner: Annotated[
        str, typer.Option(metavar="NAME", help="astar, dijkstra, hybrid, lattice, navfn, wave, ….")
    ] = "wave",
    robot: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="Whose outline; default: a circle of --radius.")
    ] = None,
    radius: Annotated[float, typer.Option(metavar="M", help="Of a round robot [m].")] = 0.2,
    inflation: Annotated[float, typer.Option(metavar="M", help="How far obstacles cost [m].")] = 0.55,
    turning_radius: Annotated[
        float | None, typer.Option(metavar="M", help="Of a car, for the planner hybrid [m].")
    ] = None,
    unknown: Annotated[bool, typer.Option("--unknown", help="Go where nobody has looked, too.")] = False,
    picture: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw it: a .png or .svg file.")] = None,
    json: JsonOption = False,
) -> None:
    """A way over a map, from pose to pose.

    Says how long it is, what it costs, how near it comes to obstacles; or why there is none: where the widest gap is,
    who left it, how wide it is and how wide the robot needs it.

    Exit code 0: there is a way; 1: there is none; 2: start, goal or map cannot be used.
    """
    from dataclasses import replace

    from roboyard.cli.path_picture import draw
    from roboyard.cli.terminal import emit, fields, note
    from roboyard.errors import InputError
    from roboyard.mapping import load_map
    from roboyard.navigation import InflationLayer, LayeredCostmap, NavigationError, StaticLayer
    from roboyard.navigation.errors import BudgetSpent, NoPath
    from roboyard.navigation.planning import HybridAStar, explain
    from roboyard.navigation.planning.choice import planner_named

    first, last = _pose("--from", start), _pose("--to", goal)
    if not 0.0 <= inflation <= 50.0:
        raise InputError(f"--inflation {inflation}", valid="0 to 50 m")
    if picture is not None and picture.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"--picture {picture}", valid="a name that ends in .png or .svg")
    footprint = _footprint(robot, radius)
    chosen: Any = planner_named(planner, footprint)
    if turning_radius is not None:
        if not isinstance(chosen, HybridAStar):
            raise InputError("--turning-radius", valid="with --planner hybrid")
        chosen = replace(chosen, turning_radius=turning_radius)
    if hasattr(chosen, "traversal"):
        chosen = replace(chosen, traversal=replace(chosen.traversal, allow_unknown=unknown))
    grid = load_map(map_file)
    static, around = StaticLayer(), InflationLayer(footprint.inscribed_radius, inflation)
    static.take(grid)
    layers = LayeredCostmap(grid.geometry, [static, around], unknown=True)
    layers.update()
    costmap = layers.costmap()
    try:
        found = chosen.plan(costmap, first, last)
    except (NoPath, BudgetSpent) as error:
        why = explain(layers, first, last, footprint.inscribed_radius, allow_unknown=unknown)
        if picture is not None:
            draw(picture, costmap, first, last, None, why)
        text = str(error) if isinstance(error, BudgetSpent) or why.barrier.value == "none" else f"no way: {why}"
        if json:
            emit({"path": None, "cause": error.cause, "why": text, "explanation": _plain(why, grid.geometry)})
        else:
            note(f"roboyard: {text}")
        raise typer.Exit(1) from None
    except NavigationError as error:
        raise InputError(error.message, location=str(map_file), valid=error.valid) from error
    if picture is not None:
        draw(picture, costmap, first, last, found, None)
    about = {"planner": planner, "length": found.length, "cost": found.cost, "clearance": found.clearance}
    if json:
        emit({**about, "path": found.poses.tolist(), "picture": picture})
        return
    fields(
        [
            ("length", f"{found.length:.2f} m, {len(found)} poses"),
            ("cost", f"{found.cost:.2f} m of free ground"),
            ("clearance", _clearance(found.clearance)),
            *([("picture", str(picture))] if picture is not None else []),
        ]
    )


def _clearance(metres: float) -> str:
    return f"never nearer than {metres:.2f} m to an obstacle" if metres < _FAR else "there is no obstacle"


def _pose(option: str, text: str) -> SE2:
    """Raises InputError."""
    from roboyard.errors import InputError
    from roboyard.geometry import SE2

    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3) or not all(abs(number) <= _FAR for number in numbers):
        raise InputError(
            f"{option} {text[:80]!r} is no pose", valid=f"x,y or x,y,theta: numbers up to {_FAR:g} [m, rad]"
        )
    return SE2(*numbers)


def _footprint(robot: str | None, radius: float) -> Footprint:
    import numpy as np

    from roboyard.errors import InputError
    from roboyard.navigation import Footprint
    from roboyard.scenarios.catalog import find_robot

    if robot is None:
        if not 0.0 < radius <= 100.0:
            raise InputError(f"--radius {radius}", valid="0 to 100 m")
        return Footprint.circle(radius)
    package = find_robot(robot)
    if not package.file.footprint:
        raise InputError(f"the robot {package.name} does not state its footprint", valid="--radius")
    return Footprint(np.array(package.file.footprint))


def _plain(why: Explanation, frame: Any) -> dict[str, Any]:
    return {
        "barrier": why.barrier.value,
        "place": list(why.place),
        "width": why.width,
        "needed": why.needed,
        "obstacles": frame.cell_centers(why.cells).tolist(),
        "by": [{"layer": origin.layer, "sensor": origin.sensor} for origin in why.origins],
    }
