"""Servo update in a physics step: set-point ramps, integrals, effort limits; compiled."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.physics.mujoco_memory import StateViews

# Columns of the servo tables.
QPOS, DOF, CTRL, MODE = range(4)
(
    P,
    I,  # noqa: E741
    D,
    MAX_INTEGRAL,
    MAX_SETPOINT_RATE,
    MAX_EFFORT,
    TARGET,
    SETPOINT,
    INTEGRAL,
    EXPLICIT_DAMPING,
    SOFT_LOW,
    SOFT_HIGH,
    K_POS,
    K_VEL,
    MAX_SPEED,
) = range(15)
CYCLE_TIME, CYCLE_TIME_LEFT, DAMPING, FRICTION, JOINT_MAX_EFFORT, COMMANDED_MAX_EFFORT, NO_LOAD_SPEED = range(15, 22)
SERVO_COLUMNS = 22
OFF, POSITION, VELOCITY, EFFORT = range(4)


class ServoTables(NamedTuple):
    """State of all servos of a world, one row for each.

    Attributes:
        ints: (n, 4) addresses of position, velocity and controls in the engine's arrays, and the mode.
        floats: (n, `SERVO_COLUMNS`) gains, limits, set-point and integral.
    """

    ints: NDArray[np.int64]
    floats: NDArray[np.float64]


@kernel(inline="always")
def _clamp_magnitude(value: float, bound: float) -> float:
    return min(max(value, -bound), bound)


@kernel(inline="always")
def _allowed_speeds(row: NDArray[np.float64], position: float) -> tuple[float, float]:
    """Return the minimum and maximum velocity that a safety controller allows at ``position``."""
    speed, gain = row[MAX_SPEED], row[K_POS]
    if gain <= 0.0:
        return -speed, speed
    return _clamp_magnitude(gain * (row[SOFT_LOW] - position), speed), _clamp_magnitude(
        gain * (row[SOFT_HIGH] - position), speed
    )


@kernel(inline="always")
def _clamp(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


@kernel(inline="always")
def _available_effort(effort: float, velocity: float, row: NDArray[np.float64]) -> float:
    """Limit an effort to what the servo may give, and to what its motor has at a velocity."""
    effort = _clamp_magnitude(effort, row[MAX_EFFORT])
    if row[NO_LOAD_SPEED] <= 0.0:
        return effort
    stall = row[JOINT_MAX_EFFORT]
    drop = stall * velocity / row[NO_LOAD_SPEED]
    return _clamp(effort, max(-stall, min(-stall - drop, 0.0)), min(stall, max(stall - drop, 0.0)))


def _example() -> Iterable[tuple[Any, ...]]:
    one = np.zeros(1)
    yield (np.zeros((1, 4), np.int64), np.zeros((1, SERVO_COLUMNS)), POSITION, np.zeros(1, np.int64), one, one, one)


@kernel(examples=_example)
def write_setpoints(
    ints: NDArray[np.int64],
    floats: NDArray[np.float64],
    mode: int,
    rows: NDArray[np.int64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    values: NDArray[np.float64],
) -> bool:
    """Give servos new set-points if all of them are in that mode with all their effort, and all values are finite.

    Args:
        ints: See `update_servos`.
        floats: See `update_servos`.
        mode: Of the mode.
        rows: (n,) of the servos.
        low: (n,) least set-points.
        high: (n,) greatest ones.
        values: (n,) set-points.

    Returns:
        False if not; nothing is changed then.
    """
    for i in range(len(rows)):
        if (
            ints[rows[i], MODE] != mode
            or math.isfinite(floats[rows[i], COMMANDED_MAX_EFFORT])
            or not math.isfinite(values[i])
        ):
            return False
    for i in range(len(rows)):
        floats[rows[i], TARGET] = min(max(values[i], low[i]), high[i])
        floats[rows[i], CYCLE_TIME_LEFT] = floats[rows[i], CYCLE_TIME]
    return True


@kernel(no_refcount=True)
def update_servos(servos: ServoTables, state: StateViews, dt: float) -> None:
    """Set the servos' controls for the step from the present state: ramped set-points and integrals.

    The integral stops where the servo's effort is at its limit and the error asks for more.

    MuJoCo computes the proportional and derivative parts itself, implicit in velocity, except for joints of little
    inertia with a strong servo (EXPLICIT_DAMPING).  There MuJoCo would solve contacts without the damping, and a foot
    would sink and bounce; and where it limits the effort it would leave the damping out, and the joint would oscillate
    from step to step.  Such joints have ``step * damping`` added to their inertia instead (see
    `ServoBank.apply_gains`) and get the whole effort from here: the same step, ``(I + h d) v' = I v + h p e``, which
    contacts and limits now include.

    URDF's safety controllers act as in ros_control: towards a soft limit, a commanded speed falls with the distance
    left (K_POS), a position set-point moves no faster than that, and an effort is bounded by what the speed leaves
    (K_VEL).

    A joint with a CYCLE_TIME is driven as by arm controllers (interpolated position mode of CiA 402, with feed-forward;
    B. Siciliano et al., Robotics, 8.5).  Its set-point moves on a straight line to the target in that time, and the
    joint is there at the same moment; the servo damps the deviation from that speed, and adds the expected effort:
    weight, centrifugal and Coriolis forces, and the joint's own damping and friction at that speed.

    A joint with NO_LOAD_SPEED has a motor whose effort falls in proportion to its speed: all of JOINT_MAX_EFFORT at
    standstill, none at that speed.  Against its motion it has all of it at any speed.  Such a joint always gets the
    whole effort from here.

    Where a command limits how hard the joint may press (COMMANDED_MAX_EFFORT, besides its JOINT_MAX_EFFORT), the
    set-point waits for a joint that cannot follow: it runs ahead no further than the effort still grows by that.

    Args:
        servos: The tables; set-point and integral of each servo are advanced.
        state: The present state; its controls are written.
        dt: Step [s].
    """
    ints, floats = servos.ints, servos.floats
    qpos, qvel, ctrl, bias = state.qpos, state.qvel, state.ctrl, state.bias
    for k in range(ints.shape[0]):
        mode = ints[k, MODE]
        control = ints[k, CTRL]
        if mode == OFF:
            continue
        velocity = qvel[ints[k, DOF]]
        has_soft_limits = floats[k, K_POS] > 0.0
        if mode == EFFORT:
            effort = floats[k, TARGET]
            if floats[k, K_VEL] > 0.0:
                low, high = _allowed_speeds(floats[k], qpos[ints[k, QPOS]])
                effort = _clamp(effort, floats[k, K_VEL] * (low - velocity), floats[k, K_VEL] * (high - velocity))
            ctrl[control + 2] = _available_effort(effort, velocity, floats[k])
            continue
        change = floats[k, TARGET] - floats[k, SETPOINT]
        if floats[k, CYCLE_TIME_LEFT] > dt:
            change *= dt / floats[k, CYCLE_TIME_LEFT]
            floats[k, CYCLE_TIME_LEFT] -= dt
        change = _clamp_magnitude(change, floats[k, MAX_SETPOINT_RATE] * dt)
        if has_soft_limits and mode == POSITION:
            low, high = _allowed_speeds(floats[k], floats[k, SETPOINT])
            change = _clamp(change, low * dt, high * dt)
        floats[k, SETPOINT] += change
        if mode == POSITION and floats[k, COMMANDED_MAX_EFFORT] < np.inf and floats[k, P] > 0.0:
            position, max_effort = qpos[ints[k, QPOS]], floats[k, MAX_EFFORT]
            positive_reserve, negative_reserve = max_effort - floats[k, INTEGRAL], max_effort + floats[k, INTEGRAL]
            low, high = position - negative_reserve / floats[k, P], position + positive_reserve / floats[k, P]
            floats[k, SETPOINT] = _clamp(floats[k, SETPOINT], low, high)
        if has_soft_limits and mode == VELOCITY:
            low, high = _allowed_speeds(floats[k], qpos[ints[k, QPOS]])
            floats[k, SETPOINT] = _clamp(floats[k, SETPOINT], low, high)
        setpoint = floats[k, SETPOINT]
        feedforward = 0.0
        if mode == POSITION:
            speed = 0.0
            if floats[k, CYCLE_TIME] > 0.0:
                speed = change / dt
                setpoint -= change  # where it is when the step begins, as the position is
                feedforward = bias[ints[k, DOF]] + floats[k, DAMPING] * speed + floats[k, FRICTION] * np.sign(speed)
            error = setpoint - qpos[ints[k, QPOS]]
            effort = floats[k, P] * error + floats[k, D] * (speed - velocity) + feedforward
            ctrl[control] = setpoint
            ctrl[control + 1] = speed
        else:
            error = setpoint - velocity
            effort = floats[k, P] * error
            ctrl[control + 1] = setpoint
        if floats[k, COMMANDED_MAX_EFFORT] < np.inf:
            floats[k, INTEGRAL] = _clamp_magnitude(floats[k, INTEGRAL], floats[k, MAX_EFFORT])
        effort += floats[k, INTEGRAL]
        applied_effort = _available_effort(effort, velocity, floats[k])
        if not ((abs(effort) >= floats[k, MAX_EFFORT] or applied_effort != effort) and effort * error > 0.0):
            integral = floats[k, INTEGRAL] + floats[k, I] * error * dt
            floats[k, INTEGRAL] = _clamp_magnitude(integral, floats[k, MAX_INTEGRAL])
        ctrl[control + 2] = floats[k, INTEGRAL] + feedforward
        if floats[k, EXPLICIT_DAMPING] > 0.0:
            ctrl[control + 2] = applied_effort
