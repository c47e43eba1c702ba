"""Exposure of a rendered image: gain, vignetting, shot and read noise; grayscale and infrared images."""

from __future__ import annotations

import numpy as np

from roboyard.compute import expect_kernels, kernel
from roboyard.description.sensors import Exposure, Noise
from roboyard.geometry import CameraModel
from roboyard.geometry.arrays import F32, U8
from roboyard.sensors.cameras.image_noise import draw_uint8_normals, uint8_normal_table

AUTO_EXPOSURE_LUMINANCE = 0.18
MAX_GAIN = 8.0
PROJECTOR_WHITE_DISTANCE = 1.5
"""Distance at which a white surface in the projector's light is white [m]."""


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
    """Linear luminance (h, w) of a image (h, w, 3), Rec. 709."""
    out = np.empty(color.shape[:2], np.float32)
    _luminance(color, SRGB_TO_LINEAR, out)
    return out


def to_gray(color: U8) -> U8:
    """Gray image (h, w) of a color image, as ITU-R 601 weighs it."""
    weighed = color.astype(np.uint32) @ np.array([19595, 38470, 7471], np.uint32)
    return ((weighed + 32768) >> 16).astype(np.uint8)


def apply_exposure(
    color: U8, camera_model: CameraModel, exposure: Exposure, noise: Noise, rng: np.random.Generator
) -> U8:
    """Return the image after exposure and noise; the same array where nothing changes.

    Args:
        color: (h, w, 3) sRGB.
        camera_model: Gives the optical center and the corners.
        exposure: Gain, vignetting, electrons.
        noise: White noise of the final values, 0 … 1, as SDF has it.
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
    out = np.empty_like(color)
    corner = (
        max(camera_model.cx, camera_model.width - 1 - camera_model.cx) ** 2
        + max(camera_model.cy, camera_model.height - 1 - camera_model.cy) ** 2
    )
    _expose(
        color,
        SRGB_TO_LINEAR,
        LINEAR_TO_SRGB,
        uint8_normal_table(),
        gain,
        exposure.vignetting / max(corner, 1.0),
        camera_model.cx,
        camera_model.cy,
        exposure.full_well,
        exposure.read_noise,
        shot_noise,
        noise.mean,
        noise.stddev,
        white_noise,
        out,
    )
    return out


def render_infrared(color: U8, depth: F32) -> U8:
    """Infrared image (h, w): the scene's luminance in the light of a projector beside the camera, 1 / z².

    Args:
        color: (h, w, 3) as the infrared camera would see it in colors.
        depth: (h, w) [m]; 0: nothing there.
    """
    illumination = np.where(
        depth > 0.0, np.minimum(1.0, (PROJECTOR_WHITE_DISTANCE / np.maximum(depth, 1e-3)) ** 2), 0.0
    )
    return np.round(255.0 * np.minimum(compute_luminance(color) * illumination, 1.0)).astype(np.uint8)


_NO_NOISE = np.zeros((1, 1, 1), np.uint8)


def expect_exposure(exposure: Exposure, noise: Noise) -> None:
    """Have the kernels compiled that `apply_exposure` calls with these arguments."""
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


def _example_expose() -> list[tuple[object, ...]]:
    image = np.zeros((1, 1, 3), np.uint8)
    return [
        (
            image,
            SRGB_TO_LINEAR,
            LINEAR_TO_SRGB,
            uint8_normal_table(),
            1.0,
            0.0,
            0.0,
            0.0,
            0.0,
            0.0,
            _NO_NOISE,
            0.0,
            0.0,
            _NO_NOISE,
            image,
        )
    ]


@kernel(examples=_example_expose, error_model="numpy")
def _expose(
    color: U8,
    srgb_to_linear: F32,
    linear_to_srgb: F32,
    normal_table: F32,
    gain: float,
    vignetting: float,
    cx: float,
    cy: float,
    full_well: float,
    read_noise: float,
    shot_noise: U8,
    noise_mean: float,
    noise_stddev: float,
    white_noise: U8,
    out: U8,
) -> None:
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
