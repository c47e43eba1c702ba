"""``roboyard arm``: joint groups, workspace and inverse kinematics of arms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.app import command_group
from roboyard.cli.arguments import IMAGE_SUFFIXES, PHOTO_SUFFIXES, parse_numbers, validate_output_path, write_text
from roboyard.cli.options import (
    GOAL,
    IMAGE,
    OUT,
    SAMPLES,
    SEED,
    GroupOption,
    ImageOption,
    JsonOption,
    RobotArgument,
    ToolOption,
)

if TYPE_CHECKING:
    from roboyard.geometry import SE3
    from roboyard.kinematics import Chain
    from roboyard.kinematics.ik import PointingTarget
    from roboyard.manipulation import PlanningGroup
    from roboyard.manipulation.arm_analysis import ArmAnalysis

app = command_group("Analyze arms: inverse kinematics, workspace, joint groups.")


@app.callback()
def _arm() -> None:
    """Analyze arms: inverse kinematics, workspace, joint groups."""


@app.command("ik")
def ik(
    robot: RobotArgument,
    group: GroupOption = None,
    tool: ToolOption = None,
    goal: Annotated[
        str | None, GOAL(": pose of the tool in the base [m, rad]", metavar="'X Y Z ROLL PITCH YAW'")
    ] = None,
    position: Annotated[
        str | None, typer.Option(metavar="'X Y Z'", help="Position of the tool in the base [m], with --axis.")
    ] = None,
    axis: Annotated[
        str | None, typer.Option(metavar="'X Y Z'", help="Direction of the tool in the base, with --position.")
    ] = None,
    seed_state: Annotated[
        str | None, typer.Option(metavar="POSE", help="Named pose or joint positions; near solutions come first.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Solve the inverse kinematics for a pose of the tool.

    Without a solution the command prints the reason and the nearest pose.

    Exit code 1: there is no solution; 2: the robot or the goal cannot be used.
    """
    from roboyard.bringup.joint_groups import load_joint_groups
    from roboyard.cli.exit_codes import ExitCode, exit_unless_success
    from roboyard.cli.terminal import print_result
    from roboyard.kinematics.ik import solve_ik

    groups = load_joint_groups(robot)
    joint_group = groups.group(group)
    chain = groups.chain(joint_group.name, tool)
    found = solve_ik(
        chain, _parse_goal(joint_group, goal, position, axis), _seed_positions(joint_group, chain, seed_state)
    )
    nearest = found.nearest
    result = {
        "robot": chain.robot,
        "base": chain.base,
        "tip": chain.tip,
        "joints": chain.joints,
        "method": found.method,
        "solutions": found.solutions.tolist(),
        "errors": found.errors.tolist(),
        "cause": found.failure.value if found.failure else None,
        "nearest": None
        if nearest is None
        else {"joints": nearest.joints.tolist(), "distance": nearest.distance, "angle": nearest.angle},
    }
    print_result(result, json, _print_solutions)
    exit_unless_success(ExitCode.SUCCESS if found.is_solved else ExitCode.FAILURE)


