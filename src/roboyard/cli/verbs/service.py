"""``roboyard service``: questions to nodes of a live run."""

from __future__ import annotations

from typing import Annotated

import typer

from roboyard.cli.grammar import JsonOption, RunOption, group

app = group("Services: list, type, find, call.")


@app.command("list")
def list_services(
    run: RunOption = None,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Those of parameters too.")] = False,
    json: JsonOption = False,
) -> None:
    """All services with their types."""
    from roboyard.cli.graph import services_of
    from roboyard.cli.lookup import live
    from roboyard.cli.terminal import emit, table

    with live(run) as source:
        services = services_of(source)
    if not everything:
        services = {name: kind for name, kind in services.items() if not kind.startswith("rcl_interfaces/")}
    if json:
        emit({"services": services})
    else:
        table(("service", "type"), services.items())


@app.command("type")
def type_of(
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="Its name, with or without the leading slash.")],
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """Its type."""
    from roboyard.cli.graph import known, services_of
    from roboyard.cli.lookup import live
    from roboyard.cli.terminal import emit, say

    with live(run) as source:
        name, served = known(source, "service", service, services_of(source))
    if json:
        emit({"service": name, "type": served})
    else:
        say(served)


@app.command("find")
def find(
    kind: Annotated[str, typer.Argument(metavar="TYPE", help="e.g. SetBool or std_srvs/srv/SetBool.")],
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """Services of a type.  Exit code 1 if there is none."""
    from roboyard.cli.graph import services_of
    from roboyard.cli.lookup import live
    from roboyard.cli.terminal import emit, say

    with live(run) as source:
        served = services_of(source)
    found = [name for name, full in served.items() if kind in (full, full.rpartition("/")[2])]
    if json:
        emit({"type": kind, "services": found})
    else:
        for name in found:
            say(name)
    if not found:
        raise typer.Exit(1)


@app.command("call")
def call(
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="Its name, with or without the leading slash.")],
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TYPE] [VALUES]", help="e.g. '{data: true}'; the type may be left out."),
    ] = None,
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """Call a service and print what it answers."""
    from roboyard.cli.graph import known, services_of
    from roboyard.cli.lookup import live
    from roboyard.cli.message_text import to_plain, to_text
    from roboyard.cli.publishing import type_and_values
    from roboyard.cli.terminal import emit, say
    from roboyard.errors import InputError
    from roboyard.messages import service_type
    from roboyard.messages.from_data import message_from_data

    with live(run) as source:
        name, served = known(source, "service", service, services_of(source))
        kind, data = type_and_values(what or [])
        if kind is not None and service_type(kind).name != served:
            raise InputError(f"service {name} is a {served}, not a {kind}", location=source.where)
        types = service_type(served)
        response = source.connection.call(name, types, message_from_data(types.Request, data))
    if json:
        emit({"service": name, "type": served, "response": to_plain(response)})
    else:
        say(to_text(response))
