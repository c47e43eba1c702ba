"""Footprint of a robot, and kernels that look up its cost on a costmap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.errors import ConfigError
from roboyard.geometry import polygons
from roboyard.navigation.costmap.layered_costmap import INSCRIBED, LETHAL

DEFAULT_RADIUS = 0.25
"""Radius of a robot whose footprint is unknown [m]."""


@dataclass(frozen=True)
class Footprint:
    """Outline of a robot in the frame of its base, projected onto the ground.

    Attributes:
        corners: (n, 2) corners in order [m].

    Raises:
        ConfigError: The outline has fewer than three corners, numbers that are not finite, crossing edges, or no area.
    """

    corners: NDArray[np.float64]

    def __post_init__(self) -> None:
        corners = np.asarray(self.corners, dtype=np.float64)
        if corners.ndim != 2 or corners.shape[1:] != (2,) or len(corners) < 3 or not np.isfinite(corners).all():
            raise ConfigError(
                f"corners of shape {corners.shape}", location="footprint", valid="(n, 2), finite, at least 3"
            )
        if not polygons.is_simple(corners):
            raise ConfigError(
                "its outline crosses itself", location="footprint", valid="corners in order around the robot"
            )
        if abs(polygons.signed_area(corners)) < 1e-6:
            raise ConfigError("its outline holds no area", location="footprint", valid="corners that span an area")
        object.__setattr__(self, "corners", corners)

    @classmethod
    def circle(cls, radius: float) -> Footprint:
        """Return the footprint of a round robot: a regular polygon around a circle about the origin [m]."""
        return cls(polygons.regular_polygon(radius, 16))

    @cached_property
    def inscribed_radius(self) -> float:
        """Radius of the largest circle around the origin within the outline [m]; 0 if the origin lies outside."""
        if not polygons.contains(self.corners, np.zeros((1, 2)))[0]:
            return 0.0
        return float(polygons.boundary_distance(self.corners, np.zeros((1, 2)))[0])

    @cached_property
    def circumscribed_radius(self) -> float:
        """Radius of the smallest circle around the origin that contains the outline [m]."""
        return float(np.linalg.norm(self.corners, axis=1).max())

    def sample_border(self, spacing: float) -> NDArray[np.float64]:
        """Return points (m, 2) on the outline, no farther apart than ``spacing`` [m]."""
        edges = np.roll(self.corners, -1, axis=0) - self.corners
        counts = np.maximum(np.ceil(np.linalg.norm(edges, axis=1) / spacing).astype(np.int64), 1)
        edge = np.repeat(np.arange(len(edges)), counts)
        fraction = (np.arange(len(edge)) - np.repeat(np.cumsum(counts) - counts, counts)) / counts[edge]
        return np.asarray(self.corners[edge] + edges[edge] * fraction[:, None])


@kernel(examples=lambda: [(np.zeros((5, 5), dtype=np.uint8), np.zeros((4, 2)), 1.0, 1.0, 0.0, False)])
def is_footprint_in_collision(
    cells: NDArray[np.uint8], border: NDArray[np.float64], x: float, y: float, theta: float, outside_is_free: bool
) -> bool:
    """Return whether the outline touches a lethal cell.

    Args:
        cells: (rows, columns) costs of a costmap.
        border: (n, 2) points of the outline [cells].
        x: Position of the origin along columns, from the corner of the grid [cells].
        y: Position of the origin along rows, from the corner of the grid [cells].
        theta: Heading in the frame of the grid [rad].
        outside_is_free: Whether the robot may leave the map.
    """
    rows, columns = cells.shape
    c, s = math.cos(theta), math.sin(theta)
    for k in range(len(border)):
        px = x + c * border[k, 0] - s * border[k, 1]
        py = y + s * border[k, 0] + c * border[k, 1]
        if px < 0.0 or py < 0.0 or px >= columns or py >= rows:
            if not outside_is_free:
                return True
        elif cells[int(py), int(px)] == LETHAL:
            return True
    return False


@kernel(
    examples=lambda: [(np.zeros((5, 5), dtype=np.uint8), np.zeros((4, 2)), 1, 1.0, 1.0, 0.0)],
)
def cost_at_pose(
    cells: NDArray[np.uint8],
    border: NDArray[np.float64],
    possible_collision_cost: int,
    x: float,
    y: float,
    theta: float,
) -> int:
    """Return the cost at the center of the robot, or ``LETHAL`` if its outline collides or reaches beyond the map.

    The kernel checks the outline only where the cost at the center shows that an obstacle may lie within the
    circumscribed circle.

    Args:
        cells: (rows, columns) costs of an inflated costmap.
        border: (n, 2) points of the outline [cells].
        possible_collision_cost: Cost of a center whose nearest obstacle is a circumscribed radius away.
        x: Position of the origin along columns, from the corner of the grid [cells].
        y: Position of the origin along rows, from the corner of the grid [cells].
        theta: Heading in the frame of the grid [rad].
    """
    rows, columns = cells.shape
    if x < 0.0 or y < 0.0 or x >= columns or y >= rows:
        return LETHAL
    cost = int(cells[int(y), int(x)])
    if cost > LETHAL:
        cost = 0
    if cost >= INSCRIBED:
        return LETHAL
    if cost >= possible_collision_cost and is_footprint_in_collision(cells, border, x, y, theta, False):
        return LETHAL
    return cost
