"""The lamps of a model in one of its states, as arrays for the shading kernels."""

from __future__ import annotations

import mujoco
import numpy as np

from roboyard.geometry.arrays import F32
from roboyard.simulation.render.shading import AIM, COLOUR, CUTOFF, FADE, LAMP_COLUMNS, PLACE, SHADOW, SUN

# How the ray caster weighs a description's light colours, chosen by eye so that usual worlds come out well exposed.
SUN_GAIN = 1.5
LAMP_GAIN = 3.0
AMBIENT_GAIN = 0.6
WARM, COOL = np.array([1.04, 1.0, 0.92]), np.array([0.92, 1.0, 1.1])  # tints of suns and of the light around
# Point lamps in descriptions seldom state how they fade; without fading a corridor's lamps would all add up.
HALF_BRIGHT_AT = 2.0  # [m]


def lamps_of(model: mujoco.MjModel, data: mujoco.MjData) -> F32:
    """Lamps that are on, a row each, columns as named in ``shading``; a world without any gets a morning sun.

    A row: whether it is a sun (parallel light); position [m]; direction in which it shines; linear colour; cosine of
    a spot's half angle (−1: shines all round); distance of half brightness [m] (0: never fades); casts shadows.
    """
    on = np.flatnonzero(model.light_active)
    kinds = mujoco.mjtLightType
    colour = np.asarray(model.light_diffuse[on], dtype=np.float64)
    if not colour.any():
        morning = np.zeros((1, LAMP_COLUMNS), np.float32)
        morning[0, [SUN, CUTOFF, SHADOW]] = 1.0, -1.0, 1.0
        morning[0, AIM : AIM + 3] = np.array([0.45, 0.35, -0.82]) / np.linalg.norm([0.45, 0.35, -0.82])
        morning[0, COLOUR : COLOUR + 3] = SUN_GAIN * WARM
        return morning
    sun = model.light_type[on] == kinds.mjLIGHT_DIRECTIONAL
    spot = model.light_type[on] == kinds.mjLIGHT_SPOT
    direction = data.light_xdir[on]
    length = np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-9)
    # Whatever the file's numbers add up to, the suns together give at most one sun's light.
    total = max(float(colour[sun].max(axis=1, initial=0.0).sum()), 0.8)
    rows = np.zeros((len(on), LAMP_COLUMNS), np.float32)
    rows[:, SUN] = sun
    rows[:, PLACE : PLACE + 3] = data.light_xpos[on]
    rows[:, AIM : AIM + 3] = direction / length
    rows[:, COLOUR : COLOUR + 3] = colour * np.where(sun[:, None], SUN_GAIN / total * WARM, LAMP_GAIN)
    rows[:, CUTOFF] = np.where(spot, np.cos(np.radians(model.light_cutoff[on])), -1.0)
    rows[:, FADE] = np.where(sun, 0.0, [_half_bright_at(*terms) for terms in model.light_attenuation[on].tolist()])
    rows[:, SHADOW] = model.light_castshadow[on]
    return rows


def _half_bright_at(constant: float, linear: float, quadratic: float) -> float:
    """Distance at which attenuation has halved the light [m]; the usual one where the light says nothing."""
    if quadratic > 0.0:
        return (
            float((-linear + np.sqrt(linear * linear + 4.0 * quadratic * constant)) / (2.0 * quadratic))
            or HALF_BRIGHT_AT
        )
    return constant / linear if linear > 0.0 and constant > 0.0 else HALF_BRIGHT_AT


def light_around(model: mujoco.MjModel) -> F32:
    """Linear light from everywhere (3,), from the model's headlight."""
    headlight = model.vis.headlight
    own = np.asarray(headlight.ambient, dtype=np.float64) if headlight.active else np.zeros(3)
    return np.asarray(AMBIENT_GAIN * (0.5 + own).clip(0.3, 1.5) * COOL, dtype=np.float32)
