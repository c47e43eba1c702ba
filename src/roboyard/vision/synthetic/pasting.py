"""Discs laid into real pictures, on the surfaces that their depth shows, in their light and with their noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from roboyard.geometry import SE3, CameraModel
from roboyard.geometry.arrays import F32, U8, Array
from roboyard.vision.discs.detect import noise_of
from roboyard.vision.discs.surface import surface_at
from roboyard.vision.opencv import opencv
from roboyard.vision.synthetic.coverage import disc_patch
from roboyard.vision.synthetic.exposure import GAMMA, light_of
from roboyard.vision.synthetic.pictures import BLACK, WHITE, DiscPicture, TrueDisc, facing, radius_in_picture

_TRIES = 400


@dataclass(frozen=True)
class PasteConfig:
    """How discs are laid into a picture.

    Attributes:
        discs: How many, if there is room.
        diameter: Of the real discs, least and most [m].
        radius: Half axes they may have in the picture [px].
        tilt_max: Between a surface's normal and the way to the camera [rad].
        roughness: Most spread of the depth about a plane [m].
        ground: Albedo that surfaces are taken to have, so that the light on them is known.
        mark: Radius of the mark, as a share of the disc's.
        blur: Point spread of the camera [px].
        contrast: That a disc must have at nine tenths of its outline [grey levels].
    """

    discs: int = 6
    diameter: tuple[float, float] = (0.020, 0.040)
    radius: tuple[float, float] = (6.3, 17.5)
    tilt_max: float = math.radians(40.0)
    roughness: float = 0.004
    ground: float = 0.55
    mark: tuple[float, float] = (0.22, 0.38)
    blur: float = 0.7
    contrast: float = 12.0


def paste_discs(
    image: U8, depth: F32 | None, lens: CameraModel, rng: np.random.Generator, config: PasteConfig | None = None
) -> DiscPicture:
    """A copy of a picture with discs on its surfaces, each in perspective.

    Args:
        image: (h, w, 3) in RGB.
        depth: (h, w) registered to it [m]; None: discs face the camera, at distances that fit their size.
        lens: Without distortion.
        rng: Draws sizes, places and noise.
        config: How.
    """
    config = config or PasteConfig()
    light = light_of(image)
    noise = noise_of(np.ascontiguousarray(image[:, :, 1]))
    taken: list[tuple[float, float, float]] = []
    discs: list[TrueDisc] = []
    out = image.copy()
    for _ in range(_TRIES):
        if len(discs) == config.discs:
            break
        diameter, white = float(rng.uniform(*config.diameter)), bool(rng.integers(0, 2))
        margin = config.radius[1] + 4.0
        pixel = rng.uniform([margin, margin], [lens.width - margin, lens.height - margin])
        T = _on_surface(pixel, depth, lens, 0.5 * diameter, rng, config)
        if T is None:
            continue
        radius = radius_in_picture(lens, T, 0.5 * diameter)
        clear = all(math.hypot(pixel[0] - x, pixel[1] - y) > radius + r + 4.0 for x, y, r in taken)
        if not (config.radius[0] <= radius <= config.radius[1] and clear):
            continue
        if not _lay(out, light, lens, T, 0.5 * diameter, noise, rng, config, white=white):
            continue
        taken.append((float(pixel[0]), float(pixel[1]), radius))
        discs.append(TrueDisc(white, lens.project(T.translation), radius, T, diameter))
    return DiscPicture(out, tuple(discs))


def _on_surface(
    pixel: Array, depth: F32 | None, lens: CameraModel, radius: float, rng: np.random.Generator, config: PasteConfig
) -> SE3 | None:
    ray = lens.rays(pixel)
    turn, spin = rng.uniform(0.0, 2.0 * math.pi, 2)
    if depth is None:
        centre = ray / ray[2] * lens.fx * radius / rng.uniform(*config.radius)
        return facing(centre, rng.uniform(0.0, config.tilt_max), turn, spin)
    z = float(depth[round(float(pixel[1])), round(float(pixel[0]))])
    if not 0.0 < z < math.inf:
        return None
    reach = 1.3 * lens.fx * radius / z
    surface = surface_at(depth, lens, np.array([*pixel, reach, reach, 0.0]))
    if surface is None or surface.normal is None or surface.known < 0.9 or surface.spread > config.roughness:
        return None
    if float(-surface.normal @ ray) < math.cos(config.tilt_max):
        return None
    side = np.cross(surface.normal, [math.cos(spin), math.sin(spin), 0.3])
    side /= np.linalg.norm(side)
    axes = np.stack([side, np.cross(surface.normal, side), surface.normal], axis=1)
    return SE3.from_rotation_matrix(axes, ray * surface.distance_along(ray))


def _lay(
    out: U8, light: F32, lens: CameraModel, T: SE3, radius: float, noise: float, rng: np.random.Generator,
    config: PasteConfig, *, white: bool,
) -> bool:  # fmt: skip
    """Paint a disc in place; False if it would not stand out from what is around it."""
    cv2 = opencv()
    u, v = (round(float(value)) for value in lens.project(T.translation))
    around = light[max(v - 30, 0) : v + 31, max(u - 30, 0) : u + 31].reshape(-1, 3)
    lamp = around.mean(axis=0) / config.ground
    lamp = 0.5 * lamp + 0.5 * lamp.mean()  # half of a surface's colour is taken to be the lamp's
    shares = (1.0, float(rng.uniform(*config.mark)))
    paper, toner = float(rng.uniform(*WHITE)), float(rng.uniform(*BLACK))
    colours = [np.clip(albedo * lamp, 0.0, 1.0) for albedo in ((paper, toner) if white else (toner, paper))]
    ring = disc_patch(lens, T, 1.25 * radius)
    body = disc_patch(lens, T, radius)
    if ring is None or body is None:
        return False
    level = 255.0 * float(np.mean(colours[0])) ** (1.0 / GAMMA)
    near = out[ring.rows, ring.columns].astype(np.float64).mean(axis=2)
    edge = ring.share > 0.5
    edge[body.rows.start - ring.rows.start :, body.columns.start - ring.columns.start :][
        : body.share.shape[0], : body.share.shape[1]
    ] &= body.share < 0.5
    if np.mean(np.abs(near[edge] - level) >= config.contrast) < 0.9:
        return False
    for share, colour in zip(shares, colours, strict=True):
        patch = disc_patch(lens, T, share * radius)
        if patch is None:
            continue
        patch = replace(patch, share=cv2.GaussianBlur(patch.share, (0, 0), config.blur))
        patch.paint(light, (float(colour[0]), float(colour[1]), float(colour[2])))
    rows, columns = body.rows, body.columns
    bent = 255.0 * np.clip(light[rows, columns], 0.0, 1.0) ** np.float32(1.0 / GAMMA)
    cover = cv2.GaussianBlur(body.share, (0, 0), config.blur)[..., None]
    shaken = bent + cover * np.float32(noise) * rng.standard_normal(bent.shape, dtype=np.float32)
    out[rows, columns] = np.clip(np.round(shaken), 0.0, 255.0).astype(np.uint8)
    return True
