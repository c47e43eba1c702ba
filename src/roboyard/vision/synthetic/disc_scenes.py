"""Synthetic images of marked discs with exact ground truth, rendered from a seed or pasted into real images."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from roboyard.geometry import SE3, CameraModel
from roboyard.geometry.arrays import F32, U8, Array
from roboyard.vision.discs.disc_detector import estimate_noise
from roboyard.vision.discs.disc_pose import fit_depth_plane
from roboyard.vision.discs.ellipse import project_circle
from roboyard.vision.opencv import opencv
from roboyard.vision.synthetic.rendering import (
    GAMMA,
    add_clutter,
    disc_coverage,
    expose,
    linear_light,
    noise_texture,
    polygon_coverage,
    random_albedo,
)

Range = tuple[float, float]

WHITE, BLACK = (0.80, 0.92), (0.02, 0.06)
"""Range of the albedo of paper and of toner."""
_IMAGE_MARGIN = 4.0  # [px] without discs at the edge of the image
_MAX_ATTEMPTS = 200
_WHITE_THRESHOLD, _BLACK_THRESHOLD, _MIN_DISTINCT_FRACTION = 0.62, 0.10, 0.9
"""Largest albedo around white discs, smallest around black ones, and fraction of the outline that must satisfy it."""


@dataclass(frozen=True)
class DiscImageConfig:
    """Parameters of synthetic images; each image draws from the ranges uniformly.

    Attributes:
        camera_model: Camera model of the images.
        discs: Smallest and largest number of discs.
        radius: Semi-major axis of the discs' ellipses [px].
        disc_radius: Radius of the real discs [m].
        mark_ratio: Radius of the center mark, as a fraction of the disc's.
        tilt: Angle between a disc's normal and the ray to its center [rad].
        background_albedo: Albedo of the background.
        color_variation: Largest relative difference of the background's channels.
        texture: Contrast of the background's texture.
        light: Light of white paper in the center; 1 gives the largest pixel value.
        gradient: Relative change of the light from one side of the image to the other.
        blur: Standard deviation of the point spread [px].
        noise: Standard deviation of a pixel value.
        clutter: Number of boxes, bars, words and blobs.
        distractors: Number of round shapes that are no marked discs.
        occlusion: Fraction of a disc's diameter that is covered from one side.
    """

    camera_model: CameraModel = field(default_factory=lambda: CameraModel(640, 480, 530.0, 530.0))
    discs: tuple[int, int] = (3, 6)
    radius: Range = (6.5, 17.0)
    disc_radius: float = 0.010
    mark_ratio: Range = (0.22, 0.38)
    tilt: Range = (0.0, 0.0)
    background_albedo: Range = (0.12, 0.55)
    color_variation: float = 0.15
    texture: Range = (0.0, 0.0)
    light: Range = (0.8, 1.0)
    gradient: Range = (0.0, 0.0)
    blur: Range = (0.5, 0.8)
    noise: Range = (1.0, 2.0)
    clutter: tuple[int, int] = (0, 0)
    distractors: tuple[int, int] = (0, 0)
    occlusion: Range = (0.0, 0.0)


_TILT = math.radians(40.0)
CONDITIONS: dict[str, DiscImageConfig] = {
    "plain": DiscImageConfig(),
    "tilted": DiscImageConfig(tilt=(0.0, _TILT)),
    "noisy": DiscImageConfig(tilt=(0.0, _TILT), noise=(5.0, 10.0)),
    "blurred": DiscImageConfig(tilt=(0.0, _TILT), blur=(1.0, 1.8)),
    "dark": DiscImageConfig(tilt=(0.0, _TILT), light=(0.04, 0.15), noise=(1.5, 4.0)),
    "uneven light": DiscImageConfig(tilt=(0.0, _TILT), gradient=(0.5, 0.9)),
    "textured": DiscImageConfig(tilt=(0.0, _TILT), texture=(0.3, 0.7)),
    "cluttered": DiscImageConfig(tilt=(0.0, _TILT), clutter=(40, 90), texture=(0.0, 0.3)),
    "distractors": DiscImageConfig(tilt=(0.0, _TILT), distractors=(6, 12)),
    "mixed": DiscImageConfig(
        tilt=(0.0, _TILT), noise=(1.0, 7.0), blur=(0.5, 1.4), light=(0.1, 1.0), gradient=(0.0, 0.6), texture=(0.0, 0.4),
        clutter=(0, 40), distractors=(0, 6),
    ),
    "hidden": DiscImageConfig(tilt=(0.0, _TILT), occlusion=(0.05, 0.2)),
}  # fmt: skip
"""Parameters of the kinds of images by name."""


@dataclass(frozen=True)
class GroundTruthDisc:
    """Ground truth of a disc in a synthetic image.

    Attributes:
        is_white: Whether it is white, not black.
        center: Projection of its center (2,) [px]; differs from the center of its ellipse.
        radius: Semi-major axis of its ellipse [px].
        T_camera_disc: Pose; z points towards the camera.
        diameter: [m].
    """

    is_white: bool
    center: Array
    radius: float
    T_camera_disc: SE3
    diameter: float


@dataclass(frozen=True)
class DiscImage:
    """A synthetic image (h, w, 3) in RGB with the ground truth of its discs."""

    image: U8
    discs: tuple[GroundTruthDisc, ...]


def plane_pose(center: Array, tilt: float, tilt_direction: float, spin: float = 0.0) -> SE3:
    """Return the pose of a plane in the optical frame, with its z axis towards the camera.

    Args:
        center: Position of its origin (3,) [m].
        tilt: Angle between its z axis and the direction to the camera [rad].
        tilt_direction: Direction of the tilt [rad].
        spin: Rotation about its z axis [rad].
    """
    back = -center / np.linalg.norm(center)
    side = np.cross(back, [0.0, 1.0, 0.0])
    side /= np.linalg.norm(side)
    other = np.cross(back, side)
    lean = math.cos(tilt_direction) * side + math.sin(tilt_direction) * other
    normal = math.cos(tilt) * back + math.sin(tilt) * lean
    x = lean * math.cos(tilt) - back * math.sin(tilt)
    y = np.cross(normal, x)
    x, y = math.cos(spin) * x + math.sin(spin) * y, math.cos(spin) * y - math.sin(spin) * x
    return SE3.from_rotation_matrix(np.stack([x, y, normal], axis=1), center)


def render_disc_image(config: DiscImageConfig, seed: int) -> DiscImage:
    """Render an image with its ground truth, reproducible from the seed."""
    rng = np.random.default_rng(seed)
    camera_model = config.camera_model
    albedo = np.empty((camera_model.height, camera_model.width, 3), np.float32)
    albedo[:] = random_albedo(rng, *config.background_albedo, config.color_variation)
    albedo *= noise_texture(rng, camera_model.width, camera_model.height, rng.uniform(*config.texture))[..., None]
    np.clip(albedo, 0.01, 0.95, out=albedo)
    add_clutter(rng, albedo, _count(rng, config.clutter))
    occupied: list[tuple[float, float, float]] = []
    for _ in range(_count(rng, config.distractors)):
        _add_distractor(rng, config, albedo, occupied)
    discs = []
    for _ in range(_count(rng, config.discs)):
        is_white, radius = bool(rng.integers(0, 2)), float(rng.uniform(*config.radius))
        for _ in range(_MAX_ATTEMPTS):
            pose = _sample_pose(rng, config, occupied, radius)
            if pose is not None and _has_contrast(config, albedo, pose, is_white=is_white):
                discs.append(_paint_disc(rng, config, albedo, pose, is_white=is_white))
                break
            if pose is None:
                break
            occupied.pop()
    image = expose(albedo * _illumination(rng, config)[..., None], rng, blur=rng.uniform(*config.blur),
                   noise=rng.uniform(*config.noise))  # fmt: skip
    return DiscImage(image, tuple(discs))


def _count(rng: np.random.Generator, bounds: tuple[int, int]) -> int:
    return int(rng.integers(bounds[0], bounds[1] + 1))


def _illumination(rng: np.random.Generator, config: DiscImageConfig) -> F32:
    x, y = np.meshgrid(
        np.linspace(-0.5, 0.5, config.camera_model.width), np.linspace(-0.5, 0.5, config.camera_model.height)
    )
    angle, slope = rng.uniform(0.0, 2.0 * math.pi), rng.uniform(*config.gradient)
    position = math.cos(angle) * x + math.sin(angle) * y
    return (rng.uniform(*config.light) * (1.0 + slope * position)).astype(np.float32)


def _sample_pose(
    rng: np.random.Generator, config: DiscImageConfig, occupied: list[tuple[float, float, float]], radius: float
) -> SE3 | None:
    """Sample a pose at which the disc overlaps nothing; None if there is no space."""
    camera_model = config.camera_model
    for _ in range(_MAX_ATTEMPTS):
        u, v = (
            float(rng.uniform(radius + _IMAGE_MARGIN, size - radius - _IMAGE_MARGIN))
            for size in (camera_model.width, camera_model.height)
        )
        if all(math.hypot(u - x, v - y) > radius + r + 3.0 for x, y, r in occupied):
            occupied.append((u, v, radius))
            tilt, (tilt_direction, spin) = rng.uniform(*config.tilt), rng.uniform(0.0, 2.0 * math.pi, 2)
            ray = camera_model.rays([u, v])
            position = ray / ray[2] * camera_model.fx * config.disc_radius / radius
            # Off the optical axis projections are larger: move the disc away by this ratio.
            actual_radius = project_radius(
                camera_model, plane_pose(position, tilt, tilt_direction, spin), config.disc_radius
            )
            return plane_pose(position * actual_radius / radius, tilt, tilt_direction, spin)
    return None


def _has_contrast(config: DiscImageConfig, albedo: F32, T_camera_disc: SE3, *, is_white: bool) -> bool:
    """Whether most of the background around a disc's outline differs from the disc's level."""
    angle = np.linspace(0.0, 2.0 * math.pi, 48, endpoint=False)
    rim = 1.2 * config.disc_radius * np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=1)
    columns, rows = np.round(config.camera_model.project(T_camera_disc @ rim)).astype(int).T
    neighborhood = albedo[
        np.clip(rows, 0, config.camera_model.height - 1), np.clip(columns, 0, config.camera_model.width - 1)
    ]
    is_distinct = (
        neighborhood.min(axis=1) < _WHITE_THRESHOLD if is_white else neighborhood.max(axis=1) > _BLACK_THRESHOLD
    )
    return bool(is_distinct.mean() >= _MIN_DISTINCT_FRACTION)


def _paint_disc(
    rng: np.random.Generator, config: DiscImageConfig, albedo: F32, T_camera_disc: SE3, *, is_white: bool
) -> GroundTruthDisc:
    paper, toner = float(rng.uniform(*WHITE)), float(rng.uniform(*BLACK))
    outer, inner = (paper, toner) if is_white else (toner, paper)
    for radius, gray_albedo in ((1.0, outer), (float(rng.uniform(*config.mark_ratio)), inner)):
        patch = disc_coverage(config.camera_model, T_camera_disc, radius * config.disc_radius)
        if patch is not None:
            patch.paint(albedo, (gray_albedo, gray_albedo, gray_albedo))
    occlusion = rng.uniform(*config.occlusion)
    if occlusion > 0.0:
        _occlude(rng, config, albedo, T_camera_disc, occlusion)
    radius = project_radius(config.camera_model, T_camera_disc, config.disc_radius)
    center = config.camera_model.project(T_camera_disc.translation)
    return GroundTruthDisc(is_white, center, radius, T_camera_disc, 2.0 * config.disc_radius)


def project_radius(camera_model: CameraModel, T_camera_disc: SE3, radius: float) -> float:
    """Return the semi-major axis of a disc's ellipse in a camera without distortion [px]."""
    normal = T_camera_disc.rotation_matrix()[:, 2]
    return float(camera_model.fx * project_circle(T_camera_disc.translation, normal, radius)[2])


