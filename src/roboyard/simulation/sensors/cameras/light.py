"""From a rendered picture to what a chip makes of it: exposure, vignetting, shot and read noise; infrared pictures."""

from __future__ import annotations

import numpy as np

from roboyard.compute import expect_kernels, kernel
from roboyard.description.sensors import Exposure, Noise
from roboyard.geometry import CameraModel
from roboyard.geometry.arrays import F32, U8
from roboyard.simulation.sensors.cameras.draws import byte_draws, normal_bytes

MIDDLE_GREY = 0.18
LARGEST_GAIN = 8.0
PROJECTOR = 1.5
"""Distance at which a white surface in the projector's light is white [m]."""


def _to_linear() -> F32:
    c = np.arange(256) / 255.0
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4).astype(np.float32)


LINEAR = _to_linear()
"""Linear light of each picture byte (sRGB)."""


def _to_coded() -> F32:
    light = np.linspace(0.0, 1.0, 4096) ** 2
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1.0 / 2.4) - 0.055).astype(np.float32)


CODED = _to_coded()
"""SRGB value 0 … 1 of light (k / 4095)²."""


def luminance(colour: U8) -> F32:
    """Linear luminance (h, w) of a picture (h, w, 3), Rec. 709."""
    out = np.empty(colour.shape[:2], np.float32)
    _luminance(colour, LINEAR, out)
    return out


def grey_of(colour: U8) -> U8:
    """Grey picture (h, w) of a colour picture, as ITU-R 601 weighs it."""
    weighed = colour.astype(np.uint32) @ np.array([19595, 38470, 7471], np.uint32)
    return ((weighed + 32768) >> 16).astype(np.uint8)


def exposed(colour: U8, lens: CameraModel, exposure: Exposure, noise: Noise, rng: np.random.Generator) -> U8:
    """The picture as the chip gives it; the same object where nothing is to be done.

    Args:
        colour: (h, w, 3) sRGB.
        lens: Tells where the corners are.
        exposure: Gain, vignetting, electrons.
        noise: White noise of the final values, 0 … 1, as SDF has it.
        rng: Draws the noise.
    """
    if _is_ideal(exposure, noise):
        return colour
    gain = exposure.gain
    if exposure.auto:
        mean = float(luminance(colour).mean(dtype=np.float64))
        gain *= min(max(MIDDLE_GREY / max(mean, 1e-6), 1.0 / LARGEST_GAIN), LARGEST_GAIN)
    shot = byte_draws(rng, colour.shape) if exposure.full_well > 0.0 else _NONE
    white = byte_draws(rng, colour.shape) if noise.stddev > 0.0 else _NONE
    out = np.empty_like(colour)
    corner = max(lens.cx, lens.width - 1 - lens.cx) ** 2 + max(lens.cy, lens.height - 1 - lens.cy) ** 2
    _expose(
        colour, LINEAR, CODED, normal_bytes(), gain, exposure.vignetting / max(corner, 1.0), lens.cx, lens.cy,
        exposure.full_well, exposure.read_noise, shot, noise.mean, noise.stddev, white, out,
    )  # fmt: skip
    return out


def infrared_of(colour: U8, depth: F32) -> U8:
    """Infrared picture (h, w): the scene's luminance in the light of a projector beside the camera, 1 / z².

    Args:
        colour: (h, w, 3) as the infrared camera would see it in colours.
        depth: (h, w) [m]; 0: nothing there.
    """
    near = np.where(depth > 0.0, np.minimum(1.0, (PROJECTOR / np.maximum(depth, 1e-3)) ** 2), 0.0)
    return np.round(255.0 * np.minimum(luminance(colour) * near, 1.0)).astype(np.uint8)


_NONE = np.zeros((1, 1, 1), np.uint8)


def expect_exposure(exposure: Exposure, noise: Noise) -> None:
    """Have the kernels compiled that `exposed` calls with these arguments."""
    if not _is_ideal(exposure, noise):
        expect_kernels(_expose)
        if exposure.auto:
            expect_kernels(_luminance)


def _is_ideal(exposure: Exposure, noise: Noise) -> bool:
    return exposure == Exposure() and noise.stddev == 0.0 and noise.mean == 0.0


def _luminance_examples() -> list[tuple[object, ...]]:
    return [(np.zeros((1, 1, 3), np.uint8), LINEAR, np.zeros((1, 1), np.float32))]


@kernel(examples=_luminance_examples, error_model="numpy")
def _luminance(colour: U8, linear: F32, out: F32) -> None:
    height, width = out.shape
    for row in range(height):
        for column in range(width):
            out[row, column] = (
                np.float32(0.2126) * linear[colour[row, column, 0]]
                + np.float32(0.7152) * linear[colour[row, column, 1]]
                + np.float32(0.0722) * linear[colour[row, column, 2]]
            )


def _expose_examples() -> list[tuple[object, ...]]:
    picture = np.zeros((1, 1, 3), np.uint8)
    return [(picture, LINEAR, CODED, normal_bytes(), 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, _NONE, 0.0, 0.0, _NONE, picture)]


@kernel(examples=_expose_examples, error_model="numpy")
def _expose(
    colour: U8,
    linear: F32,
    coded: F32,
    normal: F32,
    gain: float,
    dimming: float,
    cx: float,
    cy: float,
    full_well: float,
    read_noise: float,
    shot: U8,
    mean: float,
    spread: float,
    white: U8,
    out: U8,
) -> None:
    height, width = colour.shape[:2]
    for row in range(height):
        for column in range(width):
            share = gain * (1.0 - dimming * ((column - cx) ** 2 + (row - cy) ** 2))
            for c in range(3):
                light = share * linear[colour[row, column, c]]
                if full_well > 0.0:
                    electrons = light * full_well
                    wide = np.sqrt(max(electrons, 0.0) + read_noise * read_noise) / full_well
                    light += wide * normal[shot[row, column, c]]
                light = min(max(light, 0.0), 1.0)
                value = float(coded[int(np.sqrt(light) * (len(coded) - 1) + 0.5)])
                if spread > 0.0:
                    value += spread * normal[white[row, column, c]]
                out[row, column, c] = np.uint8(min(max(255.0 * (value + mean) + 0.5, 0.0), 255.0))
