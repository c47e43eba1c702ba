"""Parameters of a live run's nodes, through their services."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from roboyard.cli.graph import node_of, nodes_of
from roboyard.cli.lookup import LiveSource
from roboyard.cli.terminal import plain
from roboyard.cli.values import parse
from roboyard.errors import ConfigError, InputError, UnknownNameError


def parameters_of(source: LiveSource, node: str | None) -> dict[str, dict[str, Any]]:
    """Values by node and name; of all nodes that have any, or of one.

    Raises:
        UnknownNameError: there is no such node.
    """
    if node is not None:
        found = node_of(source, node)
        return {found["name"]: found["parameters"]}
    return {found["name"]: found["parameters"] for found in nodes_of(source) if found["parameters"]}


def value_of(source: LiveSource, node: str, name: str) -> tuple[str, Any]:
    """Full name of the node, and the parameter's value.

    Raises:
        UnknownNameError: there is no such node or parameter.
    """
    found = node_of(source, node)
    _check(source, found, name)
    return found["name"], found["parameters"][name]


def change(source: LiveSource, node: str, name: str, text: str) -> tuple[str, Any]:
    """Set a parameter; gives the node's full name and the value it has then.

    Raises:
        InputError: the node refuses the value.
        UnknownNameError: there is no such node or parameter.
    """
    full_name, before = value_of(source, node, name)
    value = parse(text)
    if isinstance(before, str) and not isinstance(value, str):
        value = text  # "1" for a parameter that is text
    _set(source, full_name, name, value, before)
    return value_of(source, node, name)


def load_file(source: LiveSource, node: str, path: Path) -> tuple[str, dict[str, Any]]:
    """Set what a ROS 2 parameter file says about a node and what differs; gives its full name and the new values.

    Raises:
        ConfigError: the file is no parameter file, or says nothing about the node.
        InputError: the node refuses a value; those before it are set.
        UnknownNameError: there is no such node or parameter.
    """
    from roboyard.config import read_yaml

    found = node_of(source, node)
    name, present = found["name"], found["parameters"]
    data = read_yaml(path).to_data()
    sections: list[Any] = (
        [data.get(key) for key in ("/**", name.removeprefix("/"), name)] if isinstance(data, dict) else []
    )
    stated = [section["ros__parameters"] for section in sections if _is_section(section)]
    if not stated:
        valid = f"{name}: {{ros__parameters: {{...}}}}"
        raise ConfigError(f"says nothing about node {name}", location=str(path), valid=valid)
    wanted = {key: value for section in stated for key, value in section.items()}
    for key in wanted:
        _check(source, found, key)
    changed = {}
    for key, value in wanted.items():
        if plain(value) == plain(present[key]):
            continue
        try:
            _set(source, name, key, value, present[key])
        except InputError as error:
            raise InputError(error.message, location=f"{path}, {key}", valid=error.valid) from error
        changed[key] = value_of(source, node, key)[1]
    return name, changed


def _is_section(section: Any) -> bool:
    return isinstance(section, dict) and isinstance(section.get("ros__parameters"), dict)


def _set(source: LiveSource, node: str, name: str, value: Any, before: Any) -> None:
    from roboyard.bus.parameter_services import to_value
    from roboyard.messages import message_type, service_type

    if isinstance(value, list):
        floats = any(isinstance(item, float) for item in (before or value))
        value = tuple(float(item) if floats and type(item) is int else item for item in value)
    types = service_type("rcl_interfaces/srv/SetParameters")
    parameter = message_type("rcl_interfaces/msg/Parameter")(name=name, value=to_value(value))
    response = source.connection.call(f"{node}/set_parameters", types, types.Request(parameters=[parameter]))
    if not response.results[0].successful:
        raise InputError(response.results[0].reason)


def descriptions(source: LiveSource, node: str, names: list[str]) -> tuple[str, list[dict[str, Any]]]:
    """Full name of the node, and for each parameter its name, what it takes, and what it does.

    Raises:
        UnknownNameError: there is no such node or parameter.
    """
    from roboyard.messages import service_type

    found = node_of(source, node)
    for name in names:
        _check(source, found, name)
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


def _check(source: LiveSource, node: dict[str, Any], name: str) -> None:
    if name not in node["parameters"]:
        there = ", ".join(node["parameters"]) or "none"
        where = f"{source.where}, node {node['name']}"
        raise UnknownNameError(f"no parameter {name}", location=where, valid=f"there are: {there}")
