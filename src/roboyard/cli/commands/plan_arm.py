"""``roboyard plan arm``: a motion of an arm, planned without a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.arguments import PHOTO_SUFFIXES, parse_numbers, validate_output_path, write_text
from roboyard.cli.options import (
    GOAL,
    IMAGE,
    OUT,
    PLANNER,
    SEED,
    START,
    WORLD,
    GroupOption,
    JsonOption,
    RobotArgument,
    ToolOption,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from roboyard.manipulation import PlanningGroup
    from roboyard.manipulation.collision.planning_scene import PlanningScene
    from roboyard.manipulation.planning import MotionGoal, MotionPlan

_RECHECK_STEP = 0.002
"""Maximum motion of the tool between two states that coal checks [m]."""


def arm(
    robot: RobotArgument,
    goal: Annotated[
        str,
        GOAL(
            ": a named pose; 'X Y Z ROLL PITCH YAW' of the tool; 'aim X Y Z AX AY AZ', its position and direction; "
            "or 'joints Q1 Q2 …' [m, rad]"
        ),
    ],
    group: GroupOption = None,
    tool: ToolOption = None,
    start: Annotated[str | None, START(": a named pose or joint positions; default: the first pose")] = None,
    world: Annotated[str | None, WORLD("; its models are obstacles")] = None,
    base_pose: Annotated[
        str, typer.Option(metavar="'X Y Z YAW'", help="Pose of the robot in the world [m, rad].")
    ] = "0 0 0 0",
    frame: Annotated[str, typer.Option(metavar="NAME", help="Frame of the goal: base, world, or a link.")] = "base",
    planner: Annotated[str, PLANNER(": rrt_connect, ompl:RRTConnect, …")] = "rrt_connect",
    seed: Annotated[int, SEED()] = 0,
    max_samples: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of random states.")] = 20_000,
    collision_margin: Annotated[
        float, typer.Option(metavar="METERS", help="Distance below which links count as touching [m].")
    ] = 0.001,
    velocity_scaling: Annotated[
        float, typer.Option(metavar="FACTOR", help="Fraction of the maximum joint speeds, 0 to 1.")
    ] = 1.0,
    out: Annotated[Path | None, OUT(": the trajectory, .json", metavar="FILE")] = None,
    image: Annotated[Path | None, IMAGE(": .png or .jpg")] = None,
    json: JsonOption = False,
) -> None:
    """Plan a collision-free motion of an arm.

    The command prints its length and duration, and checks it again with the exact shapes by coal. Without a motion it
    prints the reason: the links that touch, or the smallest distance to the goal.

    Exit code 1: there is no motion; 2: the robot, the world, the start or the goal cannot be used.
    """
    from roboyard.cli.exit_codes import ExitCode, exit_unless_success
    from roboyard.cli.terminal import print_note, print_result
    from roboyard.manipulation import PlanConfig, plan_motion
    from roboyard.manipulation.collision import CoalChecker
    from roboyard.manipulation.collision.coal_checker import recheck_motion
    from roboyard.manipulation.drawing import draw_motion
    from roboyard.manipulation.errors import PlanningError

    validate_output_path("--picture", image, PHOTO_SUFFIXES)
    validate_output_path("--out", out, (".json",))
    scene, world_model = _make_scene(robot, group, tool, world, base_pose, collision_margin)
    first = _parse_start(scene.group, start, scene)
    settings = PlanConfig(planner=planner, seed=seed, max_states=max_samples, velocity_scaling=velocity_scaling)
    try:
        found = plan_motion(scene, first, _parse_goal(scene, goal, frame), settings)
    except PlanningError as error:
        failure = {"plan": None, "cause": error.cause, "reason": error.message, "expected": error.valid}
        text = f"no motion: {error}"
        print_result(failure, json, lambda _: print_note(text))
        exit_unless_success(ExitCode.FAILURE)
        return
    rechecked = recheck_motion(CoalChecker(scene), found.trajectory, _RECHECK_STEP)
    if out is not None:
        write_text(out, _trajectory_text(found))
    if image is not None:
        draw_motion(image, scene, found, world_model)
    result = {
        "robot": robot, "group": scene.group.name, "planner": planner, "duration": found.trajectory.duration,
        "length": found.path.length, "start_displacement": found.start_repair, "checked_states": found.n_checks,
        "tree_states": found.n_states, "rechecked_states": rechecked.n_states, "contacts": len(rechecked.contacts),
        "joints": list(found.path.joints), "goal": found.goal.tolist(), "points": found.points.tolist(), "out": out,
        "picture": image,
    }  # fmt: skip
    print_result(result, json, _print_plan)
    exit_unless_success(ExitCode.FAILURE if rechecked.contacts else ExitCode.SUCCESS)


def _print_plan(result: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_fields

    n_corners = max(len(result["points"]) - 2, 0)
    goal = zip(result["joints"], result["goal"], strict=True)
    displacement = result["start_displacement"]
    print_fields(
        [
            ("duration", f"{result['duration']:.2f} s, within the limits of all joints"),
            ("length", f"{result['length']:.2f} in joint space, {n_corners} corners"),
            ("goal", " ".join(f"{name}={value:.3f}" for name, value in goal)),
            ("search", f"{result['checked_states']} states checked, {result['tree_states']} in the trees"),
            ("coal", f"{result['contacts'] or 'none'} of {result['rechecked_states']} states touches"),
            ("start", f"moved by {displacement:.3f} out of a contact or into the limits" if displacement else None),
            ("out", result["out"]),
            ("picture", result["picture"]),
        ]
    )


def _trajectory_text(found: MotionPlan) -> str:
    """Return the trajectory as JSON, with the field names of trajectory_msgs/JointTrajectory."""
    import json

    points = [
        {
            "time_from_start": point.time,
            "positions": point.position.tolist(),
            "velocities": None if point.velocity is None else point.velocity.tolist(),
            "accelerations": None if point.acceleration is None else point.acceleration.tolist(),
        }
        for point in found.trajectory.to_cubic_points()
    ]
    return json.dumps({"joint_names": list(found.path.joints), "points": points}, indent=1) + "\n"


def _make_scene(
    robot: str, group: str | None, tool: str | None, world: str | None, base_pose: str, collision_margin: float
) -> tuple[PlanningScene, Any]:
    from roboyard.bringup.catalog import WORLDS
    from roboyard.bringup.joint_groups import load_joint_groups
    from roboyard.description import load_world
    from roboyard.geometry import SE3
    from roboyard.manipulation.collision import obstacles_from_world
    from roboyard.manipulation.collision.planning_scene import PlanningScene

    x, y, z, yaw = parse_numbers("--base-pose", base_pose, 4)
    groups = load_joint_groups(robot)
    world_model = None if world is None else load_world(WORLDS.resolve(world))
    scene = PlanningScene.create(
        groups,
        group,
        tool=tool,
        T_world_robot=SE3.from_xyz_rpy((x, y, z), (0.0, 0.0, yaw)),
        obstacles=[] if world_model is None else obstacles_from_world(world_model),
        margin=collision_margin,
    )
    return scene, world_model


def _parse_start(group: PlanningGroup, text: str | None, scene: PlanningScene) -> NDArray[Any]:
    import numpy as np

    if text is None:
        if group.poses:
            return group.pose(next(iter(group.poses)))
        return np.asarray(np.clip(np.zeros(scene.chain.dof), scene.chain.lower, scene.chain.upper))
    if text in group.poses or not _is_numeric(text):
        return group.pose(text)
    return np.array(parse_numbers("--start", text.removeprefix("joints"), scene.chain.dof))


def _is_numeric(text: str) -> bool:
    first = text.removeprefix("joints").replace(",", " ").split()
    return bool(first) and first[0].lstrip("+-").replace(".", "", 1)[:1].isdigit()


def _parse_goal(scene: PlanningScene, text: str, frame: str) -> MotionGoal:
    from roboyard.geometry import SE3
    from roboyard.kinematics.ik import PointingTarget
    from roboyard.manipulation import PoseGoal
    from roboyard.manipulation.planning import JointGoal, NamedGoal, PointingGoal

    kind, _, values = text.strip().partition(" ")
    if kind == "joints":
        return JointGoal(parse_numbers("--goal joints", values, scene.chain.dof))
    if kind == "aim":
        numbers = parse_numbers("--goal aim", values, 6)
        return PointingGoal(PointingTarget(numbers[:3], numbers[3:], scene.group.tool_axis), frame)
    if _is_numeric(text):
        numbers = parse_numbers("--goal", text, 6)
        return PoseGoal(SE3.from_xyz_rpy(numbers[:3], numbers[3:]), frame)
    return NamedGoal(text)
