"""Nodes, services and actions of a run, from its graph."""

from __future__ import annotations

from typing import Any

from roboyard.cli.source import LiveSource, RecordingSource, Source, absolute_name, unknown_name_error

_SEND_GOAL, _FEEDBACK = "/_action/send_goal", "/_action/feedback"


def list_nodes(source: Source) -> list[dict[str, Any]]:
    """All nodes; of a recording only their names and what they published."""
    if isinstance(source, LiveSource):
        nodes: list[dict[str, Any]] = source.connection.graph()["nodes"]
        return [_with_actions(node) for node in nodes]
    if isinstance(source, RecordingSource):
        from roboyard.record import node_list

        return [{"name": node.name, "publishes": list(node.publishes)} for node in node_list(source.recording)]
    return []


def find_node(source: Source, name: str) -> dict[str, Any]:
    """The node of this name.

    Raises:
        UnknownNameError: there is none.
    """
    nodes = {node["name"]: node for node in list_nodes(source)}
    if absolute_name(name) not in nodes:
        raise unknown_name_error("node", name, list(nodes), source.name)
    return nodes[absolute_name(name)]


def list_services(source: LiveSource) -> dict[str, str]:
    """Types of services by name, without those that carry actions."""
    services: dict[str, str] = source.connection.graph()["services"]
    return {name: kind for name, kind in services.items() if "/_action/" not in name}


def list_actions(source: LiveSource) -> dict[str, str]:
    """Types of actions by name."""
    services: dict[str, str] = source.connection.graph()["services"]
    return {
        name.removesuffix(_SEND_GOAL): kind.removesuffix("_SendGoal")
        for name, kind in services.items()
        if name.endswith(_SEND_GOAL)
    }


def list_action_clients(source: LiveSource, action: str) -> list[str]:
    """Nodes that follow goals of an action, by its absolute name."""
    nodes: list[dict[str, Any]] = source.connection.graph()["nodes"]
    return [node["name"] for node in nodes if f"{action}{_FEEDBACK}" in node["subscribes"]]


def find_endpoint(source: LiveSource, kind: str, name: str, types: dict[str, str]) -> tuple[str, str]:
    """Absolute name and type of a service or action.

    Raises:
        UnknownNameError: there is none.
    """
    if absolute_name(name) not in types:
        raise unknown_name_error(kind, name, list(types), source.name)
    return absolute_name(name), types[absolute_name(name)]


def _with_actions(node: dict[str, Any]) -> dict[str, Any]:
    """Services and topics that carry actions are not shown; the actions are."""
    actions = [name.removesuffix(_SEND_GOAL) for name in node["services"] if name.endswith(_SEND_GOAL)]
    visible_names = {
        key: [n for n in node[key] if "/_action/" not in n] for key in ("publishes", "subscribes", "services")
    }
    return {**node, **visible_names, "actions": actions}
