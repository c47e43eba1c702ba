"""Discs in space: pose from the ellipse, distance and real diameter from depth."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry import CameraModel
from roboyard.geometry.arrays import F32, Array
from roboyard.vision.discs.circles import Lie, circle_lies, cone_of
from roboyard.vision.discs.config import DiscConfig
from roboyard.vision.discs.conics import fit_ellipse
from roboyard.vision.discs.detect import Disc
from roboyard.vision.discs.surface import DepthPlane, surface_at

_MARK_SIGMA = 0.15
"""Standard deviation of where a mark is seen [px]."""
_CLEAR = math.radians(12.0)
"""A surface of depth decides between the two ways a disc may lie if it agrees with one so much better."""


@dataclass(frozen=True, eq=False)
class PlacedDisc:
    """A disc in space, in the camera's optical frame.

    Attributes:
        disc: As it is seen.
        pixel: Projection of its middle (2,) [px]: beside the ellipse's middle, by tilt and distance.
        position: Of its middle (3,) [m].
        normal: Unit vector (3,) towards the camera, from the ellipse.
        other_normal: The other one that would look the same.
        diameter: The real one [m].
        measured: Whether depth tells distance and diameter; else the diameter was assumed.
        surface: The plane that depth sees there; None if it sees none.
    """

    disc: Disc
    pixel: Array
    position: Array
    normal: Array
    other_normal: Array
    diameter: float
    measured: bool
    surface: DepthPlane | None


def centre_of(disc: Disc, lens: CameraModel) -> Array:
    """Projection of the disc's own middle (2,) [px], by its outline and where its mark is seen.

    A circle's middle is not seen in the middle of its ellipse (J. Heikkilä, "Geometric camera calibration using
    circular control points", PAMI 2000).  It may lie in two ways; the mark tells which, as far as it is seen sharply.
    """
    return _centre(disc, lens, _lies(disc, lens))


def place_disc(
    disc: Disc, lens: CameraModel, depth: F32 | None = None, *, diameter: float | None = None
) -> PlacedDisc | None:
    """Where a disc is; None if neither depth nor a known diameter tells how far away.

    Args:
        disc: As `find_discs` gives it.
        lens: Of the camera that sees it.
        depth: (h, w) of the same camera, or registered to it [m]; not finite or not above 0: unknown.
        diameter: Assumed where depth is unknown [m].

    Raises:
        InputError: depth of another size than the picture.
    """
    if depth is not None and depth.shape != (lens.height, lens.width):
        raise InputError(
            f"depth of {depth.shape[1]} x {depth.shape[0]} pixels for a picture of {lens.width} x {lens.height}",
            valid="depth registered to the colour camera",
        )
    lies = _lies(disc, lens)
    surface = None if depth is None else surface_at(depth, lens, disc.ellipse)
    if surface is None and diameter is None:
        return None
    first, second = _sorted(disc, lens, lies, surface)
    pixel = lens.project(first.centre) if _decides(lies, surface) else _centre(disc, lens, lies)
    # The lie is of a circle of radius 1: what it has to be scaled by is the radius.
    if surface is None:
        radius = 0.5 * float(diameter or 0.0)
        position = radius * first.centre
    else:
        ray = lens.rays(pixel)
        position = ray * surface.distance_along(ray)
        radius = float(position[2] / first.centre[2])
    return PlacedDisc(disc, pixel, position, first.normal, second.normal, 2.0 * radius, surface is not None, surface)


def place_discs(discs: list[Disc], lens: CameraModel, depth: F32 | None, config: DiscConfig) -> list[PlacedDisc]:
    """Those of the right diameter as far as depth can tell; the nearest to the optical axis first.

    Raises:
        InputError: depth of another size than the picture.
    """
    placed = (place_disc(disc, lens, depth, diameter=config.diameter) for disc in discs)
    kept = [
        one
        for one in placed
        if one is not None and (not one.measured or abs(one.diameter - config.diameter) <= config.diameter_tolerance)
    ]
    return sorted(kept, key=lambda one: math.hypot(one.position[0], one.position[1]))


def _lies(disc: Disc, lens: CameraModel) -> tuple[Lie, Lie]:
    rays = lens.rays(disc.outline)
    flat = rays[:, :2] / rays[:, 2:]
    flat = np.ascontiguousarray(flat[np.isfinite(flat).all(axis=1)])
    ellipse = np.zeros(5)
    if not fit_ellipse(flat, np.ones(len(flat)), ellipse):
        raise InputError("a disc whose outline the lens does not see", valid="the lens that took the picture")
    return circle_lies(cone_of(ellipse))


def _centre(disc: Disc, lens: CameraModel, lies: tuple[Lie, Lie]) -> Array:
    beside = np.array([lens.project(lie.centre) - disc.centre for lie in lies])
    # The mark is a smaller circle about the same middle: its own ellipse lies beside that by its share squared; little.
    apart = np.sum((disc.mark_offset - beside) ** 2, axis=1) / (2.0 * _MARK_SIGMA**2)
    weights = np.exp(apart.min() - apart) if disc.mark > 0.0 else np.ones(2)
    return np.asarray(disc.centre + weights @ beside / weights.sum())


def _angle(a: Array, b: Array) -> float:
    return math.acos(min(1.0, max(-1.0, float(a @ b))))


def _decides(lies: tuple[Lie, Lie], surface: DepthPlane | None) -> bool:
    if surface is None or surface.normal is None:
        return False
    return abs(_angle(lies[0].normal, surface.normal) - _angle(lies[1].normal, surface.normal)) > _CLEAR


def _sorted(disc: Disc, lens: CameraModel, lies: tuple[Lie, Lie], surface: DepthPlane | None) -> tuple[Lie, Lie]:
    """The likelier of the two first."""
    if surface is not None and surface.normal is not None and _decides(lies, surface):
        off = [_angle(lie.normal, surface.normal) for lie in lies]
    else:
        middle = _centre(disc, lens, lies)
        off = [float(np.linalg.norm(lens.project(lie.centre) - middle)) for lie in lies]
    return lies if off[0] <= off[1] else (lies[1], lies[0])
