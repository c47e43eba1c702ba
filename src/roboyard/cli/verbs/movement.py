"""``roboyard check movement`` and ``show movement``: steps of feet from a file, and whether a robot can take them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roboyard.cli.grammar import JsonOption

if TYPE_CHECKING:
    from roboyard.walking.movement import Movement, Played
    from roboyard.walking.walker import Walker

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A movement: .xml.")]
RobotOption = Annotated[str, typer.Option(metavar="NAME|FILE", help="Whose feet; a robot with legs.")]
BetweenOption = Annotated[str, typer.Option(metavar="cosine|spline", help="How feet go from step to step.")]
TicksOption = Annotated[
    int | None,
    typer.Option(min=1, max=10_000, help="Of 20 ms, from step to step at least; default: the movement's, or 8."),
]


def check_movement(
    file: FileArgument,
    robot: RobotOption = "akrobat",
    between: BetweenOption = "cosine",
    ticks: TicksOption = None,
    json: JsonOption = False,
) -> None:
    """A movement: whether a robot's feet can take its steps.

    Looks at every step and at the way between them: reach, joints' limits and speeds.
    Says how long it takes; steps that a joint could not follow take longer.

    Exit code 1: the robot cannot do it; 2: the file is wrong.
    """
    from roboyard.cli.terminal import emit, fields
    from roboyard.walking.movement import TICKS

    movement, walker, played = _played(file, robot, between, ticks)
    slowed = int((played.ticks > (ticks or movement.ticks or TICKS)).sum())
    if json:
        emit(
            {
                "ok": True, "file": file, "robot": walker.robot, "feet": movement.legs, "steps": movement.count,
                "duration": played.duration, "ticks": played.ticks.tolist(), "slowed": slowed,
            }
        )  # fmt: skip
        return
    fields(
        [
            ("robot", walker.robot),
            ("feet", movement.legs),
            ("steps", movement.count),
            ("takes", f"{played.duration:.2f} s, {between}"),
            ("slowed", f"{slowed} of {len(played.ticks)} ways between steps, for the joints' speeds"),
        ]
    )


def show_movement(
    file: FileArgument,
    robot: RobotOption = "akrobat",
    between: BetweenOption = "cosine",
    ticks: TicksOption = None,
    out: Annotated[Path | None, typer.Option(metavar="PNG", help="Also draw it: a .png or .svg file.")] = None,
    json: JsonOption = False,
) -> None:
    """A movement: its steps, and the ways of its feet."""
    import numpy as np

    from roboyard.cli.terminal import emit, fields, table
    from roboyard.errors import InputError

    if out is not None and out.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"--out {out}", valid="a name that ends in .png or .svg")
    movement, walker, played = _played(file, robot, between, ticks)
    speeds = np.abs(np.diff(played.q, axis=0)).max(axis=(0, 2), initial=0.0) / played.period
    feet = [
        {
            "leg": leg.name, "low": steps.min(axis=0).tolist(), "high": steps.max(axis=0).tolist(),
            "way": float(np.linalg.norm(np.diff(steps, axis=0), axis=1).sum()), "fastest_joint": float(speed),
        }
        for leg, steps, speed in zip(walker.legs, movement.steps, speeds, strict=True)
    ]  # fmt: skip
    if out is not None:
        from roboyard.cli.movement_picture import draw_movement

        draw_movement(out, walker, movement, played)
    if json:
        emit(
            {
                "file": file, "robot": walker.robot, "steps": movement.count, "duration": played.duration,
                "feet": feet, "picture": out,
            }
        )  # fmt: skip
        return
    fields([("robot", walker.robot), ("steps", movement.count), ("takes", f"{played.duration:.2f} s, {between}")])
    table(
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


def _played(file: Path, robot: str, between: str, ticks: int | None) -> tuple[Movement, Walker, Played]:
    from roboyard.errors import InputError
    from roboyard.scenarios.robot_legs import find_walker
    from roboyard.walking.movement import play
    from roboyard.walking.movement_file import load_movement

    if between not in ("cosine", "spline"):
        raise InputError(f"--between {between!r}", valid="cosine or spline")
    movement, walker = load_movement(file), find_walker(robot)
    return movement, walker, play(movement, walker, between="spline" if between == "spline" else "cosine", ticks=ticks)