def _occlude(rng: np.random.Generator, config: DiscImageConfig, albedo: F32, T: SE3, fraction: float) -> None:
    r, angle = config.disc_radius, rng.uniform(0.0, 2.0 * math.pi)
    c, s = math.cos(angle), math.sin(angle)
    edge = r * (1.0 - 2.0 * fraction)
    corners = np.array([[edge, -1.3 * r], [1.6 * r, -1.3 * r], [1.6 * r, 1.3 * r], [edge, 1.3 * r]])
    patch = polygon_coverage(config.camera_model, T, corners @ np.array([[c, s], [-s, c]]))
    if patch is not None:
        patch.paint(albedo, random_albedo(rng, *config.background_albedo, 0.3))


def _add_distractor(
    rng: np.random.Generator, config: DiscImageConfig, albedo: F32, occupied: list[tuple[float, float, float]]
) -> None:
    """Paint a shape that is no marked disc: no or an off-center mark, a hole, a square, too large, too small."""
    kind = int(rng.integers(0, 6))
    radius = {3: rng.uniform(24.0, 40.0), 4: rng.uniform(2.0, 4.0)}.get(kind, rng.uniform(*config.radius))
    T = _sample_pose(rng, config, occupied, float(radius))
    if T is None:
        return
    outer, inner = rng.permutation([rng.uniform(*WHITE), rng.uniform(*BLACK)])
    r = config.disc_radius
    if kind == 2:  # the mark is off-center
        angle, offset = rng.uniform(0.0, 2.0 * math.pi), rng.uniform(0.35, 0.55)
        mark = (T @ SE3((1, 0, 0, 0), (offset * r * math.cos(angle), offset * r * math.sin(angle), 0.0)), 0.3)
    else:
        mark = (T, {0: 0.0, 1: float(rng.uniform(0.72, 0.9))}.get(kind, 0.3))
    if kind == 5:  # a square
        half = 0.9 * r
        shape = polygon_coverage(
            config.camera_model, T, np.array([[-half, -half], [half, -half], [half, half], [-half, half]])
        )
    else:
        shape = disc_coverage(config.camera_model, T, r)
    for patch, gray_albedo in (
        (shape, outer),
        (disc_coverage(config.camera_model, mark[0], mark[1] * r) if mark[1] else None, inner),
    ):
        if patch is not None:
            patch.paint(albedo, (float(gray_albedo),) * 3)


