"""Ground truth: where a model really is and how it really moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry import SE3
from roboyard.simulation.assembly import LinkPlace, Placement
from roboyard.simulation.native import object_function
from roboyard.simulation.touch import Touch, touches_of

if TYPE_CHECKING:
    from roboyard.simulation.sensors.base import Host


_velocity = object_function("mj_objectVelocity")
_BODY = int(mujoco.mjtObj.mjOBJ_XBODY)


@dataclass(frozen=True, slots=True)
class Truth:
    """True state of a model's root link, or of the link asked for.

    Attributes:
        time_ns: When.
        T_world_base: Pose of the link.
        linear_velocity: (3,) of the link's origin, in the link's frame [m/s].
        angular_velocity: (3,) in the link's frame [rad/s].
        contacts: Touches of the whole model, its own ground contacts included; empty for a single link.
    """

    time_ns: int
    T_world_base: SE3
    linear_velocity: NDArray[np.float64]
    angular_velocity: NDArray[np.float64]
    contacts: tuple[Touch, ...] = ()

    @property
    def pose(self) -> SE3:
        """``T_world_base``."""
        return self.T_world_base


@kernel(examples=lambda: [(0, 0, 0)])
def velocity_of_body(model: int, data: int, body: int) -> NDArray[np.float64]:
    """Angular and linear velocity (6,) of a body in its own frame [rad/s, m/s]; 0 of the world.

    Args:
        model: Address of the engine's model.
        data: Address of its data, velocities evaluated.
        body: Its number.
    """
    velocity = np.zeros(6)
    if body > 0:
        _velocity(model, data, _BODY, body, velocity.ctypes.data, 1)
    return velocity


def link_pose(data: mujoco.MjData, place: LinkPlace) -> SE3:
    """``T_world_link``."""
    if place.body == 0:
        return place.T_body_link
    return SE3(
        tuple(data.xquat[place.body].tolist()), tuple(data.xpos[place.body].tolist())
    )  # its own body is the link


def link_truth(host: Host, place: LinkPlace) -> Truth:
    """Pose and velocity of one link."""
    data = host.data
    velocity = velocity_of_body(host.model._address, data._address, place.body)
    velocity.flags.writeable = False
    return Truth(host.time_ns, link_pose(data, place), velocity[3:], velocity[:3])


def truth_of(host: Host, placement: Placement, *, contacts: bool = True) -> Truth:
    """Pose and velocity of a model's root link, and its contacts."""
    base = link_truth(host, placement.links[placement.root])
    if not contacts:
        return base
    touches = touches_of(host, host.watch.owner == placement.index)
    return Truth(base.time_ns, base.T_world_base, base.linear_velocity, base.angular_velocity, touches)
