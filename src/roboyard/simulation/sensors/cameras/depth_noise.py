"""How measured depth differs from true depth; pure functions over pictures.

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
from roboyard.simulation.sensors.cameras.draws import WORDS, byte_draws, normal_bytes, normal_words, word_draws

STEP = 2.85e-3
"""Of inverse depth in Kinect's disparity, after Khoshelham and Elberink [1/m]."""
KHOSHELHAM = math.sqrt(0.25 - 1.0 / 12.0)
HANDA_STEP, HANDA = 1.0 / 351.3, 1.0 / 6.0
SUBPIXEL = 1.0 / 16.0
"""Steps of a stereo matcher's disparity [px]."""
REACH = 3.0
"""A white surface seen squarely gives back enough of the pattern up to this many times the largest range."""
STEEP, STEEPEST = math.radians(78.0), math.radians(85.0)
"""Where surfaces met aslant begin to be lost, and are lost."""
WINDOW = 2
"""Half the window over which a pattern is matched, as far as an edge in it matters [px]."""
JUMP = 0.04
"""Depth that differs by this share from pixel to pixel is an edge."""
LOST_AT_EDGE = 0.4
"""Share of windows across an edge that find nothing."""
DARK = 0.003
"""A stereo pair matches nothing where linear luminance is below this."""
_KHOSHELHAM, _NGUYEN, _HANDA, _STEREO = range(4)
_MODELS = {"khoshelham": _KHOSHELHAM, "nguyen": _NGUYEN, "handa": _HANDA, "stereo": _STEREO}
_LATERAL = {"khoshelham": 0.5, "nguyen": 0.8, "handa": 0.5, "stereo": 0.5}


def sigma(noise: DepthNoise, z: NDArray[np.float64], focal: float = 0.0, baseline: float = 0.0) -> NDArray[np.float64]:
    """Published standard deviation of depth at ``z`` [m] for surfaces met squarely.

    Args:
        noise: The model.
        z: True depth [m].
        focal: Of a stereo pair [px].
        baseline: Of the pair [m].
    """
    blurred: NDArray[np.float64] = np.maximum(noise.near_blur_distance / z, 1.0) ** 2
    if noise.model == "khoshelham":
        return 0.5 * STEP * z * z * blurred
    if noise.model == "nguyen":
        return (0.0012 + 0.0019 * (z - 0.4) ** 2) * blurred
    if noise.model == "handa":
        return z * z * HANDA_STEP * math.sqrt(HANDA**2 + 1.0 / 12.0) * blurred
    if noise.model == "stereo":
        return z * z / (focal * baseline) * math.hypot(noise.disparity_stddev, SUBPIXEL / math.sqrt(12.0))
    return np.full_like(z, noise.noise.stddev)


def expect_depth_noise(noise: DepthNoise, baseline: float) -> None:
    """Have the kernels of a noise model compiled ahead; see `measured_depth`."""
    if noise.model in ("ideal", "gaussian"):
        return
    expect_kernels(_measure)
    if baseline if noise.model == "stereo" else noise.baseline:
        expect_kernels(_shadow)


def measured_depth(
    depth: F32,
    lens: CameraModel,
    noise: DepthNoise,
    rng: np.random.Generator,
    *,
    near: float,
    far: float,
    baseline: float = 0.0,
    returned: F32 | None = None,
    luminance: F32 | None = None,
) -> F32:
    """What a depth camera reports.

    Args:
        depth: (h, w) true depth along the axis [m]; 0: nothing there.
        lens: Of the depth camera.
        noise: The model.
        rng: Draws the noise.
        near: Least range [m].
        far: Largest range [m].
        baseline: Of a stereo pair [m].
        returned: (h, w) share of the light that surfaces throw back, 0 … 1; negative: a mirror; None: all of it.
        luminance: (h, w) linear, for a stereo pair; None: bright everywhere.

    Returns:
        (h, w) float32 [m]; REP 118: ``inf`` too far, ``-inf`` too near, not a number: nothing could be measured.  A
        projected pattern cannot tell these apart, and gives the last for all.
    """
    if noise.model in ("ideal", "gaussian"):
        found = depth
        spread = noise.noise.stddev
        if noise.model == "gaussian" and (spread > 0.0 or noise.noise.mean):
            white = rng.standard_normal(depth.shape, dtype=np.float32) if spread > 0.0 else np.float32(0.0)
            found = depth + np.float32(noise.noise.mean) + np.float32(spread) * white
        out = np.where(depth > 0.0, found, np.float32(np.inf)).astype(np.float32)
        out[depth > far] = np.inf
        out[(depth > 0.0) & (depth < near)] = -np.inf
        return out
    height, width = depth.shape
    axial = word_draws(rng, (height, width))
    lateral = byte_draws(rng, (2, height, width))
    chance = word_draws(rng, (height, width))
    shadow = np.zeros((height, width), np.bool_)
    side = baseline if noise.model == "stereo" else noise.baseline
    if side:
        _shadow(depth, lens.fx * side, shadow)
    slopes = _ray_slopes(lens)
    out = np.empty((height, width), np.float32)
    _measure(
        depth, slopes, axial, normal_words(), lateral, normal_bytes(), chance, shadow,
        np.ones((1, 1), np.float32) if returned is None else returned,
        np.ones((1, 1), np.float32) if luminance is None else luminance,
        _MODELS[noise.model], _LATERAL[noise.model], lens.fx * baseline, noise.disparity_stddev,
        max(near, 1e-3), far, noise.near_blur_distance, noise.uses_pattern, out,
    )  # fmt: skip
    return out


