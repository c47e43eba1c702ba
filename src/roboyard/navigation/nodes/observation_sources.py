"""Conversion of sensor messages into observations of costmap layers, in the odometry frame, and the buffer that holds
them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from roboyard.bus import DroppedMessage, DropReason, MessageFilter, Node
from roboyard.compute import expect_kernels
from roboyard.errors import ConfigError, RoboyardError
from roboyard.geometry import SE2, SE3
from roboyard.grids import voxel_downsample
from roboyard.grids.voxel_filter import average_by_voxel
from roboyard.messages import msg
from roboyard.messages.convert import cloud_points, scan_angles
from roboyard.messages.time import to_nanoseconds
from roboyard.navigation.costmap import Observation, PointSourceConfig, RangeReading, RangeSourceConfig

ItemT = TypeVar("ItemT")


class ObservationBuffer(Generic[ItemT]):
    """Keeps what came in for a while, as Nav2's observation buffers do.

    Args:
        persistence: How long something counts [s]; 0: only the newest does, however old.
        expected_period: A sensor that says nothing for longer is silent [s]; infinite: it never is.
        name: Of the sensor, for messages.

    Raises:
        ConfigError: a time out of range.
    """

    def __init__(self, *, persistence: float = 0.0, expected_period: float = math.inf, name: str = "sensor") -> None:
        if not 0.0 <= persistence <= 3600.0:
            raise ConfigError(f"persistence = {persistence}", location=name, valid="0 to 3600 s")
        if not expected_period > 0.0:
            raise ConfigError(
                f"expected_period = {expected_period}", location=name, valid="a positive time [s], or infinite"
            )
        self.name = name
        self._persistence_ns = round(persistence * 1e9)
        self._expected_period = expected_period
        self._items: list[tuple[int, ItemT]] = []
        self._last_time_ns: int | None = None

    def add(self, item: ItemT, time_ns: int) -> None:
        """Something came in that was measured at a time [ns]."""
        self._last_time_ns = time_ns if self._last_time_ns is None else max(time_ns, self._last_time_ns)
        if self._persistence_ns == 0:
            if not self._items or time_ns >= self._items[0][0]:
                self._items = [(time_ns, item)]
            return
        self._items.append((time_ns, item))

    def get(self, now_ns: int) -> list[ItemT]:
        """What counts at a time [ns], in the order in which it came; what no longer does is forgotten."""
        if self._persistence_ns:
            self._items = [(time_ns, item) for time_ns, item in self._items if now_ns - time_ns <= self._persistence_ns]
        return [item for _, item in self._items]

    def save_state(self) -> dict[str, Any]:
        """What it keeps and when it last heard something, as plain data if the items are."""
        return {"items": list(self._items), "last_time_ns": self._last_time_ns}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of ``save``."""
        self._items, self._last_time_ns = list(saved["items"]), saved["last_time_ns"]

    def time_since_last(self, now_ns: int, since_ns: int = 0) -> float:
        """How long it has said nothing [s]; ``since_ns``: when one began to listen."""
        return (now_ns - (since_ns if self._last_time_ns is None else self._last_time_ns)) * 1e-9

    def is_stale(self, now_ns: int, since_ns: int = 0) -> bool:
        """Whether it has said nothing for longer than it may."""
        return self.time_since_last(now_ns, since_ns) > self._expected_period


_QUEUE_SIZE = 4
"""So many messages of a sensor are kept from one look to the next; older ones are not needed."""

MessageReader = Callable[[Any, SE3], Any]