_MAX_PASTE_ATTEMPTS = 400


@dataclass(frozen=True)
class PasteConfig:
    """Parameters of discs that are pasted into an image.

    Attributes:
        discs: Number of discs, if there is space.
        diameter: Range of the diameters of the discs [m].
        radius: Range of the semi-major axes in the image [px].
        tilt_max: Largest angle between a surface's normal and the direction to the camera [rad].
        max_surface_residual: Largest standard deviation of the depth from a plane [m].
        background_albedo: Albedo that surfaces are assumed to have, to estimate the illumination.
        mark_ratio: Range of the mark's radius, as a fraction of the disc's.
        blur: Standard deviation of the camera's point spread function [px].
        min_contrast: Smallest contrast at nine tenths of a disc's outline [gray levels].
    """

    discs: int = 6
    diameter: tuple[float, float] = (0.020, 0.040)
    radius: tuple[float, float] = (6.3, 17.5)
    tilt_max: float = math.radians(40.0)
    max_surface_residual: float = 0.004
    background_albedo: float = 0.55
    mark_ratio: tuple[float, float] = (0.22, 0.38)
    blur: float = 0.7
    min_contrast: float = 12.0


def paste_discs(
    image: U8, depth: F32 | None, camera_model: CameraModel, rng: np.random.Generator, config: PasteConfig | None = None
) -> DiscImage:
    """Return a copy of an image with discs pasted on its surfaces in perspective.

    Args:
        image: (h, w, 3) in RGB.
        depth: (h, w) depth registered to it [m]; None: discs at distances that fit their sizes.
        camera_model: Camera model without distortion.
        rng: Generator of sizes, positions and noise.
        config: Parameters of the discs.
    """
    config = config or PasteConfig()
    light = linear_light(image)
    noise = estimate_noise(np.ascontiguousarray(image[:, :, 1]))
    occupied: list[tuple[float, float, float]] = []
    discs: list[GroundTruthDisc] = []
    out = image.copy()
    for _ in range(_MAX_PASTE_ATTEMPTS):
        if len(discs) == config.discs:
            break
        diameter, is_white = float(rng.uniform(*config.diameter)), bool(rng.integers(0, 2))
        margin = config.radius[1] + 4.0
        pixel = rng.uniform([margin, margin], [camera_model.width - margin, camera_model.height - margin])
        T = _sample_surface_pose(pixel, depth, camera_model, 0.5 * diameter, rng, config)
        if T is None:
            continue
        radius = project_radius(camera_model, T, 0.5 * diameter)
        is_free = all(math.hypot(pixel[0] - x, pixel[1] - y) > radius + r + 4.0 for x, y, r in occupied)
        if not (config.radius[0] <= radius <= config.radius[1] and is_free):
            continue
        disc = GroundTruthDisc(is_white, camera_model.project(T.translation), radius, T, diameter)
        if not _paste_disc(out, light, camera_model, disc, noise, rng, config):
            continue
        occupied.append((float(pixel[0]), float(pixel[1]), radius))
        discs.append(disc)
    return DiscImage(out, tuple(discs))


