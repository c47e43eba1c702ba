"""``roboyard arm``: what an arm is, where it gets to, and the joints for a tool's pose."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.app import JsonOption, command_group

if TYPE_CHECKING:
    from roboyard.geometry import SE3
    from roboyard.kinematics import Chain
    from roboyard.kinematics.ik import PointingTarget
    from roboyard.manipulation import Group

app = command_group("Look at arms: groups, workspace, joints for a pose.")

RobotArgument = Annotated[str, typer.Argument(metavar="ROBOT", help="A robot's name, or its URDF, xacro, SDF or MJCF.")]
GroupOption = Annotated[str | None, typer.Option("--group", metavar="NAME", help="Which joints; default: the first.")]
ToolOption = Annotated[str | None, typer.Option("--tool", metavar="NAME", help="Which of the group's tools.")]


@app.callback()
def _arm() -> None:
    """Look at arms: groups, workspace, joints for a pose."""


@app.command("ik")
def ik(
    robot: RobotArgument,
    name: GroupOption = None,
    tool: ToolOption = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="'X Y Z R P Y'", help="Pose of the tool in the base [m, rad].")
    ] = None,
    position: Annotated[str | None, typer.Option(metavar="'X Y Z'", help="Place of the tool, with --axis.")] = None,
    axis: Annotated[str | None, typer.Option(metavar="'X Y Z'", help="Where the tool shall point.")] = None,
    seed_state: Annotated[
        str | None, typer.Option(metavar="POSE", help="A named pose, or joints: the nearer the better.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Joints for a tool's pose, or its place and direction.

    If there are none: why, and what comes nearest.

    Exit code 0: there are some; 1: there are none; 2: robot or goal cannot be used.
    """
    from roboyard.bringup.joint_groups import load_joint_groups
    from roboyard.cli.terminal import print_fields, print_json, print_note, print_table
    from roboyard.kinematics.ik import solve_ik

    groups = load_joint_groups(robot)
    group = groups.group(name)
    chain = groups.chain(group.name, tool)
    goal = _parse_goal(group, to, position, axis)
    found = solve_ik(chain, goal, _seed_positions(group, chain, seed_state))
    best = found.nearest
    if json:
        print_json(
            {
                "robot": chain.robot,
                "base": chain.base,
                "tip": chain.tip,
                "joints": chain.joints,
                "method": found.method,
                "solutions": found.solutions.tolist(),
                "errors": found.errors.tolist(),
                "cause": found.failure.value if found.failure else None,
                "nearest": None
                if best is None
                else {"joints": best.joints.tolist(), "distance": best.distance, "angle": best.angle},
            }
        )
    elif found.is_solved:
        rows = [
            [*(f"{value:.4f}" for value in q), f"{1e6 * error[0]:.3f} µm"]
            for q, error in zip(found, found.errors, strict=True)
        ]
        print_table([*chain.joints, "off"], rows, right=[*chain.joints, "off"])
        print_note(f"{len(found)} by {found.method}")
    else:
        print_note(f"roboyard: no joints for this goal: {found.failure.value if found.failure else 'none found'}")
        if best is not None:
            print_fields(
                [
                    (
                        "nearest",
                        " ".join(
                            f"{joint}={value:.4f}" for joint, value in zip(chain.joints, best.joints, strict=True)
                        ),
                    ),
                    ("off by", f"{best.distance * 1e3:.2f} mm, {best.angle:.4f} rad"),
                ]
            )
    if not found.is_solved:
        raise typer.Exit(1)


@app.command("workspace")
def workspace(
    robot: RobotArgument,
    name: GroupOption = None,
    tool: ToolOption = None,
    samples: Annotated[int, typer.Option(min=100, max=10_000_000, help="Random positions to look at.")] = 200_000,
    seed: Annotated[int, typer.Option(min=0, help="Of these.")] = 0,
    out: Annotated[Path | None, typer.Option(metavar="FILE.png", help="Draw slices through it.")] = None,
    json: JsonOption = False,
) -> None:
    """Where an arm's tool gets to, and how well it moves there."""
    import numpy as np

    from roboyard.bringup.joint_groups import load_joint_groups
    from roboyard.cli.terminal import print_fields, print_json
    from roboyard.errors import InputError
    from roboyard.manipulation.drawing import draw_workspace, sample_workspace

    if out is not None and out.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"--out {out}", valid="a name that ends in .png or .svg")
    chain = load_joint_groups(robot).chain(name, tool)
    found = sample_workspace(chain, np.random.default_rng(seed), samples)
    if out is not None:
        draw_workspace(out, chain, found)
    low, high = found.points.min(axis=0), found.points.max(axis=0)
    max_distance = float(np.linalg.norm(found.points, axis=1).max())
    data = {"robot": chain.robot, "base": chain.base, "tip": chain.tip, "farthest": max_distance, "low": low.tolist(),
             "high": high.tolist(), "volume": found.volume, "cell": found.cell,
             "manipulability": float(np.median(found.manipulability))}  # fmt: skip
    if json:
        print_json({**data, "picture": out})
        return
    print_fields(
        [
            ("tool", f"{chain.tip}, in the frame of {chain.base}"),
            ("farthest", f"{max_distance:.3f} m"),
            *((axis, f"{a:.3f} … {b:.3f} m") for axis, a, b in zip("xyz", low, high, strict=True)),
            ("volume", f"{found.volume:.4g} m³, in cells of {found.cell * 1e3:.0f} mm"),
            ("manipulability", f"{np.median(found.manipulability):.3g} in the median"),
            *([("picture", str(out))] if out is not None else []),
        ]
    )


