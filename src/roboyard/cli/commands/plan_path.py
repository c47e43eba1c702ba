"""``roboyard plan path``, and the group of all plan commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.app import command_group
from roboyard.cli.arguments import IMAGE_SUFFIXES, parse_numbers, validate_output_path
from roboyard.cli.options import GOAL, PLANNER, ROBOT, START, ImageOption, JsonOption
from roboyard.errors import InputError

if TYPE_CHECKING:
    from roboyard.geometry import SE2
    from roboyard.navigation import Footprint
    from roboyard.navigation.path import PathFailure

_MAX_COORDINATE = 1e7
"""Largest coordinate of a pose [m]."""
_MAX_INFLATION_RADIUS, _MAX_ROBOT_RADIUS = 50.0, 100.0
app = command_group("Plan paths, arm motions, steps and tasks.")


@app.callback()
def _plan() -> None:
    """Plan paths, arm motions, steps and tasks."""


@app.command("path")
def path(
    map_file: Annotated[Path, typer.Argument(metavar="MAP", help="YAML file of a map, as of map_server.")],
    start: Annotated[str, START(" pose of the robot [m, rad]", metavar="X,Y[,THETA]")],
    goal: Annotated[str, GOAL(" pose of the robot [m, rad]", metavar="X,Y[,THETA]")],
    planner: Annotated[
        str, PLANNER(": a_star, dijkstra, fast_marching, hybrid_a_star, navfn, state_lattice, …")
    ] = "fast_marching",
    robot: Annotated[str | None, ROBOT(", whose footprint is used; default: a circle")] = None,
    robot_radius: Annotated[float, typer.Option(metavar="METERS", help="Radius of the circle [m].")] = 0.2,
    inflation_radius: Annotated[
        float, typer.Option(metavar="METERS", help="Distance within which obstacles add costs [m].")
    ] = 0.55,
    min_turning_radius: Annotated[
        float | None,
        typer.Option(
            metavar="METERS",
            help="Minimum turning radius, for the planner hybrid_a_star [m]; default: that of the robot's drive.",
        ),
    ] = None,
    allow_unknown: Annotated[bool, typer.Option("--allow-unknown", help="Allow paths through unknown cells.")] = False,
    image: ImageOption = None,
    json: JsonOption = False,
) -> None:
    """Plan a path on a map.

    The command prints its length, cost and clearance. Without a path it prints the reason: the position and width of
    the widest gap, the obstacles beside it, and the width that the robot needs.

    Exit code 1: there is no path; 2: the start, the goal or the map cannot be used.
    """
    from roboyard.cli.exit_codes import ExitCode, exit_unless_success
    from roboyard.cli.terminal import print_fields, print_note, print_result
    from roboyard.navigation.drawing import draw_path
    from roboyard.navigation.map_planning import MapPlanRequest, plan_on_map

    first, last = _parse_pose("--start", start), _parse_pose("--goal", goal)
    if not 0.0 <= inflation_radius <= _MAX_INFLATION_RADIUS:
        raise InputError(f"--inflation-radius {inflation_radius}", valid=f"0 to {_MAX_INFLATION_RADIUS:g} m")
    validate_output_path("--picture", image, IMAGE_SUFFIXES)
    footprint, drive_turning_radius = _find_footprint(robot, robot_radius)
    if planner == "hybrid_a_star":
        min_turning_radius = min_turning_radius or drive_turning_radius
    request = MapPlanRequest(first, last, planner, footprint, inflation_radius, min_turning_radius, allow_unknown)
    found = plan_on_map(map_file, request)
    if image is not None:
        draw_path(image, found.costmap, first, last, found.path, found.explanation)
    if found.path is None:
        explanation = found.explanation and _explanation_data(found.explanation, found.geometry)
        result: dict[str, Any] = {
            "path": None, "cause": found.cause, "reason": found.reason, "explanation": explanation
        }  # fmt: skip
        print_result(result, json, lambda _: print_note(f"no path: {found.reason}"))
        exit_unless_success(ExitCode.FAILURE)
        return
    length, cost, clearance = found.path.length, found.path.cost, found.path.clearance
    result = {
        "planner": planner, "length": length, "cost": cost, "clearance": clearance, "path": found.path.poses.tolist(),
        "picture": image,
    }  # fmt: skip
    fields = [
        ("length", f"{length:.2f} m, {len(found.path)} poses"),
        ("cost", f"{cost:.2f} m of free ground"),
        ("clearance", f"{clearance:.2f} m" if clearance < _MAX_COORDINATE else "no obstacle"),
        ("picture", image),
    ]
    print_result(result, json, lambda _: print_fields(fields))


def _parse_pose(option: str, text: str) -> SE2:
    from roboyard.geometry import SE2

    return SE2(*parse_numbers(option, text, (2, 3), limit=_MAX_COORDINATE))


def _find_footprint(robot: str | None, radius: float) -> tuple[Footprint, float | None]:
    """Return the footprint, and the minimum turning radius that the robot's file states; None if it states none."""
    import numpy as np

    from roboyard.bringup.robot_loader import load_robot
    from roboyard.navigation import Footprint

    if robot is None:
        if not 0.0 < radius <= _MAX_ROBOT_RADIUS:
            raise InputError(f"--robot-radius {radius}", valid=f"0 to {_MAX_ROBOT_RADIUS:g} m")
        return Footprint.circle(radius), None
    package = load_robot(robot)
    if not package.config.footprint:
        raise InputError(f"the robot {package.name} does not state its footprint", valid="--robot-radius")
    drive = package.config.drive
    return Footprint(np.array(package.config.footprint)), (drive.min_turning_radius or None) if drive else None


def _explanation_data(explanation: PathFailure, geometry: Any) -> dict[str, Any]:
    return {
        "barrier": explanation.barrier.value,
        "position": list(explanation.position),
        "width": explanation.gap_width,
        "required_width": explanation.required_width,
        "obstacles": geometry.cell_centers(explanation.cells).tolist(),
        "origins": [{"layer": origin.layer, "sensor": origin.sensor} for origin in explanation.marked_by],
    }
