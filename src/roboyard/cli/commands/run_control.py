"""``roboyard pause``, ``resume``, ``step``, ``rate``, ``stop`` and ``snapshot``: clock and state of a live run."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from roboyard.cli.options import JsonOption, RunOption


def pause(run: RunOption = None, json: JsonOption = False) -> None:
    """Pause a live run; it keeps answering requests."""
    _control_run(run, "pause", json)


def resume(run: RunOption = None, json: JsonOption = False) -> None:
    """Resume a paused run."""
    _control_run(run, "resume", json)


def step(
    count: Annotated[int, typer.Argument(metavar="COUNT", min=1, help="Number of event times to execute.")] = 1,
    by: Annotated[
        float | None, typer.Option("--by", metavar="S", help="Simulated time to advance instead [s].")
    ] = None,
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """Advance a live run by some events, then pause it."""
    _control_run(run, "step", json, count=count, seconds=by or 0.0)


def rate(
    factor: Annotated[float, typer.Argument(metavar="FACTOR", min=0.0, help="1: real time; 0: as fast as possible.")],
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """Set the real-time factor of a live run."""
    _control_run(run, "rate", json, rate=factor)


def stop(run: RunOption = None, json: JsonOption = False) -> None:
    """Stop a live run and let it write its files."""
    _control_run(run, "stop", json)


def snapshot(run: RunOption = None, json: JsonOption = False) -> None:
    """Save the whole state of a live run into a file.

    `roboyard run --from-snapshot` resumes it.
    """
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_line, print_result
    from roboyard.errors import RunError
    from roboyard.messages import service_type

    with open_live_source(run) as source:
        if "/save_state" not in source.connection.graph()["services"]:
            raise RunError(f"{source.name} has no snapshot service", valid="a run of a scenario")
        trigger_type = service_type("std_srvs/srv/Trigger")
        response = source.connection.call("/save_state", trigger_type, trigger_type.Request())
    if not response.success:
        raise RunError(response.message)
    result = {"run": source.connection.run.name, "file": response.message}
    print_result(result, json, lambda found: print_line(found["file"]))


def _control_run(run: str | None, action: str, json: bool, **values: Any) -> None:
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_result

    with open_live_source(run) as source:
        response = source.connection.control(action, **values)
        name = source.connection.run.name
    state = "stopping" if action == "stop" else "paused" if response["paused"] else "running"
    print_result({"run": name, "state": state, "time": response["time"] * 1e-9}, json, _print_state)


def _print_state(result: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_line

    print_line(f"{result['run']}: {result['state']} at {result['time']:.3f} s")