def _sample_surface_pose(
    pixel: Array,
    depth: F32 | None,
    camera_model: CameraModel,
    radius: float,
    rng: np.random.Generator,
    config: PasteConfig,
) -> SE3 | None:
    ray = camera_model.rays(pixel)
    tilt_direction, spin = rng.uniform(0.0, 2.0 * math.pi, 2)
    if depth is None:
        center = ray / ray[2] * camera_model.fx * radius / rng.uniform(*config.radius)
        return plane_pose(center, rng.uniform(0.0, config.tilt_max), tilt_direction, spin)
    z = float(depth[round(float(pixel[1])), round(float(pixel[0]))])
    if not 0.0 < z < math.inf:
        return None
    projected_radius = 1.3 * camera_model.fx * radius / z
    depth_plane = fit_depth_plane(depth, camera_model, np.array([*pixel, projected_radius, projected_radius, 0.0]))
    if (
        depth_plane is None
        or depth_plane.normal is None
        or depth_plane.valid_fraction < 0.9
        or depth_plane.residual_std > config.max_surface_residual
    ):
        return None
    if float(-depth_plane.normal @ ray) < math.cos(config.tilt_max):
        return None
    side = np.cross(depth_plane.normal, [math.cos(spin), math.sin(spin), 0.3])
    side /= np.linalg.norm(side)
    axes = np.stack([side, np.cross(depth_plane.normal, side), depth_plane.normal], axis=1)
    return SE3.from_rotation_matrix(axes, ray * depth_plane.distance_along(ray))


