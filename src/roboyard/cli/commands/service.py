"""``roboyard service``: services of the nodes of a live run."""

from __future__ import annotations

from typing import Annotated

import typer

from roboyard.cli.app import command_group
from roboyard.cli.options import ALL, JsonOption, RunOption

app = command_group("Services: list, type, find, call.")

ServiceArgument = Annotated[str, typer.Argument(metavar="SERVICE", help="Service; the leading slash may be left out.")]


@app.command("list")
def list_command(
    run: RunOption = None,
    everything: Annotated[bool, ALL(", also services of parameters")] = False,
    json: JsonOption = False,
) -> None:
    """List all services with their types."""
    from roboyard.cli.graph import list_services
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_result, print_table

    with open_live_source(run) as source:
        services = list_services(source)
    if not everything:
        services = {name: kind for name, kind in services.items() if not kind.startswith("rcl_interfaces/")}
    print_result(
        {"services": services}, json, lambda found: print_table(("service", "type"), found["services"].items())
    )


@app.command("type")
def type_command(service: ServiceArgument, run: RunOption = None, json: JsonOption = False) -> None:
    """Print the type of a service."""
    from roboyard.cli.graph import find_endpoint, list_services
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_line, print_result

    with open_live_source(run) as source:
        name, service_type = find_endpoint(source, "service", service, list_services(source))
    print_result({"service": name, "type": service_type}, json, lambda found: print_line(found["type"]))


@app.command("find")
def find(
    type_name: Annotated[str, typer.Argument(metavar="TYPE", help="e.g. SetBool or std_srvs/srv/SetBool.")],
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """Print the services of a type.

    Exit code 1: no service has this type.
    """
    from roboyard.cli.exit_codes import ExitCode, exit_unless_success
    from roboyard.cli.graph import list_services
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_lines, print_result

    with open_live_source(run) as source:
        services = list_services(source)
    names = [name for name, full in services.items() if type_name in (full, full.rpartition("/")[2])]
    print_result({"type": type_name, "services": names}, json, lambda found: print_lines(found["services"]))
    exit_unless_success(ExitCode.SUCCESS if names else ExitCode.FAILURE)


@app.command("call")
def call(
    service: ServiceArgument,
    type_and_values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TYPE] [VALUES]", help="e.g. '{data: true}'; the type may be left out."),
    ] = None,
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """Call a service and print its response."""
    from roboyard.cli.arguments import parse_type_and_values
    from roboyard.cli.graph import call_service
    from roboyard.cli.message_text import to_plain, to_text
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_line, print_result

    with open_live_source(run) as source:
        name, type_name, response = call_service(source, service, *parse_type_and_values(type_and_values or []))
    result = {"service": name, "type": type_name, "response": to_plain(response)}
    print_result(result, json, lambda _: print_line(to_text(response)))
