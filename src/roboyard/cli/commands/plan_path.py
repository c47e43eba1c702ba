"""``roboyard plan path``, and the group of all plan commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.app import JsonOption, command_group
from roboyard.cli.commands.plan_arm import arm
from roboyard.cli.commands.plan_tasks import tasks

if TYPE_CHECKING:
    from roboyard.geometry import SE2
    from roboyard.navigation import Footprint
    from roboyard.navigation.planning import Explanation

_MAX_COORDINATE = 1e7
"""Nobody drives farther [m]."""
app = command_group("Plan for a robot without running it.")
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
        str | None, typer.Option(metavar="NAME|FILE", help="Whose outline; default: a circle of --robot-radius.")
    ] = None,
    robot_radius: Annotated[float, typer.Option(metavar="M", help="Of a round robot [m].")] = 0.2,
    inflation_radius: Annotated[float, typer.Option(metavar="M", help="How far obstacles cost [m].")] = 0.55,
    min_turning_radius: Annotated[
        float | None, typer.Option(metavar="M", help="Of a car, for the planner hybrid [m].")
    ] = None,
    allow_unknown: Annotated[bool, typer.Option("--allow-unknown", help="Go where nobody has looked, too.")] = False,
    image: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="Also draw it: a .png or .svg file.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """A way over a map, from pose to pose.

    Says how long it is, what it costs, how near it comes to obstacles; or why there is none: where the widest gap is,
    who left it, how wide it is and how wide the robot needs it.

    Exit code 0: there is a way; 1: there is none; 2: start, goal or map cannot be used.
    """
    from dataclasses import replace

    from roboyard.cli.terminal import print_fields, print_json, print_note
    from roboyard.errors import InputError
    from roboyard.mapping import load_map
    from roboyard.navigation import InflationLayer, LayeredCostmap, NavigationError, StaticLayer
    from roboyard.navigation.drawing import draw_path
    from roboyard.navigation.errors import BudgetSpent, NoPath
    from roboyard.navigation.planning import HybridAStar, explain
    from roboyard.navigation.planning.choice import planner_named

    first, last = _parse_pose("--from", start), _parse_pose("--to", goal)
    if not 0.0 <= inflation_radius <= 50.0:
        raise InputError(f"--inflation-radius {inflation_radius}", valid="0 to 50 m")
    if image is not None and image.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"--picture {image}", valid="a name that ends in .png or .svg")
    footprint = _find_footprint(robot, robot_radius)
    path_planner: Any = planner_named(planner, footprint)
    if min_turning_radius is not None:
        if not isinstance(path_planner, HybridAStar):
            raise InputError("--min-turning-radius", valid="with --planner hybrid")
        path_planner = replace(path_planner, turning_radius=min_turning_radius)
    if hasattr(path_planner, "traversal"):
        path_planner = replace(path_planner, traversal=replace(path_planner.traversal, allow_unknown=allow_unknown))
    grid = load_map(map_file)
    static_layer, inflation_layer = StaticLayer(), InflationLayer(footprint.inscribed_radius, inflation_radius)
    static_layer.take(grid)
    layers = LayeredCostmap(grid.geometry, [static_layer, inflation_layer], unknown=True)
    layers.update()
    costmap = layers.costmap()
    try:
        found = path_planner.plan(costmap, first, last)
    except (NoPath, BudgetSpent) as error:
        explanation = explain(layers, first, last, footprint.inscribed_radius, allow_unknown=allow_unknown)
        if image is not None:
            draw_path(image, costmap, first, last, None, explanation)
        text = (
            str(error)
            if isinstance(error, BudgetSpent) or explanation.barrier.value == "none"
            else f"no way: {explanation}"
        )
        if json:
            print_json(
                {
                    "path": None,
                    "cause": error.cause,
                    "why": text,
                    "explanation": _explanation_data(explanation, grid.geometry),
                }
            )
        else:
            print_note(f"roboyard: {text}")
        raise typer.Exit(1) from None
    except NavigationError as error:
        raise InputError(error.message, location=str(map_file), valid=error.valid) from error
    if image is not None:
        draw_path(image, costmap, first, last, found, None)
    data = {"planner": planner, "length": found.length, "cost": found.cost, "clearance": found.clearance}
    if json:
        print_json({**data, "path": found.poses.tolist(), "picture": image})
        return
    print_fields(
        [
            ("length", f"{found.length:.2f} m, {len(found)} poses"),
            ("cost", f"{found.cost:.2f} m of free ground"),
            ("clearance", _format_clearance(found.clearance)),
            *([("picture", str(image))] if image is not None else []),
        ]
    )


def _format_clearance(distance: float) -> str:
    return (
        f"never nearer than {distance:.2f} m to an obstacle" if distance < _MAX_COORDINATE else "there is no obstacle"
    )


def _parse_pose(option: str, text: str) -> SE2:
    """Raises InputError."""
    from roboyard.errors import InputError
    from roboyard.geometry import SE2

    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3) or not all(abs(number) <= _MAX_COORDINATE for number in numbers):
        raise InputError(
            f"{option} {text[:80]!r} is no pose", valid=f"x,y or x,y,theta: numbers up to {_MAX_COORDINATE:g} [m, rad]"
        )
    return SE2(*numbers)


def _find_footprint(robot: str | None, radius: float) -> Footprint:
    import numpy as np

    from roboyard.bringup.robot_loader import load_robot
    from roboyard.errors import InputError
    from roboyard.navigation import Footprint

    if robot is None:
        if not 0.0 < radius <= 100.0:
            raise InputError(f"--robot-radius {radius}", valid="0 to 100 m")
        return Footprint.circle(radius)
    package = load_robot(robot)
    if not package.config.footprint:
        raise InputError(f"the robot {package.name} does not state its footprint", valid="--robot-radius")
    return Footprint(np.array(package.config.footprint))


def _explanation_data(explanation: Explanation, frame: Any) -> dict[str, Any]:
    return {
        "barrier": explanation.barrier.value,
        "place": list(explanation.place),
        "width": explanation.width,
        "needed": explanation.needed,
        "obstacles": frame.cell_centers(explanation.cells).tolist(),
        "by": [{"layer": origin.layer, "sensor": origin.sensor} for origin in explanation.origins],
    }
