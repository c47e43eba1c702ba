"""``roboyard bringup``: a robot's nodes on its real servos, or on emulated ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.options import DURATION, OUT, JsonOption, QuietOption, RobotArgument

if TYPE_CHECKING:
    from roboyard.scenarios.hardware_run import HardwareRunResult, ServoRobot


def bringup(
    robot: RobotArgument,
    port: Annotated[
        str | None, typer.Option(metavar="PATH", help="Serial port of the servos, e.g. /dev/ttyUSB0.")
    ] = None,
    emulate: Annotated[bool, typer.Option("--emulate", help="Use emulated servos instead of a port.")] = False,
    fault: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TIME:FAULT[:ID]", help="Fault of emulated servos: unplug, mute, overheat, …; repeatable."
        ),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Only read the state of all servos; nothing moves.")] = False,
    torque_off: Annotated[
        bool, typer.Option("--torque-off", help="Only switch off the torque of all servos: the robot sinks down.")
    ] = False,
    duration: Annotated[float | None, DURATION(" of the run [s]", min=0.1)] = None,
    out: Annotated[Path | None, OUT(": a folder with a recording", metavar="DIR")] = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Run the nodes of a robot on its servos in real time.

    All commands for live runs work on it, e.g. `roboyard teleop`. The joints start at their present positions. Ctrl-C
    ends the run; the servos hold their positions. A servo that fails stops all of them, and the error names it.

    Exit code 1: a servo failed, or --check found faults; 2: an argument cannot be used.
    """
    from contextlib import ExitStack

    from roboyard.errors import InputError
    from roboyard.hardware.dynamixel.emulation.bus import FaultInjection, PseudoTerminal, PseudoTerminalProcess
    from roboyard.scenarios.hardware_run import ServoRobot

    if (port is None) != emulate:
        raise InputError("exactly one of --port and --emulate is required", valid="--port PATH or --emulate")
    if fault and not emulate:
        raise InputError("--fault requires emulated servos", valid="--emulate")
    if check and torque_off:
        raise InputError("only one of --check and --torque-off is allowed", valid="one of them")
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


def _print_statistics(robot: ServoRobot, path: str, run: HardwareRunResult, json: bool, emulated: bool) -> None:
    from roboyard.cli.terminal import print_fields, print_note, print_result

    count = run.statistics

    def show(_: object) -> None:
        mean, max_latency = 1e3 * count.mean_latency, 1e3 * count.max_latency
        print_fields(
            [
                ("duration", f"{run.duration:.1f} s, {run.cycles} cycles of the servos, {run.late_cycles} late"),
                ("requests", f"{count.sent}; {count.timeouts} without response, {count.corrupt} corrupt"),
                ("latency", f"{mean:.2f} ms on average, {max_latency:.1f} ms at most"),
                ("folder", run.folder),
            ]
        )
        if not emulated:
            command = f"roboyard bringup {robot.package.name} --port {path} --torque-off"
            print_note(f"the servos hold their positions; `{command}` switches off their torque")

    result = {
        "robot": robot.package.name, "port": path, "seconds": run.duration, "cycles": run.cycles,
        "late_cycles": run.late_cycles, "requests": count.sent, "timeouts": count.timeouts,
        "corrupt": count.corrupt, "mean_latency": count.mean_latency, "max_latency": count.max_latency,
        "folder": run.folder,
    }  # fmt: skip
    print_result(result, json, show)


def _check_servos(robot: ServoRobot, path: str, json: bool) -> None:
    from roboyard.cli.exit_codes import ExitCode, exit_unless_success
    from roboyard.cli.terminal import print_note, print_result
    from roboyard.hardware.dynamixel.monitor import diagnose_servos, find_unknown_ids

    with robot.open_port(path) as port:
        found = diagnose_servos(port, robot.servos, robot.settings.fault_limits)
        has_silent_servos = any(one.state is None for one in found)
        if has_silent_servos and not json:
            print_note("searching for servos with other ids …")
        unknown_ids = find_unknown_ids(port, robot.servos) if has_silent_servos else []
    is_healthy = not any(one.problems for one in found)
    result = {
        "ok": is_healthy,
        "port": path,
        "unknown_ids": unknown_ids,
        "servos": [
            {
                "joint": one.joint, "id": one.servo, "position": None if one.state is None else one.position,
                "load": one.state and one.state.load, "voltage": one.state and one.state.voltage,
                "temperature": one.state and one.state.temperature, "firmware": one.firmware,
                "return_delay": one.return_delay, "is_responding": one.state is not None,
                "problems": list(one.problems),
            }
            for one in found
        ],
    }  # fmt: skip
    print_result(result, json, _print_servos)
    exit_unless_success(ExitCode.SUCCESS if is_healthy else ExitCode.FAILURE)


def _print_servos(result: dict[str, Any]) -> None:
    import math

    from roboyard.cli.terminal import print_line, print_table

    headers = ["joint", "id", "angle [°]", "load [%]", "V", "°C", "delay [ms]", "state"]
    rows = []
    for one in result["servos"]:
        state = ["-"] * 5
        if one["is_responding"]:
            state = [
                f"{math.degrees(one['position']):.1f}", f"{100 * one['load']:.0f}", f"{one['voltage']:.1f}",
                f"{one['temperature']:.0f}", f"{1e3 * one['return_delay']:.2f}",
            ]  # fmt: skip
        rows.append([one["joint"], one["id"], *state, "; ".join(one["problems"]) or "ok"])
    print_table(headers, rows, right=headers[1:-1])
    if result["unknown_ids"]:
        print_line(f"servos without a joint: {', '.join(map(str, result['unknown_ids']))}")


def _release_servos(robot: ServoRobot, path: str, json: bool) -> None:
    from roboyard.cli.terminal import print_line, print_result
    from roboyard.hardware.dynamixel.hardware import DynamixelHardware

    with robot.open_port(path) as port:
        DynamixelHardware(port, robot.settings, robot.servos).release()
    result = {"released": list(robot.servos.ids), "port": path}
    print_result(result, json, lambda found: print_line(f"torque off: {len(found['released'])} servos"))
