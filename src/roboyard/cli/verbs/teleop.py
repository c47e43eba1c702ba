"""``roboyard teleop``: drive a robot of a live run by hand."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roboyard.cli.grammar import RunOption

if TYPE_CHECKING:
    from roboyard.bus.socket.registry import LiveRun


class Kind(StrEnum):
    """What steers."""

    keyboard = "keyboard"
    gamepad = "gamepad"


def teleop(
    kind: Annotated[Kind, typer.Argument(metavar="[keyboard|gamepad]", help="What steers.")] = Kind.keyboard,
    robot: Annotated[str | None, typer.Option(metavar="NAME", help="Default: the main one.")] = None,
    speed: Annotated[float, typer.Option(metavar="M/S", min=0.01, max=20.0, help="Full speed.")] = 0.5,
    turn: Annotated[float, typer.Option(metavar="RAD/S", min=0.01, max=20.0, help="Full turn.")] = 1.0,
    means: Annotated[
        str | None, typer.Option("--map", metavar="NAME|FILE", help="Gamepad: ps3, f710, generic, or a YAML file.")
    ] = None,
    device: Annotated[Path | None, typer.Option(metavar="FILE", help="Gamepad; default: /dev/input/js0.")] = None,
    topic: Annotated[str | None, typer.Option(metavar="NAME", help="Of wanted twists, if not cmd_vel.")] = None,
    rate: Annotated[
        float, typer.Option(metavar="X", min=0.0, help="The run's pace meanwhile; 0: leave it as it is.")
    ] = 1.0,
    run: RunOption = None,
) -> None:
    """Drive a robot by held keys or a gamepad.

    Ctrl-C ends it, and the robot stops.  A gamepad that is unplugged is a lost link.
    """
    from math import isfinite

    from roboyard.bus.socket import connect
    from roboyard.cli.hands import Gamepad, Hand, Keyboard
    from roboyard.cli.steering import Steering, find_reins
    from roboyard.cli.terminal import note
    from roboyard.control.teleoperation import find_map
    from roboyard.errors import InputError

    for name, value in (("--speed", speed), ("--turn", turn), ("--rate", rate)):
        if not isfinite(value):
            raise InputError(f"{value}", location=name, valid="a number")
    if kind is Kind.keyboard and (means is not None or device is not None):
        raise InputError("--map and --device are of gamepads", valid="`roboyard teleop gamepad`")
    pad_map = find_map(means or "generic") if kind is Kind.gamepad else None
    with connect(run) as connection:
        reins = find_reins(connection.graph(), robot, topic)
        hand: Hand = (
            Keyboard(speed, turn)
            if pad_map is None
            else Gamepad(device or Path("/dev/input/js0"), pad_map, speed, turn)
        )
        with hand:
            before = connection.control("rate", rate=rate)["previous_rate"] if rate else None
            note(f"driving {reins.command} of run '{connection.run.name}': {hand.about}")
            try:
                Steering(connection, reins, hand).drive()
            finally:
                if before is not None:
                    _restore(connection.run, before)
        note("the run has ended" if connection.has_ended else "stopped")


def _restore(run: LiveRun, before: float) -> None:
    """Let the run go on at the pace it had."""
    from contextlib import suppress

    from roboyard.bus.socket import RunConnection
    from roboyard.errors import RunError

    with suppress(RunError), RunConnection(run) as other:
        other.control("rate", rate=before)
