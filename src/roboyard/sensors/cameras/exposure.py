"""Exposure of a rendered image: gain, vignetting, shot and read noise; grayscale and infrared images.

The noise is that of the linear camera model of EMVA Standard 1288: the electrons of a pixel have the variance of their
mean (shot noise) plus the square of the read noise, in electrons. Light 1 fills the pixel with ``full_well``
electrons, and the gain scales the light before noise is added, as a longer exposure does. The Poisson distribution is
replaced by the normal distribution of equal variance. Dark current and differences between pixels (DSNU, PRNU) are not
modeled. Vignetting is a loss proportional to the squared distance from the principal point; it has no published source.

Image bytes are sRGB (IEC 61966-2-1), luminance has the weights of ITU-R BT.709, gray those of ITU-R BT.601.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from roboyard.compute import expect_kernels, kernel
from roboyard.description.sensors import Exposure, Noise
from roboyard.geometry import CameraModel
from roboyard.geometry.arrays import F32, U8
from roboyard.sensors.cameras.image_noise import draw_uint8_normals, uint8_normal_table

AUTO_EXPOSURE_LUMINANCE = 0.18
"""Mean linear luminance of an automatically exposed image: medium gray."""
MAX_GAIN = 8.0
"""Largest gain of automatic exposure; 1 / `MAX_GAIN` is the smallest."""
PROJECTOR_WHITE_DISTANCE = 1.5
"""Up to this distance a white surface in the light of the infrared projector is white in the image [m]."""


def _make_srgb_to_linear() -> F32:
    c = np.arange(256) / 255.0
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4).astype(np.float32)


SRGB_TO_LINEAR = _make_srgb_to_linear()
"""Linear light of each image byte (sRGB)."""


def _make_linear_to_srgb() -> F32:
    light = np.linspace(0.0, 1.0, 4096) ** 2
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1.0 / 2.4) - 0.055).astype(np.float32)


LINEAR_TO_SRGB = _make_linear_to_srgb()
"""SRGB value 0 … 1 of light (k / 4095)²."""


def compute_luminance(color: U8) -> F32:
    """Return the linear luminance (h, w) of an image (h, w, 3), by ITU-R BT.709."""
    out = np.empty(color.shape[:2], np.float32)
    _luminance(color, SRGB_TO_LINEAR, out)
    return out


def to_gray(color: U8) -> U8:
    """Return the gray image (h, w) of a color image, by ITU-R BT.601."""
    weighed = color.astype(np.uint32) @ np.array([19595, 38470, 7471], np.uint32)
    return ((weighed + 32768) >> 16).astype(np.uint8)


def apply_exposure(
    color: U8, camera_model: CameraModel, exposure: Exposure, noise: Noise, rng: np.random.Generator
) -> U8:
    """Return the image after exposure and noise; the same array where neither changes it.

    Args:
        color: (h, w, 3) sRGB.
        camera_model: Its principal point and corners determine the vignetting.
        exposure: Gain, vignetting, electrons.
        noise: White noise of the final values, 0 … 1, as SDF defines it.
        rng: Draws the noise.
    """
    if _is_ideal(exposure, noise):
        return color
    gain = exposure.gain
    if exposure.auto:
        mean = float(compute_luminance(color).mean(dtype=np.float64))
        gain *= min(max(AUTO_EXPOSURE_LUMINANCE / max(mean, 1e-6), 1.0 / MAX_GAIN), MAX_GAIN)
    shot_noise = draw_uint8_normals(rng, color.shape) if exposure.full_well > 0.0 else _NO_NOISE
    white_noise = draw_uint8_normals(rng, color.shape) if noise.stddev > 0.0 else _NO_NOISE
    corner = (
        max(camera_model.cx, camera_model.width - 1 - camera_model.cx) ** 2
        + max(camera_model.cy, camera_model.height - 1 - camera_model.cy) ** 2
    )
    parameters = _ExposureParameters(
        gain,
        exposure.vignetting / max(corner, 1.0),
        camera_model.cx,
        camera_model.cy,
        exposure.full_well,
        exposure.read_noise,
    )
    out = np.empty_like(color)
    _expose(color, _tone_tables(), parameters, _ImageNoise(shot_noise, noise.mean, noise.stddev, white_noise), out)
    return out


def render_infrared(color: U8, depth: F32) -> U8:
    """Return the infrared image (h, w): the scene's luminance in the light of a projector beside the camera, 1 / z².

    Args:
        color: (h, w, 3) color image from the pose of the infrared camera.
        depth: (h, w) [m]; 0: no surface.
    """
    illumination = np.where(
        depth > 0.0, np.minimum(1.0, (PROJECTOR_WHITE_DISTANCE / np.maximum(depth, 1e-3)) ** 2), 0.0
    )
    return np.round(255.0 * np.minimum(compute_luminance(color) * illumination, 1.0)).astype(np.uint8)


_NO_NOISE = np.zeros((1, 1, 1), np.uint8)


def expect_exposure(exposure: Exposure, noise: Noise) -> None:
    """Announce the kernels that `apply_exposure` calls with these arguments, so that they are compiled in advance."""
    if not _is_ideal(exposure, noise):
        expect_kernels(_expose)
        if exposure.auto:
            expect_kernels(_luminance)


def _is_ideal(exposure: Exposure, noise: Noise) -> bool:
    return exposure == Exposure() and noise.stddev == 0.0 and noise.mean == 0.0


def _example_luminance() -> list[tuple[object, ...]]:
    return [(np.zeros((1, 1, 3), np.uint8), SRGB_TO_LINEAR, np.zeros((1, 1), np.float32))]


@kernel(examples=_example_luminance, error_model="numpy")
def _luminance(color: U8, srgb_to_linear: F32, out: F32) -> None:
    height, width = out.shape
    for row in range(height):
        for column in range(width):
            out[row, column] = (
                np.float32(0.2126) * srgb_to_linear[color[row, column, 0]]
                + np.float32(0.7152) * srgb_to_linear[color[row, column, 1]]
                + np.float32(0.0722) * srgb_to_linear[color[row, column, 2]]
            )


class _ToneTables(NamedTuple):
    """Linear light of each sRGB byte (256,), sRGB values of light (4096,), normal numbers of bytes (256,)."""

    srgb_to_linear: F32
    linear_to_srgb: F32
    normal: F32


class _ExposureParameters(NamedTuple):
    """Gain, vignetting [1/px²], principal point [px], full well and read noise [electrons]."""

    gain: float
    vignetting: float
    cx: float
    cy: float
    full_well: float
    read_noise: float


class _ImageNoise(NamedTuple):
    """Random bytes (h, w, 3) of shot noise; mean, standard deviation and random bytes (h, w, 3) of white noise."""

    shot_noise: U8
    mean: float
    stddev: float
    white_noise: U8


def _tone_tables() -> _ToneTables:
    return _ToneTables(SRGB_TO_LINEAR, LINEAR_TO_SRGB, uint8_normal_table())


def _example_expose() -> list[tuple[object, ...]]:
    image, noise = np.zeros((1, 1, 3), np.uint8), _ImageNoise(_NO_NOISE, 0.0, 0.0, _NO_NOISE)
    return [(image, _tone_tables(), _ExposureParameters(1.0, 0.0, 0.0, 0.0, 0.0, 0.0), noise, image)]


@kernel(examples=_example_expose, error_model="numpy")
def _expose(color: U8, tables: _ToneTables, exposure: _ExposureParameters, noise: _ImageNoise, out: U8) -> None:
    """Write the exposed image (h, w, 3)."""
    srgb_to_linear, linear_to_srgb, normal_table = tables
    gain, vignetting, cx, cy, full_well, read_noise = exposure
    shot_noise, noise_mean, noise_stddev, white_noise = noise
    height, width = color.shape[:2]
    for row in range(height):
        for column in range(width):
            scale = gain * (1.0 - vignetting * ((column - cx) ** 2 + (row - cy) ** 2))
            for c in range(3):
                light = scale * srgb_to_linear[color[row, column, c]]
                if full_well > 0.0:
                    electrons = light * full_well
                    electron_noise = np.sqrt(max(electrons, 0.0) + read_noise * read_noise) / full_well
                    light += electron_noise * normal_table[shot_noise[row, column, c]]
                light = min(max(light, 0.0), 1.0)
                value = float(linear_to_srgb[int(np.sqrt(light) * (len(linear_to_srgb) - 1) + 0.5)])
                if noise_stddev > 0.0:
                    value += noise_stddev * normal_table[white_noise[row, column, c]]
                out[row, column, c] = np.uint8(min(max(255.0 * (value + noise_mean) + 0.5, 0.0), 255.0))