@app.command("setup")
def setup(
    robot: RobotArgument,
    out: Annotated[Path | None, typer.Option(metavar="FILE.yaml", help="Write the groups.")] = None,
    samples: Annotated[int, typer.Option(min=1, max=1_000_000, help="Looked at for links that touch.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Of these.")] = 0,
    image: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE.png", help="Draw it in its safe pose.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Find out what a description leaves open, for groups.yaml.

    Chains, tools, grippers; pairs of links that never or always touch; a pose away from limits and collisions;
    accelerations (full speed in half a second) and gains of servos (from the inertia that joints feel, no stiffer than
    their efforts allow).  What is written is read back as a check.

    Beside a description, as arm.groups.yaml beside arm.urdf, the file is found; a robot's YAML names it.
    """
    import numpy as np

    from roboyard.bringup.robot_loader import load_robot
    from roboyard.cli.arm_analysis import analyze_arm, draw_pose
    from roboyard.cli.terminal import print_columns, print_fields, print_heading, print_json
    from roboyard.config import write_atomic
    from roboyard.errors import InputError, RunError
    from roboyard.manipulation import load_groups
    from roboyard.manipulation.groups.writing import groups_text

    if image is not None:
        from roboyard.simulation.render.portrait import check_picture

        check_picture(image)
    if out is not None and out.suffix not in (".yaml", ".yml"):
        raise InputError(f"--out {out}", valid="a name that ends in .yaml")
    package = load_robot(robot, repair=True, use_calibration=False)
    model = package.load_model(repair=True)
    found = analyze_arm(model, np.random.default_rng(seed), samples)
    groups = found.groups
    if not groups.groups:
        raise InputError("no chain of two moving joints or more is in it", location=robot, valid="a robot with an arm")
    text = groups_text(groups, f"Groups of {model.name}, as found by `roboyard arm setup`.")
    if out is not None:
        try:
            write_atomic(out, text)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", location=str(out)) from error
        if load_groups(out, model).groups.keys() != groups.groups.keys():
            raise RunError("what was written reads back otherwise", location=str(out))
    if image is not None:
        safe_pose = {joint: value for one in groups.groups.values() if "safe" in one.poses
                for joint, value in zip(one.joints, one.poses["safe"], strict=True)}  # fmt: skip
        draw_pose(image, model, safe_pose)
    pairs = {
        reason: sum(pair_reason == reason for pair_reason in groups.allowed.values())
        for reason in ("adjacent", "never", "always")
    }
    if json:
        group_data = {one.name: {"base": one.base, "tip": one.tip, "joints": one.joints, "poses": dict(one.poses),
                           "gripper": one.gripper, "clearance": found.clearance[one.name]}
                for one in groups.groups.values()}  # fmt: skip
        print_json(
            {
                "robot": model.name,
                "groups": group_data,
                "pairs": pairs,
                "gains": dict(groups.gains),
                "out": out,
                "picture": image,
            }
        )
        return
    for one in groups.groups.values():
        print_heading(f"group {one.name}")
        print_fields(
            [
                ("from", f"{one.base} to {one.tip}"),
                ("joints", ", ".join(one.joints)),
                ("gripper", one.gripper or "none"),
                *((f"pose {pose}", " ".join(f"{value:.4g}" for value in values)) for pose, values in one.poses.items()),
                ("clearance", f"{found.clearance[one.name] * 1e3:.0f} mm in the safest pose looked at"),
            ]
        )
    print_heading("pairs of links that need not be looked at")
    print_columns([[f"  {count}", reason] for reason, count in pairs.items()])
    print_heading("gains of servos")
    print_columns(
        [
            [f"  {joint}:", ", ".join(f"{key} {value:g}" for key, value in gains.items())]
            for joint, gains in groups.gains.items()
        ]
    )
    if out is None:
        print(text, end="")


def _parse_goal(group: Group, to: str | None, position: str | None, axis: str | None) -> SE3 | PointingTarget:
    from roboyard.errors import InputError
    from roboyard.geometry import SE3
    from roboyard.kinematics.ik import PointingTarget

    if to is not None and position is None and axis is None:
        numbers = _parse_numbers("--to", to, 6)
        return SE3.from_xyz_rpy(numbers[:3], numbers[3:])
    if to is None and position is not None and axis is not None:
        return PointingTarget(_parse_numbers("--position", position, 3), _parse_numbers("--axis", axis, 3), group.axis)
    raise InputError("no goal, or two", valid="--to 'x y z r p y', or --position 'x y z' with --axis 'x y z'")


def _seed_positions(group: Group, chain: Chain, text: str | None) -> Any:
    if text is None or text in group.poses:
        return None if text is None else group.pose(text)
    if not any(letter.isdigit() for letter in text.split(" ")[0].split(",")[0]):
        return group.pose(text)  # which says what poses there are
    return _parse_numbers("--seed-state", text, chain.dof)


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
