"""Pictures of marked discs with exact truth, drawn by seed: what a detector is developed and measured on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from roboyard.geometry import SE3, CameraModel
from roboyard.geometry.arrays import F32, U8, Array
from roboyard.vision.discs.circles import circle_ellipse
from roboyard.vision.synthetic.coverage import disc_patch, polygon_patch
from roboyard.vision.synthetic.exposure import expose
from roboyard.vision.synthetic.surfaces import clutter, texture, tint

Range = tuple[float, float]

WHITE, BLACK = (0.80, 0.92), (0.02, 0.06)
"""Albedo of paper and of toner."""
_CORNER = 4.0  # [px] kept free at the edge of the picture
_TRIES = 200
_NEARLY_WHITE, _NEARLY_BLACK, _SEEN = 0.62, 0.10, 0.9
"""Albedo from which on white does not stand out, below which black does not, and share of the outline that must."""


@dataclass(frozen=True)
class PictureConfig:
    """What pictures are made of; ranges are drawn from evenly, for each picture anew.

    Attributes:
        lens: Of the camera.
        discs: How many, at least and at most.
        radius: Longer half axis of the ellipses as which discs are seen [px].
        disc_radius: Of the real discs [m].
        mark: Radius of the centre mark, as a share of the disc's.
        tilt: Between a disc's normal and the ray to its centre [rad].
        ground: Albedo of what lies below.
        colour: By so much its channels differ at most.
        texture: Its contrast.
        light: Of a white paper in the middle, 1 being the lightest byte.
        gradient: By this share the light changes from one side of the picture to the other.
        blur: Standard deviation of the point spread [px].
        noise: Of a byte.
        clutter: Boxes, bars, words and blobs.
        distractors: Round things that are no marked discs.
        hidden: Share of a disc's diameter that something covers, from one side.
    """

    lens: CameraModel = field(default_factory=lambda: CameraModel(640, 480, 530.0, 530.0))
    discs: tuple[int, int] = (3, 6)
    radius: Range = (6.5, 17.0)
    disc_radius: float = 0.010
    mark: Range = (0.22, 0.38)
    tilt: Range = (0.0, 0.0)
    ground: Range = (0.12, 0.55)
    colour: float = 0.15
    texture: Range = (0.0, 0.0)
    light: Range = (0.8, 1.0)
    gradient: Range = (0.0, 0.0)
    blur: Range = (0.5, 0.8)
    noise: Range = (1.0, 2.0)
    clutter: tuple[int, int] = (0, 0)
    distractors: tuple[int, int] = (0, 0)
    hidden: Range = (0.0, 0.0)


_TILT = math.radians(40.0)
CONDITIONS: dict[str, PictureConfig] = {
    "plain": PictureConfig(),
    "tilted": PictureConfig(tilt=(0.0, _TILT)),
    "noisy": PictureConfig(tilt=(0.0, _TILT), noise=(5.0, 10.0)),
    "blurred": PictureConfig(tilt=(0.0, _TILT), blur=(1.0, 1.8)),
    "dark": PictureConfig(tilt=(0.0, _TILT), light=(0.04, 0.15), noise=(1.5, 4.0)),
    "uneven light": PictureConfig(tilt=(0.0, _TILT), gradient=(0.5, 0.9)),
    "textured": PictureConfig(tilt=(0.0, _TILT), texture=(0.3, 0.7)),
    "cluttered": PictureConfig(tilt=(0.0, _TILT), clutter=(40, 90), texture=(0.0, 0.3)),
    "distractors": PictureConfig(tilt=(0.0, _TILT), distractors=(6, 12)),
    "mixed": PictureConfig(
        tilt=(0.0, _TILT), noise=(1.0, 7.0), blur=(0.5, 1.4), light=(0.1, 1.0), gradient=(0.0, 0.6), texture=(0.0, 0.4),
        clutter=(0, 40), distractors=(0, 6),
    ),
    "hidden": PictureConfig(tilt=(0.0, _TILT), hidden=(0.05, 0.2)),
}  # fmt: skip
"""Kinds of pictures by name."""


@dataclass(frozen=True)
class TrueDisc:
    """A disc that is in a picture.

    Attributes:
        white: Or black.
        centre: Projection of its centre (2,) [px]; not the middle of the ellipse that it is seen as.
        radius: Longer half axis of that ellipse [px].
        T_camera_disc: Pose; z points towards the camera.
        diameter: [m].
    """

    white: bool
    centre: Array
    radius: float
    T_camera_disc: SE3
    diameter: float


@dataclass(frozen=True)
class DiscPicture:
    """A picture (h, w, 3) in RGB, and the discs in it."""

    image: U8
    discs: tuple[TrueDisc, ...]


def facing(centre: Array, tilt: float, turn: float, spin: float = 0.0) -> SE3:
    """Pose of a plane in the optical frame, its z towards the camera.

    Args:
        centre: (3,) [m].
        tilt: Between z and the way to the camera [rad].
        turn: In which direction it leans [rad].
        spin: About z [rad].
    """
    back = -centre / np.linalg.norm(centre)
    side = np.cross(back, [0.0, 1.0, 0.0])
    side /= np.linalg.norm(side)
    other = np.cross(back, side)
    lean = math.cos(turn) * side + math.sin(turn) * other
    normal = math.cos(tilt) * back + math.sin(tilt) * lean
    x = lean * math.cos(tilt) - back * math.sin(tilt)
    y = np.cross(normal, x)
    x, y = math.cos(spin) * x + math.sin(spin) * y, math.cos(spin) * y - math.sin(spin) * x
    return SE3.from_rotation_matrix(np.stack([x, y, normal], axis=1), centre)


def disc_picture(config: PictureConfig, seed: int) -> DiscPicture:
    """One picture; the same for the same seed."""
    rng = np.random.default_rng(seed)
    lens = config.lens
    albedo = np.empty((lens.height, lens.width, 3), np.float32)
    albedo[:] = tint(rng, *config.ground, config.colour)
    albedo *= texture(rng, lens.width, lens.height, rng.uniform(*config.texture))[..., None]
    np.clip(albedo, 0.01, 0.95, out=albedo)
    clutter(rng, albedo, _count(rng, config.clutter))
    taken: list[tuple[float, float, float]] = []
    for _ in range(_count(rng, config.distractors)):
        _distract(rng, config, albedo, taken)
    discs = []
    for _ in range(_count(rng, config.discs)):
        white, radius = bool(rng.integers(0, 2)), float(rng.uniform(*config.radius))
        for _ in range(_TRIES):
            place = _place(rng, config, taken, radius)
            if place is not None and _stands_out(config, albedo, place, white=white):
                discs.append(_lay(rng, config, albedo, place, white=white))
                break
            if place is None:
                break
            taken.pop()
    image = expose(albedo * _light(rng, config)[..., None], rng, blur=rng.uniform(*config.blur),
                   noise=rng.uniform(*config.noise))  # fmt: skip
    return DiscPicture(image, tuple(discs))


def _count(rng: np.random.Generator, bounds: tuple[int, int]) -> int:
    return int(rng.integers(bounds[0], bounds[1] + 1))


def _light(rng: np.random.Generator, config: PictureConfig) -> F32:
    x, y = np.meshgrid(np.linspace(-0.5, 0.5, config.lens.width), np.linspace(-0.5, 0.5, config.lens.height))
    angle, slope = rng.uniform(0.0, 2.0 * math.pi), rng.uniform(*config.gradient)
    way = math.cos(angle) * x + math.sin(angle) * y
    return (rng.uniform(*config.light) * (1.0 + slope * way)).astype(np.float32)


def _place(
    rng: np.random.Generator, config: PictureConfig, taken: list[tuple[float, float, float]], radius: float
) -> SE3 | None:
    """A pose at which the disc overlaps nothing; None if there is no room."""
    lens = config.lens
    for _ in range(_TRIES):
        u, v = (float(rng.uniform(radius + _CORNER, size - radius - _CORNER)) for size in (lens.width, lens.height))
        if all(math.hypot(u - x, v - y) > radius + r + 3.0 for x, y, r in taken):
            taken.append((u, v, radius))
            tilt, (turn, spin) = rng.uniform(*config.tilt), rng.uniform(0.0, 2.0 * math.pi, 2)
            ray = lens.rays([u, v])
            near = ray / ray[2] * lens.fx * config.disc_radius / radius
            # Beside the axis things look larger: move it away by as much.
            seen = radius_in_picture(lens, facing(near, tilt, turn, spin), config.disc_radius)
            return facing(near * seen / radius, tilt, turn, spin)
    return None


def _stands_out(config: PictureConfig, albedo: F32, T_camera_disc: SE3, *, white: bool) -> bool:
    """Whether most of a disc's outline lies before something that is neither white nor black as the disc is."""
    angle = np.linspace(0.0, 2.0 * math.pi, 48, endpoint=False)
    rim = 1.2 * config.disc_radius * np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=1)
    columns, rows = np.round(config.lens.project(T_camera_disc @ rim)).astype(int).T
    around = albedo[np.clip(rows, 0, config.lens.height - 1), np.clip(columns, 0, config.lens.width - 1)]
    apart = around.min(axis=1) < _NEARLY_WHITE if white else around.max(axis=1) > _NEARLY_BLACK
    return bool(apart.mean() >= _SEEN)


