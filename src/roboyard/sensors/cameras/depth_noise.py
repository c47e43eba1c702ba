"""Errors of measured depth: published noise models, shadows and lost pixels; pure functions over images.

The models, by the name that a description gives. θ is the angle of incidence, the angle between a ray and the normal.

``khoshelham``
    Kinect v1 and devices like it. Inverse depth is quantized in steps of 2.85e-3 / m, and its random error is half a
    step: σ(z) = 1.425e-3 z². K. Khoshelham, S. Elberink, "Accuracy and resolution of Kinect depth data for indoor
    mapping applications", Sensors 12 (2012), equations 6 to 8 and figure 10. Quantization alone has a standard
    deviation of 1/√12 of a step; `measure_depth` adds √(1/4 − 1/12) of a step before it rounds.
``nguyen``
    σ(z, θ) = 0.0012 + 0.0019 (z − 0.4)², and for θ above 60° the additional term 0.0001 / √z · θ² / (π/2 − θ)².
    Depth at edges is that of a pixel beside it, with a lateral σ of 0.8 + 0.035 θ / (π/2 − θ) pixels. C. Nguyen,
    S. Izadi, D. Lovell, "Modeling Kinect sensor noise for improved 3D reconstruction and tracking", 3DIMPVT 2012,
    equations 1 to 4.
``handa``
    Disparity in eighths of a pixel, 351.3 m / z, with σ = 1/6 before rounding, and a lateral σ of half a pixel at
    edges. J. T. Barron, J. Malik, "Intrinsic scene properties from a single RGB-D image", CVPR 2013, as used by
    A. Handa et al., "A benchmark for RGB-D visual odometry, 3D reconstruction and SLAM", ICRA 2014, equation 3.
``stereo``
    Disparity f B / z with a given σ_d, rounded to sixteenths of a pixel: σ(z) = z² / (f B) · √(σ_d² + (1/16)² / 12).
``gaussian``
    White noise with a mean, as SDF defines it.

The lateral σ of ``khoshelham`` and ``stereo``, whose sources give none, is that of ``handa``.

These parts have no published source; their constants are chosen to look like recordings:

- Nearer than ``near_blur_distance`` the dots of a projected pattern blur: the standard deviation is multiplied by
  (near_blur_distance / z)². Data sheets give a smallest distance, and say nothing of what is measured below it.
- All models but ``gaussian`` measure nothing where the second ray does not reach: the projector's, or the other
  camera's.
- With a projected pattern, surfaces from which too little of it returns (dark, far, at a large angle of incidence,
  mirrors) and a fraction of the windows across an edge give no depth.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.description.sensors import DepthNoise
from roboyard.geometry import CameraModel
from roboyard.geometry.arrays import F32
from roboyard.sensors.cameras.image_noise import (
    N_UINT16_VALUES,
    draw_uint8_normals,
    draw_uint16_normals,
    uint8_normal_table,
    uint16_normal_table,
)

KHOSHELHAM_STEP = 2.85e-3
"""Step of inverse depth, by Khoshelham and Elberink [1/m]."""
KHOSHELHAM_STDDEV = math.sqrt(0.25 - 1.0 / 12.0)
HANDA_STEP, HANDA_STDDEV = 1.0 / 351.3, 1.0 / 6.0
SUBPIXEL_STEP = 1.0 / 16.0
"""Steps of a stereo matcher's disparity [px]."""
PATTERN_RANGE_FACTOR = 3.0
"""A white surface at normal incidence returns enough of the pattern up to this multiple of the largest range."""
INCIDENCE_LOSS_START, INCIDENCE_LOSS_END = math.radians(78.0), math.radians(85.0)
"""Angles of incidence at which pixels begin to be lost, and are all lost [rad]."""
MATCHING_HALF_WINDOW = 2
"""Half the size of the window over which a pattern is matched: an edge within it disturbs the match [px]."""
EDGE_DEPTH_RATIO = 0.04
"""Depth that differs by this fraction within the window is an edge."""
EDGE_LOSS_PROBABILITY = 0.4
"""Fraction of the windows across an edge that give no depth."""
MIN_LUMINANCE = 0.003
"""A stereo pair gives no depth where linear luminance is below this."""
_KHOSHELHAM, _NGUYEN, _HANDA, _STEREO = range(4)
_MODELS = {"khoshelham": _KHOSHELHAM, "nguyen": _NGUYEN, "handa": _HANDA, "stereo": _STEREO}
_LATERAL_STDDEV = {"khoshelham": 0.5, "nguyen": 0.8, "handa": 0.5, "stereo": 0.5}


