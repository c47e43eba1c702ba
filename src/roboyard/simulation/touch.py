"""Contacts of the present instant as records."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.simulation.contacts import ContactWatch


@dataclass(frozen=True, slots=True)
class Touch:
    """One contact point.

    Attributes:
        own: ``model::link::collision`` of the thing asked about.
        against: The other one.
        position: In the world [m].
        normal: Unit vector in the world, towards ``own``.
        depth: How far they overlap [m].
        force: On ``own``, in the world [N].
    """

    own: str
    against: str
    position: tuple[float, float, float]
    normal: tuple[float, float, float]
    depth: float
    force: tuple[float, float, float]


def touches_of(
    model: mujoco.MjModel, data: mujoco.MjData, watch: ContactWatch, geoms: NDArray[np.bool_]
) -> tuple[Touch, ...]:
    """Contacts in which one of ``geoms`` (a mask over all geoms) takes part, in the engine's order.

    The accelerations of the instant must have been evaluated.
    """
    found: list[Touch] = []
    wrench = np.zeros(6)
    for index in range(data.ncon):
        contact = data.contact[index]
        first, second = int(contact.geom[0]), int(contact.geom[1])
        if first < 0 or second < 0 or contact.efc_address < 0:
            continue
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