def _ray_slopes(lens: CameraModel) -> NDArray[np.float32]:
    """(h + w,) x / z of each column, then y / z of each row, without the distortion: how surfaces lie, not where."""
    columns = (np.arange(lens.width) - lens.cx) / lens.fx
    rows = (np.arange(lens.height) - lens.cy) / lens.fy
    return np.concatenate([columns, rows]).astype(np.float32)


@kernel(examples=lambda: [(np.zeros((1, 1), np.float32), 1.0, np.zeros((1, 1), np.bool_))], error_model="numpy")
def _shadow(depth: F32, focal_baseline: float, shadow: NDArray[np.bool_]) -> None:
    """Mark what a point beside the camera does not see: along each row the pixels that nearer ones hide from it.

    ``focal_baseline``: focal length times the way to that point, positive to the right [px m].  Seen from there a
    pixel at column u and depth z lies at u − f b / z; it is hidden where something that lies further round does so at
    the same place.
    """
    height, width = depth.shape
    for row in range(height):
        # From the side of the other point: what was passed already covers everything up to `reach`.
        reach = math.inf
        for step in range(width):
            u = step if focal_baseline < 0.0 else width - 1 - step
            z = depth[row, u]
            if z <= 0.0:
                continue
            place = u - focal_baseline / z
            if focal_baseline < 0.0:
                place = -place
            if place > reach + 0.5:
                shadow[row, u] = True
            reach = min(reach, place)


@kernel(examples=lambda: [(np.zeros(3, np.float32), np.zeros(3, np.float32))], error_model="numpy")
def _gradients(line: F32, across: F32) -> None:
    """How depth grows from column to column, on the side of each that goes on evenly."""
    last = len(line) - 1
    for column in range(1, last):
        before, behind = line[column] - line[column - 1], line[column + 1] - line[column]
        across[column] = behind if abs(behind) < abs(before) else before
    across[0] = line[min(1, last)] - line[0]
    across[last] = line[last] - line[max(last - 1, 0)]


@kernel(
    examples=lambda: [(*[np.zeros(3, np.float32)] * 3, True, *[np.zeros(3, np.float32)] * 2, np.float32(0.0), 1.0, 1.0,
                       np.zeros(3, np.float32))],
    error_model="numpy",
)  # fmt: skip
def _cosines(
    line: F32, over: F32, under: F32, first: bool, across: F32, slopes: F32, y: float, per_dx: float, per_dy: float,
    out: F32,
) -> None:  # fmt: skip
    """Cosine of the angle between each pixel's ray and the surface's normal; processors do eight at once."""
    one, least, kx, ky = np.float32(1.0), np.float32(1e-24), np.float32(per_dx), np.float32(per_dy)
    for column in range(len(line)):
        z, x = line[column], slopes[column]
        above, below = z - over[column], under[column] - z
        along = below if first or abs(below) < abs(above) else above
        # Normal of the surface z(x, y) along the rays: ∂P/∂column × ∂P/∂row.
        p, q = across[column] * kx, along * ky
        nz = z + p * x + q * y
        square = max(p * p + q * q + nz * nz, least)
        out[column] = min(z / np.sqrt((one + x * x + y * y) * square), one)


def _measure_examples() -> list[tuple[object, ...]]:
    picture, one = np.zeros((1, 1), np.float32), np.ones((1, 1), np.float32)
    rng = np.random.default_rng(0)
    words, lateral = word_draws(rng, (1, 1)), byte_draws(rng, (2, 1, 1))
    return [
        (picture, np.zeros(2, np.float32), words, normal_words(), lateral, normal_bytes(), words,
         np.zeros((1, 1), np.bool_), one, one, 0, 0.5, 40.0, 0.2, 0.1, 5.0, 0.0, True, picture)
    ]  # fmt: skip