def _print_solutions(result: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_fields, print_note, print_table

    joints, nearest = result["joints"], result["nearest"]
    if result["solutions"]:
        rows = [
            [*(f"{value:.4f}" for value in q), f"{1e6 * error[0]:.3f} µm"]
            for q, error in zip(result["solutions"], result["errors"], strict=True)
        ]
        print_table([*joints, "error"], rows, right=[*joints, "error"])
        print_note(f"{len(rows)} solutions, method: {result['method']}")
        return
    print_note(f"no solution: {result['cause'] or 'none found'}")
    if nearest is not None:
        positions = zip(joints, nearest["joints"], strict=True)
        print_fields(
            [
                ("nearest", " ".join(f"{joint}={value:.4f}" for joint, value in positions)),
                ("error", f"{nearest['distance'] * 1e3:.2f} mm, {nearest['angle']:.4f} rad"),
            ]
        )


@app.command("workspace")
def workspace(
    robot: RobotArgument,
    group: GroupOption = None,
    tool: ToolOption = None,
    samples: Annotated[int, SAMPLES(min=100, max=10_000_000)] = 200_000,
    seed: Annotated[int, SEED()] = 0,
    image: ImageOption = None,
    json: JsonOption = False,
) -> None:
    """Sample the workspace of an arm and its manipulability."""
    import numpy as np

    from roboyard.bringup.joint_groups import load_joint_groups
    from roboyard.cli.terminal import print_result
    from roboyard.manipulation.drawing import draw_workspace, sample_workspace

    validate_output_path("--picture", image, IMAGE_SUFFIXES)
    chain = load_joint_groups(robot).chain(group, tool)
    found = sample_workspace(chain, np.random.default_rng(seed), samples)
    if image is not None:
        draw_workspace(image, chain, found)
    result = {
        "robot": chain.robot, "base": chain.base, "tip": chain.tip,
        "max_reach": float(np.linalg.norm(found.points, axis=1).max()),
        "min_corner": found.points.min(axis=0).tolist(), "max_corner": found.points.max(axis=0).tolist(),
        "volume": found.volume, "cell_size": found.cell, "manipulability": float(np.median(found.manipulability)),
        "picture": image,
    }  # fmt: skip
    print_result(result, json, _print_workspace)


def _print_workspace(result: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_fields

    corners = zip("xyz", result["min_corner"], result["max_corner"], strict=True)
    print_fields(
        [
            ("tool", f"{result['tip']}, in the frame {result['base']}"),
            ("maximum reach", f"{result['max_reach']:.3f} m"),
            *((axis, f"{low:.3f} … {high:.3f} m") for axis, low, high in corners),
            ("volume", f"{result['volume']:.4g} m³, in cells of {result['cell_size'] * 1e3:.0f} mm"),
            ("manipulability", f"{result['manipulability']:.3g} (median)"),
            ("picture", result["picture"]),
        ]
    )


@app.command("setup")
def setup(
    robot: RobotArgument,
    out: Annotated[Path | None, OUT(": the joint groups, .yaml", metavar="FILE")] = None,
    samples: Annotated[int, SAMPLES(min=1, max=1_000_000)] = 10_000,
    seed: Annotated[int, SEED()] = 0,
    image: Annotated[Path | None, IMAGE(": .png or .jpg, the robot in its safe pose")] = None,
    json: JsonOption = False,
) -> None:
    """Find the joint groups of a robot, for groups.yaml.

    Chains, tools and grippers; pairs of links that never or always touch; a safe pose; accelerations (maximum speed in
    half a second) and servo gains (from the inertia of each joint, within its maximum effort).

    Roboyard finds a file beside the description: arm.groups.yaml beside arm.urdf. A robot's YAML file names it.
    """
    import numpy as np

    from roboyard.bringup.robot_loader import load_robot
    from roboyard.cli.terminal import print_result
    from roboyard.errors import InputError
    from roboyard.manipulation.arm_analysis import analyze_arm, draw_pose
    from roboyard.manipulation.semantics.groups_file import format_groups

    validate_output_path("--picture", image, PHOTO_SUFFIXES)
    validate_output_path("--out", out, (".yaml", ".yml"))
    model = load_robot(robot, repair=True, use_calibration=False).load_model(repair=True)
    found = analyze_arm(model, np.random.default_rng(seed), samples)
    groups = found.semantics
    if not groups.groups:
        raise InputError(
            "the robot has no chain of two or more moving joints", location=robot, valid="a robot with an arm"
        )
    text = format_groups(groups, f"Groups of {model.name}, as found by `roboyard arm setup`.")
    if out is not None:
        _write_groups(out, text, model, found)
    if image is not None:
        safe_pose = {
            joint: value
            for one in groups.groups.values()
            if "safe" in one.poses
            for joint, value in zip(one.joints, one.poses["safe"], strict=True)
        }
        draw_pose(image, model, safe_pose)
    result = {
        "robot": model.name,
        "groups": {
            one.name: {
                "base": one.base, "tip": one.tip, "joints": one.joints, "poses": dict(one.poses),
                "gripper": one.gripper, "clearance": found.clearance[one.name],
            }
            for one in groups.groups.values()
        },
        "pairs": {
            reason: sum(pair_reason == reason for pair_reason in groups.allowed_collisions.values())
            for reason in ("adjacent", "never", "always")
        },
        "gains": dict(groups.gains),
        "text": text,
        "out": out,
        "picture": image,
    }  # fmt: skip
    print_result(result, json, _print_groups)


def _write_groups(file: Path, text: str, model: Any, found: ArmAnalysis) -> None:
    """Write the joint groups, and check that the file can be read."""
    from roboyard.errors import RunError
    from roboyard.manipulation import load_groups

    write_text(file, text)
    if load_groups(file, model).groups.keys() != found.semantics.groups.keys():
        raise RunError("the written joint groups differ when they are read back", location=str(file))


def _print_groups(result: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_columns, print_fields, print_heading, print_line

    for name, group in result["groups"].items():
        print_heading(f"group {name}")
        print_fields(
            [
                ("chain", f"{group['base']} to {group['tip']}"),
                ("joints", ", ".join(group["joints"])),
                ("gripper", group["gripper"] or "none"),
                *((f"pose {pose}", " ".join(f"{v:.4g}" for v in values)) for pose, values in group["poses"].items()),
                ("clearance", f"{group['clearance'] * 1e3:.0f} mm in the safest sampled pose"),
            ]
        )
    print_heading("pairs of links that are not checked for collisions")
    print_columns([[f"  {count}", reason] for reason, count in result["pairs"].items()])
    print_heading("servo gains")
    print_columns(
        [
            [f"  {joint}:", ", ".join(f"{key} {value:g}" for key, value in gains.items())]
            for joint, gains in result["gains"].items()
        ]
    )
    if result["out"] is None:
        print_line(result["text"].rstrip("\n"))


def _parse_goal(group: PlanningGroup, goal: str | None, position: str | None, axis: str | None) -> SE3 | PointingTarget:
    from roboyard.errors import InputError
    from roboyard.geometry import SE3
    from roboyard.kinematics.ik import PointingTarget

    if goal is not None and position is None and axis is None:
        numbers = parse_numbers("--goal", goal, 6)
        return SE3.from_xyz_rpy(numbers[:3], numbers[3:])
    if goal is None and position is not None and axis is not None:
        return PointingTarget(
            parse_numbers("--position", position, 3), parse_numbers("--axis", axis, 3), group.tool_axis
        )
    raise InputError(
        "exactly one goal is required", valid="--goal 'x y z r p y', or --position 'x y z' with --axis 'x y z'"
    )


def _seed_positions(group: PlanningGroup, chain: Chain, text: str | None) -> Any:
    if text is None or text in group.poses:
        return None if text is None else group.pose(text)
    if not any(letter.isdigit() for letter in text.split(" ")[0].split(",")[0]):
        return group.pose(text)  # raises an error with the names of the poses
    return parse_numbers("--seed-state", text, chain.dof)
