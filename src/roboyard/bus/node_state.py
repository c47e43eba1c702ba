"""What `Node.save` gives and `Node.load` takes."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from roboyard.bus import state
from roboyard.bus.actions import ActionClient, ActionServer
from roboyard.bus.actions.status import endpoint
from roboyard.bus.health import Health
from roboyard.bus.services import Service
from roboyard.errors import RunError

if TYPE_CHECKING:
    from roboyard.bus.node import Node


def save(node: Node) -> dict[str, Any]:
    """See `Node.save`."""
    pending = pending_work(node)
    if pending:
        raise RunError(f"cannot be saved: {', '.join(pending)}", location=f"node {node.full_name}", valid=_advice(node))
    health = node.health
    return {
        "parameters": node.parameters(),
        "random": copy.deepcopy(node.random.bit_generator.state),
        "timers": [timer.next_ns for timer in node.timers],
        "health": None if health is None else (health.level, health.text, health.values),
        "log": node.log.save_state(),
        "actions": [item.save_state() for item in _action_endpoints(node)],
        "fields": {name: state.copy_field(node, name) for name in node.state_fields},
    }


def load(node: Node, saved: dict[str, Any]) -> None:
    """See `Node.load`."""
    actions = _action_endpoints(node)
    is_compatible = len(saved["timers"]) == len(node.timers) and len(saved["actions"]) == len(actions)
    if not is_compatible or set(saved["parameters"]) != set(node.parameters()):
        raise RunError("was set up otherwise when it was saved", location=f"node {node.full_name}")
    for event in [event for event, is_restored in node._one_shot_events.items() if not is_restored]:
        event.cancel()
        del node._one_shot_events[event]
    node.__dict__["_parameters"].update(saved["parameters"])
    node.random.bit_generator.state = saved["random"]
    for timer, next_ns in zip(node.timers, saved["timers"], strict=True):
        timer.reschedule(next_ns)
    node.health = None if saved["health"] is None else Health(*saved["health"])
    node.log.load_state(saved["log"])
    for item, saved_action in zip(actions, saved["actions"], strict=True):
        item.load_state(saved_action)
    for name, value in saved["fields"].items():
        setattr(node, name, copy.deepcopy(value))


def release_endpoint(node: Node, endpoint: Any) -> None:
    """Close a publisher, subscription or timer of ``node`` and forget it, as if it had never been made."""
    endpoint.close()
    node._endpoints = [other for other in node._endpoints if other is not endpoint]
    node._timers = [timer for timer in node._timers if timer is not endpoint]


def pending_work(node: Node) -> list[str]:
    """What the node waits for that `save` cannot hold, in words."""
    descriptions = (
        [f"{len(node._offloaded_tasks)} pieces of offloaded work are under way"] if node._offloaded_tasks else []
    )
    one_shot_count = sum(
        not is_restored and not event.cancelled for event, is_restored in node._one_shot_events.items()
    )
    if one_shot_count:
        descriptions.append(f"{one_shot_count} one-shot timers are pending")
    descriptions += [
        f"{count} calls of {service.name} are unanswered"
        for service in node._endpoints
        if isinstance(service, Service) and not service.name.endswith(_GET_RESULT) and (count := service.pending_count)
    ]
    return descriptions + [
        f"{n} goals of {item.name} are under way"
        for item in _action_endpoints(node)
        if (n := item.unrestorable_goal_count)
    ]


_GET_RESULT = endpoint("", "get_result")
"""Clients ask again for the results of their goals when they are loaded."""


def _action_endpoints(node: Node) -> list[ActionServer | ActionClient]:
    return [item for item in node._endpoints if isinstance(item, (ActionServer, ActionClient))]


def _advice(node: Node) -> str:
    if any(item.unrestorable_goal_count for item in _action_endpoints(node)):
        return (
            "save when they are done, or take goals up again: action_server(…, on_goal_restored=…), or action_client's"
        )
    return "save when they are done"