def depth_stddev(
    noise: DepthNoise, z: NDArray[np.float64], focal: float = 0.0, baseline: float = 0.0
) -> NDArray[np.float64]:
    """Return the published standard deviation of depth at ``z`` for surfaces at normal incidence [m].

    Args:
        noise: The model.
        z: True depth [m].
        focal: Focal length of a stereo pair [px].
        baseline: Baseline of the pair [m].
    """
    blur_factor: NDArray[np.float64] = np.maximum(noise.near_blur_distance / z, 1.0) ** 2
    if noise.model == "khoshelham":
        return 0.5 * KHOSHELHAM_STEP * z * z * blur_factor
    if noise.model == "nguyen":
        return (0.0012 + 0.0019 * (z - 0.4) ** 2) * blur_factor
    if noise.model == "handa":
        return z * z * HANDA_STEP * math.sqrt(HANDA_STDDEV**2 + 1.0 / 12.0) * blur_factor
    if noise.model == "stereo":
        return z * z / (focal * baseline) * math.hypot(noise.disparity_stddev, SUBPIXEL_STEP / math.sqrt(12.0))
    return np.full_like(z, noise.noise.stddev)


def expect_depth_noise(noise: DepthNoise, baseline: float) -> None:
    """Announce the kernels that `measure_depth` calls with these arguments, so that they are compiled in advance."""
    if noise.model in ("ideal", "gaussian"):
        return
    expect_kernels(_apply_noise_model)
    if baseline if noise.model == "stereo" else noise.baseline:
        expect_kernels(_mark_shadow)


class SurfaceImages(NamedTuple):
    """What a depth camera's losses depend on, beside depth; None where it does not matter.

    Attributes:
        reflectance: (h, w) fraction of the light that surfaces reflect, 0 … 1; negative: a mirror; None: 1.
        luminance: (h, w) linear, for a stereo pair; None: bright everywhere.
    """

    reflectance: F32 | None = None
    luminance: F32 | None = None


_BRIGHT_SURFACES = SurfaceImages()
_NO_IMAGE = np.ones((1, 1), np.float32)


def measure_depth(
    depth: F32,
    camera_model: CameraModel,
    noise: DepthNoise,
    rng: np.random.Generator,
    *,
    near: float,
    far: float,
    baseline: float = 0.0,
    surfaces: SurfaceImages = _BRIGHT_SURFACES,
) -> F32:
    """Return the depth that a depth camera reports.

    Args:
        depth: (h, w) true depth along the axis [m]; 0: no surface.
        camera_model: Of the depth camera.
        noise: The model.
        rng: Draws the noise.
        near: Smallest range [m].
        far: Largest range [m].
        baseline: Baseline of a stereo pair [m].
        surfaces: Reflectance and luminance of the surfaces.

    Returns:
        (h, w) float32 [m]; REP 118: ``inf`` too far, ``-inf`` too near, NaN: no depth could be measured. With a
        projected pattern these cases cannot be distinguished; all are NaN.
    """
    if noise.model in ("ideal", "gaussian"):
        found = depth
        stddev = noise.noise.stddev
        if noise.model == "gaussian" and (stddev > 0.0 or noise.noise.mean):
            white_noise = rng.standard_normal(depth.shape, dtype=np.float32) if stddev > 0.0 else np.float32(0.0)
            found = depth + np.float32(noise.noise.mean) + np.float32(stddev) * white_noise
        out = np.where(depth > 0.0, found, np.float32(np.inf)).astype(np.float32)
        out[depth > far] = np.inf
        out[(depth > 0.0) & (depth < near)] = -np.inf
        return out
    height, width = depth.shape
    draws = _NoiseDraws(
        draw_uint16_normals(rng, (height, width)),
        draw_uint8_normals(rng, (2, height, width)),
        draw_uint16_normals(rng, (height, width)),
    )
    shadow = np.zeros((height, width), np.bool_)
    shadow_baseline = baseline if noise.model == "stereo" else noise.baseline
    if shadow_baseline:
        _mark_shadow(depth, camera_model.fx * shadow_baseline, shadow)
    inputs = _DepthInputs(
        depth,
        shadow,
        _NO_IMAGE if surfaces.reflectance is None else surfaces.reflectance,
        _NO_IMAGE if surfaces.luminance is None else surfaces.luminance,
    )
    parameters = _DepthNoiseParameters(
        _MODELS[noise.model], _LATERAL_STDDEV[noise.model], camera_model.fx * baseline, noise.disparity_stddev,
        max(near, 1e-3), far, noise.near_blur_distance, noise.uses_pattern,
    )  # fmt: skip
    slopes = np.concatenate(camera_model.pinhole_slopes()).astype(np.float32)
    out = np.empty((height, width), np.float32)
    _apply_noise_model(inputs, slopes, draws, _normal_tables(), parameters, out)
    return out