def _lay(rng: np.random.Generator, config: PictureConfig, albedo: F32, T_camera_disc: SE3, *, white: bool) -> TrueDisc:
    paper, toner = float(rng.uniform(*WHITE)), float(rng.uniform(*BLACK))
    outer, inner = (paper, toner) if white else (toner, paper)
    for radius, colour in ((1.0, outer), (float(rng.uniform(*config.mark)), inner)):
        patch = disc_patch(config.lens, T_camera_disc, radius * config.disc_radius)
        if patch is not None:
            patch.paint(albedo, (colour, colour, colour))
    hidden = rng.uniform(*config.hidden)
    if hidden > 0.0:
        _cover(rng, config, albedo, T_camera_disc, hidden)
    radius = radius_in_picture(config.lens, T_camera_disc, config.disc_radius)
    centre = config.lens.project(T_camera_disc.translation)
    return TrueDisc(white, centre, radius, T_camera_disc, 2.0 * config.disc_radius)


def radius_in_picture(lens: CameraModel, T_camera_disc: SE3, radius: float) -> float:
    """Longer half axis of the ellipse as which a disc is seen by a lens without distortion [px]."""
    normal = T_camera_disc.rotation_matrix()[:, 2]
    return float(lens.fx * circle_ellipse(T_camera_disc.translation, normal, radius)[2])


