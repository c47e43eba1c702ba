"""Footprint of a robot on the ground, and kernels of the footprint's cost on a costmap."""

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
    """Outline in the base's frame.

    Attributes:
        corners: (n, 2) [m], in order.

    Raises:
        ConfigError: fewer than three corners, not finite, crossing itself, or without area.
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
                "its outline crosses itself", location="footprint", valid="corners in order round the robot"
            )
        if abs(polygons.signed_area(corners)) < 1e-6:
            raise ConfigError("its outline holds no area", location="footprint", valid="corners that span an area")
        object.__setattr__(self, "corners", corners)

    @classmethod
    def circle(cls, radius: float) -> Footprint:
        """About the base's origin [m]."""
        return cls(polygons.regular_polygon(radius, 16))

    @cached_property
    def inscribed_radius(self) -> float:
        """Of the largest circle about the base's origin within the outline [m]; 0 if the origin lies outside."""
        if not polygons.contains(self.corners, np.zeros((1, 2)))[0]:
            return 0.0
        return float(polygons.boundary_distance(self.corners, np.zeros((1, 2)))[0])

    @cached_property
    def circumscribed_radius(self) -> float:
        """Of the smallest circle about the base's origin that holds the outline [m]."""
        return float(np.linalg.norm(self.corners, axis=1).max())

    def sample_border(self, spacing: float) -> NDArray[np.float64]:
        """Points on the outline (m, 2), no farther than ``spacing`` [m] from each other."""
        edges = np.roll(self.corners, -1, axis=0) - self.corners
        counts = np.maximum(np.ceil(np.linalg.norm(edges, axis=1) / spacing).astype(np.int64), 1)
        edge = np.repeat(np.arange(len(edges)), counts)
        fraction = (np.arange(len(edge)) - np.repeat(np.cumsum(counts) - counts, counts)) / counts[edge]
        return np.asarray(self.corners[edge] + edges[edge] * fraction[:, None])


@kernel(examples=lambda: [(np.zeros((5, 5), dtype=np.uint8), np.zeros((4, 2)), 1.0, 1.0, 0.0, False)])
def is_footprint_in_collision(
    cells: NDArray[np.uint8], border: NDArray[np.float64], x: float, y: float, theta: float, outside_is_free: bool
) -> bool:
    """Whether the outline lies on an obstacle somewhere.

    Args:
        cells: (rows, columns) of a costmap.
        border: (n, 2) points of the outline [cells].
        x: Of the base's origin, in cells from the grid's corner, along columns.
        y: The same along rows.
        theta: Heading in the grid's frame [rad].
        outside_is_free: Whether it may reach beyond the map.
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
def footprint_cost(
    cells: NDArray[np.uint8], border: NDArray[np.float64], possible_cost: int, x: float, y: float, theta: float
) -> int:
    """Cost of the robot's center, or ``LETHAL`` where its outline touches an obstacle or reaches beyond the map.

    The outline is looked at only where the center's cost says that an obstacle may lie within its circumscribed circle.

    Args:
        cells: As for ``lies_on_obstacle``, inflated.
        border: See there.
        possible_cost: Cost of a center whose nearest obstacle is a circumscribed radius away.
        x: See there.
        y: See there.
        theta: See there.
    """
    rows, columns = cells.shape
    if x < 0.0 or y < 0.0 or x >= columns or y >= rows:
        return LETHAL
    cost = int(cells[int(y), int(x)])
    if cost > LETHAL:
        cost = 0
    if cost >= INSCRIBED:
        return LETHAL
    if cost >= possible_cost and is_footprint_in_collision(cells, border, x, y, theta, False):
        return LETHAL
    return cost
