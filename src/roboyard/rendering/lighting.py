"""Lights of a model, sky and tone curve, as arrays for the shading kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import F32
from roboyard.rendering.cameras import RenderCamera
from roboyard.rendering.float32 import ZERO, ExampleArguments, F, zeros_float32

# Columns of a light's row, see ``lighting.lamps_of``.
IS_SUN, POSITION, DIRECTION, COLOR, CUTOFF, FADE_DISTANCE, CASTS_SHADOW, LIGHT_COLUMNS = 0, 1, 4, 7, 10, 11, 12, 13


TONE_LEVELS = 8192
MAX_TONE_LIGHT = 12.0  # brightest light the table knows


def make_tone_table() -> NDArray[np.uint8]:
    """Image byte for light (k / (TONE_LEVELS − 1))² · TONE_TOP: soft shoulder, then the sRGB curve."""
    x = np.linspace(0.0, 1.0, TONE_LEVELS) ** 2 * MAX_TONE_LIGHT
    white = 3.2
    y = np.clip(x * (1 + x / white**2) / (1 + 0.55 * x), 0.0, 1.0)
    encoded = np.where(y <= 0.0031308, 12.92 * y, 1.055 * y ** (1 / 2.4) - 0.055)
    return np.asarray(np.round(encoded * 255), dtype=np.uint8)


def inverse_tone_curve(color: ArrayLike, table: NDArray[np.uint8]) -> F32:
    """Linear light that the tone curve shows as this sRGB color 0 … 1."""
    level = np.searchsorted(table, np.asarray(color, dtype=np.float64) * 255.0)
    return ((level / (TONE_LEVELS - 1)) ** 2 * MAX_TONE_LIGHT).astype(np.float32)


def srgb_to_linear(color: ArrayLike) -> F32:
    """SRGB components 0 … 1 as linear light."""
    c = np.asarray(color, dtype=np.float64)
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4).astype(np.float32)


def _example_apply_tone_curve() -> ExampleArguments:
    yield zeros_float32(1, 3), np.zeros(1, np.uint8)


@kernel(examples=_example_apply_tone_curve, error_model="numpy")
def apply_tone_curve(light: F32, table: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Linear light (n, 3) through the tone curve ``table`` (see ``make_tone_table``) to image bytes (n, 3)."""
    out = np.empty(light.shape, np.uint8)
    top = np.int32(len(table) - 1)
    scale = F(top * top / MAX_TONE_LIGHT)
    for i in range(len(light)):
        for c in range(3):
            out[i, c] = table[min(np.int32(math.sqrt(max(light[i, c] * scale, ZERO))), top)]
    return out