@kernel(examples=_measure_examples, error_model="numpy")
def _measure(
    depth: F32,
    slopes: F32,
    axial: NDArray[np.uint16],
    fine_normal: F32,
    lateral: NDArray[np.uint8],
    normal: F32,
    chance: NDArray[np.uint16],
    shadow: NDArray[np.bool_],
    returned: F32,
    luminance: F32,
    model: int,
    jump: float,
    focal_baseline: float,
    disparity: float,
    near: float,
    far: float,
    close: float,
    structured: bool,
    out: F32,
) -> None:
    height, width = depth.shape
    own_return, own_light = returned.shape == depth.shape, luminance.shape == depth.shape
    enough = 1.0 / (REACH * far) ** 2
    per_dx = 1.0 / float(slopes[1] - slopes[0]) if width > 1 else 1.0
    per_dy = 1.0 / float(slopes[width + 1] - slopes[width]) if height > 1 else 1.0
    across, cosines = np.empty(width, np.float32), np.empty(width, np.float32)
    for row in range(height):
        # Rows as arrays of their own: indices into them are cheap.
        line = depth[row]
        _gradients(line, across)
        over, under = depth[row - 1 if row > 0 else min(1, height - 1)], depth[min(row + 1, height - 1)]
        _cosines(line, over, under, row == 0, across, slopes, slopes[width + row], per_dx, per_dy, cosines)
        top, bottom = depth[max(row - WINDOW, 0)], depth[min(row + WINDOW, height - 1)]
        for column in range(width):
            out[row, column] = np.float32(math.nan)
            depth_here = line[column]
            if depth_here <= 0.0 or shadow[row, column]:
                continue
            # An edge near by: the pixel may take its neighbour's depth, or none.
            limit = np.float32(JUMP) * depth_here
            edge = (
                abs(line[max(column - WINDOW, 0)] - depth_here) > limit
                or abs(line[min(column + WINDOW, width - 1)] - depth_here) > limit
                or abs(top[column] - depth_here) > limit
                or abs(bottom[column] - depth_here) > limit
            )
            z, cosine = float(depth_here), float(cosines[column])
            # The angle matters only far from the normal.
            angle = math.acos(cosine) if cosine < 0.5 or edge else 0.0
            drawn = (float(chance[row, column]) + 0.5) / WORDS
            if structured:
                share = 1.0
                if own_return:
                    share = float(returned[row, column])
                if share < 0.0:
                    continue
                signal = share * cosine / (z * z * enough)
                signal *= signal
                # Lost with probability 1 / (1 + signal⁴), and aslant the more.
                aslant = min(max((angle - STEEP) / (STEEPEST - STEEP), 0.0), 1.0)
                if (drawn - aslant) * (1.0 + signal * signal) < 1.0:
                    continue
            elif own_light and luminance[row, column] < DARK:
                continue
            if edge:
                if drawn > 1.0 - LOST_AT_EDGE:
                    continue
                shift = jump
                if model == _NGUYEN:
                    shift += 0.035 * angle / max(0.5 * math.pi - angle, 0.05)
                u = column + round(shift * float(normal[lateral[0, row, column]]))
                v = row + round(shift * float(normal[lateral[1, row, column]]))
                u, v = min(max(u, 0), width - 1), min(max(v, 0), height - 1)
                z = float(depth[v, u])
                if z <= 0.0:
                    continue
            white = float(fine_normal[axial[row, column]])
            if structured and z < close:
                white *= (close / z) ** 2
            if model == _KHOSHELHAM:
                steps = round(1.0 / (z * STEP) + KHOSHELHAM * white)
                z = 1.0 / (STEP * steps) if steps > 0.0 else math.inf
            elif model == _NGUYEN:
                spread = 0.0012 + 0.0019 * (z - 0.4) ** 2
                if angle > math.radians(60.0):
                    off = 0.5 * math.pi - angle
                    spread += 0.0001 / math.sqrt(z) * angle * angle / max(off * off, 1e-4)
                z += spread * white
            elif model == _HANDA:
                steps = math.floor(1.0 / (z * HANDA_STEP) + HANDA * white + 0.5)
                z = 1.0 / (HANDA_STEP * steps) if steps > 0.0 else math.inf
            else:
                seen = focal_baseline / z + disparity * white
                seen = SUBPIXEL * round(seen / SUBPIXEL)
                z = focal_baseline / seen if seen > 0.0 else math.inf
            if near <= z <= far:
                out[row, column] = np.float32(z)
            elif not structured:
                out[row, column] = np.float32(math.inf if z > far else -math.inf)
