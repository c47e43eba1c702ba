"""The people tracker node: laser scans at the height of legs in, people as upright capsules out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from typing_extensions import TypeVar

from roboyard.bus import Node, TransformError
from roboyard.config import Config, parameter
from roboyard.errors import ConfigError
from roboyard.geometry import SE3
from roboyard.messages import msg
from roboyard.messages.convert.poses import make_header
from roboyard.messages.convert.scans import scan_angles
from roboyard.messages.time import is_in_future, to_nanoseconds
from roboyard.safety.collaborative.capsules import UprightCapsules
from roboyard.safety.collaborative.people_tracker import (
    BackgroundModel,
    PeopleTracker,
    PersonTrack,
    PersonTrackingConfig,
)


def read_robot_pose(numbers: Sequence[float], node: str) -> SE3:
    """Return the pose of the parameter ``robot_pose``: x y z roll pitch yaw [m, rad], x y z, or nothing.

    Args:
        numbers: Value of the parameter.
        node: Full name of the node, for the error.

    Raises:
        ConfigError: there are not 0, 3 or 6 numbers, or one is not finite.
    """
    if len(numbers) not in (0, 3, 6) or not np.isfinite(numbers).all():
        raise ConfigError(
            f"numbers {list(numbers)}",
            location=f"{node}, parameter 'robot_pose'",
            valid="3 or 6 finite numbers: x y z roll pitch yaw",
        )
    values = [*numbers, *[0.0] * (6 - len(numbers))]
    return SE3.from_xyz_rpy(values[:3], values[3:])


class TrackedPeopleNodeConfig(Config):
    """Configuration of `TrackedPeopleNode`."""

    base_frame: str = parameter("base_link", doc="Frame of the base.")
    robot_pose: tuple[float, ...] = parameter((), doc="Pose x y z roll pitch yaw of that frame in the world.")
    uncertainty: float = parameter(0.05, unit="m", low=0.0, high=2.0, doc="Uncertainty of the measured positions.")


TrackedPeopleConfigT = TypeVar(
    "TrackedPeopleConfigT", bound=TrackedPeopleNodeConfig, default=TrackedPeopleNodeConfig, covariant=True
)


class TrackedPeopleNode(Node[TrackedPeopleConfigT]):
    """Base of all nodes that publish the people that a sensor measures.

    out: tracked_people (roboyard_msgs/TrackedPeople), in the world, with the time of the measurement

    Subclasses call `set_up_output` in ``setup`` and `publish_people` for every measurement that can be used; for others
    they publish nothing, so that subscribers see a silent sensor. The collaborative safety node takes the messages of
    each subclass, and of other nodes, in the same way.
    """

    def set_up_output(self) -> None:
        """Read the pose of the robot and create the publisher. Raises ConfigError if it is no pose."""
        self._T_world_base = read_robot_pose(self.config.robot_pose, self.full_name)
        self._output = self.publisher("tracked_people", msg.TrackedPeople)

    def publish_people(self, people: Iterable[tuple[UprightCapsules, PersonTrack]], time_ns: int) -> None:
        """Publish people, each as capsules in the world and a track, with the time of the measurement [ns]."""
        bodies = [tracked_person_to_msg(capsules, track, time_ns) for capsules, track in people]
        self._output.publish(
            msg.TrackedPeople(header=make_header("world", time_ns), people=bodies, uncertainty=self.config.uncertainty)
        )


class PeopleTrackerNodeConfig(TrackedPeopleNodeConfig):
    """Configuration of `PeopleTrackerNode`."""

    tracking: PersonTrackingConfig = parameter(
        factory=PersonTrackingConfig, flatten="", doc="Detection and tracking of people in scans."
    )

    scan_topic: str = parameter("scan", doc="Topic of the scans.")
    robot_radius: float = parameter(
        0.3, unit="m", low=0.0, high=10.0, doc="Distance within which points are the robot."
    )
    trunk_diameter: float = parameter(
        0.3, unit="m", low=0.0, high=2.0, doc="Diameter of a trunk around the middle of the legs."
    )
    height: float = parameter(1.9, unit="m", low=0.1, high=3.0, doc="Height of a person.")


class PeopleTrackerNode(TrackedPeopleNode[PeopleTrackerNodeConfig]):
    """Publishes the people around a laser scanner.

    in: scan (sensor_msgs/LaserScan), /tf base → its sensor
    out: tracked_people (roboyard_msgs/TrackedPeople), at every scan: each person an upright capsule about where the
        legs were measured, wide enough for the trunk; arms that reach are not measured: set ``intrusion_distance`` of
        the collaborative safety node

    Everything measured during ``background_learning_time`` is background, see `PersonTrackingConfig`. A scan without
    transform or with invalid angles is ignored: subscribers then receive no message, as from a silent sensor.
    """

    def setup(self) -> None:
        """Connect."""
        self.set_up_output()
        self._background, self._tracker = BackgroundModel(self.config.tracking), PeopleTracker(self.config.tracking)
        self.subscribe(self.config.scan_topic, msg.LaserScan, self._on_scan)

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return super().save_state() | {
            "background": self._background.save_state(),
            "tracker": self._tracker.save_state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        super().load_state(state)
        self._background.load_state(state["background"])
        self._tracker.load_state(state["tracker"])

    def _on_scan(self, message: Any) -> None:
        time_ns = to_nanoseconds(message.header.stamp)
        if is_in_future(time_ns, self.now_ns):
            self.log.warn("ignored a scan that is stamped in the future", throttle=5.0)
            return
        angles, ranges = scan_angles(message), np.asarray(message.ranges, dtype=np.float64)
        if not np.isfinite(angles).all():
            self.log.warn("ignored a scan with invalid angles", throttle=5.0)
            return
        try:
            T = self.transforms.lookup(self.frame(self.config.base_frame), message.header.frame_id, time_ns)
        except TransformError as error:
            self.log.warn(f"ignored a scan: {error}", throttle=5.0)
            return
        valid = (ranges >= message.range_min) & (ranges <= message.range_max)
        is_foreground = self._background.foreground(time_ns * 1e-9, np.where(valid, ranges, np.inf))
        foreground_ranges, foreground_angles = ranges[is_foreground], angles[is_foreground]
        points_in_sensor = np.column_stack(
            [
                foreground_ranges * np.cos(foreground_angles),
                foreground_ranges * np.sin(foreground_angles),
                np.zeros(len(foreground_ranges)),
            ]
        )
        points = T @ points_in_sensor
        points = points[np.hypot(points[:, 0], points[:, 1]) > self.config.robot_radius]
        tracks = self._tracker.update(time_ns * 1e-9, (self._T_world_base @ points)[:, :2])
        self.publish_people(((self._fit_capsule(track), track) for track in tracks), time_ns)

    def _fit_capsule(self, track: PersonTrack) -> UprightCapsules:
        """Return one capsule around a person, from the floor up to ``height``."""
        return UprightCapsules.single(track.position, self.config.height, max(self.config.trunk_diameter, track.radius))


def tracked_person_to_msg(capsules: UprightCapsules, track: PersonTrack, time_ns: int) -> Any:
    """Return a roboyard_msgs/PersonBody in the world: each capsule counts as a chest, since its part is unknown."""
    centers, lengths = capsules.axis_centers_and_lengths()
    count, (u, v) = len(centers), track.velocity
    upright = msg.Quaternion(0.0, 0.0, 0.0, 1.0)
    return msg.PersonBody(
        header=make_header("world", time_ns), name=f"person {track.track_id}", parts=["chest"] * count,
        poses=[
            msg.Pose(msg.Point(x, y, z), upright)
            for (x, y), z in zip(capsules.positions.tolist(), centers.tolist(), strict=True)
        ],
        radii=capsules.radii, lengths=lengths, velocities=[msg.Vector3(u, v, 0.0)] * count,
        peak_forces=[msg.Vector3()] * count, contact_regions=[""] * count,
    )  # fmt: skip