def _paste_disc(
    out: U8,
    light: F32,
    camera_model: CameraModel,
    disc: GroundTruthDisc,
    noise: float,
    rng: np.random.Generator,
    config: PasteConfig,
) -> bool:
    """Paste a disc in place; False if its contrast to the surroundings is too small."""
    cv2 = opencv()
    T, radius = disc.T_camera_disc, 0.5 * disc.diameter
    u, v = (round(float(value)) for value in disc.center)
    neighborhood = light[max(v - 30, 0) : v + 31, max(u - 30, 0) : u + 31].reshape(-1, 3)
    illumination = neighborhood.mean(axis=0) / config.background_albedo
    illumination = (
        0.5 * illumination + 0.5 * illumination.mean()
    )  # half of a surface's color is attributed to the illumination
    radius_ratios = (1.0, float(rng.uniform(*config.mark_ratio)))
    paper, toner = float(rng.uniform(*WHITE)), float(rng.uniform(*BLACK))
    albedos = (paper, toner) if disc.is_white else (toner, paper)
    colors = [np.clip(albedo * illumination, 0.0, 1.0) for albedo in albedos]
    ring = disc_coverage(camera_model, T, 1.25 * radius)
    inside = disc_coverage(camera_model, T, radius)
    if ring is None or inside is None:
        return False
    level = 255.0 * float(np.mean(colors[0])) ** (1.0 / GAMMA)
    ring_levels = out[ring.rows, ring.columns].astype(np.float64).mean(axis=2)
    is_edge = ring.alpha > 0.5
    is_edge[inside.rows.start - ring.rows.start :, inside.columns.start - ring.columns.start :][
        : inside.alpha.shape[0], : inside.alpha.shape[1]
    ] &= inside.alpha < 0.5
    if np.mean(np.abs(ring_levels[is_edge] - level) >= config.min_contrast) < 0.9:
        return False
    for ratio, color in zip(radius_ratios, colors, strict=True):
        patch = disc_coverage(camera_model, T, ratio * radius)
        if patch is None:
            continue
        patch = replace(patch, alpha=cv2.GaussianBlur(patch.alpha, (0, 0), config.blur))
        patch.paint(light, (float(color[0]), float(color[1]), float(color[2])))
    rows, columns = inside.rows, inside.columns
    pixel_values = 255.0 * np.clip(light[rows, columns], 0.0, 1.0) ** np.float32(1.0 / GAMMA)
    alpha = cv2.GaussianBlur(inside.alpha, (0, 0), config.blur)[..., None]
    noisy_values = pixel_values + alpha * np.float32(noise) * rng.standard_normal(pixel_values.shape, dtype=np.float32)
    out[rows, columns] = np.clip(np.round(noisy_values), 0.0, 255.0).astype(np.uint8)
    return True
