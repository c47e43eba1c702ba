"""Contacts of the present instant as records."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.simulation.contact_loop import contacts_with, touches_at
from roboyard.simulation.contacts import ContactWatch
from roboyard.simulation.instant import Instant


class Touch(NamedTuple):
    """One contact point.

    Attributes:
        own: ``model::link::collision`` of the thing asked about.
        against: The other one.
        position: In the world, or in a sensor's frame [m].
        normal: Unit vector in that frame, towards ``own``.
        depth: How far they overlap [m].
        force: On ``own``, in that frame [N].
    """

    own: str
    against: str
    position: tuple[float, float, float]
    normal: tuple[float, float, float]
    depth: float
    force: tuple[float, float, float]


class Touchable(Protocol):
    """What of a simulation is needed to look at its contacts."""

    @property
    def data(self) -> mujoco.MjData:
        """The engine's data."""
        ...

    @property
    def watch(self) -> ContactWatch:
        """Names of geoms."""
        ...

    @property
    def instant(self) -> Instant:
        """The present."""
        ...


_ORIGIN, _AXES = np.zeros(3), np.eye(3)


def touches_of(
    host: Touchable,
    geoms: NDArray[np.bool_],
    *,
    ground: bool = True,
    origin: NDArray[np.float64] = _ORIGIN,
    axes: NDArray[np.float64] = _AXES,
) -> tuple[Touch, ...]:
    """Contacts in which one of ``geoms`` takes part, in the engine's order.

    Args:
        host: The simulation.
        geoms: Mask over all geoms.
        ground: Also those with the ground.
        origin: (3,) of the frame that they are seen from, in the world [m]; the world's own unless given.
        axes: (3, 3) of that frame in the world, as columns.
    """
    data, watch = host.data, host.watch
    numbers = contacts_with(data._address, watch.layout, geoms, watch.ground, ground)
    if not len(numbers):
        return ()
    host.instant.accelerations()
    pairs, values = touches_at(data._address, watch.layout, numbers, geoms, origin, axes)
    names = watch.geom_names
    return tuple(
        [
            Touch(names[own], names[other], (x, y, z), (nx, ny, nz), depth, (fx, fy, fz))
            for (own, other), (x, y, z, nx, ny, nz, depth, fx, fy, fz) in zip(
                pairs.tolist(), values.tolist(), strict=True
            )
        ]
    )
