"""``roboyard param``: parameters of nodes of a live run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from roboyard.cli.app import JsonOption, RunOption, command_group
from roboyard.cli.arguments import parse_yaml_value
from roboyard.cli.graph import find_node, list_nodes
from roboyard.cli.source import LiveSource
from roboyard.cli.terminal import to_json_data
from roboyard.errors import ConfigError, InputError, UnknownNameError

app = command_group("Parameters: list, get, set, describe, dump, load.")

NodeArgument = Annotated[str, typer.Argument(metavar="NODE", help="Its name, with or without the leading slash.")]
NameArgument = Annotated[str, typer.Argument(metavar="PARAMETER")]


@app.command("list")
def list_command(
    node: Annotated[str | None, typer.Argument(metavar="[NODE]", help="Only this node's.")] = None,
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """All parameters with their values."""
    from roboyard.cli.message_text import to_text
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_json, print_table

    with open_live_source(run) as source:
        found = list_parameters(source, node)
    if json:
        print_json({"parameters": found})
        return
    rows = [(name, key, to_text(value)) for name, values in found.items() for key, value in values.items()]
    print_table(("node", "parameter", "value"), rows)


@app.command("get")
def get(node: NodeArgument, name: NameArgument, run: RunOption = None, json: JsonOption = False) -> None:
    """One value."""
    from roboyard.cli.message_text import to_text
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_json, print_line

    with open_live_source(run) as source:
        full_name, value = get_parameter(source, node, name)
    if json:
        print_json({"node": full_name, "parameter": name, "value": value})
    else:
        print_line(to_text(value))


@app.command("set", context_settings={"ignore_unknown_options": True})  # negative numbers are values
def set_value(
    node: NodeArgument,
    name: NameArgument,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="In YAML: 0.5, true, [a, b].")],
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """Change one value; the node may refuse."""
    from roboyard.cli.message_text import to_text
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_json, print_line

    with open_live_source(run) as source:
        full_name, new_value = set_parameter(source, node, name, value)
    if json:
        print_json({"node": full_name, "parameter": name, "value": new_value})
    else:
        print_line(f"{full_name} {name}: {to_text(new_value)}")


@app.command("describe")
def describe(
    node: NodeArgument,
    names: Annotated[list[str] | None, typer.Argument(metavar="[PARAMETER]…", help="Default: all.")] = None,
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """What a parameter does and which values it takes."""
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_json, print_table

    with open_live_source(run) as source:
        full_name, found = describe_parameters(source, node, names or [])
    if json:
        print_json({"node": full_name, "parameters": found})
        return
    rows = [(d["name"], d["allowed"], "fixed" if d["read_only"] else "", d["description"]) for d in found]
    print_table(("parameter", "takes", "", "what it does"), rows)


@app.command("dump")
def dump(node: NodeArgument, run: RunOption = None, json: JsonOption = False) -> None:
    """All values of a node as a ROS 2 parameter file."""
    from roboyard.cli.message_text import to_text
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_json, print_line, to_json_data

    with open_live_source(run) as source:
        ((full_name, values),) = list_parameters(source, node).items()
    data = {full_name: {"ros__parameters": to_json_data(values)}}
    if json:
        print_json(data)
    else:
        print_line(to_text(data))


@app.command("load")
def load(
    node: NodeArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A ROS 2 parameter file, as dump writes it.")],
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """Set a node's values from a ROS 2 parameter file.

    Those that it has already are left alone.
    """
    from roboyard.cli.message_text import to_text
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_json, print_line

    with open_live_source(run) as source:
        full_name, changed = load_parameter_file(source, node, file)
    if json:
        print_json({"node": full_name, "changed": changed})
        return
    for name, value in changed.items():
        print_line(f"{full_name} {name}: {to_text(value)}")
    if not changed:
        print_line(f"{full_name}: nothing to change")


def list_parameters(source: LiveSource, node: str | None) -> dict[str, dict[str, Any]]:
    """Values by node and name; of all nodes that have any, or of one.

    Raises:
        UnknownNameError: there is no such node.
    """
    if node is not None:
        found = find_node(source, node)
        return {found["name"]: found["parameters"]}
    return {found["name"]: found["parameters"] for found in list_nodes(source) if found["parameters"]}


def get_parameter(source: LiveSource, node: str, name: str) -> tuple[str, Any]:
    """Full name of the node, and the parameter's value.

    Raises:
        UnknownNameError: there is no such node or parameter.
    """
    found = find_node(source, node)
    _check_parameter(source, found, name)
    return found["name"], found["parameters"][name]


def set_parameter(source: LiveSource, node: str, name: str, text: str) -> tuple[str, Any]:
    """Set a parameter; gives the node's full name and the value it has then.

    Raises:
        InputError: the node refuses the value.
        UnknownNameError: there is no such node or parameter.
    """
    full_name, previous = get_parameter(source, node, name)
    value = parse_yaml_value(text)
    if isinstance(previous, str) and not isinstance(value, str):
        value = text  # "1" for a parameter that is text
    _call_set_parameters(source, full_name, name, value, previous)
    return get_parameter(source, node, name)


def load_parameter_file(source: LiveSource, node: str, path: Path) -> tuple[str, dict[str, Any]]:
    """Set what a ROS 2 parameter file says about a node and what differs; gives its full name and the new values.

    Raises:
        ConfigError: the file is no parameter file, or says nothing about the node.
        InputError: the node refuses a value; those before it are set.
        UnknownNameError: there is no such node or parameter.
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
        raise ConfigError(f"says nothing about node {name}", location=str(path), valid=valid)
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
    """Full name of the node, and for each parameter its name, what it takes, and what it does.

    Raises:
        UnknownNameError: there is no such node or parameter.
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
