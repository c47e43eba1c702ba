"""Surfaces with a grain: friction that differs along two directions, or that lets them creep, as a table of geoms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import Surface
from roboyard.geometry import SE3
from roboyard.simulation.assembly.records import Placement
from roboyard.simulation.assembly.surfaces import MAX_FRICTION, MIN_FRICTION, differs
from roboyard.simulation.creep import LARGEST
from roboyard.simulation.grain_loop import COLUMNS


@dataclass(frozen=True, slots=True)
class Grain:
    """What a geom's surface asks for beyond one coefficient.

    Attributes:
        friction: Coulomb's coefficients along the first and the second direction.
        slip: How fast it creeps along both for each newton of friction [m/(N s)].
        direction: The first one, in the geom's body; None: none is said, both are alike.
        link: The link in whose frame ``direction`` is; None: the body's own.
    """

    friction: tuple[float, float]
    slip: tuple[float, float]
    direction: tuple[float, float, float] | None
    link: str | None


def grain_of(surface: Surface, T_body_collision: SE3) -> Grain | None:
    """The grain of a surface; None if one coefficient says all.

    The first direction is the collision's own where no other link is named, as in Gazebo: on a wheel it turns along.
    """
    directed = differs(surface) and surface.friction_direction is not None
    if not directed and not any(surface.slip):
        return None
    second = surface.friction if surface.friction2 is None or not directed else surface.friction2
    friction = (limited(surface.friction), limited(second))
    if surface.friction_direction is None:
        return Grain(friction, surface.slip, None, None)
    direction = np.asarray(surface.friction_direction, float)
    if surface.friction_direction_frame is None:
        direction = T_body_collision.rotation_matrix() @ direction
    x, y, z = (direction / np.linalg.norm(direction)).tolist()
    return Grain(friction, surface.slip, (x, y, z), surface.friction_direction_frame)


def limited(coefficient: float) -> float:
    """A coefficient within what the engine takes."""
    return min(max(coefficient, MIN_FRICTION), MAX_FRICTION)


def grain_table(
    model: mujoco.MjModel, grains: Iterable[tuple[int, Grain, Placement]], notes: list[str]
) -> NDArray[np.float64]:
    """(geoms, `COLUMNS`) for the step loop, see `grain_loop`; no rows where no surface has a grain.

    Args:
        model: The compiled world.
        grains: Geom, its grain, and where its model is.
        notes: Names of links that are not there are said here.
    """
    found = list(grains)
    table = np.zeros((model.ngeom if found else 0, COLUMNS))
    if found:
        table[:, 0] = table[:, 1] = model.geom_friction[:, 0]
    if model.nv > LARGEST and any(any(grain.slip) for _, grain, _ in found):
        notes.append(f"slip is left out: the world has {model.nv} degrees of freedom, it is simulated up to {LARGEST}")
    for geom, grain, placement in found:
        body, direction = int(model.geom_bodyid[geom]), grain.direction
        if grain.link is not None and direction is not None:
            body, T_body_frame, known = _frame(placement, grain.link)
            if not known:
                notes.append(
                    f"{model.geom(geom).name}: <fdir1> is expressed in {grain.link!r}, which is no link or frame: "
                    f"taken as expressed in {placement.root!r}"
                )
            x, y, z = T_body_frame.rotation_matrix() @ np.asarray(direction)
            direction = (float(x), float(y), float(z))
        table[geom] = *grain.friction, *grain.slip, body, *(direction or (0.0, 0.0, 0.0)), 1.0
    return table


def _frame(placement: Placement, name: str) -> tuple[int, SE3, bool]:
    """Body of a link or frame, its pose there, and whether it was found; else those of the model's root.

    Gazebo takes links only and leaves out, without a word, what it does not find: the direction then turns with the
    wheel.  Files made for several robots name it ``robot/link``.
    """
    frames = {frame.name: frame for frame in placement.entry.model.frames}
    for candidate in (name, name.rpartition("/")[2]):
        if candidate in placement.links:
            place = placement.links[candidate]
            return place.body, place.T_body_link, True
        if candidate in frames and frames[candidate].link in placement.links:
            place = placement.links[frames[candidate].link]
            return place.body, place.T_body_link @ frames[candidate].T_link_frame, True
    place = placement.links[placement.root]
    return place.body, place.T_body_link, name == "__model__"