@kernel(examples=lambda: [(np.zeros((1, 1), np.float32), 1.0, np.zeros((1, 1), np.bool_))], error_model="numpy")
def _mark_shadow(depth: F32, focal_baseline: float, shadow: NDArray[np.bool_]) -> None:
    """Mark the pixels of each row that nearer pixels hide from a second point of view beside the camera.

    Seen from there, a pixel at column u and depth z lies at column u − f b / z. It is hidden where a pixel that comes
    before it, from that side, lies at the same column or beyond.

    Args:
        depth: (h, w) [m]; 0: no surface.
        focal_baseline: Focal length times the offset b of the second point, positive to the right [px m].
        shadow: (h, w) written where hidden.
    """
    height, width = depth.shape
    for row in range(height):
        # From the side of the other point: the pixels passed so far cover everything up to `covered_column`.
        covered_column = math.inf
        for step in range(width):
            u = step if focal_baseline < 0.0 else width - 1 - step
            z = depth[row, u]
            if z <= 0.0:
                continue
            projected_column = u - focal_baseline / z
            if focal_baseline < 0.0:
                projected_column = -projected_column
            if projected_column > covered_column + 0.5:
                shadow[row, u] = True
            covered_column = min(covered_column, projected_column)


@kernel(examples=lambda: [(np.zeros(3, np.float32), np.zeros(3, np.float32))], error_model="numpy")
def _column_gradients(row_depth: F32, column_gradient: F32) -> None:
    """Compute the depth difference from column to column, on the smoother side of each column."""
    last = len(row_depth) - 1
    for column in range(1, last):
        before, behind = row_depth[column] - row_depth[column - 1], row_depth[column + 1] - row_depth[column]
        column_gradient[column] = behind if abs(behind) < abs(before) else before
    column_gradient[0] = row_depth[min(1, last)] - row_depth[0]
    column_gradient[last] = row_depth[last] - row_depth[max(last - 1, 0)]


class _DepthRows(NamedTuple):
    """A row of a depth image and its neighbors, (w,) each; at a border the neighbor inside stands for the outer one."""

    row: F32
    upper: F32
    lower: F32
    is_first: bool


class _RowSlopes(NamedTuple):
    """Slopes of the rays of a row: x / z (w,), y / z, and pixels for each unit of x / z and y / z."""

    x: F32
    y: float | np.float32
    columns_per_slope: float
    rows_per_slope: float


def _example_incidence_cosines() -> list[tuple[object, ...]]:
    row = np.zeros(3, np.float32)
    return [(_DepthRows(row, row, row, True), row, _RowSlopes(row, np.float32(0.0), 1.0, 1.0), row)]


