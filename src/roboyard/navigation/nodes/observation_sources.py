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
    """Buffer of recent observations of one sensor (nav2_costmap_2d::ObservationBuffer).

    Args:
        persistence: Time for which an observation counts [s]; 0: only the newest one counts, at any age.
        expected_period: Time without observations after which the buffer is stale [s]; may be infinite.
        name: Name of the sensor, for errors.

    Raises:
        ConfigError: A time is out of range.
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
        """Add an observation that was measured at a time [ns]."""
        self._last_time_ns = time_ns if self._last_time_ns is None else max(time_ns, self._last_time_ns)
        if self._persistence_ns == 0:
            if not self._items or time_ns >= self._items[0][0]:
                self._items = [(time_ns, item)]
            return
        self._items.append((time_ns, item))

    def get(self, now_ns: int) -> list[ItemT]:
        """Return the observations that count at a time [ns], in the order of their arrival; the others are removed."""
        if self._persistence_ns:
            self._items = [(time_ns, item) for time_ns, item in self._items if now_ns - time_ns <= self._persistence_ns]
        return [item for _, item in self._items]

    def save_state(self) -> dict[str, Any]:
        """Return the observations and the time of the newest one, as plain data if the observations are."""
        return {"items": list(self._items), "last_time_ns": self._last_time_ns}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore the state that `save_state` returned."""
        self._items, self._last_time_ns = list(saved["items"]), saved["last_time_ns"]

    def time_since_last(self, now_ns: int, since_ns: int = 0) -> float:
        """Return the time since the newest observation, or since ``since_ns`` if there was none [s]."""
        return (now_ns - (since_ns if self._last_time_ns is None else self._last_time_ns)) * 1e-9

    def is_stale(self, now_ns: int, since_ns: int = 0) -> bool:
        """Return whether the newest observation is older than the expected period."""
        return self.time_since_last(now_ns, since_ns) > self._expected_period


_QUEUE_SIZE = 4
"""Largest number of messages of a sensor that wait for the next collection; older ones are dropped."""

MessageReader = Callable[[Any, SE3], Any]


class ObservationSource:
    """Messages of one sensor, which wait for their transforms and for the next collection.

    Args:
        node: The navigator.
        config: Configuration of the sensor.
        topic: Absolute name of the topic.
        timeout: Largest time between two messages, if the configuration states none [s].
        odom_frame: Frame of the observations, with its prefix.
        transform_timeout: Returns the age up to which a message waits for its transform [s].

    Attributes:
        topic: Absolute name of the topic.
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
        """Store why messages cannot be used; it is no fault that newer ones replace older ones between two
        collections."""
        if dropped.reason is not DropReason.QUEUE_FULL or dropped.transform_error:
            self._rejection_reason = dropped.transform_error or dropped.text

    def current(self, now_ns: int, new_items: list[Any]) -> list[Any]:
        """Return the observations that count now: each range reading once, but all points that are not too old.

        Points are marked again at each update, so that the beams of another sensor do not clear them for good.
        """
        return new_items if self._is_range_sensor else self._buffer.get(now_ns)

    def diagnose(self, now_ns: int) -> str:
        """Return why the sensor is unusable; empty if it is usable."""
        if not self._buffer.is_stale(now_ns, self._start_ns):
            return ""
        if self._rejection_reason:
            return f"messages on {self.topic} cannot be used: {self._rejection_reason}"
        return f"no messages on {self.topic} for {self._buffer.time_since_last(now_ns, self._start_ns):.1f} s"

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {
            "recent": self._buffer.save_state(), "began_ns": self._start_ns, "refused": self._rejection_reason,
            "filter": self._filter.save_state(),
        }  # fmt: skip

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore the state that `save_state` returned."""
        self._buffer.load_state(saved["recent"])
        self._start_ns, self._rejection_reason = saved["began_ns"], saved["refused"]
        self._filter.load_state(saved["filter"])


def observation_from_scan(sensor: str, scan: Any, T_odom_laser: SE3) -> Observation:
    """Return the observation of a sensor_msgs/LaserScan.

    As in REP 117, an infinite range means that there is no obstacle within ``range_max``; ranges below ``range_min``
    and
    NaN are no measurements.
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
    """Return the observation of a sensor_msgs/PointCloud2: an obstacle at each finite point.

    Args:
        sensor: Topic of the sensor.
        cloud: The message.
        T_odom_sensor: Pose of the sensor in the odometry frame.
        voxel_size: Edge of the cube in which points become one, their mean [m]; 0: all points count.
        decimation: Step between the used rows and columns of an organized cloud.

    Raises:
        MessageError: The message is no valid cloud.
    """
    points = cloud_points(cloud, stride=decimation)
    if voxel_size > 0.0:
        points = voxel_downsample(points, None, voxel_size).points
    return Observation(T_odom_sensor.translation, T_odom_sensor @ points, np.ones(len(points), dtype=bool), sensor)


def range_reading_from_msg(sensor: str, message: Any, T_odom_sensor: SE3) -> RangeReading:
    """Return the reading of a sensor_msgs/Range.

    Raises:
        InputError: The angle or the limits of the sensor are impossible.
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
