"""``roboyard teleop``: drives a robot of a live run by keyboard or gamepad."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roboyard.cli.options import RATE, ROBOT, TOPIC, RunOption

if TYPE_CHECKING:
    from roboyard.bus.socket.registry import LiveRun


class TeleopKind(StrEnum):
    """Kind of the teleoperation device."""

    keyboard = "keyboard"
    gamepad = "gamepad"


def teleop(
    kind: Annotated[TeleopKind, typer.Argument(metavar="keyboard|gamepad", help="Device.")] = TeleopKind.keyboard,
    robot: Annotated[str | None, ROBOT(" in the run; default: the main one", autocompletion=None)] = None,
    speed: Annotated[float, typer.Option(metavar="M/S", min=0.01, max=20.0, help="Maximum speed [m/s].")] = 0.5,
    angular_speed: Annotated[
        float, typer.Option("--turn", metavar="RAD/S", min=0.01, max=20.0, help="Maximum angular speed [rad/s].")
    ] = 1.0,
    gamepad_map: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="Map of the gamepad: ps3, f710, generic, or a YAML file.")
    ] = None,
    device: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Device of the gamepad; default: /dev/input/js0.")
    ] = None,
    topic: Annotated[str | None, TOPIC(" of the commands; default: cmd_vel of the robot")] = None,
    rate: Annotated[float, RATE("; here 0 keeps that of the run")] = 1.0,
    run: RunOption = None,
) -> None:
    """Drive a robot by keyboard or gamepad.

    Ctrl-C ends the command, and the robot stops. An unplugged gamepad acts as a lost link.
    """
    from math import isfinite

    from roboyard.bus.socket import connect
    from roboyard.cli.teleop_devices import Gamepad, Keyboard, TeleopDevice
    from roboyard.cli.teleop_session import TeleopSession, find_command_topics
    from roboyard.cli.terminal import print_note
    from roboyard.control.teleoperation import load_mapping
    from roboyard.errors import InputError

    for name, value in (("--speed", speed), ("--turn", angular_speed), ("--rate", rate)):
        if not isfinite(value):
            raise InputError(f"{name} must be a finite number, got {value}")
    if kind is TeleopKind.keyboard and (gamepad_map is not None or device is not None):
        raise InputError("--gamepad-map and --device require a gamepad", valid="`roboyard teleop gamepad`")
    pad_map = load_mapping(gamepad_map or "generic") if kind is TeleopKind.gamepad else None
    with connect(run) as connection:
        command_topics = find_command_topics(connection.graph(), robot, topic)
        device_input: TeleopDevice = (
            Keyboard(speed, angular_speed)
            if pad_map is None
            else Gamepad(device or Path("/dev/input/js0"), pad_map, speed, angular_speed)
        )
        with device_input:
            previous_rate = connection.control("rate", rate=rate)["previous_rate"] if rate else None
            print_note(f"driving {command_topics.command} of run '{connection.run.name}': {device_input.instructions}")
            try:
                TeleopSession(connection, command_topics, device_input).run()
            finally:
                if previous_rate is not None:
                    _restore_rate(connection.run, previous_rate)
        print_note("the run has ended" if connection.has_ended else "stopped")


def _restore_rate(run: LiveRun, previous_rate: float) -> None:
    """Restore the real-time factor of the run."""
    from contextlib import suppress

    from roboyard.bus.socket import RunConnection
    from roboyard.errors import RunError

    with suppress(RunError), RunConnection(run) as other:
        other.control("rate", rate=previous_rate)
