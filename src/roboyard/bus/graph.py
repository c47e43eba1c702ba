"""Computation graph of a bus: nodes, topics, services, their rates, and the cost of callbacks."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from roboyard.bus.parameter_services import ros_parameters

if TYPE_CHECKING:
    from roboyard.bus.bus import Bus


@dataclass(frozen=True, slots=True)
class CallbackInfo:
    """Cost of a callback in wall time [s]; `deadline` is its available simulated time [s], 0 = no deadline."""

    trigger: str
    count: int
    total: float
    max: float
    deadline: float


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A node with its publishers, subscriptions, services, parameters and health."""

    name: str
    class_name: str
    publishes: tuple[str, ...]
    subscribes: tuple[str, ...]
    services: tuple[str, ...]
    parameters: dict[str, Any]
    health: str
    health_text: str
    callbacks: tuple[CallbackInfo, ...]

    @property
    def callback_time(self) -> float:
        """Total wall time of all callbacks [s]."""
        return sum(callback.total for callback in self.callbacks)


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic with its publishers and subscribers; `rate` is the mean over simulated time [Hz]."""

    name: str
    type: str
    publishers: tuple[str, ...]
    subscribers: tuple[str, ...]
    count: int
    rate: float
    latched: bool


@dataclass(frozen=True, slots=True)
class OffloadInfo:
    """Offloaded tasks of one function: wall time [s] compared with the declared latency [s]."""

    node: str
    function: str
    count: int
    mean: float
    max: float
    latency: float
    late_count: int


@dataclass(frozen=True, slots=True)
class Graph:
    """Computation graph at one time."""

    time_ns: int
    paused: bool
    nodes: tuple[NodeInfo, ...]
    topics: tuple[TopicInfo, ...]
    services: dict[str, str]
    offloads: tuple[OffloadInfo, ...]
    inputs: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain data, for JSON."""
        return asdict(self)


def graph(bus: Bus) -> Graph:
    """Return the present graph; call it on the executor's thread."""
    return Graph(
        time_ns=bus.now_ns,
        paused=bus.executor.paused,
        nodes=tuple(_node_info(bus, name) for name in bus.nodes),
        topics=tuple(_topic_info(bus, name) for name in sorted(bus.topics)),
        services={name: service.type.name for name, service in sorted(bus.services.items())},
        offloads=tuple(
            OffloadInfo(
                j.node,
                j.function,
                j.count,
                j.total_ns * 1e-9 / max(j.count, 1),
                j.max_ns * 1e-9,
                j.latency_ns * 1e-9,
                j.late_count,
            )
            for j in bus.offload.statistics.values()
        ),
        inputs={"accepted": bus.inputs.accepted, "rejected": bus.inputs.rejected, "dropped": bus.inputs.dropped},
    )


def _node_info(bus: Bus, name: str) -> NodeInfo:
    node = bus.nodes[name]
    topics = sorted(bus.topics.items())
    return NodeInfo(
        name=name,
        class_name=type(node).__name__,
        publishes=tuple(n for n, topic in topics if any(p.node == name for p in topic.publishers)),
        subscribes=tuple(n for n, topic in topics if any(s.node == name for s in topic.subscriptions)),
        services=tuple(sorted(n for n, service in bus.services.items() if service.node == name)),
        parameters=ros_parameters(node),
        health=node.health.level if node.health else "",
        health_text=node.health.text if node.health else "",
        callbacks=tuple(
            CallbackInfo(m.trigger, m.count, m.total_ns * 1e-9, m.max_ns * 1e-9, m.deadline_ns * 1e-9)
            for m in node.callback_timers
            if m.count
        ),
    )


def _topic_info(bus: Bus, name: str) -> TopicInfo:
    topic = bus.topics[name]
    duration = (topic.last_ns - topic.first_ns) * 1e-9
    return TopicInfo(
        name=name,
        type=topic.type_name,
        publishers=tuple(sorted({p.node for p in topic.publishers})),
        subscribers=tuple(sorted({s.node for s in topic.subscriptions})),
        count=topic.count,
        rate=(topic.count - 1) / duration if duration > 0 else 0.0,
        latched=topic.latched,
    )