@kernel(examples=_example_incidence_cosines, error_model="numpy")
def _incidence_cosines(rows: _DepthRows, column_gradient: F32, slopes_of_row: _RowSlopes, out: F32) -> None:
    """Compute the cosine of the angle between each pixel's ray and the surface's normal, in vector instructions."""
    row_depth, upper_row, lower_row, first = rows
    slopes, y, per_dx, per_dy = slopes_of_row
    one, min_square, kx, ky = np.float32(1.0), np.float32(1e-24), np.float32(per_dx), np.float32(per_dy)
    for column in range(len(row_depth)):
        z, x = row_depth[column], slopes[column]
        above, below = z - upper_row[column], lower_row[column] - z
        row_gradient = below if first or abs(below) < abs(above) else above
        # Normal of the surface z(x, y) along the rays: ∂P/∂column × ∂P/∂row.
        p, q = column_gradient[column] * kx, row_gradient * ky
        nz = z + p * x + q * y
        square = max(p * p + q * q + nz * nz, min_square)
        out[column] = min(z / np.sqrt((one + x * x + y * y) * square), one)


class _DepthInputs(NamedTuple):
    """Images (h, w) of true depth, shadow, reflectance and luminance; an image of one pixel is not used."""

    depth: F32
    shadow: NDArray[np.bool_]
    reflectance: F32
    luminance: F32


class _NoiseDraws(NamedTuple):
    """Random numbers of each pixel: axial noise and uniform words (h, w), lateral noise (2, h, w)."""

    axial: NDArray[np.uint16]
    lateral: NDArray[np.uint8]
    uniform: NDArray[np.uint16]


class _NormalTables(NamedTuple):
    """Normal numbers of 16-bit and 8-bit words, see `image_noise`."""

    fine: F32
    coarse: F32


class _DepthNoiseParameters(NamedTuple):
    """Numbers of a noise model: its index, lateral σ [px], focal length times baseline [px m], σ of disparity [px],
    smallest and largest range [m], distance below which a pattern blurs [m], whether it uses a pattern.
    """

    model: int
    lateral_stddev: float
    focal_baseline: float
    disparity_stddev: float
    near: float
    far: float
    near_blur_distance: float
    uses_pattern: bool


def _normal_tables() -> _NormalTables:
    return _NormalTables(uint16_normal_table(), uint8_normal_table())


def _example_apply_noise_model() -> list[tuple[object, ...]]:
    image, shadow, rng = np.zeros((1, 1), np.float32), np.zeros((1, 1), np.bool_), np.random.default_rng(0)
    words, lateral = draw_uint16_normals(rng, (1, 1)), draw_uint8_normals(rng, (2, 1, 1))
    parameters = _DepthNoiseParameters(0, 0.5, 40.0, 0.2, 0.1, 5.0, 0.0, True)
    inputs, slopes = _DepthInputs(image, shadow, image, image), np.zeros(2, np.float32)
    return [(inputs, slopes, _NoiseDraws(words, lateral, words), _normal_tables(), parameters, image)]


