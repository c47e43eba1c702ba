"""Base class of nodes that build a map from clouds of points: elevation maps and octree maps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from typing_extensions import TypeVar

from roboyard.bus import Future, MessageFilter, Node
from roboyard.config import Config, parameter
from roboyard.messages import msg, to_nanoseconds

_TRANSFORM_TIMEOUT: Final = 0.3
"""A cloud waits for its transforms until it is older than this [s]."""
_QUEUE_SIZE: Final = 4


class CloudMap(Protocol):
    """A map that clouds are inserted into: what the node asks of every kind of map."""

    def clear(self) -> None:
        """Forget everything that was inserted."""
        ...

    def save_state(self) -> dict[str, Any]:
        """Return the whole map as plain data."""
        ...

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what ``save_state`` returned, in a map of the same configuration."""
        ...


class CloudMapperConfig(Config):
    """Configuration that all nodes share that build a map from clouds."""

    max_rate: float = parameter(2.0, unit="Hz", low=0.01, high=100.0, doc="Largest rate of processed clouds.")
    publish_period: float = parameter(2.0, unit="s", low=0.0, high=1e6, doc="Smallest time between maps.")
    latency: float = parameter(0.25, unit="s", low=1e-3, high=100.0, doc="Declared duration of processing a cloud.")


CloudMapperConfigT = TypeVar("CloudMapperConfigT", bound=CloudMapperConfig, default=CloudMapperConfig, covariant=True)


class CloudMapperNode(Node[CloudMapperConfigT], ABC):
    """A node that inserts clouds into a map beside the run, and publishes the map.

    in: clouds (sensor_msgs/PointCloud2), at most ``max_rate`` a second; /tf from the map's frame to the cloud

    A cloud waits for its transforms, at most until it is 0.3 s old. A worker inserts one cloud at a time; its result is
    available ``latency`` after its start, so that runs are deterministic. The map is published at most once in each
    ``publish_period``. Changes by services wait until the worker is idle.

    A subclass calls `start_mapping` in ``setup`` and defines `prepare_insertion`, `report_insertion` and `publish_map`.
    """

    state_fields: tuple[str, ...] = ("_last_cloud_ns", "_published_ns", "_stale")

    def start_mapping(
        self,
        cloud_map: CloudMap,
        topic: str,
        target_frames: Iterable[str] | Callable[[], Iterable[str]],
        *,
        is_changed: bool = False,
    ) -> None:
        """Subscribe to the clouds.

        Args:
            cloud_map: The map.
            topic: Topic of the clouds.
            target_frames: Frames to which a cloud needs transforms at its time; a function if they change.
            is_changed: Whether the map is to be published before the first cloud.
        """
        self._cloud_map = cloud_map
        self._cloud_topic = topic
        self._last_cloud_ns = self._published_ns = -(10**18)
        self._stale = is_changed
        self._pending_changes: list[Callable[[], None]] = []  # changes that wait until the worker is idle
        self.subscribe(topic, msg.PointCloud2, self._on_cloud)
        self._clouds = MessageFilter(
            self,
            self._insert,
            target_frames=target_frames,
            queue_size=_QUEUE_SIZE,
            timeout=_TRANSFORM_TIMEOUT,
            retry_period=0.1,
        )

    @abstractmethod
    def prepare_insertion(self, message: Any, time_ns: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return the function that inserts a cloud, and its arguments; the worker calls it.

        Args:
            message: The cloud; the transforms of its stamp are known.
            time_ns: Its stamp [ns].
        """

    @abstractmethod
    def report_insertion(self, result: Any) -> bool:
        """Report the result of an insertion by the node's health; return whether the map changed."""

    @abstractmethod
    def publish_map(self) -> None:
        """Publish the map."""

    def _on_cloud(self, message: Any) -> None:
        time_ns = to_nanoseconds(message.header.stamp)
        # nine tenths of a period: stamps jitter, and the period of a camera need not be a multiple of this one
        is_due = time_ns - self._last_cloud_ns >= round(0.9e9 / self.config.max_rate)
        if is_due and self._clouds.add(message, self._cloud_topic):
            self._last_cloud_ns = time_ns

    def _insert(self, message: Any, topic: str) -> None:
        """Start the insertion of a cloud; other clouds wait until the worker is idle."""
        self._clouds.pause()
        function, arguments = self.prepare_insertion(message, to_nanoseconds(message.header.stamp))
        self.offload(function, *arguments, latency=self.config.latency, on_done=self._on_inserted)

    def _on_inserted(self, future: Future) -> None:
        if self.report_insertion(future.result):
            self._stale = True
        pending_changes, self._pending_changes = self._pending_changes, []
        for change in pending_changes:
            change()
        self.publish_if_due()
        self._clouds.resume()

    def publish_if_due(self, *, at_once: bool = False) -> None:
        """Publish the map if it changed and ``publish_period`` has passed, or ``at_once``."""
        is_due = at_once or self.now_ns - self._published_ns >= round(self.config.publish_period * 1e9)
        if self._stale and is_due:
            self._stale, self._published_ns = False, self.now_ns
            self.publish_map()

    def change_map(self, change: Callable[[], Any], response: Callable[[], Any]) -> Future:
        """Change the map for a service, when the worker is idle, and publish it.

        Args:
            change: Function that changes the map.
            response: Function that creates the response of the service.

        Returns:
            The future response.
        """
        response_future = Future("changed map")

        def apply_change() -> None:
            change()
            self._stale = True
            self.publish_if_due(at_once=True)
            response_future.set_result(response())

        if self._clouds.is_paused:  # the worker uses the map
            self._pending_changes.append(apply_change)
        else:
            apply_change()
        return response_future

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data, with the whole map.

        Raises:
            RunError: The worker is busy.
        """
        return super().save_state() | {"map": self._cloud_map.save_state(), "clouds": self._clouds.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        super().load_state(state)
        self._cloud_map.load_state(state["map"])
        self._clouds.load_state(state["clouds"])