class ObservationSource:
    """Messages of one sensor, which wait for their transforms and for the next collection.

    Args:
        node: The navigator, on its bus.
        config: Of the sensor.
        topic: Its absolute name.
        timeout: So long it may be silent [s], where the settings do not say.
        odom_frame: Frame that observations are in, prefixed already.
        transform_timeout: A message waits for its transform until it is older than this [s].

    Attributes:
        topic: Absolute name.
    """

    def __init__(
        self,
        node: Node[Any],
        config: PointSourceConfig | RangeSourceConfig,
        topic: str,
        timeout: float,
        odom_frame: str,
        transform_timeout: Callable[[], float],
    ) -> None:
        self.topic = topic
        message_type, read = _READERS["echo" if isinstance(config, RangeSourceConfig) else config.data_type]
        self._is_range_sensor = isinstance(config, RangeSourceConfig)
        self._read = partial(read, topic)
        if isinstance(config, PointSourceConfig) and config.data_type == "cloud":
            self._read = partial(read, topic, voxel_size=config.voxel_size, decimation=config.decimation)
            if config.voxel_size > 0.0:
                expect_kernels(average_by_voxel)
        persistence = 0.0 if isinstance(config, RangeSourceConfig) else config.observation_persistence
        self._buffer: ObservationBuffer[Any] = ObservationBuffer(
            persistence=persistence, expected_period=timeout if config.timeout is None else config.timeout, name=topic
        )
        self._transforms, self._odom_frame = node.transforms, odom_frame
        self._start_ns = node.now_ns
        self._rejection_reason = ""
        self._new_items: list[Any] = []
        self._filter = MessageFilter(
            node,
            self._add,
            target_frames=(odom_frame,),
            queue_size=_QUEUE_SIZE,
            timeout=transform_timeout,
            on_drop=self._on_drop,
        )
        self._filter.pause()
        self._filter.subscribe(topic, message_type)

    def collect(self) -> list[Any]:
        """Return the items received since the last call whose transforms are known."""
        self._filter.resume()
        self._filter.pause()
        items, self._new_items = self._new_items, []
        return items

    def _add(self, message: Any, topic: str) -> None:
        """Read a message whose transform is known."""
        time_ns = to_nanoseconds(message.header.stamp)
        T_odom_sensor = self._transforms.lookup(self._odom_frame, message.header.frame_id, time_ns)
        try:
            item = self._read(message, T_odom_sensor)
        except RoboyardError as error:
            self._rejection_reason = str(error)
            return
        self._rejection_reason = ""
        self._buffer.add(item, time_ns)
        self._new_items.append(item)

    def _on_drop(self, dropped: DroppedMessage) -> None:
        """Remember why messages cannot be used; that newer ones replace older ones between two looks is no fault."""
        if dropped.reason is not DropReason.QUEUE_FULL or dropped.transform_error:
            self._rejection_reason = dropped.transform_error or dropped.text

    def current(self, now_ns: int, new_items: list[Any]) -> list[Any]:
        """What counts now: each echo once, of points all that is not too old, so that no other sensor's beams have the
        last word on what this one sees."""
        return new_items if self._is_range_sensor else self._buffer.get(now_ns)

    def diagnose(self, now_ns: int) -> str:
        """Return why the sensor is unusable; empty if it is usable."""
        if not self._buffer.is_stale(now_ns, self._start_ns):
            return ""
        if self._rejection_reason:
            return f"what comes on {self.topic} cannot be used: {self._rejection_reason}"
        return f"nothing was heard on {self.topic} for {self._buffer.time_since_last(now_ns, self._start_ns):.1f} s"

    def save_state(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "recent": self._buffer.save_state(), "began_ns": self._start_ns, "refused": self._rejection_reason,
            "filter": self._filter.save_state(),
        }  # fmt: skip

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self._buffer.load_state(saved["recent"])
        self._start_ns, self._rejection_reason = saved["began_ns"], saved["refused"]
        self._filter.load_state(saved["filter"])


def observation_from_scan(sensor: str, scan: Any, T_odom_laser: SE3) -> Observation:
    """What a sensor_msgs/LaserScan saw.

    As REP 117 has it: a range of infinity saw nothing as far as it looks, one below the least saw something too near to
    measure, NaN knows nothing.
    """
    ranges = np.asarray(scan.ranges, dtype=np.float64)
    angles = scan_angles(scan)
    is_valid = ~np.isnan(ranges) & (ranges >= np.float32(scan.range_min))
    ranges, angles = ranges[is_valid], angles[is_valid]
    hits = ranges <= np.float32(scan.range_max)
    ranges = np.minimum(ranges, scan.range_max)
    points = np.column_stack([ranges * np.cos(angles), ranges * np.sin(angles), np.zeros(len(ranges))])
    return Observation(T_odom_laser.translation, T_odom_laser @ points, hits, sensor)


def observation_from_cloud(
    sensor: str, cloud: Any, T_odom_sensor: SE3, *, voxel_size: float = 0.0, decimation: int = 1
) -> Observation:
    """What a sensor_msgs/PointCloud2 shows: something at each of its points that is finite.

    Args:
        sensor: Its topic.
        cloud: The message.
        T_odom_sensor: Where it was taken from.
        voxel_size: Points in a cube of this edge become one, their mean [m]; 0: all count.
        decimation: Of an organised cloud so many rows and columns lie between those that are taken, plus one.

    Raises:
        MessageError: no such cloud.
    """
    points = cloud_points(cloud, stride=decimation)
    if voxel_size > 0.0:
        points = voxel_downsample(points, None, voxel_size).points
    return Observation(T_odom_sensor.translation, T_odom_sensor @ points, np.ones(len(points), dtype=bool), sensor)


def range_reading_from_msg(sensor: str, message: Any, T_odom_sensor: SE3) -> RangeReading:
    """Return the reading of a sensor_msgs/Range.

    Raises:
        InputError: a cone that cannot be.
    """
    return RangeReading(
        SE2.from_se3(T_odom_sensor), float(message.range), float(message.field_of_view), float(message.min_range),
        float(message.max_range), sensor,
    )  # fmt: skip


_READERS: dict[str, tuple[Any, Callable[..., Any]]] = {
    "scan": (msg.LaserScan, observation_from_scan),
    "cloud": (msg.PointCloud2, observation_from_cloud),
    "echo": (msg.Range, range_reading_from_msg),
}
