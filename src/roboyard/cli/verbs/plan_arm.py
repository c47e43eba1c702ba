"""``roboyard plan arm``: a motion of an arm, without running it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.grammar import JsonOption

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from roboyard.manipulation import Group
    from roboyard.manipulation.planning import Goal, Plan
    from roboyard.manipulation.scene import PlanningScene

_CHECKED = 0.002
"""coal looks at the motion so often that the tool moves at most so far in between [m]."""


def arm(
    robot: Annotated[str, typer.Argument(metavar="ROBOT", help="A robot's name, or its URDF, xacro, SDF or MJCF.")],
    goal: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="GOAL",
            help="A named pose; 'X Y Z ROLL PITCH YAW' of the tool; 'aim X Y Z AX AY AZ': its place and direction; "
            "or 'joints Q1 Q2 …' [m, rad].",
        ),
    ],
    group: Annotated[str | None, typer.Option(metavar="NAME", help="Which joints; default: the first group.")] = None,
    tool: Annotated[str | None, typer.Option(metavar="NAME", help="Which of the group's tools.")] = None,
    start: Annotated[
        str | None, typer.Option("--from", metavar="POSE", help="A named pose, or joints; default: the first pose.")
    ] = None,
    world: Annotated[str | None, typer.Option(metavar="NAME|FILE", help="What stands around.")] = None,
    at: Annotated[str, typer.Option(metavar="'X Y Z YAW'", help="Where the robot stands in it [m, rad].")] = "0 0 0 0",
    frame: Annotated[str, typer.Option(metavar="NAME", help="Of the goal: base, world, or a link.")] = "base",
    planner: Annotated[str, typer.Option(metavar="NAME", help="connect, ompl:RRTConnect, ….")] = "connect",
    seed: Annotated[int, typer.Option(min=0, help="Of what is drawn.")] = 0,
    budget: Annotated[int, typer.Option(min=1, help="How many states are drawn before giving up.")] = 20_000,
    margin: Annotated[float, typer.Option(metavar="M", help="What is nearer than this touches [m].")] = 0.001,
    speed: Annotated[float, typer.Option(metavar="SHARE", help="Of the joints' speeds.")] = 1.0,
    out: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Write the trajectory, point by point.")] = None,
    picture: Annotated[Path | None, typer.Option(metavar="FILE.png", help="Draw the motion.")] = None,
    json: JsonOption = False,
) -> None:
    """A motion of an arm, from pose to pose, that touches nothing.

    Says how long it is and takes; the exact shapes are looked at once more by coal.
    Or says why there is none: what touches, or how near to the goal the arm can come.

    Exit code 0: there is a motion; 1: there is none; 2: robot, world, start or goal cannot be used.
    """
    from roboyard.cli.terminal import emit, fields, note
    from roboyard.manipulation.collision import ExactChecker
    from roboyard.manipulation.planning import PlanningError, PlanSettings, plan, recheck

    if picture is not None:
        from roboyard.simulation.render.portrait import check_picture

        check_picture(picture)
    scene, surroundings = _scene(robot, group, tool, world, at, margin)
    first = _start(scene.group, start, scene)
    wanted = _goal(scene, goal, frame)
    try:
        found = plan(scene, first, wanted, PlanSettings(planner=planner, seed=seed, budget=budget, speed=speed))
    except PlanningError as error:
        if json:
            emit({"plan": None, "cause": error.cause, "why": error.message, "valid": error.valid})
        else:
            note(f"roboyard: no motion: {error}")
        raise typer.Exit(1) from None
    seen = recheck(ExactChecker(scene), found.trajectory, _CHECKED)
    if out is not None:
        _write(out, found)
    if picture is not None:
        from roboyard.cli.motion_picture import draw_motion

        draw_motion(picture, scene, found, surroundings)
    about = {
        "robot": robot,
        "group": scene.group.name,
        "planner": planner,
        "duration": found.trajectory.duration,
        "length": found.path.length,
        "repaired": found.repaired,
        "looks": found.looks,
        "states": found.states,
        "rechecked": seen.states,
        "contacts": len(seen.contacts),
        "goal": found.goal.tolist(),
    }
    if json:
        emit({**about, "points": found.points.tolist(), "out": out, "picture": picture})
    else:
        fields(_rows(found, seen.states, len(seen.contacts), out, picture))
    if seen.contacts:
        raise typer.Exit(1)


def _rows(found: Plan, states: int, contacts: int, out: Path | None, picture: Path | None) -> list[tuple[str, str]]:
    rows = [
        ("duration", f"{found.trajectory.duration:.2f} s, within the limits of all joints"),
        ("way", f"{found.path.length:.2f} in the space of the joints, {max(len(found.points) - 2, 0)} corners"),
        ("goal", " ".join(f"{name}={value:.3f}" for name, value in zip(found.path.joints, found.goal, strict=True))),
        ("search", f"{found.looks} states looked at, {found.states} kept"),
        ("coal", f"{contacts or 'none'} of {states} states touches"),
    ]
    if found.repaired:
        rows.append(("start", f"moved by {found.repaired:.3f}, since it touched something or was beyond limits"))
    return [*rows, *((name, str(file)) for name, file in (("out", out), ("picture", picture)) if file is not None)]


def _scene(
    robot: str, group: str | None, tool: str | None, world: str | None, at: str, margin: float
) -> tuple[PlanningScene, Any]:
    from roboyard.description import load_world
    from roboyard.geometry import SE3
    from roboyard.manipulation.collision import obstacles_of
    from roboyard.manipulation.scene import PlanningScene
    from roboyard.scenarios.catalog import find
    from roboyard.scenarios.robot_groups import find_groups

    x, y, z, yaw = _numbers("--at", at, 4)
    groups = find_groups(robot)
    around = None if world is None else load_world(find("world", world))
    scene = PlanningScene.of(
        groups,
        group,
        tool=tool,
        T_world_robot=SE3.from_xyz_rpy((x, y, z), (0.0, 0.0, yaw)),
        obstacles=[] if around is None else obstacles_of(around),
        margin=margin,
    )
    return scene, around


def _numbers(option: str, text: str, count: int) -> list[float]:
    import math

    from roboyard.errors import InputError

    try:
        numbers = [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        numbers = []
    if len(numbers) != count or not all(map(math.isfinite, numbers)):
        raise InputError(f"{option} {text[:80]!r}", valid=f"{count} finite numbers")
    return numbers


def _start(group: Group, text: str | None, scene: PlanningScene) -> NDArray[Any]:
    import numpy as np

    if text is None:
        if group.poses:
            return group.pose(next(iter(group.poses)))
        return np.asarray(np.clip(np.zeros(scene.chain.dof), scene.chain.lower, scene.chain.upper))
    if text in group.poses or not _is_numeric(text):
        return group.pose(text)
    return np.array(_numbers("--from", text.removeprefix("joints"), scene.chain.dof))


def _is_numeric(text: str) -> bool:
    first = text.removeprefix("joints").replace(",", " ").split()
    return bool(first) and first[0].lstrip("+-").replace(".", "", 1)[:1].isdigit()


def _goal(scene: PlanningScene, text: str, frame: str) -> Goal:
    from roboyard.geometry import SE3
    from roboyard.kinematics.ik import PointingTarget
    from roboyard.manipulation.planning import AimGoal, JointGoal, NamedGoal, PoseGoal

    kind, _, rest = text.strip().partition(" ")
    if kind == "joints":
        return JointGoal(_numbers("--to joints", rest, scene.chain.dof))
    if kind == "aim":
        numbers = _numbers("--to aim", rest, 6)
        return AimGoal(PointingTarget(numbers[:3], numbers[3:], scene.group.axis), frame)
    if _is_numeric(text):
        numbers = _numbers("--to", text, 6)
        return PoseGoal(SE3.from_xyz_rpy(numbers[:3], numbers[3:]), frame)
    return NamedGoal(text)


def _write(file: Path, found: Plan) -> None:
    import json

    from roboyard.config import write_atomic
    from roboyard.errors import InputError

    points = found.trajectory.knots()
    content = {
        "joint_names": list(found.path.joints),
        "points": [
            {
                "time_from_start": point.time,
                "positions": point.position.tolist(),
                "velocities": None if point.velocity is None else point.velocity.tolist(),
                "accelerations": None if point.acceleration is None else point.acceleration.tolist(),
            }
            for point in points
        ],
    }
    try:
        write_atomic(file, json.dumps(content, indent=1) + "\n")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", location=str(file)) from error
