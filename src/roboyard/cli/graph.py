"""Nodes, services and actions of a run, from its graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from roboyard.cli.source import DataSource, LiveSource, RecordingSource, absolute_name, unknown_name_error
from roboyard.errors import InputError

_SEND_GOAL, _FEEDBACK = "/_action/send_goal", "/_action/feedback"


def list_nodes(source: DataSource) -> list[dict[str, Any]]:
    """Return all nodes; of a recording only their names and the topics on which they published."""
    if isinstance(source, LiveSource):
        nodes: list[dict[str, Any]] = source.connection.graph()["nodes"]
        return [_with_actions(node) for node in nodes]
    if isinstance(source, RecordingSource):
        from roboyard.record import node_list

        return [{"name": node.name, "publishes": list(node.publishes)} for node in node_list(source.recording)]
    return []


def find_node(source: DataSource, name: str) -> dict[str, Any]:
    """Return the node of this name.

    Raises:
        UnknownNameError: There is no such node.
    """
    nodes = {node["name"]: node for node in list_nodes(source)}
    if absolute_name(name) not in nodes:
        raise unknown_name_error("node", name, list(nodes), source.name)
    return nodes[absolute_name(name)]


def list_services(source: LiveSource) -> dict[str, str]:
    """Return the types of all services by name, without those that belong to actions."""
    services: dict[str, str] = source.connection.graph()["services"]
    return {name: kind for name, kind in services.items() if "/_action/" not in name}


def list_actions(source: LiveSource) -> dict[str, str]:
    """Return the types of all actions by name."""
    services: dict[str, str] = source.connection.graph()["services"]
    return {
        name.removesuffix(_SEND_GOAL): kind.removesuffix("_SendGoal")
        for name, kind in services.items()
        if name.endswith(_SEND_GOAL)
    }


def list_action_clients(source: LiveSource, action: str) -> list[str]:
    """Return the names of the nodes that subscribe to the feedback of an action, given by its absolute name."""
    nodes: list[dict[str, Any]] = source.connection.graph()["nodes"]
    return [node["name"] for node in nodes if f"{action}{_FEEDBACK}" in node["subscribes"]]


def find_endpoint(source: LiveSource, kind: str, name: str, types: dict[str, str]) -> tuple[str, str]:
    """Return the absolute name and the type of a service or action.

    Args:
        source: The run.
        kind: "service" or "action", for the error.
        name: Its name, with or without the leading slash.
        types: Types of all services or actions by name.

    Raises:
        UnknownNameError: There is none of this name.
    """
    if absolute_name(name) not in types:
        raise unknown_name_error(kind, name, list(types), source.name)
    return absolute_name(name), types[absolute_name(name)]


def call_service(source: LiveSource, service: str, type_name: str | None, values: Any) -> tuple[str, str, Any]:
    """Call a service.

    Args:
        source: The run.
        service: Its name, with or without the leading slash.
        type_name: The type that the user expects; None accepts any.
        values: Fields of the request as plain data.

    Returns:
        Absolute name, type and response of the service.

    Raises:
        UnknownNameError: There is no such service.
        InputError: It has another type.
        MessageError: The values do not fit the request.
    """
    from roboyard.messages.from_data import message_from_data

    name, types = find_interface(source, "service", service, type_name)
    response = source.connection.call(name, types, message_from_data(types.Request, values))
    return name, types.name, response


def find_interface(
    source: LiveSource, kind: Literal["service", "action"], name: str, type_name: str | None
) -> tuple[str, Any]:
    """Return the absolute name of a service or an action, and its type with the classes of its messages.

    Args:
        source: The run.
        kind: What the name stands for.
        name: Its name, with or without the leading slash.
        type_name: The type that the user expects; None accepts any.

    Raises:
        UnknownNameError: There is none of this name.
        InputError: It has another type.
    """
    from roboyard.messages import action_type, service_type

    types = list_services(source) if kind == "service" else list_actions(source)
    find_type: Callable[[str], Any] = service_type if kind == "service" else action_type
    absolute, actual_type = find_endpoint(source, kind, name, types)
    if type_name is not None and find_type(type_name).name != actual_type:
        raise InputError(f"{kind} {absolute} has the type {actual_type}, not {type_name}", location=source.name)
    return absolute, find_type(actual_type)


def _with_actions(node: dict[str, Any]) -> dict[str, Any]:
    """Replace the services and topics that belong to actions by the actions' names."""
    actions = [name.removesuffix(_SEND_GOAL) for name in node["services"] if name.endswith(_SEND_GOAL)]
    visible_names = {
        key: [n for n in node[key] if "/_action/" not in n] for key in ("publishes", "subscribes", "services")
    }
    return {**node, **visible_names, "actions": actions}
