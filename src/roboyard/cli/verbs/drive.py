"""``roboyard drive``: a robot's nodes on its real servos, or on emulated ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roboyard.cli.grammar import JsonOption

if TYPE_CHECKING:
    from roboyard.scenarios.real import Driven, RealRobot


def drive(
    robot: Annotated[str, typer.Argument(metavar="NAME|FILE", help="A robot whose YAML names its servos.")],
    port: Annotated[str | None, typer.Option(metavar="PATH", help="Of the servos, e.g. /dev/ttyUSB0.")] = None,
    emulate: Annotated[bool, typer.Option("--emulate", help="Servos that are not there, instead of a port.")] = False,
    fault: Annotated[
        list[str] | None, typer.Option(metavar="S:FAULT[:ID]", help="Of emulated servos: unplug, mute, overheat, …")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Only ask all servos how they are; nothing moves.")] = False,
    release: Annotated[bool, typer.Option("--release", help="Only let all servos go: the robot sinks down.")] = False,
    duration: Annotated[float | None, typer.Option(metavar="S", min=0.1, help="End by itself.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="New folder for a recording.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    json: JsonOption = False,
) -> None:
    """Run a robot's nodes on its servos, in real time.

    Every verb for live runs sees it: `roboyard teleop` drives, `service call` plays.
    It begins where the joints are.  Ctrl-C ends it; the servos hold their positions.
    A servo that fails stops all of them: the error says which, which joint and why.

    Exit code 1: a servo failed, or --check found faults; 2: the input was wrong.
    """
    from contextlib import ExitStack

    from roboyard.errors import InputError
    from roboyard.hardware.dynamixel.emulation.bus import FaultInjection, PseudoTerminal, PseudoTerminalProcess
    from roboyard.scenarios.real import RealRobot

    if (port is None) != emulate:
        raise InputError("where are the servos?", valid="either --port or --emulate")
    if fault and not emulate:
        raise InputError("--fault is of emulated servos", valid="--emulate")
    if check and release:
        raise InputError("--check and --release", valid="one of them")
    troubles = [FaultInjection.parse(text) for text in fault or []]
    found = RealRobot.find(robot)
    with ExitStack() as stack:
        if emulate:
            bus = found.emulated(troubles)
            served: PseudoTerminal | PseudoTerminalProcess
            served = PseudoTerminal(bus) if check or release else PseudoTerminalProcess(bus)
            stack.callback(served.close)
            found, port = found.patient(), served.path
        path = port or ""
        if check:
            _check(found, path, json)
        elif release:
            _release(found, path, json)
        else:
            driven = _drive(found, path, duration, out, quiet or json)
            _show(found, path, driven, json, emulate)


def _drive(robot: RealRobot, path: str, duration: float | None, out: Path | None, quiet: bool) -> Driven:
    from roboyard.cli.display import Display
    from roboyard.scenarios import Control
    from roboyard.scenarios.real import drive_robot
    from roboyard.scenarios.run_folder import given_folder

    folder = None if out is None else given_folder(out)
    control = Control(pace=1.0)
    try:
        with Display(robot.package.name, duration, control, quiet=quiet) as display:
            return drive_robot(
                robot, path, duration=duration, folder=folder, control=control, log=display.log,
                started=display.started, progress=display.tick,
            )  # fmt: skip
    finally:
        if folder is not None and not folder.files():
            folder.discard()


def _show(robot: RealRobot, path: str, driven: Driven, json: bool, emulated: bool) -> None:
    from roboyard.cli.terminal import emit, fields, note

    count = driven.statistics
    if json:
        emit(
            {
                "robot": robot.package.name, "port": path, "seconds": driven.seconds, "cycles": driven.cycles,
                "late_cycles": driven.late, "requests": count.sent, "timeouts": count.timeouts,
                "corrupt": count.corrupt, "mean_latency": count.mean_latency, "max_latency": count.max_latency,
                "folder": driven.folder,
            }
        )  # fmt: skip
        return
    fields(
        [
            ("ran", f"{driven.seconds:.1f} s, {driven.cycles} cycles of the servos, {driven.late} late"),
            ("asked", f"{count.sent} times; {count.timeouts} without answer, {count.corrupt} corrupt"),
            (
                "answers",
                f"after {1e3 * count.mean_latency:.2f} ms in the mean, {1e3 * count.max_latency:.1f} ms at most",
            ),
            ("folder", driven.folder),
        ]
    )
    if not emulated:
        note(
            f"the servos hold their positions; `roboyard drive {robot.package.name} --port {path} --release` ends that"
        )


def _check(robot: RealRobot, path: str, json: bool) -> None:
    import math

    from roboyard.cli.terminal import emit, note, say, table
    from roboyard.hardware.dynamixel.monitor import diagnose_servos, find_unknown_ids

    with robot.port(path) as port:
        found = diagnose_servos(port, robot.servos, robot.settings.fault_limits)
        lost = [one for one in found if one.state is None]
        if lost and not json:
            note("looking for servos of other ids …")
        others = find_unknown_ids(port, robot.servos) if lost else []
    bad = [one for one in found if one.problems]
    if json:
        emit(
            {
                "ok": not bad, "port": path, "unknown_ids": others,
                "servos": [
                    {
                        "joint": one.joint, "id": one.servo, "position": None if one.state is None else one.position,
                        "voltage": one.state and one.state.voltage, "temperature": one.state and one.state.temperature,
                        "firmware": one.firmware, "return_delay": one.return_delay, "problems": list(one.problems),
                    }
                    for one in found
                ],
            }
        )  # fmt: skip
    else:
        table(
            ["joint", "id", "angle [°]", "load [%]", "V", "°C", "delay [ms]", "how it is"],
            [
                [one.joint, one.servo, *(["-"] * 5 if one.state is None else [
                    f"{math.degrees(one.position):.1f}", f"{100 * one.state.load:.0f}", f"{one.state.voltage:.1f}",
                    f"{one.state.temperature:.0f}", f"{1e3 * one.return_delay:.2f}",
                ]), "; ".join(one.problems) or "ok"]
                for one in found
            ],
            right=["id", "angle [°]", "load [%]", "V", "°C", "delay [ms]"],
        )  # fmt: skip
        if others:
            say(f"also there, of no joint: {', '.join(map(str, others))}")
    if bad:
        raise typer.Exit(1)


def _release(robot: RealRobot, path: str, json: bool) -> None:
    from roboyard.cli.terminal import emit, say
    from roboyard.hardware.dynamixel.hardware import DynamixelHardware

    with robot.port(path) as port:
        DynamixelHardware(port, robot.settings, robot.servos).release()
    if json:
        emit({"released": list(robot.servos.ids), "port": path})
    else:
        say(f"let go: {len(robot.servos.ids)} servos")
