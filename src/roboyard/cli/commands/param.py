"""``roboyard param``: parameters of the nodes of a live run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from roboyard.cli.app import command_group
from roboyard.cli.arguments import parse_yaml_value
from roboyard.cli.completion import complete_run_nodes
from roboyard.cli.graph import find_node, list_nodes
from roboyard.cli.options import JsonOption, NodeArgument, RunOption
from roboyard.cli.source import LiveSource
from roboyard.cli.terminal import to_json_data
from roboyard.errors import ConfigError, InputError, UnknownNameError

app = command_group("Parameters: list, get, set, describe, dump, load.")

NameArgument = Annotated[str, typer.Argument(metavar="PARAMETER", help="Name of the parameter.")]


@app.command("list")
def list_command(
    node: Annotated[
        str | None,
        typer.Argument(metavar="NODE", help="Only parameters of this node.", autocompletion=complete_run_nodes),
    ] = None,
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """List parameters with their values."""
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_result

    with open_live_source(run) as source:
        found = list_parameters(source, node)
    print_result({"parameters": found}, json, _print_parameters)


@app.command("get")
def get(node: NodeArgument, name: NameArgument, run: RunOption = None, json: JsonOption = False) -> None:
    """Print the value of a parameter."""
    from roboyard.cli.message_text import to_text
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_line, print_result

    with open_live_source(run) as source:
        full_name, value = get_parameter(source, node, name)
    result = {"node": full_name, "parameter": name, "value": value}
    print_result(result, json, lambda found: print_line(to_text(found["value"])))


@app.command("set", context_settings={"ignore_unknown_options": True})  # negative numbers are values
def set_value(
    node: NodeArgument,
    name: NameArgument,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="Value in YAML: 0.5, true, [a, b].")],
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """Set the value of a parameter; the node may reject it."""
    from roboyard.cli.message_text import to_text
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_line, print_result

    with open_live_source(run) as source:
        full_name, new_value = set_parameter(source, node, name, value)
    result = {"node": full_name, "parameter": name, "value": new_value}
    print_result(result, json, lambda found: print_line(f"{full_name} {name}: {to_text(found['value'])}"))


@app.command("describe")
def describe(
    node: NodeArgument,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="PARAMETER", help="Names of parameters; default: all.")
    ] = None,
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """Show the meaning and the allowed values of parameters."""
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_result

    with open_live_source(run) as source:
        full_name, found = describe_parameters(source, node, names or [])
    print_result({"node": full_name, "parameters": found}, json, _print_descriptions)


@app.command("dump")
def dump(node: NodeArgument, run: RunOption = None, json: JsonOption = False) -> None:
    """Print the parameters of a node as a ROS 2 parameter file."""
    from roboyard.cli.message_text import to_text
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_line, print_result

    with open_live_source(run) as source:
        ((full_name, values),) = list_parameters(source, node).items()
    data = {full_name: {"ros__parameters": to_json_data(values)}}
    print_result(data, json, lambda found: print_line(to_text(found)))


@app.command("load")
def load(
    node: NodeArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="ROS 2 parameter file, as dump writes it.")],
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """Set the parameters of a node from a ROS 2 parameter file.

    Values that are equal already are not sent.
    """
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_result

    with open_live_source(run) as source:
        full_name, changed = load_parameter_file(source, node, file)
    print_result({"node": full_name, "changed": changed}, json, _print_changes)


def _print_parameters(result: dict[str, Any]) -> None:
    from roboyard.cli.message_text import to_text
    from roboyard.cli.terminal import print_table

    rows = [
        (node, name, to_text(value)) for node, values in result["parameters"].items() for name, value in values.items()
    ]
    print_table(("node", "parameter", "value"), rows)


def _print_descriptions(result: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_table

    rows = [
        (one["name"], one["allowed"], "no" if one["read_only"] else "yes", one["description"])
        for one in result["parameters"]
    ]
    print_table(("parameter", "allowed", "runtime", "meaning"), rows)


def _print_changes(result: dict[str, Any]) -> None:
    from roboyard.cli.message_text import to_text
    from roboyard.cli.terminal import print_line

    for name, value in result["changed"].items():
        print_line(f"{result['node']} {name}: {to_text(value)}")
    if not result["changed"]:
        print_line(f"{result['node']}: no value differs")


def list_parameters(source: LiveSource, node: str | None) -> dict[str, dict[str, Any]]:
    """Return values by node and name; of all nodes with parameters, or of one node.

    Raises:
        UnknownNameError: There is no such node.
    """
    if node is not None:
        found = find_node(source, node)
        return {found["name"]: found["parameters"]}
    return {found["name"]: found["parameters"] for found in list_nodes(source) if found["parameters"]}


def get_parameter(source: LiveSource, node: str, name: str) -> tuple[str, Any]:
    """Return the full name of the node and the value of a parameter.

    Raises:
        UnknownNameError: There is no such node or parameter.
    """
    found = find_node(source, node)
    _check_parameter(source, found, name)
    return found["name"], found["parameters"][name]


def set_parameter(source: LiveSource, node: str, name: str, text: str) -> tuple[str, Any]:
    """Set a parameter; return the full name of the node and the new value.

    Raises:
        InputError: The node rejects the value.
        UnknownNameError: There is no such node or parameter.
    """
    full_name, previous = get_parameter(source, node, name)
    value = parse_yaml_value(text)
    if isinstance(previous, str) and not isinstance(value, str):
        value = text  # "1" for a parameter that is text
    _call_set_parameters(source, full_name, name, value, previous)
    return get_parameter(source, node, name)


def load_parameter_file(source: LiveSource, node: str, path: Path) -> tuple[str, dict[str, Any]]:
    """Set the values of a ROS 2 parameter file that differ; return the full name of the node and these values.

    Raises:
        ConfigError: The file is no parameter file, or has no entry for the node.
        InputError: The node rejects a value; the values before it are set.
        UnknownNameError: There is no such node or parameter.
    """
    from roboyard.config import read_yaml

    found = find_node(source, node)
    name, current_values = found["name"], found["parameters"]
    data = read_yaml(path).to_data()
    sections: list[Any] = (
        [data.get(key) for key in ("/**", name.removeprefix("/"), name)] if isinstance(data, dict) else []
    )
    stated = [section["ros__parameters"] for section in sections if _is_section(section)]
    if not stated:
        valid = f"{name}: {{ros__parameters: {{...}}}}"
        raise ConfigError(f"the file has no entry for node {name}", location=str(path), valid=valid)
    requested_values = {key: value for section in stated for key, value in section.items()}
    for key in requested_values:
        _check_parameter(source, found, key)
    changed = {}
    for key, value in requested_values.items():
        if to_json_data(value) == to_json_data(current_values[key]):
            continue
        try:
            _call_set_parameters(source, name, key, value, current_values[key])
        except InputError as error:
            raise InputError(error.message, location=f"{path}, {key}", valid=error.valid) from error
        changed[key] = get_parameter(source, node, key)[1]
    return name, changed


def _is_section(section: Any) -> bool:
    return isinstance(section, dict) and isinstance(section.get("ros__parameters"), dict)


def _call_set_parameters(source: LiveSource, node: str, name: str, value: Any, previous: Any) -> None:
    from roboyard.bus.parameter_services import to_value
    from roboyard.messages import message_type, service_type

    if isinstance(value, list):
        floats = any(isinstance(item, float) for item in (previous or value))
        value = tuple(float(item) if floats and type(item) is int else item for item in value)
    types = service_type("rcl_interfaces/srv/SetParameters")
    parameter = message_type("rcl_interfaces/msg/Parameter")(name=name, value=to_value(value))
    response = source.connection.call(f"{node}/set_parameters", types, types.Request(parameters=[parameter]))
    if not response.results[0].successful:
        raise InputError(response.results[0].reason)


def describe_parameters(source: LiveSource, node: str, names: list[str]) -> tuple[str, list[dict[str, Any]]]:
    """Return the full name of the node, and name, value, allowed values and meaning of each parameter.

    Raises:
        UnknownNameError: There is no such node or parameter.
    """
    from roboyard.messages import service_type

    found = find_node(source, node)
    for name in names:
        _check_parameter(source, found, name)
    types = service_type("rcl_interfaces/srv/DescribeParameters")
    request = types.Request(names=names or sorted(found["parameters"]))
    response = source.connection.call(f"{found['name']}/describe_parameters", types, request)
    return found["name"], [
        {
            "name": item.name,
            "value": found["parameters"][item.name],
            "allowed": item.additional_constraints,
            "read_only": item.read_only,
            "description": item.description,
        }
        for item in response.descriptors
    ]


def _check_parameter(source: LiveSource, node: dict[str, Any], name: str) -> None:
    if name not in node["parameters"]:
        parameter_names = ", ".join(node["parameters"]) or "none"
        location = f"{source.name}, node {node['name']}"
        raise UnknownNameError(f"no parameter {name}", location=location, valid=f"there are: {parameter_names}")
