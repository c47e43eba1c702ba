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
    waiting = unfinished(node)
    if waiting:
        raise RunError(f"cannot be saved: {', '.join(waiting)}", where=f"node {node.full_name}", valid=_advice(node))
    health = node.health
    return {
        "parameters": node.parameters(),
        "random": copy.deepcopy(node.random.bit_generator.state),
        "timers": [timer.next_ns for timer in node.timers],
        "health": None if health is None else (health.level, health.text, health.values),
        "log": node.log.save(),
        "actions": [item.save() for item in _actions(node)],
        "fields": {name: state.copied(node, name) for name in node.fields},
    }


def load(node: Node, saved: dict[str, Any]) -> None:
    """See `Node.load`."""
    actions = _actions(node)
    alike = len(saved["timers"]) == len(node.timers) and len(saved["actions"]) == len(actions)
    if not alike or set(saved["parameters"]) != set(node.parameters()):
        raise RunError("was set up otherwise when it was saved", where=f"node {node.full_name}")
    for event in [event for event, restored in node._one_shots.items() if not restored]:
        event.cancel()
        del node._one_shots[event]
    node.__dict__["_parameters"].update(saved["parameters"])
    node.random.bit_generator.state = saved["random"]
    for timer, next_ns in zip(node.timers, saved["timers"], strict=True):
        timer.reschedule(next_ns)
    node.health = None if saved["health"] is None else Health(*saved["health"])
    node.log.load(saved["log"])
    for item, state_of in zip(actions, saved["actions"], strict=True):
        item.load(state_of)
    for name, value in saved["fields"].items():
        setattr(node, name, copy.deepcopy(value))


def release(node: Node, item: Any) -> None:
    """Close a publisher, subscription or timer of ``node`` and forget it, as if it had never been made."""
    item.close()
    node._open = [other for other in node._open if other is not item]
    node._timers = [timer for timer in node._timers if timer is not item]


def unfinished(node: Node) -> list[str]:
    """What the node waits for that `save` cannot hold, in words."""
    found = [f"{len(node._works)} pieces of offloaded work are under way"] if node._works else []
    shots = sum(not restored and not event.cancelled for event, restored in node._one_shots.items())
    if shots:
        found.append(f"{shots} one-shot timers are pending")
    found += [
        f"{count} calls of {service.name} are unanswered"
        for service in node._open
        if isinstance(service, Service) and not service.name.endswith(_RESULT) and (count := service.unanswered)
    ]
    return found + [f"{n} goals of {item.name} are under way" for item in _actions(node) if (n := item.goals_open)]


_RESULT = endpoint("", "get_result")
"""Clients ask again for the results of their goals when they are loaded."""


def _actions(node: Node) -> list[ActionServer | ActionClient]:
    return [item for item in node._open if isinstance(item, (ActionServer, ActionClient))]


def _advice(node: Node) -> str:
    if any(item.goals_open for item in _actions(node)):
        return "save when they are done, or take goals up again: action_server(…, on_restored=…), or action_client's"
    return "save when they are done"
