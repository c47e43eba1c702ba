"""``roboyard plan arm``: a motion of an arm, without running it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.app import JsonOption

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from roboyard.manipulation import Group
    from roboyard.manipulation.planning import Goal, Plan
    from roboyard.manipulation.scene import PlanningScene

_RECHECK_STEP = 0.002
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
    base_pose: Annotated[
        str, typer.Option(metavar="'X Y Z YAW'", help="Where the robot stands in it [m, rad].")
    ] = "0 0 0 0",
    frame: Annotated[str, typer.Option(metavar="NAME", help="Of the goal: base, world, or a link.")] = "base",
    planner: Annotated[str, typer.Option(metavar="NAME", help="connect, ompl:RRTConnect, ….")] = "connect",
    seed: Annotated[int, typer.Option(min=0, help="Of what is drawn.")] = 0,
    max_samples: Annotated[int, typer.Option(min=1, help="How many states are drawn before giving up.")] = 20_000,
    collision_margin: Annotated[float, typer.Option(metavar="M", help="What is nearer than this touches [m].")] = 0.001,
    velocity_scaling: Annotated[float, typer.Option(metavar="SHARE", help="Of the joints' speeds.")] = 1.0,
    out: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Write the trajectory, point by point.")] = None,
    image: Annotated[Path | None, typer.Option("--picture", metavar="FILE.png", help="Draw the motion.")] = None,
    json: JsonOption = False,
) -> None:
    """A motion of an arm, from pose to pose, that touches nothing.

    Says how long it is and takes; the exact shapes are looked at once more by coal.
    Or says why there is none: what touches, or how near to the goal the arm can come.

    Exit code 0: there is a motion; 1: there is none; 2: robot, world, start or goal cannot be used.
    """
    from roboyard.cli.terminal import print_fields, print_json, print_note
    from roboyard.manipulation.collision import ExactChecker
    from roboyard.manipulation.planning import PlanningError, PlanSettings, plan, recheck

    if image is not None:
        from roboyard.simulation.render.portrait import check_picture

        check_picture(image)
    scene, world_model = _make_scene(robot, group, tool, world, base_pose, collision_margin)
    first = _parse_start(scene.group, start, scene)
    planning_goal = _parse_goal(scene, goal, frame)
    try:
        found = plan(
            scene,
            first,
            planning_goal,
            PlanSettings(planner=planner, seed=seed, budget=max_samples, speed=velocity_scaling),
        )
    except PlanningError as error:
        if json:
            print_json({"plan": None, "cause": error.cause, "why": error.message, "valid": error.valid})
        else:
            print_note(f"roboyard: no motion: {error}")
        raise typer.Exit(1) from None
    recheck_result = recheck(ExactChecker(scene), found.trajectory, _RECHECK_STEP)
    if out is not None:
        _write_trajectory(out, found)
    if image is not None:
        from roboyard.manipulation.drawing import draw_motion

        draw_motion(image, scene, found, world_model)
    data = {
        "robot": robot,
        "group": scene.group.name,
        "planner": planner,
        "duration": found.trajectory.duration,
        "length": found.path.length,
        "repaired": found.repaired,
        "looks": found.looks,
        "states": found.states,
        "rechecked": recheck_result.states,
        "contacts": len(recheck_result.contacts),
        "goal": found.goal.tolist(),
    }
    if json:
        print_json({**data, "points": found.points.tolist(), "out": out, "picture": image})
    else:
        print_fields(_result_rows(found, recheck_result.states, len(recheck_result.contacts), out, image))
    if recheck_result.contacts:
        raise typer.Exit(1)


def _result_rows(
    found: Plan, states: int, contacts: int, out: Path | None, image: Path | None
) -> list[tuple[str, str]]:
    rows = [
        ("duration", f"{found.trajectory.duration:.2f} s, within the limits of all joints"),
        ("way", f"{found.path.length:.2f} in the space of the joints, {max(len(found.points) - 2, 0)} corners"),
        ("goal", " ".join(f"{name}={value:.3f}" for name, value in zip(found.path.joints, found.goal, strict=True))),
        ("search", f"{found.looks} states looked at, {found.states} kept"),
        ("coal", f"{contacts or 'none'} of {states} states touches"),
    ]
    if found.repaired:
        rows.append(("start", f"moved by {found.repaired:.3f}, since it touched something or was beyond limits"))
    return [*rows, *((name, str(file)) for name, file in (("out", out), ("picture", image)) if file is not None)]


def _make_scene(
    robot: str, group: str | None, tool: str | None, world: str | None, base_pose: str, collision_margin: float
) -> tuple[PlanningScene, Any]:
    from roboyard.bringup.catalog import WORLDS
    from roboyard.bringup.joint_groups import load_joint_groups
    from roboyard.description import load_world
    from roboyard.geometry import SE3
    from roboyard.manipulation.collision import obstacles_of
    from roboyard.manipulation.scene import PlanningScene

    x, y, z, yaw = _parse_numbers("--base-pose", base_pose, 4)
    groups = load_joint_groups(robot)
    world_model = None if world is None else load_world(WORLDS.resolve(world))
    scene = PlanningScene.of(
        groups,
        group,
        tool=tool,
        T_world_robot=SE3.from_xyz_rpy((x, y, z), (0.0, 0.0, yaw)),
        obstacles=[] if world_model is None else obstacles_of(world_model),
        margin=collision_margin,
    )
    return scene, world_model


def _parse_numbers(option: str, text: str, count: int) -> list[float]:
    import math

    from roboyard.errors import InputError

    try:
        numbers = [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        numbers = []
    if len(numbers) != count or not all(map(math.isfinite, numbers)):
        raise InputError(f"{option} {text[:80]!r}", valid=f"{count} finite numbers")
    return numbers


def _parse_start(group: Group, text: str | None, scene: PlanningScene) -> NDArray[Any]:
    import numpy as np

    if text is None:
        if group.poses:
            return group.pose(next(iter(group.poses)))
        return np.asarray(np.clip(np.zeros(scene.chain.dof), scene.chain.lower, scene.chain.upper))
    if text in group.poses or not _is_numeric(text):
        return group.pose(text)
    return np.array(_parse_numbers("--from", text.removeprefix("joints"), scene.chain.dof))


def _is_numeric(text: str) -> bool:
    first = text.removeprefix("joints").replace(",", " ").split()
    return bool(first) and first[0].lstrip("+-").replace(".", "", 1)[:1].isdigit()


def _parse_goal(scene: PlanningScene, text: str, frame: str) -> Goal:
    from roboyard.geometry import SE3
    from roboyard.kinematics.ik import PointingTarget
    from roboyard.manipulation.planning import AimGoal, JointGoal, NamedGoal, PoseGoal

    kind, _, values = text.strip().partition(" ")
    if kind == "joints":
        return JointGoal(_parse_numbers("--to joints", values, scene.chain.dof))
    if kind == "aim":
        numbers = _parse_numbers("--to aim", values, 6)
        return AimGoal(PointingTarget(numbers[:3], numbers[3:], scene.group.axis), frame)
    if _is_numeric(text):
        numbers = _parse_numbers("--to", text, 6)
        return PoseGoal(SE3.from_xyz_rpy(numbers[:3], numbers[3:]), frame)
    return NamedGoal(text)


def _write_trajectory(file: Path, found: Plan) -> None:
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
