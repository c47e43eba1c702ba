"""A grid of beams from a sensor's place: what lidar, sonar and satellite receivers share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.simulation.naming import COLLISION, SEEN_ONLY
from roboyard.simulation.sensors.base import Host
from roboyard.simulation.sensors.inside import geoms_around
from roboyard.simulation.sensors.mesh_tree import mesh_trees
from roboyard.simulation.sensors.rays import cast


def directions(
    samples: int, angle_min: float, angle_max: float, layers: int = 1, low: float = 0.0, high: float = 0.0
) -> NDArray[np.float64]:
    """Unit vectors (layers · samples, 3): azimuths about z, fastest, and elevations from below [rad]."""
    across, up = np.linspace(angle_min, angle_max, samples), np.linspace(low, high, layers)
    elevation, azimuth = (grid.ravel() for grid in np.meshgrid(up, across, indexing="ij"))
    flat = np.cos(elevation)
    return np.stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)], axis=1)


class Beams:
    """Beams that hit collision shapes, and the visuals of links that have none.

    The link they start from is invisible to them, and so is any shape of their model that the starting point lies
    inside of (a housing).

    Args:
        host: The simulation.
        robot: Name of the model they belong to.
        samples: Number of azimuths.
        angle_min: First azimuth about the sensor's z [rad].
        angle_max: Last azimuth [rad].
        layers: Number of elevations.
        low: Lowest elevation [rad].
        high: Highest elevation [rad].
        reach: How far they go [m].

    Attributes:
        grid: (layers · samples, 3) unit directions in the sensor frame.
        world: The same in the world, after ``cast``.
        hit: (layers · samples,) number of the shape that was hit, -1 for none, after ``cast``.
        geoms: Numbers of the shapes that can be hit, after ``bind``.
    """

    def __init__(
        self,
        host: Host,
        robot: str,
        samples: int,
        angle_min: float,
        angle_max: float,
        layers: int,
        low: float,
        high: float,
        reach: float,
    ) -> None:
        expect_kernels(cast)
        self._host, self._robot, self._reach = host, robot, reach
        self._samples, self._layers, self._first = samples, layers, angle_min
        self._step = (angle_max - angle_min) / max(samples - 1, 1) or 1.0
        self.grid = directions(samples, angle_min, angle_max, layers, low, high)
        self.world = np.zeros_like(self.grid)
        self.hit = np.zeros(len(self.grid), np.int64)
        self._distance = np.zeros(len(self.grid))

    def bind(self, site: int, body: int) -> None:
        """Start at a site of a body, and find what can be hit in the compiled world."""
        self._site = site
        model, data, watch = self._host.model, self._host.data, self._host.watch
        index = self._host.placement(self._robot).index
        seen = np.isin(model.geom_group, (SEEN_ONLY, COLLISION))
        if body > 0:
            seen &= model.geom_bodyid != body
        seen[geoms_around(model, data, data.site_xpos[site], watch.owner, index)] = False
        self.geoms = np.flatnonzero(seen)
        self._trees = mesh_trees(model, self.geoms)

    def cast(self, *, upright: bool = False) -> NDArray[np.float64]:
        """Distances (layers · samples,) [m], infinite where nothing is met within reach; overwritten by the next call.

        Args:
            upright: Take the world's axes for the beams instead of the sensor's.
        """
        model, data, trees = self._host.model, self._host.data, self._trees
        turn = np.eye(3) if upright else data.site_xmat[self._site].reshape(3, 3)
        cast(
            model._address,
            data._address,
            data.site_xpos[self._site],
            turn,
            self.grid,
            self.world,
            self._first,
            self._step,
            self._reach,
            self._layers,
            self._samples,
            self.geoms,
            model.geom_type,
            model.geom_size,
            model.geom_aabb,
            data.geom_xpos,
            data.geom_xmat,
            trees.roots,
            trees.bounds,
            trees.links,
            trees.triangles,
            trees.waiting,
            self._distance,
            self.hit,
        )
        return self._distance
