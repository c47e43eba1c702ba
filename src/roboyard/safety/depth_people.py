"""People from depth pictures: what is nearer than the background and not the robot, in columns, followed in time.

A fixed camera's background is known pixel by pixel, so nothing need be known of what people look like.  It sees the
side of a body that is turned to it: each column reaches as far behind what was seen as a body is thick.
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
from roboyard.safety.body_columns import BodyColumns, Cells
from roboyard.safety.people_tracking import Background, PeopleTracker, Track, TrackingConfig, clusters


class SightConfig(Config):
    """What of a depth picture counts as somebody."""

    lowest: float = parameter(
        0.12, unit="m", low=0.0, high=1.0, doc="Height above the floor below which points are floor."
    )
    highest: float = parameter(2.3, unit="m", low=0.5, high=5.0, doc="Height above the floor above which nobody is.")
    own_margin: float = parameter(
        0.06, unit="m", low=0.0, high=1.0, doc="Distance from the robot's shape within which points are the robot."
    )
    side: float = parameter(
        0.1, unit="m", low=0.02, high=1.0, doc="Side of the squares of the floor in which points are gathered."
    )
    least_points: int = parameter(3, low=1, high=1000, doc="Smallest number of points of a square that counts.")
    least_squares: int = parameter(
        4, low=1, high=1000, doc="Smallest number of squares that somebody who stands alone covers."
    )
    least_size: float = parameter(
        0.5,
        unit="m",
        low=0.0,
        high=3.0,
        doc="Smallest distance between the lowest and the highest point of somebody who stands alone.",
    )
    standing: float = parameter(
        1.0, unit="m", low=0.0, high=3.0, doc="Height from which a column stands on the floor, whatever hides its foot."
    )
    thickness: float = parameter(0.2, unit="m", low=0.0, high=1.0, doc="Thickness of a body behind what is seen of it.")
    blind: float = parameter(
        0.3, low=0.0, high=1.0, doc="Largest share of the background without measurement in a picture that counts."
    )


@dataclass(frozen=True, eq=False)
class Shot:
    """A depth picture and where it was taken.

    Attributes:
        time: When [s].
        depth: (h, w) along the optical axis; infinite too far, not a number (or minus infinity) not measured [m].
        rays: (h, w, 2) x / z and y / z of each pixel.
        T_world_lens: Pose of the optical frame; the floor is at height zero.
    """

    time: float
    depth: NDArray[np.float32]
    rays: NDArray[np.float32]
    T_world_lens: SE3


@dataclass(frozen=True, eq=False)
class Sighting:
    """Somebody.

    Attributes:
        track: Where they are and go.
        columns: Their body.
    """

    track: Track
    columns: BodyColumns


class DepthPeople:
    """Follows people from picture to picture."""

    def __init__(self, config: SightConfig, tracking: TrackingConfig) -> None:
        self._config, self._stride = config, tracking.stride
        self._background, self._tracker = Background(tracking), PeopleTracker(tracking)
        self._bodies: dict[int, tuple[tuple[float, float], BodyColumns]] = {}

    def see(self, shot: Shot, own_ends: Array, own_radii: Array) -> list[Sighting] | None:
        """Who is where.

        Args:
            shot: What is seen.
            own_ends: (n, 2, 3) middle lines of the robot's capsules at that moment, in the world [m].
            own_radii: (n,) [m].

        Returns:
            None where too little was measured to tell.
        """
        depth = shot.depth.astype(np.float64)
        depth[np.isneginf(depth)] = np.nan
        nearer = self._background.foreground(shot.time, depth)
        if self._background.lost(depth) > self._config.blind:
            return None
        z = depth[nearer]
        points = shot.T_world_lens @ np.column_stack([shot.rays[nearer] * z[:, None], z])
        points = points[(points[:, 2] > self._config.lowest) & (points[:, 2] < self._config.highest)]
        own = np.zeros(len(points), dtype=np.bool_)
        mark_near(np.ascontiguousarray(points), own_ends, own_radii + self._config.own_margin, own)
        cells = Cells.of(points[~own], self._config.side, self._config.least_points)
        groups = [
            rows
            for rows in clusters(cells.places, self._stride)
            if len(rows) >= self._config.least_squares
            and np.ptp([cells.lowest[rows].min(), cells.highest[rows].max()]) >= self._config.least_size
        ]
        tracks = self._tracker.follow(shot.time, [cells.places[rows] for rows in groups])
        eye = np.asarray(shot.T_world_lens.xyz)[:2]
        bodies = {}
        for track in tracks:
            met = self._tracker.met.get(track.number)
            if met is None:
                bodies[track.number] = self._bodies[track.number]
            else:
                bodies[track.number] = (track.place, self._columns(cells.taken(groups[met]), eye))
        self._bodies = bodies
        return [Sighting(track, self._where(track)) for track in tracks]

    def _where(self, track: Track) -> BodyColumns:
        """A body as it was seen last, gone on with its track."""
        place, columns = self._bodies[track.number]
        return columns.moved((track.place[0] - place[0], track.place[1] - place[1]))

    def _columns(self, cells: Cells, eye: Array) -> BodyColumns:
        """Capsules about all that was seen above squares, and about what it hides from an ``eye`` (2,)."""
        half = 0.5 * self._config.thickness
        away = cells.places - eye
        away /= np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-9)
        radius = half + np.sqrt(0.5) * self._config.side
        # their round ends reach beyond what they hold by as much as the radius is more than half the thickness
        low = np.where(cells.highest >= self._config.standing, 0.0, cells.lowest - (radius - half))
        high = cells.highest + (radius - half)
        short = np.maximum(2.0 * radius - (high - low), 0.0)
        return BodyColumns(
            cells.places + half * away, low - 0.5 * short, high + 0.5 * short, np.full(len(cells.places), radius)
        )

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        rows = [
            (number, place, one.places, one.bottoms, one.tops, one.radii)
            for number, (place, one) in self._bodies.items()
        ]
        return {"background": self._background.save_state(), "tracker": self._tracker.save_state(), "bodies": rows}

    def load_state(self, state: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self._background.load_state(state["background"])
        self._tracker.load_state(state["tracker"])
        self._bodies = {number: (tuple(place), BodyColumns(*rest)) for number, place, *rest in state["bodies"]}


def _examples() -> Iterable[tuple[Any, ...]]:
    yield np.zeros((1, 3)), np.zeros((1, 2, 3)), np.ones(1), np.zeros(1, np.bool_)


@kernel(examples=_examples)
def mark_near(points: Array, ends: Array, radii: Array, out: NDArray[np.bool_]) -> None:
    """Marks points (k, 3) that are in one of the capsules with these ends (n, 2, 3) and radii (n,)."""
    for k in range(points.shape[0]):
        for j in range(radii.shape[0]):
            along, length = 0.0, 0.0
            for x in range(3):
                edge = ends[j, 1, x] - ends[j, 0, x]
                along += (points[k, x] - ends[j, 0, x]) * edge
                length += edge * edge
            share = min(max(along / length, 0.0), 1.0) if length > 1e-12 else 0.0
            off = 0.0
            for x in range(3):
                off += (points[k, x] - ends[j, 0, x] - share * (ends[j, 1, x] - ends[j, 0, x])) ** 2
            if off <= radii[j] * radii[j]:
                out[k] = True
                break
