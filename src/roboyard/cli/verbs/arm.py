"""``roboyard arm``: what an arm is, where it gets to, and the joints for a tool's pose."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.grammar import JsonOption, group

if TYPE_CHECKING:
    from roboyard.geometry import SE3
    from roboyard.kinematics import Chain
    from roboyard.kinematics.ik import PointingTarget
    from roboyard.manipulation import Group

app = group("Look at arms: groups, reach, joints for a pose.")

RobotArgument = Annotated[str, typer.Argument(metavar="ROBOT", help="A robot's name, or its URDF, xacro, SDF or MJCF.")]
GroupOption = Annotated[str | None, typer.Option("--group", metavar="NAME", help="Which joints; default: the first.")]
ToolOption = Annotated[str | None, typer.Option("--tool", metavar="NAME", help="Which of the group's tools.")]


@app.callback()
def _arm() -> None:
    """Look at arms: groups, reach, joints for a pose."""


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
    near: Annotated[
        str | None, typer.Option(metavar="POSE", help="A named pose, or joints: the nearer the better.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Joints for a tool's pose, or its place and direction.

    If there are none: why, and what comes nearest.

    Exit code 0: there are some; 1: there are none; 2: robot or goal cannot be used.
    """
    from roboyard.cli.terminal import emit, fields, note, table
    from roboyard.kinematics.ik import solve_ik
    from roboyard.scenarios.robot_groups import find_groups

    groups = find_groups(robot)
    chosen = groups.group(name)
    chain = groups.chain(chosen.name, tool)
    goal = _goal(chosen, to, position, axis)
    found = solve_ik(chain, goal, _near(chosen, chain, near))
    best = found.nearest
    if json:
        emit(
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
        table([*chain.joints, "off"], rows, right=[*chain.joints, "off"])
        note(f"{len(found)} by {found.method}")
    else:
        note(f"roboyard: no joints for this goal: {found.failure.value if found.failure else 'none found'}")
        if best is not None:
            fields(
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


@app.command("reach")
def reach(
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

    from roboyard.cli.reach_picture import draw_reach, reach_of
    from roboyard.cli.terminal import emit, fields
    from roboyard.errors import InputError
    from roboyard.scenarios.robot_groups import find_groups

    if out is not None and out.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"--out {out}", valid="a name that ends in .png or .svg")
    chain = find_groups(robot).chain(name, tool)
    found = reach_of(chain, np.random.default_rng(seed), samples)
    if out is not None:
        draw_reach(out, chain, found)
    low, high = found.points.min(axis=0), found.points.max(axis=0)
    far = float(np.linalg.norm(found.points, axis=1).max())
    about = {"robot": chain.robot, "base": chain.base, "tip": chain.tip, "farthest": far, "low": low.tolist(),
             "high": high.tolist(), "volume": found.volume, "cell": found.cell,
             "manipulability": float(np.median(found.measures))}  # fmt: skip
    if json:
        emit({**about, "picture": out})
        return
    fields(
        [
            ("tool", f"{chain.tip}, in the frame of {chain.base}"),
            ("farthest", f"{far:.3f} m"),
            *((axis, f"{a:.3f} … {b:.3f} m") for axis, a, b in zip("xyz", low, high, strict=True)),
            ("volume", f"{found.volume:.4g} m³, in cells of {found.cell * 1e3:.0f} mm"),
            ("manipulability", f"{np.median(found.measures):.3g} in the median"),
            *([("picture", str(out))] if out is not None else []),
        ]
    )


@app.command("setup")
def setup(
    robot: RobotArgument,
    out: Annotated[Path | None, typer.Option(metavar="FILE.yaml", help="Write the groups.")] = None,
    states: Annotated[int, typer.Option(min=1, max=1_000_000, help="Looked at for links that touch.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Of these.")] = 0,
    picture: Annotated[Path | None, typer.Option(metavar="FILE.png", help="Draw it in its safe pose.")] = None,
    json: JsonOption = False,
) -> None:
    """Find out what a description leaves open, for groups.yaml.

    Chains, tools, grippers; pairs of links that never or always touch; a pose away from limits and collisions;
    accelerations (full speed in half a second) and gains of servos (from the inertia that joints feel, no stiffer than
    their efforts allow).  What is written is read back as a check.

    Beside a description, as arm.groups.yaml beside arm.urdf, the file is found; a robot's YAML names it.
    """
    import numpy as np

    from roboyard.cli.arm_setup import draw_pose, set_up
    from roboyard.cli.terminal import columns, emit, fields, heading
    from roboyard.config import write_atomic
    from roboyard.errors import InputError, RunError
    from roboyard.manipulation import load_groups
    from roboyard.manipulation.groups.writing import groups_text
    from roboyard.scenarios.catalog import find_robot

    if picture is not None:
        from roboyard.simulation.render.portrait import check_picture

        check_picture(picture)
    if out is not None and out.suffix not in (".yaml", ".yml"):
        raise InputError(f"--out {out}", valid="a name that ends in .yaml")
    package = find_robot(robot, repair=True, calibrated=False)
    model = package.load_model(repair=True)
    found = set_up(model, np.random.default_rng(seed), states)
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
    if picture is not None:
        safe = {joint: value for one in groups.groups.values() if "safe" in one.poses
                for joint, value in zip(one.joints, one.poses["safe"], strict=True)}  # fmt: skip
        draw_pose(picture, model, safe)
    pairs = {
        reason: sum(why == reason for why in groups.allowed.values()) for reason in ("adjacent", "never", "always")
    }
    if json:
        told = {one.name: {"base": one.base, "tip": one.tip, "joints": one.joints, "poses": dict(one.poses),
                           "gripper": one.gripper, "clearance": found.clearance[one.name]}
                for one in groups.groups.values()}  # fmt: skip
        emit(
            {
                "robot": model.name,
                "groups": told,
                "pairs": pairs,
                "gains": dict(groups.gains),
                "out": out,
                "picture": picture,
            }
        )
        return
    for one in groups.groups.values():
        heading(f"group {one.name}")
        fields(
            [
                ("from", f"{one.base} to {one.tip}"),
                ("joints", ", ".join(one.joints)),
                ("gripper", one.gripper or "none"),
                *((f"pose {pose}", " ".join(f"{value:.4g}" for value in values)) for pose, values in one.poses.items()),
                ("clearance", f"{found.clearance[one.name] * 1e3:.0f} mm in the safest pose looked at"),
            ]
        )
    heading("pairs of links that need not be looked at")
    columns([[f"  {count}", reason] for reason, count in pairs.items()])
    heading("gains of servos")
    columns(
        [
            [f"  {joint}:", ", ".join(f"{key} {value:g}" for key, value in gains.items())]
            for joint, gains in groups.gains.items()
        ]
    )
    if out is None:
        print(text, end="")


def _goal(chosen: Group, to: str | None, position: str | None, axis: str | None) -> SE3 | PointingTarget:
    from roboyard.errors import InputError
    from roboyard.geometry import SE3
    from roboyard.kinematics.ik import PointingTarget

    if to is not None and position is None and axis is None:
        numbers = _numbers("--to", to, 6)
        return SE3.from_xyz_rpy(numbers[:3], numbers[3:])
    if to is None and position is not None and axis is not None:
        return PointingTarget(_numbers("--position", position, 3), _numbers("--axis", axis, 3), chosen.axis)
    raise InputError("no goal, or two", valid="--to 'x y z r p y', or --position 'x y z' with --axis 'x y z'")


def _near(chosen: Group, chain: Chain, text: str | None) -> Any:
    if text is None or text in chosen.poses:
        return None if text is None else chosen.pose(text)
    if not any(letter.isdigit() for letter in text.split(" ")[0].split(",")[0]):
        return chosen.pose(text)  # which says what poses there are
    return _numbers("--near", text, chain.dof)


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
