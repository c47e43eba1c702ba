"""How measured depth differs from true depth; pure functions over images.

The models, by the name a description gives:

``khoshelham``
    Kinect v1 and its kin.  Inverse depth comes in whole steps of 2.85e-3 / m, and its random error is half a step:
    σ(z) = 1.425e-3 z².  K. Khoshelham, S. Elberink, "Accuracy and resolution of Kinect depth data for indoor mapping
    applications", Sensors 12 (2012), equations 6 to 8 and figure 10.  Steps alone scatter by 1/√12 of a step; what is
    added is the rest.
``nguyen``
    σ(z, θ) = 0.0012 + 0.0019 (z − 0.4)² for surfaces met up to 60° aslant, more beyond, and edges that jump by
    0.8 + 0.035 θ / (π/2 − θ) pixels.  C. Nguyen, S. Izadi, D. Lovell, "Modeling Kinect sensor noise for improved 3D
    reconstruction and tracking", 3DIMPVT 2012, equations 1 to 4.
``handa``
    Disparity in eighths of a pixel, 351.3 m / z, with σ = 1/6 before rounding, and edges that jump by half a pixel.
    J. T. Barron, J. Malik, "Intrinsic scene properties from a single RGB-D image", CVPR 2013, as used by A. Handa et
    al., "A benchmark for RGB-D visual odometry, 3D reconstruction and SLAM", ICRA 2014, equation 3.
``stereo``
    Disparity f B / z with a given σ and sixteenths of a pixel: σ(z) = z² / (f B) · σ_d.
``gaussian``
    White noise, as SDF has it.

Nearer than ``close`` the pattern's dots blur: there the spread is (close / z)² as large.  That is ours: data sheets
give a least distance, and say nothing of what is measured below it.

All but the last miss what the second ray does not reach: the projector's, or the other eye's.  Where a pattern is
projected, surfaces from which too little of it comes back (dark, far, aslant, mirrors) and windows across an edge give
nothing.
"""

from __future__ import annotations

import math

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
"""Of inverse depth in Kinect's disparity, after Khoshelham and Elberink [1/m]."""
KHOSHELHAM_STDDEV = math.sqrt(0.25 - 1.0 / 12.0)
HANDA_STEP, HANDA_STDDEV = 1.0 / 351.3, 1.0 / 6.0
SUBPIXEL_STEP = 1.0 / 16.0
"""Steps of a stereo matcher's disparity [px]."""
PATTERN_RANGE_FACTOR = 3.0
"""A white surface seen squarely gives back enough of the pattern up to this many times the largest range."""
INCIDENCE_LOSS_START, INCIDENCE_LOSS_END = math.radians(78.0), math.radians(85.0)
"""Where surfaces met aslant begin to be lost, and are lost."""
MATCHING_HALF_WINDOW = 2
"""Half the window over which a pattern is matched, as far as an edge in it matters [px]."""
EDGE_DEPTH_RATIO = 0.04
"""Depth that differs by this share from pixel to pixel is an edge."""
EDGE_LOSS_PROBABILITY = 0.4
"""Share of windows across an edge that find nothing."""
MIN_LUMINANCE = 0.003
"""A stereo pair matches nothing where linear luminance is below this."""
_KHOSHELHAM, _NGUYEN, _HANDA, _STEREO = range(4)
_MODELS = {"khoshelham": _KHOSHELHAM, "nguyen": _NGUYEN, "handa": _HANDA, "stereo": _STEREO}
_LATERAL_STDDEV = {"khoshelham": 0.5, "nguyen": 0.8, "handa": 0.5, "stereo": 0.5}


def depth_stddev(
    noise: DepthNoise, z: NDArray[np.float64], focal: float = 0.0, baseline: float = 0.0
) -> NDArray[np.float64]:
    """Published standard deviation of depth at ``z`` [m] for surfaces met squarely.

    Args:
        noise: The model.
        z: True depth [m].
        focal: Of a stereo pair [px].
        baseline: Of the pair [m].
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
    """Have the kernels of a noise model compiled ahead; see `measure_depth`."""
    if noise.model in ("ideal", "gaussian"):
        return
    expect_kernels(_apply_noise_model)
    if baseline if noise.model == "stereo" else noise.baseline:
        expect_kernels(_mark_shadow)


def measure_depth(
    depth: F32,
    camera_model: CameraModel,
    noise: DepthNoise,
    rng: np.random.Generator,
    *,
    near: float,
    far: float,
    baseline: float = 0.0,
    reflectance: F32 | None = None,
    luminance: F32 | None = None,
) -> F32:
    """What a depth camera reports.

    Args:
        depth: (h, w) true depth along the axis [m]; 0: nothing there.
        camera_model: Of the depth camera.
        noise: The model.
        rng: Draws the noise.
        near: Least range [m].
        far: Largest range [m].
        baseline: Of a stereo pair [m].
        reflectance: (h, w) share of the light that surfaces throw back, 0 … 1; negative: a mirror; None: all of it.
        luminance: (h, w) linear, for a stereo pair; None: bright everywhere.

    Returns:
        (h, w) float32 [m]; REP 118: ``inf`` too far, ``-inf`` too near, not a number: nothing could be measured.
        With a
        projected pattern these cases cannot be distinguished; all are not a number.
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
    axial = draw_uint16_normals(rng, (height, width))
    lateral = draw_uint8_normals(rng, (2, height, width))
    random_words = draw_uint16_normals(rng, (height, width))
    shadow = np.zeros((height, width), np.bool_)
    shadow_baseline = baseline if noise.model == "stereo" else noise.baseline
    if shadow_baseline:
        _mark_shadow(depth, camera_model.fx * shadow_baseline, shadow)
    slopes = _ray_slopes(camera_model)
    out = np.empty((height, width), np.float32)
    _apply_noise_model(
        depth, slopes, axial, uint16_normal_table(), lateral, uint8_normal_table(), random_words, shadow,
        np.ones((1, 1), np.float32) if reflectance is None else reflectance,
        np.ones((1, 1), np.float32) if luminance is None else luminance,
        _MODELS[noise.model], _LATERAL_STDDEV[noise.model], camera_model.fx * baseline, noise.disparity_stddev,
        max(near, 1e-3), far, noise.near_blur_distance, noise.uses_pattern, out,
    )  # fmt: skip
    return out