def _cover(rng: np.random.Generator, config: PictureConfig, albedo: F32, T: SE3, share: float) -> None:
    r, angle = config.disc_radius, rng.uniform(0.0, 2.0 * math.pi)
    c, s = math.cos(angle), math.sin(angle)
    edge = r * (1.0 - 2.0 * share)
    corners = np.array([[edge, -1.3 * r], [1.6 * r, -1.3 * r], [1.6 * r, 1.3 * r], [edge, 1.3 * r]])
    patch = polygon_patch(config.lens, T, corners @ np.array([[c, s], [-s, c]]))
    if patch is not None:
        patch.paint(albedo, tint(rng, *config.ground, 0.3))


def _distract(
    rng: np.random.Generator, config: PictureConfig, albedo: F32, taken: list[tuple[float, float, float]]
) -> None:
    """Lay something round that is no marked disc: without a mark, with a hole, a mark astray, too large, too small."""
    kind = int(rng.integers(0, 6))
    radius = {3: rng.uniform(24.0, 40.0), 4: rng.uniform(2.0, 4.0)}.get(kind, rng.uniform(*config.radius))
    T = _place(rng, config, taken, float(radius))
    if T is None:
        return
    outer, inner = rng.permutation([rng.uniform(*WHITE), rng.uniform(*BLACK)])
    r = config.disc_radius
    if kind == 2:  # the mark lies off the middle
        angle, way = rng.uniform(0.0, 2.0 * math.pi), rng.uniform(0.35, 0.55)
        mark = (T @ SE3((1, 0, 0, 0), (way * r * math.cos(angle), way * r * math.sin(angle), 0.0)), 0.3)
    else:
        mark = (T, {0: 0.0, 1: float(rng.uniform(0.72, 0.9))}.get(kind, 0.3))
    if kind == 5:  # a square
        half = 0.9 * r
        body = polygon_patch(config.lens, T, np.array([[-half, -half], [half, -half], [half, half], [-half, half]]))
    else:
        body = disc_patch(config.lens, T, r)
    for patch, colour in ((body, outer), (disc_patch(config.lens, mark[0], mark[1] * r) if mark[1] else None, inner)):
        if patch is not None:
            patch.paint(albedo, (float(colour),) * 3)