@kernel(examples=_example_apply_noise_model, error_model="numpy")
def _apply_noise_model(
    inputs: _DepthInputs,
    slopes: F32,
    draws: _NoiseDraws,
    tables: _NormalTables,
    parameters: _DepthNoiseParameters,
    out: F32,
) -> None:
    """Write measured depth (h, w); ``slopes`` (w + h,) are x / z of each column, then y / z of each row."""
    depth, shadow, reflectance, luminance = inputs
    axial, lateral, random_words = draws
    fine_normal_table, normal_table = tables
    model, lateral_stddev, focal_baseline, disparity_stddev, near, far, near_blur_distance, uses_pattern = parameters
    height, width = depth.shape
    has_reflectance, has_luminance = reflectance.shape == depth.shape, luminance.shape == depth.shape
    min_signal = 1.0 / (PATTERN_RANGE_FACTOR * far) ** 2
    per_dx = 1.0 / float(slopes[1] - slopes[0]) if width > 1 else 1.0
    per_dy = 1.0 / float(slopes[width + 1] - slopes[width]) if height > 1 else 1.0
    column_gradient, cosines = np.empty(width, np.float32), np.empty(width, np.float32)
    for row in range(height):
        # Rows as separate arrays: indexing them is cheap.
        row_depth = depth[row]
        _column_gradients(row_depth, column_gradient)
        upper_row, lower_row = depth[row - 1 if row > 0 else min(1, height - 1)], depth[min(row + 1, height - 1)]
        rows = _DepthRows(row_depth, upper_row, lower_row, row == 0)
        _incidence_cosines(rows, column_gradient, _RowSlopes(slopes, slopes[width + row], per_dx, per_dy), cosines)
        top, bottom = depth[max(row - MATCHING_HALF_WINDOW, 0)], depth[min(row + MATCHING_HALF_WINDOW, height - 1)]
        for column in range(width):
            out[row, column] = np.float32(math.nan)
            depth_here = row_depth[column]
            if depth_here <= 0.0 or shadow[row, column]:
                continue
            # At an edge the pixel may have its neighbor's depth, or none.
            limit = np.float32(EDGE_DEPTH_RATIO) * depth_here
            is_edge = (
                abs(row_depth[max(column - MATCHING_HALF_WINDOW, 0)] - depth_here) > limit
                or abs(row_depth[min(column + MATCHING_HALF_WINDOW, width - 1)] - depth_here) > limit
                or abs(top[column] - depth_here) > limit
                or abs(bottom[column] - depth_here) > limit
            )
            z, cosine = float(depth_here), float(cosines[column])
            # The angle matters only far from the normal.
            angle = math.acos(cosine) if cosine < 0.5 or is_edge else 0.0
            uniform = (float(random_words[row, column]) + 0.5) / N_UINT16_VALUES
            if uses_pattern:
                pixel_reflectance = 1.0
                if has_reflectance:
                    pixel_reflectance = float(reflectance[row, column])
                if pixel_reflectance < 0.0:
                    continue
                signal = pixel_reflectance * cosine / (z * z * min_signal)
                signal *= signal
                # Lost with probability 1 / (1 + signal⁴), and more often at a large angle of incidence.
                incidence_loss = min(
                    max((angle - INCIDENCE_LOSS_START) / (INCIDENCE_LOSS_END - INCIDENCE_LOSS_START), 0.0), 1.0
                )
                if (uniform - incidence_loss) * (1.0 + signal * signal) < 1.0:
                    continue
            elif has_luminance and luminance[row, column] < MIN_LUMINANCE:
                continue
            if is_edge:
                if uniform > 1.0 - EDGE_LOSS_PROBABILITY:
                    continue
                shift = lateral_stddev
                if model == _NGUYEN:
                    shift += 0.035 * angle / max(0.5 * math.pi - angle, 0.05)
                u = column + round(shift * float(normal_table[lateral[0, row, column]]))
                v = row + round(shift * float(normal_table[lateral[1, row, column]]))
                u, v = min(max(u, 0), width - 1), min(max(v, 0), height - 1)
                z = float(depth[v, u])
                if z <= 0.0:
                    continue
            white_noise = float(fine_normal_table[axial[row, column]])
            if uses_pattern and z < near_blur_distance:
                white_noise *= (near_blur_distance / z) ** 2
            if model == _KHOSHELHAM:
                steps = round(1.0 / (z * KHOSHELHAM_STEP) + KHOSHELHAM_STDDEV * white_noise)
                z = 1.0 / (KHOSHELHAM_STEP * steps) if steps > 0.0 else math.inf
            elif model == _NGUYEN:
                spread = 0.0012 + 0.0019 * (z - 0.4) ** 2
                if angle > math.radians(60.0):
                    grazing_angle = 0.5 * math.pi - angle
                    spread += 0.0001 / math.sqrt(z) * angle * angle / max(grazing_angle * grazing_angle, 1e-4)
                z += spread * white_noise
            elif model == _HANDA:
                steps = math.floor(1.0 / (z * HANDA_STEP) + HANDA_STDDEV * white_noise + 0.5)
                z = 1.0 / (HANDA_STEP * steps) if steps > 0.0 else math.inf
            else:
                noisy_disparity = focal_baseline / z + disparity_stddev * white_noise
                noisy_disparity = SUBPIXEL_STEP * round(noisy_disparity / SUBPIXEL_STEP)
                z = focal_baseline / noisy_disparity if noisy_disparity > 0.0 else math.inf
            if near <= z <= far:
                out[row, column] = np.float32(z)
            elif not uses_pattern:
                out[row, column] = np.float32(math.inf if z > far else -math.inf)
