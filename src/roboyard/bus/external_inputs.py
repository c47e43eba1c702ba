"""External inputs: the only entrance into a run (clicks, keys, other processes, external robots).

Each input is processed when all events of a time are complete: it is stamped with this simulated time, published on
``/inputs`` (so that it is recorded), and then executed.  Scheduling recorded inputs at their times repeats a run.
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
"""Topics of service calls to nodes that run externally, and of their responses; bridges relay them."""
MAX_PENDING_INPUTS = 10_000
MAX_INPUTS_PER_INSTANT = 100
MAX_INPUT_RATE = 5_000
"""Maximum number of inputs at one time and per simulated second, so that external inputs can neither stop nor slow down
time; a large input counts as several.
"""
_LARGE_INPUT_BYTES = 65_536
_MAX_TEXT_LENGTH = 256
_RESERVED_TOPICS = (INPUT_TOPIC, "/clock")


@dataclass(frozen=True, slots=True)
class ExternalInput:
    """Input from outside the run.

    Attributes:
        operation: "publish" a message on a topic, "latch" it for later subscribers too, or "call" a service.
        target: Absolute name of the topic or service.
        type: Message or service type name.
        source: Name of the sender, used by arbitration and introspection.
        data: The message or request as CDR.
        reply: Function called with the Future of a service call; not recorded.
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
            if len(text) > _MAX_TEXT_LENGTH or not text.isprintable():  # isprintable is False for surrogates too
                raise InputError(
                    f"{name} {text[:80]!r} of an input is too long or not printable",
                    valid=f"at most {_MAX_TEXT_LENGTH} printable characters",
                )


class ExternalInputQueue:
    """Accepts inputs from any thread and executes them on the executor's thread.

    Args:
        router: Publishes the messages.
        services: Services of this bus by name.
        service_client: Function that makes the client of a service: of this bus, or of the run that a remote bus
            follows.
        log: Log for rejected inputs.

    Attributes:
        accepted: Number of executed inputs.
        rejected: Number of inputs that could not be executed (malformed, unknown type).
        dropped: Number of inputs dropped because more than ``MAX_PENDING_INPUTS`` were pending.
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
        self._pending_by_source: dict[str, list[int]] = {}  # number and bytes of pending inputs by source
        self._input_budget = float(MAX_INPUTS_PER_INSTANT)  # number of inputs that may be processed now
        self._budget_time_ns = 0  # time at which this budget was valid
        self._publishers: dict[tuple[str, str, bool], Publisher] = {}
        self._record_publisher: Publisher | None = None
        self.accepted = 0
        self.rejected = 0
        self.dropped = 0

    def put(self, item: ExternalInput) -> bool:
        """Queue an input from any thread; return False if too many are pending."""
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
        """Number of pending inputs and queued functions."""
        return len(self._queue)

    def pending_from(self, source: str) -> tuple[int, int]:
        """Return number and bytes of the pending inputs of a source."""
        count, size = self._pending_by_source.get(source, (0, 0))
        return count, size

    def run_on_executor(self, function: Callable[[], None]) -> None:
        """Run `function` on the executor's thread; it must not change any state, therefore it is not recorded."""
        self._queue.append(function)
        self._executor.wake.set()

    def schedule(self, inputs: Iterable[tuple[int, ExternalInput]]) -> None:
        """Schedule recorded inputs at their times [ns]."""
        for time_ns, item in inputs:
            self._executor.schedule(time_ns, lambda item=item: self._process(item), priority=LAST)  # type: ignore[misc]

    def save_state(self) -> dict[str, Any]:
        """Return the sources that have published and the input budget, as plain data."""
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
        """Restore a state that `save_state` returned, on a queue that has not processed any input."""
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
        """Run queued functions and execute the first pending input; called when all events of a time are complete.

        Inputs are executed one at a time, so that all consequences of one happen before the next, as when recorded
        inputs are repeated.
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
        """Run functions queued behind inputs that have to wait for a later time."""
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
                raise InputError(f"{item.target} is reserved for the run", valid="another topic")
            if item.operation in ("publish", "latch"):
                self._publish(item)
            elif item.operation == "call":
                self._call(item)
            else:
                raise InputError(f"unknown input operation '{item.operation}'", valid="'publish', 'latch' or 'call'")
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
        # the services of an action are reached through the action only
        request_type: Any = service.type if service and service.type.name == item.type else service_type(item.type)
        request = deserialize(item.data, f"{item.type}_Request")
        future = self._service_client(item.target, request_type, item.source).call(request)
        if item.reply:
            future.add_done_callback(item.reply)
