"""From what sensors publish to what costmap layers take, in the odometry's frame."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from roboyard.bus import DroppedMessage, DropReason, MessageFilter, Node
from roboyard.compute import expect_kernels
from roboyard.errors import RoboyardError
from roboyard.geometry import SE2, SE3
from roboyard.grids import voxel_downsample
from roboyard.grids.voxel_filter import average_by_voxel
from roboyard.messages import msg
from roboyard.messages.convert import cloud_points, scan_angles
from roboyard.messages.time import to_nanoseconds
from roboyard.navigation.costmap import Observation, RangeReading, Recent
from roboyard.navigation.driving import EchoSource, PointSource

_QUEUE_SIZE = 4
"""So many messages of a sensor are kept from one look to the next; older ones are not needed."""

Reader = Callable[[Any, SE3], Any]


class Source:
    """Messages of one sensor, which wait for their transforms and for the next look.

    Args:
        node: The navigator, on its bus.
        settings: Of the sensor.
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
        settings: PointSource | EchoSource,
        topic: str,
        timeout: float,
        odom_frame: str,
        transform_timeout: Callable[[], float],
    ) -> None:
        self.topic = topic
        message_type, read = _READERS["echo" if isinstance(settings, EchoSource) else settings.kind]
        self._echoes = isinstance(settings, EchoSource)
        self._read = partial(read, topic)
        if isinstance(settings, PointSource) and settings.kind == "cloud":
            self._read = partial(read, topic, voxel=settings.voxel, every=settings.every)
            if settings.voxel > 0.0:
                expect_kernels(average_by_voxel)
        persistence = 0.0 if isinstance(settings, EchoSource) else settings.persistence
        self._recent: Recent[Any] = Recent(
            persistence=persistence, every=timeout if settings.timeout is None else settings.timeout, name=topic
        )
        self._transforms, self._odom_frame = node.transforms, odom_frame
        self._began_ns = node.now_ns
        self._refused = ""
        self._found: list[Any] = []
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

    def look(self) -> list[Any]:
        """What came in since the last look, of the messages whose transforms are known."""
        self._filter.resume()
        self._filter.pause()
        found, self._found = self._found, []
        return found

    def _add(self, message: Any, topic: str) -> None:
        """Read a message whose transform is known."""
        time_ns = to_nanoseconds(message.header.stamp)
        T_odom_sensor = self._transforms.lookup(self._odom_frame, message.header.frame_id, time_ns)
        try:
            item = self._read(message, T_odom_sensor)
        except RoboyardError as error:
            self._refused = str(error)
            return
        self._refused = ""
        self._recent.add(item, time_ns)
        self._found.append(item)

    def _on_drop(self, dropped: DroppedMessage) -> None:
        """Remember why messages cannot be used; that newer ones replace older ones between two looks is no fault."""
        if dropped.reason is not DropReason.QUEUE_FULL or dropped.transform_error:
            self._refused = dropped.transform_error or dropped.text

    def counting(self, now_ns: int, news: list[Any]) -> list[Any]:
        """What counts now: each echo once, of points all that is not too old, so that no other sensor's beams have the
        last word on what this one sees."""
        return news if self._echoes else self._recent.recent(now_ns)

    def trouble(self, now_ns: int) -> str:
        """Why the sensor cannot be relied upon, or nothing."""
        if not self._recent.is_silent(now_ns, self._began_ns):
            return ""
        if self._refused:
            return f"what comes on {self.topic} cannot be used: {self._refused}"
        return f"nothing was heard on {self.topic} for {self._recent.silent_for(now_ns, self._began_ns):.1f} s"

    def save_state(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "recent": self._recent.save_state(), "began_ns": self._began_ns, "refused": self._refused,
            "filter": self._filter.save_state(),
        }  # fmt: skip

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self._recent.load_state(saved["recent"])
        self._began_ns, self._refused = saved["began_ns"], saved["refused"]
        self._filter.load_state(saved["filter"])


def scan_observation(sensor: str, scan: Any, T_odom_laser: SE3) -> Observation:
    """What a sensor_msgs/LaserScan saw.

    As REP 117 has it: a range of infinity saw nothing as far as it looks, one below the least saw something too near to
    measure, NaN knows nothing.
    """
    ranges = np.asarray(scan.ranges, dtype=np.float64)
    angles = scan_angles(scan)
    known = ~np.isnan(ranges) & (ranges >= np.float32(scan.range_min))
    ranges, angles = ranges[known], angles[known]
    hits = ranges <= np.float32(scan.range_max)
    ranges = np.minimum(ranges, scan.range_max)
    points = np.column_stack([ranges * np.cos(angles), ranges * np.sin(angles), np.zeros(len(ranges))])
    return Observation(T_odom_laser.translation, T_odom_laser @ points, hits, sensor)


def cloud_observation(
    sensor: str, cloud: Any, T_odom_sensor: SE3, *, voxel: float = 0.0, every: int = 1
) -> Observation:
    """What a sensor_msgs/PointCloud2 shows: something at each of its points that is finite.

    Args:
        sensor: Its topic.
        cloud: The message.
        T_odom_sensor: Where it was taken from.
        voxel: Points in a cube of this edge become one, their mean [m]; 0: all count.
        every: Of an organised cloud so many rows and columns lie between those that are taken, plus one.

    Raises:
        MessageError: no such cloud.
    """
    points = cloud_points(cloud, stride=every)
    if voxel > 0.0:
        points = voxel_downsample(points, None, voxel).points
    return Observation(T_odom_sensor.translation, T_odom_sensor @ points, np.ones(len(points), dtype=bool), sensor)


def echo_reading(sensor: str, echo: Any, T_odom_sensor: SE3) -> RangeReading:
    """What a sensor_msgs/Range heard.

    Raises:
        InputError: a cone that cannot be.
    """
    return RangeReading(
        SE2.from_se3(T_odom_sensor), float(echo.range), float(echo.field_of_view), float(echo.min_range),
        float(echo.max_range), sensor,
    )  # fmt: skip


_READERS: dict[str, tuple[Any, Callable[..., Any]]] = {
    "scan": (msg.LaserScan, scan_observation),
    "cloud": (msg.PointCloud2, cloud_observation),
    "echo": (msg.Range, echo_reading),
}
