"""The servos' part of a physics step: ramps and integrals, compiled."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel

# Columns of the servo tables.
QPOS, DOF, CTRL, MODE = range(4)
P, I, D, WINDUP, RAMP, LIMIT, TARGET, SETPOINT, INTEGRAL, EASED, SOFT_LOW, SOFT_HIGH, K_POS, K_VEL, SPEED = range(15)  # noqa: E741
CYCLE, LEFT, DAMPING, FRICTION, OWN, ASKED, NO_LOAD = range(15, 22)
WIDTH = 22
OFF, POSITION, VELOCITY, EFFORT = range(4)


def _clip(value: float, bound: float) -> float:
    return min(max(value, -bound), bound)


_clip = kernel(inline="always")(_clip)


def _speeds(row: NDArray[np.float64], position: float) -> tuple[float, float]:
    """Least and largest speed that a safety controller allows at ``position``."""
    speed, gain = row[SPEED], row[K_POS]
    if gain <= 0.0:
        return -speed, speed
    return _clip(gain * (row[SOFT_LOW] - position), speed), _clip(gain * (row[SOFT_HIGH] - position), speed)


_speeds = kernel(inline="always")(_speeds)


def _between(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


_between = kernel(inline="always")(_between)


def _motor(effort: float, velocity: float, row: NDArray[np.float64]) -> float:
    """The effort wanted, as far as the servo may give it and its motor has it at a velocity."""
    effort = _clip(effort, row[LIMIT])
    if row[NO_LOAD] <= 0.0:
        return effort
    stall = row[OWN]
    drop = stall * velocity / row[NO_LOAD]
    return _between(effort, max(-stall, min(-stall - drop, 0.0)), min(stall, max(stall - drop, 0.0)))


_motor = kernel(inline="always")(_motor)


def _example() -> Iterable[tuple[Any, ...]]:
    one = np.zeros(1)
    yield (np.zeros((1, 4), np.int64), np.zeros((1, WIDTH)), POSITION, np.zeros(1, np.int64), one, one, one)


@kernel(examples=_example)
def take_setpoints(
    ints: NDArray[np.int64],
    floats: NDArray[np.float64],
    code: int,
    rows: NDArray[np.int64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    values: NDArray[np.float64],
) -> bool:
    """Give servos new set-points if all of them are in that mode with all their effort, and all values are finite.

    Args:
        ints: See `run_servos`.
        floats: See `run_servos`.
        code: Of the mode.
        rows: (n,) of the servos.
        low: (n,) least set-points.
        high: (n,) greatest ones.
        values: (n,) set-points.

    Returns:
        False if not; nothing is changed then.
    """
    for i in range(len(rows)):
        if ints[rows[i], MODE] != code or math.isfinite(floats[rows[i], ASKED]) or not math.isfinite(values[i]):
            return False
    for i in range(len(rows)):
        floats[rows[i], TARGET] = min(max(values[i], low[i]), high[i])
        floats[rows[i], LEFT] = floats[rows[i], CYCLE]
    return True


@kernel
def run_servos(
    ints: NDArray[np.int64],
    floats: NDArray[np.float64],
    qpos: NDArray[np.float64],
    qvel: NDArray[np.float64],
    ctrl: NDArray[np.float64],
    bias: NDArray[np.float64],
    dt: float,
) -> None:
    """Set the servos' controls for the step from the present state: ramped set-points and integrals.

    The integral stops where the servo's effort is at its limit and the error asks for more.

    The proportional and derivative parts are the engine's own, implicit in velocity, but for joints of little inertia
    with a strong servo (EASED).  There the engine would reckon contacts without the damping, and a foot would sink and
    bounce; and where it cuts the effort off it would leave the damping out, and throw the joint to and fro at every
    step.  Such joints have ``step * damping`` added to their inertia instead (see `Servos.engage`) and get the whole
    effort from here: the same step, ``(I + h d) v' = I v + h p e``, which contacts and limits now see.

    URDF's safety controllers act as in ros_control: towards a soft limit, a commanded speed falls with the distance
    left (K_POS), a position set-point goes no faster than that, and an effort is bounded by what the speed leaves
    (K_VEL).

    A joint with a CYCLE is driven as arm controllers drive theirs (interpolated position mode of CiA 402, with
    feed-forward; B. Siciliano et al., Robotics, 8.5).  Its set-point goes straight to the target in that time, and both
    are there together; the servo damps the deviation from that speed, and adds the effort foreseen: weight,
    centrifugal and Coriolis forces, and the joint's own damping and friction at that speed.

    A joint with NO_LOAD has a motor whose effort falls in proportion to its speed: all of OWN stalled, none at that
    speed.  Against its motion it has all of it at any speed.  It always gets the whole effort from here.

    Where a command says how hard the joint may press (ASKED, beside its OWN limit), the set-point waits for a joint
    that cannot follow: it runs ahead no further than the effort still grows by that.

    Args:
        ints: (n, 4) addresses and mode.
        floats: (n, 22) gains, limits and state; set-point and integral are advanced.
        qpos: Positions.
        qvel: Velocities.
        ctrl: Controls, written: (position, velocity, feed-forward) for each servo.
        bias: Efforts that hold the present motion [N m or N], for each degree of freedom.
        dt: Step [s].
    """
    for k in range(ints.shape[0]):
        mode = ints[k, MODE]
        c = ints[k, CTRL]
        if mode == OFF:
            continue
        velocity = qvel[ints[k, DOF]]
        soft = floats[k, K_POS] > 0.0
        if mode == EFFORT:
            effort = floats[k, TARGET]
            if floats[k, K_VEL] > 0.0:
                low, high = _speeds(floats[k], qpos[ints[k, QPOS]])
                effort = _between(effort, floats[k, K_VEL] * (low - velocity), floats[k, K_VEL] * (high - velocity))
            ctrl[c + 2] = _motor(effort, velocity, floats[k])
            continue
        change = floats[k, TARGET] - floats[k, SETPOINT]
        if floats[k, LEFT] > dt:
            change *= dt / floats[k, LEFT]
            floats[k, LEFT] -= dt
        change = _clip(change, floats[k, RAMP] * dt)
        if soft and mode == POSITION:
            low, high = _speeds(floats[k], floats[k, SETPOINT])
            change = _between(change, low * dt, high * dt)
        floats[k, SETPOINT] += change
        if mode == POSITION and floats[k, ASKED] < np.inf and floats[k, P] > 0.0:
            here, most = qpos[ints[k, QPOS]], floats[k, LIMIT]
            ahead, behind = most - floats[k, INTEGRAL], most + floats[k, INTEGRAL]
            low, high = here - behind / floats[k, P], here + ahead / floats[k, P]
            floats[k, SETPOINT] = _between(floats[k, SETPOINT], low, high)
        if soft and mode == VELOCITY:
            low, high = _speeds(floats[k], qpos[ints[k, QPOS]])
            floats[k, SETPOINT] = _between(floats[k, SETPOINT], low, high)
        setpoint = floats[k, SETPOINT]
        foreseen = 0.0
        if mode == POSITION:
            speed = 0.0
            if floats[k, CYCLE] > 0.0:
                speed = change / dt
                setpoint -= change  # where it is when the step begins, as the position is
                foreseen = bias[ints[k, DOF]] + floats[k, DAMPING] * speed + floats[k, FRICTION] * np.sign(speed)
            error = setpoint - qpos[ints[k, QPOS]]
            effort = floats[k, P] * error + floats[k, D] * (speed - velocity) + foreseen
            ctrl[c] = setpoint
            ctrl[c + 1] = speed
        else:
            error = setpoint - velocity
            effort = floats[k, P] * error
            ctrl[c + 1] = setpoint
        if floats[k, ASKED] < np.inf:
            floats[k, INTEGRAL] = _clip(floats[k, INTEGRAL], floats[k, LIMIT])
        effort += floats[k, INTEGRAL]
        given = _motor(effort, velocity, floats[k])
        if not ((abs(effort) >= floats[k, LIMIT] or given != effort) and effort * error > 0.0):
            grown = floats[k, INTEGRAL] + floats[k, I] * error * dt
            floats[k, INTEGRAL] = _clip(grown, floats[k, WINDUP])
        ctrl[c + 2] = floats[k, INTEGRAL] + foreseen
        if floats[k, EASED] > 0.0:
            ctrl[c + 2] = given
