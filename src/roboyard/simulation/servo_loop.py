"""The servos' part of a physics step: ramps and integrals, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel

# Columns of the servo tables.
QPOS, DOF, CTRL, MODE = range(4)
P, I, D, WINDUP, RAMP, LIMIT, TARGET, SETPOINT, INTEGRAL, EASED = range(10)  # noqa: E741
WIDTH = 10
OFF, POSITION, VELOCITY, EFFORT = range(4)


def _clip(value: float, bound: float) -> float:
    return min(max(value, -bound), bound)


_clip = kernel(inline="always")(_clip)


@kernel
def run_servos(
    ints: NDArray[np.int64],
    floats: NDArray[np.float64],
    qpos: NDArray[np.float64],
    qvel: NDArray[np.float64],
    ctrl: NDArray[np.float64],
    dt: float,
) -> None:
    """Set the servos' controls for the step from the present state: ramped set-points and integrals.

    The integral stops where the servo's effort is at its limit and the error asks for more.

    The proportional and derivative parts are the engine's own, implicit in velocity, but for joints of little inertia
    with a strong servo (EASED).  There the engine would reckon contacts without the damping, and a foot would sink and
    bounce; and where it cuts the effort off it would leave the damping out, and throw the joint to and fro at every
    step.  Such joints have ``step * damping`` added to their inertia instead (see `Servos.engage`) and get the whole
    effort from here: the same step, ``(I + h d) v' = I v + h p e``, which contacts and limits now see.

    Args:
        ints: (n, 4) addresses and mode.
        floats: (n, 10) gains, limits and state; set-point and integral are advanced.
        qpos: Positions.
        qvel: Velocities.
        ctrl: Controls, written: (position, velocity, feed-forward) for each servo.
        dt: Step [s].
    """
    for k in range(ints.shape[0]):
        mode = ints[k, MODE]
        c = ints[k, CTRL]
        if mode == OFF:
            continue
        if mode == EFFORT:
            ctrl[c + 2] = floats[k, TARGET]
            continue
        change = floats[k, RAMP] * dt
        floats[k, SETPOINT] += _clip(floats[k, TARGET] - floats[k, SETPOINT], change)
        setpoint = floats[k, SETPOINT]
        velocity = qvel[ints[k, DOF]]
        if mode == POSITION:
            error = setpoint - qpos[ints[k, QPOS]]
            effort = floats[k, P] * error - floats[k, D] * velocity
            ctrl[c] = setpoint
        else:
            error = setpoint - velocity
            effort = floats[k, P] * error
            ctrl[c + 1] = setpoint
        effort += floats[k, INTEGRAL]
        if not (abs(effort) >= floats[k, LIMIT] and effort * error > 0.0):
            grown = floats[k, INTEGRAL] + floats[k, I] * error * dt
            floats[k, INTEGRAL] = _clip(grown, floats[k, WINDUP])
        ctrl[c + 2] = floats[k, INTEGRAL]
        if mode == POSITION and floats[k, EASED] > 0.0:
            ctrl[c + 2] = _clip(effort, floats[k, LIMIT])
