"""External inputs: the only way into a run from outside (clicks, keys, other processes, external robots).

Each input is processed when an instant is complete: it is stamped with that simulated time, published on ``/inputs``
(so it is in the recording), and only then carried out.  Scheduling recorded inputs at their times repeats a run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal

import numpy as np

from roboyard.bus.executor import LAST
from roboyard.bus.log import Logger
from roboyard.bus.names import check_absolute
from roboyard.bus.services import Future, Service, ServiceClient
from roboyard.bus.topics import MessageRouter, Publisher
from roboyard.errors import InputError, RoboyardError
from roboyard.messages import deserialize, message_type, service_type

InputOperation = Literal["publish", "latch", "call"]
INPUT_TOPIC = "/inputs"
EXTERNAL_REQUEST_TOPIC, EXTERNAL_RESPONSE_TOPIC = "/external/requests", "/external/responses"
"""Calls of services whose nodes were left out, for bridges to forward, and the responses."""
MAX_PENDING_INPUTS = 10_000
MAX_INPUTS_PER_INSTANT = 100
MAX_INPUT_RATE = 5_000
"""Inputs taken at one instant of a running clock, and in a simulated second, so that no flood from outside can make
time stand still, or crawl; what is large counts as several."""
_LARGE_INPUT_BYTES = 65_536
_MAX_TEXT_LENGTH = 256
_RESERVED_TOPICS = (INPUT_TOPIC, "/clock")


@dataclass(frozen=True, slots=True)
class ExternalInput:
    """One thing from outside.

    Attributes:
        operation: "publish" a message on a topic, "latch" it for later subscribers too, or "call" a service.
        target: Absolute name of the topic or service.
        type: Message or service type name.
        source: Who sends it; arbitration and introspection know it by this name.
        data: The message, or the request, as CDR.
        reply: Called with the Future of a call; not recorded.
    """

    operation: InputOperation
    target: str
    type: str
    source: str
    data: bytes
    reply: Callable[[Future], None] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name in ("target", "type", "source"):
            text = getattr(self, name)
            if len(text) > _MAX_TEXT_LENGTH or not text.isprintable():  # which surrogates are not either
                raise InputError(
                    f"{name} {text[:80]!r} of an input", valid=f"at most {_MAX_TEXT_LENGTH} printable characters"
                )


class ExternalInputQueue:
    """Takes inputs from any thread and acts on them on the executor's.

    Args:
        router: Where messages are published.
        services: The services of this bus, by name.
        service_client: Makes the client of a service: of this bus, or of the run that a remote bus follows.
        log: Says what is rejected.

    Attributes:
        accepted: Inputs acted on so far.
        rejected: Inputs that could not be acted on (malformed, unknown type).
        dropped: Inputs lost because more than ``MAX_PENDING_INPUTS`` were waiting.
    """

    def __init__(
        self,
        router: MessageRouter,
        services: Mapping[str, Service],
        service_client: Callable[[str, Any, str], ServiceClient],
        log: Logger,
    ) -> None:
        self._router = router
        self._executor = router.executor
        self._services = services
        self._service_client = service_client
        self._log = log
        self._queue: deque[ExternalInput | Callable[[], None]] = deque()
        self._lock = Lock()
        self._pending_by_source: dict[str, list[int]] = {}  # how many, and their bytes, by source
        self._input_budget = float(MAX_INPUTS_PER_INSTANT)  # how many inputs may be taken now
        self._budget_time_ns = 0  # when that was so
        self._publishers: dict[tuple[str, str, bool], Publisher] = {}
        self._record_publisher: Publisher | None = None
        self.accepted = 0
        self.rejected = 0
        self.dropped = 0

    def put(self, item: ExternalInput) -> bool:
        """Hand in an input from any thread; False when too many are waiting."""
        with self._lock:
            if len(self._queue) >= MAX_PENDING_INPUTS:
                self.dropped += 1
                return False
            self._queue.append(item)
            pending = self._pending_by_source.setdefault(item.source, [0, 0])
            pending[0] += 1
            pending[1] += len(item.data)
        self._executor.wake.set()
        return True

    @property
    def pending_count(self) -> int:
        """How many inputs and questions wait to be looked at."""
        return len(self._queue)

    def pending_from(self, source: str) -> tuple[int, int]:
        """How many inputs of one who sends them wait, and how many bytes those have."""
        count, size = self._pending_by_source.get(source, (0, 0))
        return count, size

    def run_on_executor(self, function: Callable[[], None]) -> None:
        """Have ``function`` run on the executor's thread; it must not change anything, so it is not recorded."""
        self._queue.append(function)
        self._executor.wake.set()

    def schedule(self, inputs: Iterable[tuple[int, ExternalInput]]) -> None:
        """Repeat recorded inputs at their times [ns]."""
        for time_ns, item in inputs:
            self._executor.schedule(time_ns, lambda item=item: self._process(item), priority=LAST)  # type: ignore[misc]

    def save_state(self) -> dict[str, Any]:
        """Who has published through the port, and how much was taken, as plain data."""
        publishers = [
            (source, target, latched, publisher.topic.type_name, publisher.count)
            for (source, target, latched), publisher in self._publishers.items()
        ]
        return {
            "publishers": publishers,
            "counts": (self.accepted, self.rejected, self.dropped),
            "has_record": self._record_publisher is not None,
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`, on a port that nothing went through yet."""
        for source, target, latched, type_name, count in saved["publishers"]:
            publisher = self._router.publisher(target, message_type(type_name), source, latched=latched)
            publisher.count = count
            self._publishers[(source, target, latched)] = publisher
        if saved["has_record"]:
            self._record_publisher = self._router.publisher(
                INPUT_TOPIC, message_type("roboyard_msgs/msg/ExternalInput"), "inputs"
            )
        self.accepted, self.rejected, self.dropped = saved["counts"]

    def process_next(self) -> bool:
        """Answer questions and act on the first input that waits; called by the executor when an instant is complete.

        One at a time, so that all it sets going happens before the next one: as when recorded inputs are repeated.
        """
        if not self._queue:
            return False
        executor = self._executor
        elapsed_ns, self._budget_time_ns = executor.now_ns - self._budget_time_ns, executor.now_ns
        self._input_budget = min(self._input_budget + elapsed_ns * 1e-9 * MAX_INPUT_RATE, MAX_INPUTS_PER_INSTANT)
        if self._input_budget <= 0.0 and not executor.paused:
            self._run_queued_functions()
            return False
        for _ in range(len(self._queue)):
            item = self._queue.popleft()
            if isinstance(item, ExternalInput):
                self._input_budget = max(self._input_budget, 0.0) - 1.0 - len(item.data) // _LARGE_INPUT_BYTES
                self._remove_pending(item)
                self._process(item)
                return True
            item()
        return False

    def _remove_pending(self, item: ExternalInput) -> None:
        with self._lock:
            pending = self._pending_by_source[item.source]
            pending[0] -= 1
            pending[1] -= len(item.data)
            if not pending[0]:
                del self._pending_by_source[item.source]

    def _run_queued_functions(self) -> None:
        """Answer those behind the inputs that have to wait for the next instant."""
        queued = [self._queue.popleft() for _ in range(len(self._queue))]
        self._queue.extendleft(item for item in reversed(queued) if isinstance(item, ExternalInput))
        for item in queued:
            if not isinstance(item, ExternalInput):
                item()

    def _process(self, item: ExternalInput) -> None:
        self._publish_record(item)
        try:
            check_absolute(item.target)
            if item.target in _RESERVED_TOPICS:
                raise InputError(f"{item.target} is the run's own", valid="another topic")
            if item.operation in ("publish", "latch"):
                self._publish(item)
            elif item.operation == "call":
                self._call(item)
            else:
                raise InputError(
                    f"input with unknown operation '{item.operation}'", valid="'publish', 'latch' or 'call'"
                )
        except RoboyardError as error:
            self.rejected += 1
            self._log.warn(f"input from {item.source} for {item.target} rejected: {error}", throttle=1.0)
            if item.reply:
                failed_future = Future()
                failed_future.set_error(error)
                item.reply(failed_future)
            return
        self.accepted += 1

    def _publish_record(self, item: ExternalInput) -> None:
        if self._record_publisher is None:
            self._record_publisher = self._router.publisher(
                INPUT_TOPIC, message_type("roboyard_msgs/msg/ExternalInput"), "inputs"
            )
        data = np.frombuffer(item.data, dtype=np.uint8)
        self._record_publisher.publish(
            self._record_publisher.topic.type(
                operation=item.operation, target=item.target, type=item.type, source=item.source, data=data
            )
        )

    def _publish(self, item: ExternalInput) -> None:
        message = deserialize(item.data, item.type)
        latched = item.operation == "latch"
        key = (item.source, item.target, latched)
        publisher = self._publishers.get(key)
        if publisher is None:
            publisher = self._publishers[key] = self._router.publisher(
                item.target, message_type(item.type), item.source, latched=latched
            )
        publisher.publish(message)

    def _call(self, item: ExternalInput) -> None:
        service = self._services.get(item.target)
        # the services that carry an action are known by the action only
        request_type: Any = service.type if service and service.type.name == item.type else service_type(item.type)
        request = deserialize(item.data, f"{item.type}_Request")
        future = self._service_client(item.target, request_type, item.source).call(request)
        if item.reply:
            future.add_done_callback(item.reply)
