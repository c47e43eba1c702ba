"""A look at the running graph: who publishes what, how often, and what it costs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roboyard.bus.bus import Bus


@dataclass(frozen=True, slots=True)
class CallbackInfo:
    """Cost of one callback in wall time [s]; ``budget`` is the simulated time it has, 0 = none stated."""

    occasion: str
    count: int
    total: float
    max: float
    budget: float


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A node and its ends."""

    name: str
    kind: str
    publishes: tuple[str, ...]
    subscribes: tuple[str, ...]
    services: tuple[str, ...]
    parameters: dict[str, Any]
    health: str
    health_text: str
    callbacks: tuple[CallbackInfo, ...]

    @property
    def busy(self) -> float:
        """Wall time spent in all callbacks [s]."""
        return sum(callback.total for callback in self.callbacks)


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic and its ends; ``rate`` is the mean over simulated time [Hz]."""

    name: str
    type: str
    publishers: tuple[str, ...]
    subscribers: tuple[str, ...]
    count: int
    rate: float
    latched: bool


@dataclass(frozen=True, slots=True)
class JobInfo:
    """Offloaded work: wall time [s] against the declared latency [s]."""

    node: str
    what: str
    count: int
    mean: float
    max: float
    latency: float
    late: int


@dataclass(frozen=True, slots=True)
class Graph:
    """The whole graph at one moment."""

    time_ns: int
    paused: bool
    nodes: tuple[NodeInfo, ...]
    topics: tuple[TopicInfo, ...]
    services: dict[str, str]
    jobs: tuple[JobInfo, ...]
    inputs: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return asdict(self)


def graph(bus: Bus) -> Graph:
    """Take the picture; call it on the executor's thread."""
    return Graph(
        time_ns=bus.now_ns,
        paused=bus.executor.paused,
        nodes=tuple(_node(bus, name) for name in bus.nodes),
        topics=tuple(_topic(bus, name) for name in sorted(bus.topics)),
        services={name: service.type.name for name, service in sorted(bus.services.items())},
        jobs=tuple(
            JobInfo(
                j.node,
                j.what,
                j.count,
                j.total_ns * 1e-9 / max(j.count, 1),
                j.max_ns * 1e-9,
                j.latency_ns * 1e-9,
                j.late,
            )
            for j in bus.offload.jobs.values()
        ),
        inputs={"taken": bus.inputs.taken, "refused": bus.inputs.refused, "dropped": bus.inputs.dropped},
    )


def _node(bus: Bus, name: str) -> NodeInfo:
    node = bus.nodes[name]
    topics = sorted(bus.topics.items())
    return NodeInfo(
        name=name,
        kind=type(node).__name__,
        publishes=tuple(n for n, topic in topics if any(p.node == name for p in topic.publishers)),
        subscribes=tuple(n for n, topic in topics if any(s.node == name for s in topic.subscriptions)),
        services=tuple(sorted(n for n, service in bus.services.items() if service.node == name)),
        parameters=node.parameters(),
        health=node.health.level if node.health else "",
        health_text=node.health.text if node.health else "",
        callbacks=tuple(
            CallbackInfo(m.occasion, m.count, m.total_ns * 1e-9, m.max_ns * 1e-9, m.budget_ns * 1e-9)
            for m in node.meters
            if m.count
        ),
    )


def _topic(bus: Bus, name: str) -> TopicInfo:
    topic = bus.topics[name]
    span = (topic.last_ns - topic.first_ns) * 1e-9
    return TopicInfo(
        name=name,
        type=topic.type_name,
        publishers=tuple(sorted({p.node for p in topic.publishers})),
        subscribers=tuple(sorted({s.node for s in topic.subscriptions})),
        count=topic.count,
        rate=(topic.count - 1) / span if span > 0 else 0.0,
        latched=topic.latched,
    )
