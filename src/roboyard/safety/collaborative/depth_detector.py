"""People from depth images: points in front of the background and outside the robot, as upright capsules, tracked.

The background of a fixed camera is known pixel by pixel, so that no model of people's appearance is needed. The camera
sees only the side of a body that faces it: each capsule extends behind the measured points by the thickness of a body.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.config import Config, parameter
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.safety.collaborative.capsules import OccupiedCells, UprightCapsules
from roboyard.safety.collaborative.people_tracker import (
    BackgroundModel,
    PeopleTracker,
    PersonTrack,
    PersonTrackingConfig,
    cluster_points,
)


class DepthDetectionConfig(Config):
    """Configuration of `DepthPeopleDetector`."""

    min_height: float = parameter(
        0.12, unit="m", low=0.0, high=1.0, doc="Height above the floor below which points are floor."
    )
    max_height: float = parameter(
        2.3, unit="m", low=0.5, high=5.0, doc="Height above the floor above which points are ignored."
    )
    robot_margin: float = parameter(
        0.06, unit="m", low=0.0, high=1.0, doc="Distance from the robot's shape within which points are the robot."
    )
    cell_size: float = parameter(
        0.1, unit="m", low=0.02, high=1.0, doc="Side of the square cells of the floor in which points are collected."
    )
    min_points: int = parameter(3, low=1, high=1000, doc="Smallest number of points of an occupied cell.")
    min_cells: int = parameter(4, low=1, high=1000, doc="Smallest number of cells of a person.")
    min_extent: float = parameter(
        0.5,
        unit="m",
        low=0.0,
        high=3.0,
        doc="Smallest distance between the lowest and the highest point of a person.",
    )
    min_standing_height: float = parameter(
        1.0, unit="m", low=0.0, high=3.0, doc="Height of a column from which it is extended down to the floor."
    )
    body_thickness: float = parameter(
        0.2, unit="m", low=0.0, high=1.0, doc="Thickness of a body behind its measured points."
    )
    max_unknown_fraction: float = parameter(
        0.3, low=0.0, high=1.0, doc="Largest fraction of the background without measurement in an image that is used."
    )


@dataclass(frozen=True, eq=False)
class DepthFrame:
    """A depth image with the pose of its camera.

    Attributes:
        time: Time of the image [s].
        depth: (h, w) along the optical axis; infinite too far, not a number (or minus infinity) not measured [m].
        rays: (h, w, 2) x / z and y / z of each pixel.
        T_world_camera: Pose of the optical frame; the floor is at height zero.
    """

    time: float
    depth: NDArray[np.float32]
    rays: NDArray[np.float32]
    T_world_camera: SE3


@dataclass(frozen=True, eq=False)
class DetectedPerson:
    """A detected person.

    Attributes:
        track: Position and velocity.
        capsules: Capsules around the body.
    """

    track: PersonTrack
    capsules: UprightCapsules


class DepthPeopleDetector:
    """Detects and tracks people in depth images."""

    def __init__(self, config: DepthDetectionConfig, tracking: PersonTrackingConfig) -> None:
        self._config, self._merge_distance = config, tracking.merge_distance
        self._background, self._tracker = BackgroundModel(tracking), PeopleTracker(tracking)
        self._bodies: dict[int, tuple[tuple[float, float], UprightCapsules]] = {}

    def update(self, frame: DepthFrame, robot_ends: Array, robot_radii: Array) -> list[DetectedPerson] | None:
        """Return the people in an image.

        Args:
            frame: Depth image.
            robot_ends: (n, 2, 3) ends of the axes of the robot's capsules at its time, in the world [m].
            robot_radii: (n,) radii of these capsules [m].

        Returns:
            Detected people; None if too little of the background was measured.
        """
        depth = frame.depth.astype(np.float64)
        depth[np.isneginf(depth)] = np.nan
        is_foreground = self._background.foreground(frame.time, depth)
        if self._background.unknown_fraction(depth) > self._config.max_unknown_fraction:
            return None
        z = depth[is_foreground]
        points = frame.T_world_camera @ np.column_stack([frame.rays[is_foreground] * z[:, None], z])
        points = points[(points[:, 2] > self._config.min_height) & (points[:, 2] < self._config.max_height)]
        is_robot = np.zeros(len(points), dtype=np.bool_)
        mark_points_in_capsules(
            np.ascontiguousarray(points), robot_ends, robot_radii + self._config.robot_margin, is_robot
        )
        cells = OccupiedCells.from_points(points[~is_robot], self._config.cell_size, self._config.min_points)
        groups = [
            rows
            for rows in cluster_points(cells.positions, self._merge_distance)
            if len(rows) >= self._config.min_cells
            and np.ptp([cells.z_min[rows].min(), cells.z_max[rows].max()]) >= self._config.min_extent
        ]
        tracks = self._tracker.update_from_groups(frame.time, [cells.positions[rows] for rows in groups])
        camera_position = np.asarray(frame.T_world_camera.xyz)[:2]
        bodies = {}
        for track in tracks:
            group = self._tracker.group_of_track.get(track.track_id)
            if group is None:
                bodies[track.track_id] = self._bodies[track.track_id]
            else:
                bodies[track.track_id] = (
                    track.position,
                    self._fit_capsules(cells.select(groups[group]), camera_position),
                )
        self._bodies = bodies
        return [DetectedPerson(track, self._predict_body(track)) for track in tracks]

    def _predict_body(self, track: PersonTrack) -> UprightCapsules:
        """Return a body as it was measured last, moved with its track."""
        position, capsules = self._bodies[track.track_id]
        return capsules.translated((track.position[0] - position[0], track.position[1] - position[1]))

    def _fit_capsules(self, cells: OccupiedCells, camera_position: Array) -> UprightCapsules:
        """Return capsules around the points above the cells, and around what they hide from a camera at (2,) [m]."""
        half_thickness = 0.5 * self._config.body_thickness
        directions = cells.positions - camera_position
        directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-9)
        radius = half_thickness + np.sqrt(0.5) * self._config.cell_size
        # the round ends extend beyond the points by the difference of the radius and half the thickness
        z_min = np.where(cells.z_max >= self._config.min_standing_height, 0.0, cells.z_min - (radius - half_thickness))
        z_max = cells.z_max + (radius - half_thickness)
        missing_height = np.maximum(2.0 * radius - (z_max - z_min), 0.0)
        return UprightCapsules(
            cells.positions + half_thickness * directions,
            z_min - 0.5 * missing_height,
            z_max + 0.5 * missing_height,
            np.full(len(cells.positions), radius),
        )

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        rows = [
            (number, position, capsules.positions, capsules.z_min, capsules.z_max, capsules.radii)
            for number, (position, capsules) in self._bodies.items()
        ]
        return {"background": self._background.save_state(), "tracker": self._tracker.save_state(), "bodies": rows}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self._background.load_state(state["background"])
        self._tracker.load_state(state["tracker"])
        self._bodies = {
            number: (tuple(position), UprightCapsules(*fields)) for number, position, *fields in state["bodies"]
        }


def _examples() -> Iterable[tuple[Any, ...]]:
    yield np.zeros((1, 3)), np.zeros((1, 2, 3)), np.ones(1), np.zeros(1, np.bool_)


@kernel(examples=_examples)
def mark_points_in_capsules(points: Array, ends: Array, radii: Array, out: NDArray[np.bool_]) -> None:
    """Mark the points (k, 3) in ``out`` that are in a capsule with ends (n, 2, 3) and radii (n,) [m]."""
    for k in range(points.shape[0]):
        for j in range(radii.shape[0]):
            projection, squared_length = 0.0, 0.0
            for x in range(3):
                edge = ends[j, 1, x] - ends[j, 0, x]
                projection += (points[k, x] - ends[j, 0, x]) * edge
                squared_length += edge * edge
            fraction = min(max(projection / squared_length, 0.0), 1.0) if squared_length > 1e-12 else 0.0
            squared_distance = 0.0
            for x in range(3):
                squared_distance += (points[k, x] - ends[j, 0, x] - fraction * (ends[j, 1, x] - ends[j, 0, x])) ** 2
            if squared_distance <= radii[j] * radii[j]:
                out[k] = True
                break
