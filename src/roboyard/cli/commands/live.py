"""``roboyard pause``, ``resume``, ``step``, ``rate``, ``stop`` and ``snapshot``: a live run's clock and state."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from roboyard.cli.app import JsonOption, RunOption


def pause(run: RunOption = None, json: JsonOption = False) -> None:
    """Let it stand still; it goes on answering."""
    _control_run(run, "pause", json)


def resume(run: RunOption = None, json: JsonOption = False) -> None:
    """Let it go on."""
    _control_run(run, "resume", json)


def step(
    count: Annotated[int, typer.Argument(metavar="[COUNT]", min=1, help="Instants at which anything happens.")] = 1,
    by: Annotated[float | None, typer.Option("--by", metavar="S", help="This much simulated time instead [s].")] = None,
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """Run a little further, then pause."""
    _control_run(run, "step", json, count=count, seconds=by or 0.0)


def rate(
    factor: Annotated[float, typer.Argument(metavar="FACTOR", min=0.0, help="1: real time; 0: as fast as possible.")],
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """Set its pace: simulated seconds per second."""
    _control_run(run, "rate", json, rate=factor)


def stop(run: RunOption = None, json: JsonOption = False) -> None:
    """End it in order, with a complete folder."""
    _control_run(run, "stop", json)


def snapshot(run: RunOption = None, json: JsonOption = False) -> None:
    """Save its whole state, for `roboyard run --from-snapshot`."""
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_json, print_line
    from roboyard.errors import RunError
    from roboyard.messages import service_type

    with open_live_source(run) as source:
        if "/save_state" not in source.connection.graph()["services"]:
            raise RunError(f"{source.name} cannot be saved", valid="a run of a scenario")
        kind = service_type("std_srvs/srv/Trigger")
        response = source.connection.call("/save_state", kind, kind.Request())
    if not response.success:
        raise RunError(response.message)
    if json:
        print_json({"run": source.connection.run.name, "state": response.message})
    else:
        print_line(response.message)


def _control_run(run: str | None, action: str, json: bool, **values: Any) -> None:
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import format_time, print_json, print_line

    with open_live_source(run) as source:
        response = source.connection.control(action, **values)
        name = source.connection.run.name
    state = "stopping" if action == "stop" else "paused" if response["paused"] else "running"
    if json:
        print_json({"run": name, "state": state, "time": response["time"] * 1e-9})
    else:
        print_line(f"{name}: {state} at {format_time(response['time'])}")