@dataclass(frozen=True, slots=True)
class Sky:
    """Colors of the sky, sRGB 0 … 1: overhead, and at the horizon (and below it)."""

    zenith: tuple[float, float, float] = (0.45, 0.65, 0.88)
    horizon: tuple[float, float, float] = (0.88, 0.93, 0.96)

    @staticmethod
    def from_model(model: mujoco.MjModel) -> Sky:
        """The colors of the model's own sky box; ours if it has none."""
        skyboxes = np.flatnonzero(np.asarray(model.tex_type) == mujoco.mjtTexture.mjTEXTURE_SKYBOX)
        if not len(skyboxes):
            return Sky()
        skybox = int(skyboxes[0])
        size, channels, start = (
            int(model.tex_width[skybox]),
            int(model.tex_nchannel[skybox]),
            int(model.tex_adr[skybox]),
        )
        # Six square images below each other: right, left, up, down, front, back.
        faces = np.asarray(model.tex_data[start : start + 4 * size * size * channels]).reshape(4, size, size, channels)
        zenith, horizon = (faces[face, size // 2, size // 2, :3] / 255.0 for face in (2, 3))
        # Gradients are made of one world's background color; a sky is bluer overhead.
        zenith = np.clip(zenith * [0.8, 1.0, 1.3], 0.0, 1.0)
        return Sky(_rgb(zenith), _rgb(horizon))


def _rgb(color: NDArray[np.float64]) -> tuple[float, float, float]:
    return float(color[0]), float(color[1]), float(color[2])


def _example_fill_sky_pixels() -> ExampleArguments:
    color = np.zeros(3)
    yield np.zeros((1, 1, 3), np.uint8), np.zeros((1, 1), np.bool_), np.zeros(3), color, color, np.ones(4), False


@kernel(examples=_example_fill_sky_pixels, error_model="numpy")
def fill_sky_pixels(
    image: NDArray[np.uint8],
    empty: NDArray[np.bool_],
    up_axis: NDArray[np.float64],
    zenith: NDArray[np.float64],
    horizon: NDArray[np.float64],
    intrinsics: NDArray[np.float64],
    is_orthographic: bool,
) -> None:
    """Write the sky's color into the pixels of ``image`` (h, w, 3) that ``empty`` (h, w) marks, by the elevation of
    their rays."""
    height, width = empty.shape
    for row in range(height):
        y = (row + 0.5 - intrinsics[3]) / intrinsics[1]
        for column in range(width):
            if not empty[row, column]:
                continue
            x = (column + 0.5 - intrinsics[2]) / intrinsics[0]
            up = up_axis[2]
            if not is_orthographic:
                up = (up_axis[0] * x + up_axis[1] * y + up_axis[2]) / math.sqrt(x * x + y * y + 1.0)
            zenith_fraction = math.sqrt(min(max(up, 0.0), 1.0))
            for c in range(3):
                blended = (1.0 - zenith_fraction) * horizon[c] + zenith_fraction * zenith[c]
                image[row, column, c] = np.uint8(math.floor(255.0 * blended + 0.5))


def draw_sky(image: NDArray[np.uint8], empty: NDArray[np.bool_], camera: RenderCamera, sky: Sky) -> None:
    """Paint the pixels ``empty`` (height, width) of ``image`` (height, width, 3) with what ``camera`` sees there."""
    height, width = empty.shape
    intrinsics = camera.compute_intrinsics(width, height)
    up = np.ascontiguousarray(camera.T_world_camera.rotation_matrix()[2])
    intrinsics_array = np.array([intrinsics.fx, intrinsics.fy, intrinsics.cx, intrinsics.cy])
    fill_sky_pixels(
        image,
        empty,
        up,
        np.array(sky.zenith),
        np.array(sky.horizon),
        intrinsics_array,
        camera.orthographic_height is not None,
    )


# Factors of the ray caster on the light colors of a description, chosen by eye so that usual worlds are well exposed.
SUN_GAIN = 1.5
LIGHT_GAIN = 3.0
AMBIENT_GAIN = 0.6
WARM_TINT, COOL_TINT = np.array([1.04, 1.0, 0.92]), np.array([0.92, 1.0, 1.1])  # tints of suns and of the light around
# Point lights in descriptions seldom state how they fade; without fading a corridor's lights would all add up.
DEFAULT_HALF_BRIGHTNESS_DISTANCE = 2.0  # [m]


def collect_lights(model: mujoco.MjModel, data: mujoco.MjData) -> F32:
    """Lights that are on, a row each, columns as named in ``shading``; a world without any gets a morning sun.

    A row: whether it is a sun (parallel light); position [m]; direction in which it shines; linear color; cosine of
    a spot's half angle (−1: all directions); distance of half brightness [m] (0: never fades); casts shadows.
    """
    active = np.flatnonzero(model.light_active)
    light_types = mujoco.mjtLightType
    color = np.asarray(model.light_diffuse[active], dtype=np.float64)
    if not color.any():
        default_sun = np.zeros((1, LIGHT_COLUMNS), np.float32)
        default_sun[0, [IS_SUN, CUTOFF, CASTS_SHADOW]] = 1.0, -1.0, 1.0
        default_sun[0, DIRECTION : DIRECTION + 3] = np.array([0.45, 0.35, -0.82]) / np.linalg.norm([0.45, 0.35, -0.82])
        default_sun[0, COLOR : COLOR + 3] = SUN_GAIN * WARM_TINT
        return default_sun
    sun = model.light_type[active] == light_types.mjLIGHT_DIRECTIONAL
    spot = model.light_type[active] == light_types.mjLIGHT_SPOT
    direction = data.light_xdir[active]
    length = np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-9)
    # Whatever the file's numbers add up to, the suns together give at most one sun's light.
    total = max(float(color[sun].max(axis=1, initial=0.0).sum()), 0.8)
    rows = np.zeros((len(active), LIGHT_COLUMNS), np.float32)
    rows[:, IS_SUN] = sun
    rows[:, POSITION : POSITION + 3] = data.light_xpos[active]
    rows[:, DIRECTION : DIRECTION + 3] = direction / length
    rows[:, COLOR : COLOR + 3] = color * np.where(sun[:, None], SUN_GAIN / total * WARM_TINT, LIGHT_GAIN)
    rows[:, CUTOFF] = np.where(spot, np.cos(np.radians(model.light_cutoff[active])), -1.0)
    rows[:, FADE_DISTANCE] = np.where(
        sun, 0.0, [_half_brightness_distance(*terms) for terms in model.light_attenuation[active].tolist()]
    )
    rows[:, CASTS_SHADOW] = model.light_castshadow[active]
    return rows


def _half_brightness_distance(constant: float, linear: float, quadratic: float) -> float:
    """Distance at which attenuation has halved the light [m]; the usual one where the light says nothing."""
    if quadratic > 0.0:
        return (
            float((-linear + np.sqrt(linear * linear + 4.0 * quadratic * constant)) / (2.0 * quadratic))
            or DEFAULT_HALF_BRIGHTNESS_DISTANCE
        )
    return constant / linear if linear > 0.0 and constant > 0.0 else DEFAULT_HALF_BRIGHTNESS_DISTANCE


def ambient_light(model: mujoco.MjModel) -> F32:
    """Linear light from everywhere (3,), from the model's headlight."""
    headlight = model.vis.headlight
    headlight_ambient = np.asarray(headlight.ambient, dtype=np.float64) if headlight.active else np.zeros(3)
    return np.asarray(AMBIENT_GAIN * (0.5 + headlight_ambient).clip(0.3, 1.5) * COOL_TINT, dtype=np.float32)
