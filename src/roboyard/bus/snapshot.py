"""Snapshots of a bus: its clock and nodes, saved and loaded as plain data at a barrier.

A barrier is a time at which no message is in transit.  A node with pending work that cannot be saved (an offloaded
task, a goal, a one-shot timer that it does not restore itself) makes saving fail with its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from roboyard.errors import RoboyardError, RunError, describe_exception
from roboyard.messages import deserialize, serialize

if TYPE_CHECKING:
    from roboyard.bus.context import BusContext
    from roboyard.bus.executor import Executor
    from roboyard.bus.node import Node
    from roboyard.bus.topics import Publisher


def save_bus_state(bus: BusContext, nodes: Mapping[str, Node]) -> dict[str, Any]:
    """Return the clock, every node's `save_state()`, the transforms and the latched messages of `bus`.

    Raises:
        RunError: Messages are in transit, or a node cannot be saved (the message names it).
    """
    _check_barrier(bus.executor)
    return {
        "now_ns": bus.now_ns,
        "nodes": {name: _save_node(node) for name, node in nodes.items()},
        "timer_order": _timers_in_order(bus.executor, nodes),
        "transforms": bus.transforms.save_state(),
        "latched": [
            (publisher.topic.name, publisher.node, publisher.topic.type_name, serialize(publisher.last))
            for publisher in _latched_publishers(bus)
            if publisher.last is not None
        ],
        "topics": {topic.name: (topic.count, topic.first_ns, topic.last_ns) for topic in bus.topics.values()},
        "delayed": bus.router.delayed_delivery.save_state(),
        "inputs": bus.inputs.save_state(),
        "log": bus.log.save_state(),
    }


def load_bus_state(bus: BusContext, nodes: Mapping[str, Node], saved: dict[str, Any]) -> None:
    """Restore a state that `save_bus_state` returned, on a bus with the same setup and a clock that is not later.

    Messages that nodes published during their setup are discarded.

    Raises:
        RunError: The bus has other nodes, a node cannot load its state, or an event is scheduled before the saved time.
    """
    if list(nodes) != list(saved["nodes"]):
        raise RunError(
            f"the snapshot has the nodes {', '.join(saved['nodes'])}",
            valid=f"this bus has the nodes {', '.join(nodes)}",
        )
    bus.executor.ready.clear()
    for name, node in nodes.items():
        node.load_state(saved["nodes"][name])
    for name, index in saved["timer_order"]:  # timers of one time run in the order in which they were scheduled
        timer = nodes[name].timers[index]
        timer.reschedule(timer.next_ns)
    bus.transforms.load_state(saved["transforms"])
    bus.inputs.load_state(saved["inputs"])
    publishers = {(publisher.topic.name, publisher.node): publisher for publisher in _latched_publishers(bus)}
    for name, node_name, type_name, data in saved["latched"]:
        publisher = publishers.get((name, node_name))
        if publisher is not None:
            publisher.last = deserialize(data, type_name)
    for name, counters in saved["topics"].items():
        topic = bus.topics.get(name)
        if topic is not None:
            topic.count, topic.first_ns, topic.last_ns = counters
    bus.executor.set_time(saved["now_ns"])
    _deliver_restored_requests(bus.executor)
    bus.router.delayed_delivery.load_state(saved["delayed"], bus.topics)
    bus.log.load_state(saved["log"])


def _deliver_restored_requests(executor: Executor) -> None:
    """Let restored clients request the results of their goals, now that all servers are restored too."""
    while executor.ready:
        receiver, message, source = executor.ready.popleft()
        receiver.deliver(message, source)


def _check_barrier(executor: Executor) -> None:
    if executor.ready:
        raise RunError(
            f"cannot save the bus: {len(executor.ready)} messages are in transit",
            valid="save between calls of run_until()",
        )


def _timers_in_order(executor: Executor, nodes: Mapping[str, Node]) -> list[tuple[str, int]]:
    """Return (node, index) of every timer, in the order in which they were scheduled."""
    sequence = executor.event_sequence()
    timers = [(name, index, timer) for name, node in nodes.items() for index, timer in enumerate(node.timers)]
    running = [(sequence[timer.event], name, index) for name, index, timer in timers if timer.event in sequence]
    return [(name, index) for _, name, index in sorted(running)]


def _save_node(node: Node) -> Any:
    try:
        return node.save_state()
    except RoboyardError:
        raise
    except (Exception, SystemExit) as error:
        raise RunError(f"cannot be saved: {describe_exception(error)}", location=f"node {node.full_name}") from error


def _latched_publishers(bus: BusContext) -> list[Publisher]:
    return [publisher for topic in bus.topics.values() for publisher in topic.publishers if publisher.latched]