def _ray_slopes(camera_model: CameraModel) -> NDArray[np.float32]:
    """(h + w,) x / z of each column, then y / z of each row, without the distortion: how surfaces lie, not where."""
    columns = (np.arange(camera_model.width) - camera_model.cx) / camera_model.fx
    rows = (np.arange(camera_model.height) - camera_model.cy) / camera_model.fy
    return np.concatenate([columns, rows]).astype(np.float32)


@kernel(examples=lambda: [(np.zeros((1, 1), np.float32), 1.0, np.zeros((1, 1), np.bool_))], error_model="numpy")
def _mark_shadow(depth: F32, focal_baseline: float, shadow: NDArray[np.bool_]) -> None:
    """Mark what a point beside the camera does not see: along each row the pixels that nearer ones hide from it.

    ``focal_baseline``: focal length times the way to that point, positive to the right [px m].  Seen from there a
    pixel at column u and depth z lies at u − f b / z; it is hidden where something that lies further round does so at
    the same place.
    """
    height, width = depth.shape
    for row in range(height):
        # From the side of the other point: what was passed already covers everything up to `reach`.
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


@kernel(
    examples=lambda: [(*[np.zeros(3, np.float32)] * 3, True, *[np.zeros(3, np.float32)] * 2, np.float32(0.0), 1.0, 1.0,
                       np.zeros(3, np.float32))],
    error_model="numpy",
)  # fmt: skip
def _incidence_cosines(
    row_depth: F32,
    upper_row: F32,
    lower_row: F32,
    first: bool,
    column_gradient: F32,
    slopes: F32,
    y: float,
    per_dx: float,
    per_dy: float,
    out: F32,
) -> None:
    """Cosine of the angle between each pixel's ray and the surface's normal; processors do eight at once."""
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


def _example_apply_noise_model() -> list[tuple[object, ...]]:
    image, one = np.zeros((1, 1), np.float32), np.ones((1, 1), np.float32)
    rng = np.random.default_rng(0)
    words, lateral = draw_uint16_normals(rng, (1, 1)), draw_uint8_normals(rng, (2, 1, 1))
    return [
        (image, np.zeros(2, np.float32), words, uint16_normal_table(), lateral, uint8_normal_table(), words,
         np.zeros((1, 1), np.bool_), one, one, 0, 0.5, 40.0, 0.2, 0.1, 5.0, 0.0, True, image)
    ]  # fmt: skip


@kernel(examples=_example_apply_noise_model, error_model="numpy")
def _apply_noise_model(
    depth: F32,
    slopes: F32,
    axial: NDArray[np.uint16],
    fine_normal_table: F32,
    lateral: NDArray[np.uint8],
    normal_table: F32,
    random_words: NDArray[np.uint16],
    shadow: NDArray[np.bool_],
    reflectance: F32,
    luminance: F32,
    model: int,
    lateral_stddev: float,
    focal_baseline: float,
    disparity_stddev: float,
    near: float,
    far: float,
    near_blur_distance: float,
    uses_pattern: bool,
    out: F32,
) -> None:
    height, width = depth.shape
    has_reflectance, has_luminance = reflectance.shape == depth.shape, luminance.shape == depth.shape
    min_signal = 1.0 / (PATTERN_RANGE_FACTOR * far) ** 2
    per_dx = 1.0 / float(slopes[1] - slopes[0]) if width > 1 else 1.0
    per_dy = 1.0 / float(slopes[width + 1] - slopes[width]) if height > 1 else 1.0
    column_gradient, cosines = np.empty(width, np.float32), np.empty(width, np.float32)
    for row in range(height):
        # Rows as arrays of their own: indices into them are cheap.
        row_depth = depth[row]
        _column_gradients(row_depth, column_gradient)
        upper_row, lower_row = depth[row - 1 if row > 0 else min(1, height - 1)], depth[min(row + 1, height - 1)]
        _incidence_cosines(
            row_depth,
            upper_row,
            lower_row,
            row == 0,
            column_gradient,
            slopes,
            slopes[width + row],
            per_dx,
            per_dy,
            cosines,
        )
        top, bottom = depth[max(row - MATCHING_HALF_WINDOW, 0)], depth[min(row + MATCHING_HALF_WINDOW, height - 1)]
        for column in range(width):
            out[row, column] = np.float32(math.nan)
            depth_here = row_depth[column]
            if depth_here <= 0.0 or shadow[row, column]:
                continue
            # An edge near by: the pixel may take its neighbor's depth, or none.
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
                # Lost with probability 1 / (1 + signal⁴), and aslant the more.
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
