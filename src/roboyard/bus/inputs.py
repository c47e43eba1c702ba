"""The one port through which everything from outside enters a run: clicks, keys, other processes, foreign robots.

Each input is taken in when an instant is complete, stamped with that simulated time, published on ``/inputs`` (so it
is in the recording) and only then acted on.  Scheduling recorded inputs at their times repeats an interactive run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from roboyard.bus.executor import LAST
from roboyard.bus.futures import Future
from roboyard.bus.names import check_absolute
from roboyard.errors import InputError, RoboyardError
from roboyard.messages import deserialize, message_type, service_type

if TYPE_CHECKING:
    from roboyard.bus.bus import Bus
    from roboyard.bus.topics import Publisher

Kind = Literal["publish", "latch", "call"]
TOPIC = "/inputs"
ASKED, ANSWERED = "/external/asked", "/external/answered"
"""Calls of nodes that were left out, for bridges to take outside, and what came back."""
INBOX_LIMIT = 10_000
INSTANT_LIMIT = 100
RATE_LIMIT = 5_000
"""Inputs taken at one instant of a running clock, and in a simulated second, so that no flood from outside can make
time stand still, or crawl; what is large counts as several."""
_LARGE = 65_536
_TEXT_LIMIT = 256
_OWN = (TOPIC, "/clock")


@dataclass(frozen=True, slots=True)
class Input:
    """One thing from outside.

    Attributes:
        kind: "publish" a message on a topic, "latch" it for later subscribers too, or "call" a service.
        target: Absolute name of the topic or service.
        type: Message or service type name.
        source: Who sends it; arbitration and introspection know it by this name.
        data: The message, or the request, as CDR.
        reply: Called with the Future of a call; not recorded.
    """

    kind: Kind
    target: str
    type: str
    source: str
    data: bytes
    reply: Callable[[Future], None] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name in ("target", "type", "source"):
            text = getattr(self, name)
            if len(text) > _TEXT_LIMIT or not text.isprintable():  # which surrogates are not either
                raise InputError(
                    f"{name} {text[:80]!r} of an input", valid=f"at most {_TEXT_LIMIT} printable characters"
                )


class InputPort:
    """Takes inputs from any thread and acts on them on the executor's.

    Attributes:
        taken: Inputs acted on so far.
        refused: Inputs that could not be acted on (malformed, unknown type).
        dropped: Inputs lost because more than ``INBOX_LIMIT`` were waiting.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._inbox: deque[Input | Callable[[], None]] = deque()
        self._lock = Lock()
        self._waiting: dict[str, list[int]] = {}  # how many, and their bytes, by source
        self._room = float(INSTANT_LIMIT)  # how many inputs may be taken now
        self._room_ns = 0  # when that was so
        self._publishers: dict[tuple[str, str, bool], Publisher] = {}
        self._record: Publisher | None = None
        self.taken = 0
        self.refused = 0
        self.dropped = 0

    def push(self, item: Input) -> bool:
        """Hand in an input from any thread; False when too many are waiting."""
        with self._lock:
            if len(self._inbox) >= INBOX_LIMIT:
                self.dropped += 1
                return False
            self._inbox.append(item)
            waiting = self._waiting.setdefault(item.source, [0, 0])
            waiting[0] += 1
            waiting[1] += len(item.data)
        self._bus.executor.wake.set()
        return True

    @property
    def waiting(self) -> int:
        """How many inputs and questions wait to be looked at."""
        return len(self._inbox)

    def waiting_of(self, source: str) -> tuple[int, int]:
        """How many inputs of one who sends them wait, and how many bytes those have."""
        count, size = self._waiting.get(source, (0, 0))
        return count, size

    def query(self, question: Callable[[], None]) -> None:
        """Have ``question`` run on the executor's thread; it must not change anything, so it is not recorded."""
        self._inbox.append(question)
        self._bus.executor.wake.set()

    def schedule(self, inputs: Iterable[tuple[int, Input]]) -> None:
        """Repeat recorded inputs at their times [ns]."""
        for time_ns, item in inputs:
            self._bus.executor.at(time_ns, lambda item=item: self._act(item), priority=LAST)  # type: ignore[misc]

    def save(self) -> dict[str, Any]:
        """Who has published through the port, and how much was taken, as plain data."""
        senders = [
            (source, target, latched, publisher.topic.type_name, publisher.count)
            for (source, target, latched), publisher in self._publishers.items()
        ]
        return {
            "senders": senders,
            "counts": (self.taken, self.refused, self.dropped),
            "used": self._record is not None,
        }

    def load(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`, on a port that nothing went through yet."""
        for source, target, latched, type_name, count in saved["senders"]:
            publisher = self._bus.publisher(target, message_type(type_name), source, latched=latched)
            publisher.count = count
            self._publishers[(source, target, latched)] = publisher
        if saved["used"]:
            self._record = self._bus.publisher(TOPIC, message_type("roboyard_msgs/msg/Input"), "inputs")
        self.taken, self.refused, self.dropped = saved["counts"]

    def take(self) -> bool:
        """Answer questions and act on the first input that waits; called by the executor when an instant is complete.

        One at a time, so that all it sets going happens before the next one: as when recorded inputs are repeated.
        """
        if not self._inbox:
            return False
        executor = self._bus.executor
        passed_ns, self._room_ns = executor.now_ns - self._room_ns, executor.now_ns
        self._room = min(self._room + passed_ns * 1e-9 * RATE_LIMIT, INSTANT_LIMIT)
        if self._room <= 0.0 and not executor.paused:
            self._answer_questions()
            return False
        for _ in range(len(self._inbox)):
            item = self._inbox.popleft()
            if isinstance(item, Input):
                self._room = max(self._room, 0.0) - 1.0 - len(item.data) // _LARGE
                self._let_go(item)
                self._act(item)
                return True
            item()
        return False

    def _let_go(self, item: Input) -> None:
        with self._lock:
            waiting = self._waiting[item.source]
            waiting[0] -= 1
            waiting[1] -= len(item.data)
            if not waiting[0]:
                del self._waiting[item.source]

    def _answer_questions(self) -> None:
        """Answer those behind the inputs that have to wait for the next instant."""
        waiting = [self._inbox.popleft() for _ in range(len(self._inbox))]
        self._inbox.extendleft(item for item in reversed(waiting) if isinstance(item, Input))
        for item in waiting:
            if not isinstance(item, Input):
                item()

    def _act(self, item: Input) -> None:
        self._publish_record(item)
        try:
            check_absolute(item.target)
            if item.target in _OWN:
                raise InputError(f"{item.target} is the run's own", valid="another topic")
            if item.kind in ("publish", "latch"):
                self._publish(item)
            elif item.kind == "call":
                self._call(item)
            else:
                raise InputError(f"input of unknown kind '{item.kind}'", valid="'publish', 'latch' or 'call'")
        except RoboyardError as error:
            self.refused += 1
            self._bus.log.warn(f"input from {item.source} for {item.target} refused: {error}", every=1.0)
            if item.reply:
                failed = Future()
                failed.fail(error)
                item.reply(failed)
            return
        self.taken += 1

    def _publish_record(self, item: Input) -> None:
        if self._record is None:
            self._record = self._bus.publisher(TOPIC, message_type("roboyard_msgs/msg/Input"), "inputs")
        data = np.frombuffer(item.data, dtype=np.uint8)
        self._record.publish(
            self._record.topic.type(kind=item.kind, target=item.target, type=item.type, source=item.source, data=data)
        )

    def _publish(self, item: Input) -> None:
        message = deserialize(item.data, item.type)
        latched = item.kind == "latch"
        key = (item.source, item.target, latched)
        publisher = self._publishers.get(key)
        if publisher is None:
            publisher = self._publishers[key] = self._bus.publisher(
                item.target, message_type(item.type), item.source, latched=latched
            )
        publisher.publish(message)

    def _call(self, item: Input) -> None:
        served = self._bus.services.get(item.target)
        # the services that carry an action are known by the action only
        kind: Any = served.type if served and served.type.name == item.type else service_type(item.type)
        request = deserialize(item.data, f"{item.type}_Request")
        future = self._bus.service_client(item.target, kind, item.source).call(request)
        if item.reply:
            future.then(item.reply)
