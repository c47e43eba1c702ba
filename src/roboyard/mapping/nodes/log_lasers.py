"""Where the lasers of a recording sit, and its messages of scans as scans."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.bus import TransformBuffer, TransformError
from roboyard.errors import MessageError
from roboyard.geometry import SE2, SE3
from roboyard.mapping.nodes.log_frames import Frames, plain
from roboyard.mapping.scan import Scan
from roboyard.messages import to_nanoseconds
from roboyard.messages.convert import transform_to_se3

_STEEP: Final = math.cos(math.radians(60.0))
_LEVEL: Final = math.cos(math.radians(3.0))
_ENDLESS_S: Final = 1e9


@dataclass(frozen=True, slots=True)
class Mount:
    """A laser on its base.

    Attributes:
        T_base_laser: Its place in the plane.
        upside_down: Its beams turn the other way round.
    """

    T_base_laser: SE2
    upside_down: bool = False

    @classmethod
    def of(cls, T_base_laser: SE3) -> Mount:
        """The part of a place in space that matters in the plane."""
        R = T_base_laser.rotation_matrix()
        heading = math.atan2(R[1, 0], R[0, 0])
        return cls(SE2(T_base_laser.x, T_base_laser.y, heading), bool(R[2, 2] < 0.0))


def tilt(T_base_laser: SE3) -> float:
    """Angle between the plane of a laser's beams and the floor [rad]."""
    return math.acos(min(1.0, abs(float(T_base_laser.rotation_matrix()[2, 2]))))


class Mounts:
    """Where each laser sits on the base, at any moment.

    Args:
        frames: The recording's tree.
        base: The robot's own frame.
        lasers: Frame of each laser by its topic.
        warnings: Gets sentences about lasers without a known or with a tilted place.
    """

    def __init__(self, frames: Frames, base: str, lasers: dict[str, str], warnings: list[str]) -> None:
        self.lasers = lasers
        self.base = base
        self.usable: set[str] = set()
        self._fixed: dict[str, Mount] = {}
        self._buffer = TransformBuffer(cache_time=_ENDLESS_S)
        self._edges: dict[str, str] = {}
        for topic, frame in lasers.items():
            pose = frames.pose_in(base, frame)
            if pose is None:
                warnings.append(f"no transform from {base or 'the base'} to {frame or topic}: taken to be the same")
                pose = SE3.identity()
            elif math.cos(tilt(pose)) < _STEEP:
                warnings.append(f"{topic} looks {math.degrees(tilt(pose)):.0f} degrees up or down: left out")
                continue
            elif math.cos(tilt(pose)) < _LEVEL:
                warnings.append(f"{topic} is tilted by {math.degrees(tilt(pose)):.0f} degrees and taken for level")
            self.usable.add(topic)
            self._fixed[topic] = Mount.of(pose)
            if frames.moving(base, frame):
                warnings.append(f"{topic} moves on its base: its place is taken anew for each scan")
                up, down = frames.way(base, frame) or ([], [])
                for name in up + down:
                    self._edges[name] = frames.edges[name].parent
                    if frames.edges[name].still:
                        self._buffer.insert(frames.edges[name].pose, self._edges[name], name, 0, static=True)
        self._still = {name for name in self._edges if frames.edges[name].still}

    @property
    def moving(self) -> bool:
        """Whether transforms have to be read for it."""
        return bool(self._edges)

    def add(self, message: Any) -> None:
        """Take a tf2_msgs/TFMessage."""
        for item in message.transforms:
            child, parent = plain(item.child_frame_id), plain(item.header.frame_id)
            if child in self._still or self._edges.get(child) != parent:
                continue
            try:
                pose = transform_to_se3(item.transform)
            except MessageError:
                continue
            self._buffer.insert(pose, parent, child, to_nanoseconds(item.header.stamp))

    def at(self, topic: str, time_ns: int) -> Mount:
        """Where the laser sits at a moment; where that is not known, where it sat last."""
        if self._edges:
            try:
                return Mount.of(self._buffer.lookup(self.base, self.lasers[topic], time_ns))
            except TransformError:
                pass
        return self._fixed[topic]


@dataclass(slots=True)
class Faults:
    """Numbers of scans with something amiss."""

    empty: int = 0
    angles: int = 0
    limits: int = 0

    def say(self, warnings: list[str]) -> None:
        """A sentence for each."""
        for count, what in (
            (self.empty, "without any beam: left out"),
            (self.angles, "with angles that are not finite or all the same: left out"),
            (self.limits, "whose range_max is not above range_min: taken for endless"),
        ):
            if count:
                warnings.append(f"{count} scans {what}")


def reader(name: str, faults: Faults) -> Callable[[Any], Scan | None]:
    """What turns messages of a topic into scans of a laser in the middle of its base, at time 0.

    Args:
        name: The topic, name of the laser.
        faults: Counts scans that cannot be used, which become None.
    """

    def read(message: Any) -> Scan | None:
        ranges = _ranges(message)
        low, high, step = float(message.angle_min), float(message.angle_max), float(message.angle_increment)
        if not len(ranges):
            faults.empty += 1
            return None
        if step == 0.0 and len(ranges) > 1:  # a driver that leaves it to the reader
            step = (high - low) / (len(ranges) - 1)
        if not (math.isfinite(low) and math.isfinite(step)) or (step == 0.0 and len(ranges) > 1):
            faults.angles += 1
            return None
        nearest, farthest = float(message.range_min), float(message.range_max)
        nearest = nearest if math.isfinite(nearest) else 0.0
        if not farthest > nearest:
            faults.limits += 1
            farthest = math.inf
        increment = float(message.time_increment)
        return Scan(
            0,
            ranges,
            low,
            step,
            nearest,
            farthest,
            time_increment=increment if math.isfinite(increment) and increment >= 0.0 else 0.0,
            laser=name,
        )

    return read


def _ranges(message: Any) -> NDArray[np.float32]:
    """Distances (n,); of several echoes of a beam the first."""
    ranges = message.ranges
    if len(ranges) and hasattr(ranges[0], "echoes"):
        first = [float(item.echoes[0]) if len(item.echoes) else math.inf for item in ranges]
        return np.array(first, dtype=np.float32)
    return np.array(ranges, dtype=np.float32)
