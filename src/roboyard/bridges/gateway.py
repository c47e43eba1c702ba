"""What a bridge may do to a run: look at it, listen to it, and hand things in through its one port.

A bridge works on threads of its own.  Whatever it wants of the bus is done on the executor's thread: questions between
two instants, taps while a message is published.  Nothing of that changes the run; only what is handed in does, and that
goes through the input port, which stamps and records it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from threading import Lock
from typing import Any, Final

from roboyard.bridges.external import NODE, answer
from roboyard.bus import Bus, ExternalInput, Future, Topic
from roboyard.bus.external_inputs import EXTERNAL_REQUEST_TOPIC, EXTERNAL_RESPONSE_TOPIC
from roboyard.bus.log import LogRecord
from roboyard.bus.parameter_services import ros_parameters

Heard = Callable[[Any, str, int], None]
"""Gets (message, publisher's node, simulated time in ns), on the executor's thread."""

OWN: Final = ("/inputs", EXTERNAL_REQUEST_TOPIC, EXTERNAL_RESPONSE_TOPIC)
"""Topics that no bridge shows: they are about the run, not about the robot."""
BACKLOG: Final = 200
BACKLOG_BYTES: Final = 64 * 1024 * 1024
"""What may wait of one foreign node before bridges begin to drop what it says; others are not dropped for it."""


@dataclass(frozen=True, slots=True)
class TopicSeen:
    """A topic at one moment: type, whether it is latched, and the nodes at its ends."""

    type: str
    latched: bool
    publishers: frozenset[str]
    subscribers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Seen:
    """A run at one moment.

    Attributes:
        time_ns: Simulated time [ns].
        topics: By name.
        services: Type and serving node by name.
        actions: Type and serving node by name.
        parameters: Values by name, for each node.
        asked: Services that nodes of ours call and foreign ones shall serve: type by name.
        asked_actions: Actions of that kind.
    """

    time_ns: int
    topics: dict[str, TopicSeen]
    services: dict[str, tuple[str, str]]
    actions: dict[str, tuple[str, str]]
    parameters: dict[str, dict[str, Any]]
    asked: dict[str, str] = field(default_factory=dict)
    asked_actions: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Selection:
    """Which topics cross a bridge: those that match a pattern, all where there is none."""

    patterns: tuple[str, ...] = ()
    _known: dict[str, bool] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        found = self._known.get(name)
        if found is None:
            chosen = not self.patterns or any(fnmatchcase(name, pattern) for pattern in self.patterns)
            found = self._known[name] = chosen and name not in OWN
        return found


class Gateway:
    """A bridge's hold on a bus.

    Args:
        bus: The run's bus.
        bridge: How the bridge is called in the log.
        topics: Patterns of the topics that cross, as ``/rover/*``; none: all.
        echo: Tell what came in by this bridge back to all: those outside hear each other no other way.

    Attributes:
        topics: Which topics cross.
        counts: What happened how often: "sent", "received", "dropped", and whatever went wrong by its name.
        foreign: Nodes from outside that have spoken; what they say is not told back.
    """

    def __init__(self, bus: Bus, bridge: str, topics: Collection[str] = (), *, echo: bool = False) -> None:
        self.bus = bus
        self.topics = Selection(tuple(topics))
        self.counts: Counter[str] = Counter()
        self.foreign: set[str] = set()
        self._bridge = bridge
        self._echo = echo
        self._heard: dict[str, list[Heard]] = {}
        self._untap: Callable[[], None] | None = None
        self._said: set[str] = set()
        self._lock = Lock()

    # -- asking, from any thread -----------------------------------------------------------------------------------
    def ask(self, question: Callable[[], None]) -> None:
        """Have ``question`` run on the executor's thread, between two instants; it must not change the run."""
        self.bus.inputs.run_on_executor(question)

    def look(self) -> Seen:
        """The run as it is now; on the executor's thread."""
        bus = self.bus
        topics = {
            name: TopicSeen(
                topic.type_name,
                topic.latched,
                frozenset(p.node for p in topic.publishers) - self.foreign,
                frozenset(s.node for s in topic.subscriptions),
            )
            for name, topic in bus.topics.items()
            if name in self.topics
        }
        parameters = {name: ros_parameters(node) for name, node in bus.nodes.items() if name != NODE}
        seen = Seen(bus.now_ns, topics, {}, {}, parameters)
        for name, service in bus.services.items():
            owner, mark, part = name.partition("/_action/")
            kind = service.type.name
            if name.startswith(f"{NODE}/") or (mark and part != "send_goal"):
                continue
            if mark:
                kind = kind.removesuffix("_SendGoal")
            if service.node == NODE:
                (seen.asked_actions if mark else seen.asked)[owner] = kind
            else:
                (seen.actions if mark else seen.services)[owner] = (kind, service.node)
        return seen

    # -- listening; on the executor's thread -----------------------------------------------------------------------
    def listen(self, topic: str, heard: Heard) -> None:
        """Have ``heard`` called with each message of ``topic`` from now on."""
        self._heard.setdefault(topic, []).append(heard)
        if self._untap is None:
            self._untap = self.bus.add_message_observer(self._tap)

    def latched(self, topic: str) -> Iterator[tuple[Any, str, int]]:
        """What is latched on ``topic`` now: messages, their nodes, and when something was last said there [ns]."""
        known = self.bus.topics.get(topic)
        for publisher in known.publishers if known is not None else ():
            if publisher.last is not None and known is not None and publisher.node not in self.foreign:
                yield publisher.last, publisher.node, known.last_ns

    def forget(self, topic: str, heard: Heard) -> None:
        """Undo `listen`; harmless when it was undone already."""
        listeners = self._heard.get(topic, [])
        if heard in listeners:
            listeners.remove(heard)
        if not listeners:
            self._heard.pop(topic, None)
        if not self._heard and self._untap is not None:
            self._untap()
            self._untap = None

    def encode(self, topic: str, message: Any) -> bytes:
        """The message that is heard now as CDR, which the recording and all bridges share. Raises MessageError."""
        return self.bus.topics[topic].encode(message)

    def _tap(self, topic: Topic, message: Any, node: str, time_ns: int) -> None:
        heard = self._heard.get(topic.name)
        if heard is not None and node not in self.foreign:
            for listener in heard:
                listener(message, node, time_ns)

    # -- handing in, from any thread -------------------------------------------------------------------------------
    def flooded_by(self, source: str) -> bool:
        """Whether more comes of ``source`` than the run takes."""
        count, size = self.bus.inputs.pending_from(source)
        return count >= BACKLOG or size >= BACKLOG_BYTES

    def publish(self, topic: str, kind: str, source: str, data: bytes, *, latched: bool = False) -> bool:
        """Hand in a message as CDR in the name of ``source``; False when it was dropped, since too many wait."""
        if not self._echo:
            self.foreign.add(source)
        taken = not self.flooded_by(source) and self.bus.inputs.put(
            ExternalInput("latch" if latched else "publish", topic, kind, source, data)
        )
        self.count("received" if taken else "dropped")
        return taken

    def call(self, service: str, kind: str, source: str, data: bytes, reply: Callable[[Future], None]) -> bool:
        """Call a service with a request as CDR; ``reply`` gets the answer on the executor's thread."""
        return self.bus.inputs.put(ExternalInput("call", service, kind, source, data, reply))

    def answer(self, number: int, source: str, response: bytes = b"", error: str = "") -> None:
        """Hand in what has come back for a call that a foreign node shall answer; see `external.answer`."""
        if not self.bus.inputs.put(answer(number, source, response, error)):
            self.count("dropped")

    # -- book-keeping, from any thread -----------------------------------------------------------------------------
    def count(self, what: str, by: int = 1) -> None:
        """Count something."""
        with self._lock:
            self.counts[what] += by

    def complain(self, what: str, text: str) -> None:
        """Count a fault by its name, and tell people of it the first time; the run itself does not hear of it.

        Args:
            what: One or two words: "bad md5".
            text: The whole sentence.
        """
        self.count(what)
        with self._lock:
            if text in self._said or len(self._said) >= 200:
                return
            self._said.add(text)
        self.say("warn", text)

    def say(self, level: Any, text: str) -> None:
        """Show people a line; the run itself does not hear of it, so that its recording stays what it was."""

        def tell() -> None:
            record = LogRecord(self.bus.now_ns, level, f"/{self._bridge}", text)
            for sink in self.bus.log_sinks:
                sink(record)

        self.ask(tell)

    def close(self) -> None:
        """Listen no more; on the executor's thread."""
        self._heard.clear()
        if self._untap is not None:
            self._untap()
            self._untap = None
