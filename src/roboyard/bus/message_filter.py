"""The message filter: messages of one or several topics wait until their transforms are known (tf2_ros)."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from roboyard.bus.node import Node
from roboyard.bus.topics import Subscription
from roboyard.bus.transforms import TransformError
from roboyard.errors import InputError
from roboyard.messages.time import is_in_future, to_nanoseconds


class DropReason(Enum):
    """Reason why a message was dropped."""

    NO_TRANSFORM_FOUND = "no transform found"
    QUEUE_FULL = "queue full"
    EMPTY_FRAME_ID = "empty frame id"
    STAMPED_IN_FUTURE = "stamped in the future"


@dataclass(frozen=True, slots=True)
class DroppedMessage:
    """A message that was dropped.

    Attributes:
        message: The message.
        topic: Its topic, as it was given to ``add``.
        reason: Why it was dropped.
        transform_error: Which transform was missing; empty if none was, or if the filter did not look.
    """

    message: Any
    topic: str
    reason: DropReason
    transform_error: str = ""

    @property
    def text(self) -> str:
        """The reason as a sentence, with the transform that was missing."""
        if self.reason is DropReason.NO_TRANSFORM_FOUND:
            return self.transform_error
        text = {
            DropReason.QUEUE_FULL: "newer messages filled the queue",
            DropReason.EMPTY_FRAME_ID: "its header has an empty frame_id",
            DropReason.STAMPED_IN_FUTURE: "it is stamped in the future",
        }[self.reason]
        return f"{text}: {self.transform_error}" if self.transform_error else text


class MessageFilter:
    """Holds messages back until the transforms of their stamps are known (tf2_ros::MessageFilter).

    A message leaves, by ``callback(message, topic)``, as soon as ``process`` finds that every target frame is connected
    with the message's frame at its stamp: the callback's own lookups at that stamp succeed.  ``add`` calls ``process``,
    and so does a timer if there is a ``retry_period``.  Messages come by ``subscribe``, or by ``add`` from a node that
    looks at them first.

    What waits leaves in the order of its stamps, and in the order of arrival where stamps are equal.  A message waits
    behind the earlier ones of its topic, but not behind those of another topic.  One that arrives when a later one has
    left already is not dropped: nodes that cannot go back in time must compare stamps.

    A message is dropped if

    - its stamp is in the future, beyond what a difference between two clocks explains (at once);
    - its header has an empty ``frame_id`` (at once);
    - it is the oldest of more than ``queue_size`` of its topic;
    - its transforms are still missing when it is older than ``timeout``.

    Every message that ``add`` got was delivered, is dropped, or waits: ``received_count`` is the sum of
    ``delivered_count``, the numbers of ``dropped_counts`` and ``waiting_count``.

    Args:
        node: The node that receives the messages; it has joined a bus.
        callback: Takes a message whose transforms are known, and its topic.
        target_frames: Frame ids that must be connected with the message's, prefixed already (see ``Node.frame``); a
            function if they change while the node runs.
        queue_size: Most messages of each topic that wait.
        timeout: A message waits until it is older than this [s]; a function if it changes while the node runs.
        source_frame: Frame id that must be connected with the target frames instead of the message's own.
        retry_period: Time between retries [s]; None: the node calls ``process`` itself.
        on_drop: Takes each message that is dropped, and reports it (tf2_ros: the failure callback); without it, the
            filter reports it in the node's log and health.

    Attributes:
        is_paused: Messages only wait; none is delivered and none times out.
        received_count: Messages that ``add`` got.
        delivered_count: Messages that left by the callback.
        dropped_counts: Numbers of dropped messages by reason.

    Raises:
        InputError: ``queue_size`` is not positive.
    """

    def __init__(
        self,
        node: Node[Any],
        callback: Callable[[Any, str], None],
        *,
        target_frames: Iterable[str] | Callable[[], Iterable[str]],
        queue_size: int,
        timeout: float | Callable[[], float],
        source_frame: str = "",
        retry_period: float | None = None,
        on_drop: Callable[[DroppedMessage], None] | None = None,
    ) -> None:
        if queue_size < 1:
            raise InputError(
                f"a queue of {queue_size} messages",
                location=f"node {node.full_name}, message filter",
                valid="1 or more",
            )
        self._node = node
        self._callback = callback
        fixed_frames = () if callable(target_frames) else tuple(target_frames)
        self._target_frames = target_frames if callable(target_frames) else lambda: fixed_frames
        self._queue_size = queue_size
        self._timeout = timeout if callable(timeout) else lambda: timeout
        self._source_frame = source_frame
        self._on_drop = self._report if on_drop is None else on_drop
        self._queues: dict[str, list[tuple[int, int, Any]]] = {}  # (stamp, number, message), sorted
        self.is_paused = False
        self.received_count = 0
        self.delivered_count = 0
        self.dropped_counts = dict.fromkeys(DropReason, 0)
        if retry_period is not None:
            node.timer(retry_period, self.process, name="message_filter")

    @property
    def waiting_count(self) -> int:
        """Number of messages that wait."""
        return sum(map(len, self._queues.values()))

    def subscribe(self, topic: str, message_type: type) -> Subscription:
        """Subscribe the node to a topic, all of whose messages are added; the callback gets ``topic`` as it is here.

        Raises:
            MessageError: the topic carries another type.
        """

        def add_to_filter(message: Any) -> None:
            self.add(message, topic)

        return self._node.subscribe(topic, message_type, add_to_filter)

    def add(self, message: Any, topic: str = "") -> bool:
        """Take a message in, and deliver what can be delivered.

        Args:
            message: With a header.
            topic: Its topic, which the callback gets.

        Returns:
            False if the message was dropped at once for its stamp or its frame.
        """
        self.received_count += 1
        stamp_ns = to_nanoseconds(message.header.stamp)
        if is_in_future(stamp_ns, self._node.now_ns):
            self._drop(message, topic, DropReason.STAMPED_IN_FUTURE)
            return False
        if not (self._source_frame or message.header.frame_id):
            self._drop(message, topic, DropReason.EMPTY_FRAME_ID)
            return False
        queue = self._queues.setdefault(topic, [])
        insort(queue, (stamp_ns, self.received_count, message), key=_stamp_and_number)
        if len(queue) > self._queue_size:
            oldest_ns, _, oldest = queue.pop(0)
            self._drop(oldest, topic, DropReason.QUEUE_FULL, self._transform_error(oldest, oldest_ns))
        self.process()
        return True

    def process(self) -> None:
        """Deliver every message whose transforms are known, and drop those that waited for too long."""
        blocked_topics: set[str] = set()
        while not self.is_paused:
            heads = [
                (*queue[0][:2], topic) for topic, queue in self._queues.items() if queue and topic not in blocked_topics
            ]
            if not heads:
                return
            stamp_ns, _, topic = min(heads)
            message = self._queues[topic][0][2]
            error = self._transform_error(message, stamp_ns)
            if error and self._node.now_ns - stamp_ns <= round(self._timeout() * 1e9):
                blocked_topics.add(topic)
                continue
            del self._queues[topic][0]
            if error:
                self._drop(message, topic, DropReason.NO_TRANSFORM_FOUND, error)
            else:
                self.delivered_count += 1
                self._callback(message, topic)

    def pause(self) -> None:
        """Let messages wait from now on, whatever is known: the node is busy."""
        self.is_paused = True

    def resume(self) -> None:
        """End a pause, and deliver what can be delivered."""
        self.is_paused = False
        self.process()

    def save_state(self) -> dict[str, Any]:
        """Return the waiting messages and the counts, as plain data; a pause belongs to the node."""
        return {
            "waiting": {topic: list(queue) for topic, queue in self._queues.items()},
            "received": self.received_count,
            "delivered": self.delivered_count,
            "dropped": {reason.name: count for reason, count in self.dropped_counts.items()},
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore a state that `save_state` returned."""
        self._queues = {topic: [tuple(item) for item in queue] for topic, queue in saved["waiting"].items()}
        self.received_count, self.delivered_count = saved["received"], saved["delivered"]
        self.dropped_counts = {reason: saved["dropped"][reason.name] for reason in DropReason}

    def _transform_error(self, message: Any, stamp_ns: int) -> str:
        """Describe the missing transform of a message; empty if none is missing."""
        source = self._source_frame or message.header.frame_id
        try:
            for target in self._target_frames():
                self._node.transforms.lookup(target, source, stamp_ns)
        except TransformError as error:
            return str(error)
        return ""

    def _drop(self, message: Any, topic: str, reason: DropReason, transform_error: str = "") -> None:
        self.dropped_counts[reason] += 1
        self._on_drop(DroppedMessage(message, topic, reason, transform_error))

    def _report(self, dropped: DroppedMessage) -> None:
        of_topic = f" of {self._node.resolve(dropped.topic)}" if dropped.topic else ""
        # the log's text has no stamps in it, so that it is written once in a while and not for every message
        self._node.log.warn(f"messages{of_topic} are left out: {dropped.reason.value}", throttle=5.0)
        counts = {reason.name.lower(): count for reason, count in self.dropped_counts.items() if count}
        self._node.report_health("warn", f"a message{of_topic} is left out: {dropped.text}", **counts)


def _stamp_and_number(item: tuple[int, int, Any]) -> tuple[int, int]:
    return item[:2]
