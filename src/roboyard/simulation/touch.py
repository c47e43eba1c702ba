"""Contacts of the present instant as records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.simulation.contact_loop import contacts_with
from roboyard.simulation.contacts import ContactWatch
from roboyard.simulation.instant import Instant


@dataclass(frozen=True, slots=True)
class Touch:
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

    def seen_from(self, origin: NDArray[np.float64], axes: NDArray[np.float64]) -> Touch:
        """The same in a frame at ``origin`` (3,) [m] with ``axes`` (3, 3) as columns, both as the world has them."""
        return replace(
            self,
            position=_triple((np.asarray(self.position) - origin) @ axes),
            normal=_triple(np.asarray(self.normal) @ axes),
            force=_triple(np.asarray(self.force) @ axes),
        )


class Touchable(Protocol):
    """What of a simulation is needed to look at its contacts."""

    @property
    def model(self) -> mujoco.MjModel:
        """The engine's model."""
        ...

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


def touches_of(host: Touchable, geoms: NDArray[np.bool_], *, ground: bool = True) -> tuple[Touch, ...]:
    """Contacts in which one of ``geoms`` takes part, in the engine's order.

    Args:
        host: The simulation.
        geoms: Mask over all geoms.
        ground: Also those with the ground.
    """
    model, data, watch = host.model, host.data, host.watch
    numbers = contacts_with(data._address, watch.layout, geoms, watch.ground, ground)
    found: list[Touch] = []
    wrench = np.zeros(6)
    for index in numbers.tolist():
        host.instant.accelerations()
        contact = data.contact[index]
        first, second = int(contact.geom[0]), int(contact.geom[1])
        mujoco.mj_contactForce(model, data, index, wrench)
        frame = np.asarray(contact.frame).reshape(3, 3)  # its x axis points from the first geom to the second
        force = frame.T @ wrench[:3]  # on the second
        for own, other, sign in ((second, first, 1.0), (first, second, -1.0)):
            if geoms[own]:
                found.append(
                    Touch(
                        watch.geom_name(own),
                        watch.geom_name(other),
                        _triple(contact.pos),
                        _triple(sign * frame[0]),
                        max(-float(contact.dist), 0.0),
                        _triple(sign * force),
                    )
                )
    return tuple(found)


def _triple(values: NDArray[np.float64]) -> tuple[float, float, float]:
    return float(values[0]), float(values[1]), float(values[2])
