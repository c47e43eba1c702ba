"""``roboyard check movement`` and ``show movement``: a foot movement from a file, played by a legged robot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from roboyard.cli.options import INTERPOLATION, ROBOT, TICKS, ImageOption, JsonOption

if TYPE_CHECKING:
    from roboyard.walking.foot_movement import FootMovement, MovementPlayback
    from roboyard.walking.legged_robot import LeggedRobot

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="Movement: .xml.")]
RobotOption = Annotated[str, ROBOT("; it needs legs")]
InterpolationOption = Annotated[str, INTERPOLATION()]
TicksOption = Annotated[int | None, TICKS(min=1, max=10_000)]


def check_movement(
    file: FileArgument,
    robot: RobotOption = "akrobat",
    interpolation: InterpolationOption = "cosine",
    ticks: TicksOption = None,
    json: JsonOption = False,
) -> None:
    """Check whether a robot can execute a movement.

    The check covers every step and the motion between steps: reach, joint limits and joint speeds. A step takes
    longer where a joint could not follow.

    Exit code 1: the robot cannot execute it; 2: the file is not valid.
    """
    from roboyard.cli.terminal import print_fields, print_result
    from roboyard.walking.foot_movement import DEFAULT_TICKS

    movement, legged_robot, playback = _play_movement(file, robot, interpolation, ticks)
    n_slowed = int((playback.step_ticks > (ticks or movement.step_ticks or DEFAULT_TICKS)).sum())
    result = {
        "ok": True, "file": file, "robot": legged_robot.name, "feet": movement.n_feet, "steps": movement.n_steps,
        "duration": playback.duration, "ticks": playback.step_ticks.tolist(), "slowed": n_slowed,
    }  # fmt: skip
    fields = [
        ("robot", legged_robot.name),
        ("feet", movement.n_feet),
        ("steps", movement.n_steps),
        ("duration", f"{playback.duration:.2f} s, {interpolation}"),
        ("slowed", f"{n_slowed} of {len(playback.step_ticks)} motions between steps, for the joint speeds"),
    ]
    print_result(result, json, lambda _: print_fields(fields))


def show_movement(
    file: FileArgument,
    robot: RobotOption = "akrobat",
    interpolation: InterpolationOption = "cosine",
    ticks: TicksOption = None,
    image: ImageOption = None,
    json: JsonOption = False,
) -> None:
    """Show the steps of a movement and the paths of its feet."""
    from roboyard.cli.arguments import IMAGE_SUFFIXES, validate_output_path
    from roboyard.cli.terminal import print_result
    from roboyard.walking.drawing import draw_movement

    validate_output_path("--picture", image, IMAGE_SUFFIXES)
    movement, legged_robot, playback = _play_movement(file, robot, interpolation, ticks)
    if image is not None:
        draw_movement(image, legged_robot, movement, playback)
    result = {
        "file": file, "robot": legged_robot.name, "steps": movement.n_steps, "duration": playback.duration,
        "interpolation": interpolation, "feet": _describe_feet(movement, legged_robot, playback), "picture": image,
    }  # fmt: skip
    print_result(result, json, _print_movement)


def _describe_feet(
    movement: FootMovement, legged_robot: LeggedRobot, playback: MovementPlayback
) -> list[dict[str, Any]]:
    import numpy as np

    speeds = np.abs(np.diff(playback.q, axis=0)).max(axis=(0, 2), initial=0.0) / playback.period
    return [
        {
            "leg": leg.name, "min_position": steps.min(axis=0).tolist(), "max_position": steps.max(axis=0).tolist(),
            "path_length": float(np.linalg.norm(np.diff(steps, axis=0), axis=1).sum()),
            "max_joint_speed": float(speed),
        }
        for leg, steps, speed in zip(legged_robot.legs, movement.foot_offsets, speeds, strict=True)
    ]  # fmt: skip


def _print_movement(result: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_fields, print_table

    print_fields(
        [
            ("robot", result["robot"]),
            ("steps", result["steps"]),
            ("duration", f"{result['duration']:.2f} s, {result['interpolation']}"),
        ]
    )
    rows = [
        [
            foot["leg"],
            *(
                f"{1e3 * a:.0f} … {1e3 * b:.0f}"
                for a, b in zip(foot["min_position"], foot["max_position"], strict=True)
            ),
            f"{foot['path_length']:.3f}",
            f"{foot['max_joint_speed']:.2f}",
        ]
        for foot in result["feet"]
    ]
    print_table(["leg", "x [mm]", "y [mm]", "z [mm]", "path [m]", "joints up to [rad/s]"], rows)


def _play_movement(
    file: Path, robot: str, interpolation: str, ticks: int | None
) -> tuple[FootMovement, LeggedRobot, MovementPlayback]:
    from roboyard.bringup.legged_robot import load_legged_robot
    from roboyard.errors import InputError
    from roboyard.walking.foot_movement import load_movement, play_movement

    if interpolation not in ("cosine", "spline"):
        raise InputError(f"--interpolation {interpolation!r}", valid="cosine or spline")
    movement, legged_robot = load_movement(file), load_legged_robot(robot)
    method: Literal["cosine", "spline"] = "spline" if interpolation == "spline" else "cosine"
    return movement, legged_robot, play_movement(movement, legged_robot, interpolation=method, step_ticks=ticks)
