"""``roboyard pause``, ``resume``, ``step``, ``rate``, ``stop`` and ``save``: a live run's clock and state."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from roboyard.cli.grammar import JsonOption, RunOption


def pause(run: RunOption = None, json: JsonOption = False) -> None:
    """Let it stand still; it goes on answering."""
    _steer(run, "pause", json)


def resume(run: RunOption = None, json: JsonOption = False) -> None:
    """Let it go on."""
    _steer(run, "resume", json)


def step(
    count: Annotated[int, typer.Argument(metavar="[COUNT]", min=1, help="Instants at which anything happens.")] = 1,
    by: Annotated[float | None, typer.Option("--by", metavar="S", help="This much simulated time instead [s].")] = None,
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """Run a little further, then pause."""
    _steer(run, "step", json, count=count, seconds=by or 0.0)


def rate(
    factor: Annotated[float, typer.Argument(metavar="FACTOR", min=0.0, help="1: real time; 0: as fast as possible.")],
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """Set its pace: simulated seconds per second."""
    _steer(run, "rate", json, rate=factor)


def stop(run: RunOption = None, json: JsonOption = False) -> None:
    """End it in order, with a complete folder."""
    _steer(run, "stop", json)


def save(run: RunOption = None, json: JsonOption = False) -> None:
    """Save its whole state, for `roboyard run --from-state`."""
    from roboyard.cli.lookup import live
    from roboyard.cli.terminal import emit, say
    from roboyard.errors import RunError
    from roboyard.messages import service_type

    with live(run) as source:
        if "/save_state" not in source.connection.graph()["services"]:
            raise RunError(f"{source.where} cannot be saved", valid="a run of a scenario")
        kind = service_type("std_srvs/srv/Trigger")
        answer = source.connection.call("/save_state", kind, kind.Request())
    if not answer.success:
        raise RunError(answer.message)
    if json:
        emit({"run": source.connection.run.name, "state": answer.message})
    else:
        say(answer.message)


def _steer(run: str | None, action: str, json: bool, **values: Any) -> None:
    from roboyard.cli.lookup import live
    from roboyard.cli.terminal import emit, say, seconds

    with live(run) as source:
        answer = source.connection.control(action, **values)
        name = source.connection.run.name
    state = "stopping" if action == "stop" else "paused" if answer["paused"] else "running"
    if json:
        emit({"run": name, "state": state, "time": answer["time"] * 1e-9})
    else:
        say(f"{name}: {state} at {seconds(answer['time'])}")
