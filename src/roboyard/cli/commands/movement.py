"""``roboyard check movement`` and ``show movement``: steps of feet from a file, and whether a robot can take them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roboyard.cli.app import JsonOption

if TYPE_CHECKING:
    from roboyard.walking.movement import Movement, Played
    from roboyard.walking.walker import Walker

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A movement: .xml.")]
RobotOption = Annotated[str, typer.Option(metavar="NAME|FILE", help="Whose feet; a robot with legs.")]
InterpolationOption = Annotated[str, typer.Option(metavar="cosine|spline", help="How feet go from step to step.")]
TicksOption = Annotated[
    int | None,
    typer.Option(min=1, max=10_000, help="Of 20 ms, from step to step at least; default: the movement's, or 8."),
]


def check_movement(
    file: FileArgument,
    robot: RobotOption = "akrobat",
    interpolation: InterpolationOption = "cosine",
    ticks: TicksOption = None,
    json: JsonOption = False,
) -> None:
    """A movement: whether a robot's feet can take its steps.

    Looks at every step and at the way between them: reach, joints' limits and speeds.
    Says how long it takes; steps that a joint could not follow take longer.

    Exit code 1: the robot cannot do it; 2: the file is wrong.
    """
    from roboyard.cli.terminal import print_fields, print_json
    from roboyard.walking.movement import TICKS

    movement, legged_robot, played = _play_movement(file, robot, interpolation, ticks)
    slowed = int((played.ticks > (ticks or movement.ticks or TICKS)).sum())
    if json:
        print_json(
            {
                "ok": True, "file": file, "robot": legged_robot.robot, "feet": movement.legs, "steps": movement.count,
                "duration": played.duration, "ticks": played.ticks.tolist(), "slowed": slowed,
            }
        )  # fmt: skip
        return
    print_fields(
        [
            ("robot", legged_robot.robot),
            ("feet", movement.legs),
            ("steps", movement.count),
            ("takes", f"{played.duration:.2f} s, {interpolation}"),
            ("slowed", f"{slowed} of {len(played.ticks)} ways between steps, for the joints' speeds"),
        ]
    )


def show_movement(
    file: FileArgument,
    robot: RobotOption = "akrobat",
    interpolation: InterpolationOption = "cosine",
    ticks: TicksOption = None,
    out: Annotated[Path | None, typer.Option(metavar="PNG", help="Also draw it: a .png or .svg file.")] = None,
    json: JsonOption = False,
) -> None:
    """A movement: its steps, and the ways of its feet."""
    import numpy as np

    from roboyard.cli.terminal import print_fields, print_json, print_table
    from roboyard.errors import InputError

    if out is not None and out.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"--out {out}", valid="a name that ends in .png or .svg")
    movement, legged_robot, played = _play_movement(file, robot, interpolation, ticks)
    speeds = np.abs(np.diff(played.q, axis=0)).max(axis=(0, 2), initial=0.0) / played.period
    feet = [
        {
            "leg": leg.name, "low": steps.min(axis=0).tolist(), "high": steps.max(axis=0).tolist(),
            "way": float(np.linalg.norm(np.diff(steps, axis=0), axis=1).sum()), "fastest_joint": float(speed),
        }
        for leg, steps, speed in zip(legged_robot.legs, movement.steps, speeds, strict=True)
    ]  # fmt: skip
    if out is not None:
        from roboyard.walking.drawing import draw_movement

        draw_movement(out, legged_robot, movement, played)
    if json:
        print_json(
            {
                "file": file, "robot": legged_robot.robot, "steps": movement.count, "duration": played.duration,
                "feet": feet, "picture": out,
            }
        )  # fmt: skip
        return
    print_fields(
        [
            ("robot", legged_robot.robot),
            ("steps", movement.count),
            ("takes", f"{played.duration:.2f} s, {interpolation}"),
        ]
    )
    print_table(
        ["leg", "x [mm]", "y [mm]", "z [mm]", "way [m]", "joints up to [rad/s]"],
        [
            [
                one["leg"],
                *(f"{1e3 * a:.0f} … {1e3 * b:.0f}" for a, b in zip(one["low"], one["high"], strict=True)),
                f"{one['way']:.3f}",
                f"{one['fastest_joint']:.2f}",
            ]
            for one in feet
        ],
    )


def _play_movement(file: Path, robot: str, interpolation: str, ticks: int | None) -> tuple[Movement, Walker, Played]:
    from roboyard.bringup.legged_robot import load_legged_robot
    from roboyard.errors import InputError
    from roboyard.walking.movement import play
    from roboyard.walking.movement_file import load_movement

    if interpolation not in ("cosine", "spline"):
        raise InputError(f"--interpolation {interpolation!r}", valid="cosine or spline")
    movement, legged_robot = load_movement(file), load_legged_robot(robot)
    return (
        movement,
        legged_robot,
        play(movement, legged_robot, between="spline" if interpolation == "spline" else "cosine", ticks=ticks),
    )
