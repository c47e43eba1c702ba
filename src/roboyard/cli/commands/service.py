"""``roboyard service``: questions to nodes of a live run."""

from __future__ import annotations

from typing import Annotated

import typer

from roboyard.cli.app import JsonOption, RunOption, command_group

app = command_group("Services: list, type, find, call.")


@app.command("list")
def list_command(
    run: RunOption = None,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Those of parameters too.")] = False,
    json: JsonOption = False,
) -> None:
    """All services with their types."""
    from roboyard.cli.graph import list_services
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_json, print_table

    with open_live_source(run) as source:
        services = list_services(source)
    if not everything:
        services = {name: kind for name, kind in services.items() if not kind.startswith("rcl_interfaces/")}
    if json:
        print_json({"services": services})
    else:
        print_table(("service", "type"), services.items())


@app.command("type")
def type_command(
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="Its name, with or without the leading slash.")],
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """Its type."""
    from roboyard.cli.graph import find_endpoint, list_services
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_json, print_line

    with open_live_source(run) as source:
        name, served = find_endpoint(source, "service", service, list_services(source))
    if json:
        print_json({"service": name, "type": served})
    else:
        print_line(served)


@app.command("find")
def find(
    kind: Annotated[str, typer.Argument(metavar="TYPE", help="e.g. SetBool or std_srvs/srv/SetBool.")],
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """Services of a type.  Exit code 1 if there is none."""
    from roboyard.cli.graph import list_services
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_json, print_line

    with open_live_source(run) as source:
        served = list_services(source)
    found = [name for name, full in served.items() if kind in (full, full.rpartition("/")[2])]
    if json:
        print_json({"type": kind, "services": found})
    else:
        for name in found:
            print_line(name)
    if not found:
        raise typer.Exit(1)


@app.command("call")
def call(
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="Its name, with or without the leading slash.")],
    type_and_values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TYPE] [VALUES]", help="e.g. '{data: true}'; the type may be left out."),
    ] = None,
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """Call a service and print what it answers."""
    from roboyard.cli.arguments import parse_type_and_values
    from roboyard.cli.graph import find_endpoint, list_services
    from roboyard.cli.message_text import to_plain, to_text
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_json, print_line
    from roboyard.errors import InputError
    from roboyard.messages import service_type
    from roboyard.messages.from_data import message_from_data

    with open_live_source(run) as source:
        name, served = find_endpoint(source, "service", service, list_services(source))
        kind, data = parse_type_and_values(type_and_values or [])
        if kind is not None and service_type(kind).name != served:
            raise InputError(f"service {name} is a {served}, not a {kind}", location=source.name)
        types = service_type(served)
        response = source.connection.call(name, types, message_from_data(types.Request, data))
    if json:
        print_json({"service": name, "type": served, "response": to_plain(response)})
    else:
        print_line(to_text(response))
