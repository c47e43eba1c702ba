"""``roboyard bringup``: a robot's nodes on its real servos, or on emulated ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roboyard.cli.app import JsonOption

if TYPE_CHECKING:
    from roboyard.scenarios.hardware_run import HardwareRunResult, ServoRobot


def bringup(
    robot: Annotated[str, typer.Argument(metavar="NAME|FILE", help="A robot whose YAML names its servos.")],
    port: Annotated[str | None, typer.Option(metavar="PATH", help="Of the servos, e.g. /dev/ttyUSB0.")] = None,
    emulate: Annotated[bool, typer.Option("--emulate", help="Servos that are not there, instead of a port.")] = False,
    fault: Annotated[
        list[str] | None, typer.Option(metavar="TIME:FAULT[:ID]", help="Of emulated servos: unplug, mute, overheat, …")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Only ask all servos how they are; nothing moves.")] = False,
    torque_off: Annotated[
        bool, typer.Option("--torque-off", help="Only let all servos go: the robot sinks down.")
    ] = False,
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
    from roboyard.scenarios.hardware_run import ServoRobot

    if (port is None) != emulate:
        raise InputError("where are the servos?", valid="either --port or --emulate")
    if fault and not emulate:
        raise InputError("--fault is of emulated servos", valid="--emulate")
    if check and torque_off:
        raise InputError("--check and --torque-off", valid="one of them")
    faults = [FaultInjection.parse(text) for text in fault or []]
    found = ServoRobot.load(robot)
    with ExitStack() as stack:
        if emulate:
            bus = found.create_emulated_bus(faults)
            pseudo_terminal: PseudoTerminal | PseudoTerminalProcess
            pseudo_terminal = PseudoTerminal(bus) if check or torque_off else PseudoTerminalProcess(bus)
            stack.callback(pseudo_terminal.close)
            found, port = found.with_emulation_timeout(), pseudo_terminal.path
        path = port or ""
        if check:
            _check_servos(found, path, json)
        elif torque_off:
            _release_servos(found, path, json)
        else:
            result = _run_robot(found, path, duration, out, quiet or json)
            _print_statistics(found, path, result, json, emulate)


def _run_robot(
    robot: ServoRobot, path: str, duration: float | None, out: Path | None, quiet: bool
) -> HardwareRunResult:
    from roboyard.cli.run_display import RunDisplay
    from roboyard.scenarios import RunControl
    from roboyard.scenarios.hardware_run import run_on_hardware
    from roboyard.scenarios.run_folder import prepare_folder

    folder = None if out is None else prepare_folder(out)
    control = RunControl(real_time_factor=1.0)
    try:
        with RunDisplay(robot.package.name, duration, control, quiet=quiet) as display:
            return run_on_hardware(
                robot, path, duration=duration, folder=folder, control=control, on_log=display.log,
                on_started=display.start, on_progress=display.tick,
            )  # fmt: skip
    finally:
        if folder is not None and not folder.files():
            folder.discard()


def _print_statistics(robot: ServoRobot, path: str, result: HardwareRunResult, json: bool, emulated: bool) -> None:
    from roboyard.cli.terminal import print_fields, print_json, print_note

    count = result.statistics
    if json:
        print_json(
            {
                "robot": robot.package.name, "port": path, "seconds": result.duration, "cycles": result.cycles,
                "late_cycles": result.late_cycles, "requests": count.sent, "timeouts": count.timeouts,
                "corrupt": count.corrupt, "mean_latency": count.mean_latency, "max_latency": count.max_latency,
                "folder": result.folder,
            }
        )  # fmt: skip
        return
    print_fields(
        [
            ("ran", f"{result.duration:.1f} s, {result.cycles} cycles of the servos, {result.late_cycles} late"),
            ("asked", f"{count.sent} times; {count.timeouts} without answer, {count.corrupt} corrupt"),
            (
                "answers",
                f"after {1e3 * count.mean_latency:.2f} ms in the mean, {1e3 * count.max_latency:.1f} ms at most",
            ),
            ("folder", result.folder),
        ]
    )
    if not emulated:
        print_note(
            "the servos hold their positions; "
            f"`roboyard bringup {robot.package.name} --port {path} --torque-off` ends that"
        )


def _check_servos(robot: ServoRobot, path: str, json: bool) -> None:
    import math

    from roboyard.cli.terminal import print_json, print_line, print_note, print_table
    from roboyard.hardware.dynamixel.monitor import diagnose_servos, find_unknown_ids

    with robot.open_port(path) as port:
        found = diagnose_servos(port, robot.servos, robot.settings.fault_limits)
        silent_servos = [one for one in found if one.state is None]
        if silent_servos and not json:
            print_note("looking for servos of other ids …")
        unknown_ids = find_unknown_ids(port, robot.servos) if silent_servos else []
    faulty_servos = [one for one in found if one.problems]
    if json:
        print_json(
            {
                "ok": not faulty_servos, "port": path, "unknown_ids": unknown_ids,
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
        print_table(
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
        if unknown_ids:
            print_line(f"also there, of no joint: {', '.join(map(str, unknown_ids))}")
    if faulty_servos:
        raise typer.Exit(1)


def _release_servos(robot: ServoRobot, path: str, json: bool) -> None:
    from roboyard.cli.terminal import print_json, print_line
    from roboyard.hardware.dynamixel.hardware import DynamixelHardware

    with robot.open_port(path) as port:
        DynamixelHardware(port, robot.settings, robot.servos).release()
    if json:
        print_json({"released": list(robot.servos.ids), "port": path})
    else:
        print_line(f"let go: {len(robot.servos.ids)} servos")
