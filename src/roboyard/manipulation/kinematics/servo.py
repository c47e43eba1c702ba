"""Differential inverse kinematics: speeds of joints that move a tool as wanted right now, within all limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.chains.chain import Chain
from roboyard.config import check
from roboyard.config import field as setting
from roboyard.errors import InputError
from roboyard.manipulation.kinematics.boxes import solve_between, without_rows
from roboyard.manipulation.kinematics.goals import poses, unit
from roboyard.manipulation.kinematics.refine import Wish, fill_error

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ServoSettings:
    """How a tool is moved.

    Attributes:
        period: Speeds hold for this long; no joint passes its limit in that time [s].
        damping: How much slower joints are preferred to a better motion; counts near singular positions only.
        metres_per_radian: What turning weighs beside moving, where both cannot be had [m].
        gain: With which the tool goes to a pose [1/s].
        speed: Greatest of the tool, to a pose [m/s].
        turn_rate: Greatest of the tool, to a pose [rad/s].
        posture_gain: With which joints go to a posture, as far as the tool does not move by it [1/s].
    """

    period: float = setting(0.01, unit="s", low=1e-5, high=1.0)
    damping: float = setting(0.003, low=1e-6, high=1.0)
    metres_per_radian: float = setting(0.3, unit="m", low=1e-4, high=100.0)
    gain: float = setting(5.0, low=0.0, high=1000.0)
    speed: float = setting(0.25, unit="m/s", low=0.0, high=100.0)
    turn_rate: float = setting(1.0, unit="rad/s", low=0.0, high=100.0)
    posture_gain: float = setting(1.0, low=0.0, high=1000.0)


@dataclass(frozen=True)
class ServoStep:
    """What joints shall do now.

    Attributes:
        speeds: (n,) [rad/s or m/s].
        twist: (6,) how the tool moves by them, in the axes of the base.
        error: (6,) what is missing of the wanted twist.
        limited: Names of joints at a limit of speed or position.
    """

    speeds: Array
    twist: Array
    error: Array
    limited: tuple[str, ...]


_DEFAULT = ServoSettings()


def servo_step(
    chain: Chain,
    q: ArrayLike,
    twist: ArrayLike,
    *,
    free_axis: ArrayLike | None = None,
    posture: ArrayLike | None = None,
    settings: ServoSettings = _DEFAULT,
) -> ServoStep:
    """Speeds of joints for a tool's twist: damped least squares between the bounds of every joint.

    The tool comes first; towards the posture joints move only as far as that does not disturb it.

    Args:
        chain: To the tool.
        q: (n,) present joints; beyond a limit they only move back.
        twist: (6,) linear [m/s], then angular [rad/s], in the axes of the base.
        free_axis: (3,) direction in the tool's frame about which it may turn as it likes.
        posture: (n,) joints to be near to, where there is a choice.
        settings: Gains and limits.

    Raises:
        InputError: an argument is not finite or of the wrong shape; ConfigError: a setting is out of range.
    """
    check(settings, "settings")
    now, wanted = _vector(chain, q), _six(twist)
    J = chain.jacobian(now)
    weights = np.array([1.0, 1.0, 1.0, *(3 * [settings.metres_per_radian])])
    asked, task = weights * wanted, weights[:, None] * J
    if free_axis is not None:
        axis = chain.forward(now)[:3, :3] @ unit(free_axis, "free_axis")
        across = np.eye(3) - np.outer(axis, axis)
        task[3:], asked[3:] = across @ task[3:], across @ asked[3:]
    low, high = speed_bounds(chain, now, settings.period)
    H = task.T @ task + settings.damping**2 * np.eye(chain.dof)
    speeds = np.empty(chain.dof)
    solve_between(H, task.T @ asked, low, high, speeds)
    if posture is not None:
        speeds += _towards(_vector(chain, posture) - now, settings.posture_gain, task, speeds, low, high)
    slack = 1e-9 * (1.0 + np.abs(speeds))
    stopped = (speeds <= low + slack) | (speeds >= high - slack)
    limited = tuple(name for name, is_so in zip(chain.joints, stopped, strict=True) if is_so)
    return ServoStep(speeds, J @ speeds, wanted - J @ speeds, limited)


def servo_to(
    chain: Chain,
    q: ArrayLike,
    T_base_tool: ArrayLike,
    *,
    free_axis: ArrayLike | None = None,
    posture: ArrayLike | None = None,
    settings: ServoSettings = _DEFAULT,
) -> ServoStep:
    """As `servo_step`, for the twist that leads straight to a pose (4, 4): the nearer, the slower."""
    goal, error = poses(T_base_tool, 2), np.empty(6)
    direction, asked = np.zeros(3), goal
    if free_axis is not None:
        direction = unit(free_axis, "free_axis")
        asked = goal.copy()
        asked[:3, 2] = goal[:3, :3] @ direction
    fill_error(Wish(asked, direction, np.ones(2)), chain.forward(_vector(chain, q)), error)
    twist = settings.gain * error
    for part, most in ((slice(0, 3), settings.speed), (slice(3, 6), settings.turn_rate)):
        size = float(np.linalg.norm(twist[part]))
        if size > most:
            twist[part] *= most / size
    return servo_step(chain, q, twist, free_axis=free_axis, posture=posture, settings=settings)


def speed_bounds(chain: Chain, q: Array, period: float) -> tuple[Array, Array]:
    """Least and greatest speeds (n,): those of the joints, and such that each can stop before its limits."""

    def towards(room: Array) -> Array:
        """Where acceleration is limited: v period + v² / (2 a) is the room that is left."""
        with np.errstate(invalid="ignore"):
            a = chain.acceleration
            braked = -a * period + np.sqrt((a * period) ** 2 + 2.0 * a * room)
        return np.where(np.isfinite(chain.acceleration) & np.isfinite(room), braked, room / period)

    high = np.minimum(chain.velocity, towards(np.maximum(chain.upper - q, 0.0)))
    low = np.maximum(-chain.velocity, -towards(np.maximum(q - chain.lower, 0.0)))
    # beyond a limit: back, no faster than the joint may go
    high = np.where(q > chain.upper, np.maximum((chain.upper - q) / period, -chain.velocity), high)
    low = np.where(q < chain.lower, np.minimum((chain.lower - q) / period, chain.velocity), low)
    return np.minimum(low, high), np.maximum(low, high)


def _towards(gap: Array, gain: float, task: Array, speeds: Array, low: Array, high: Array) -> Array:
    """The part of a motion to a posture that the tool does not feel, as much of it as the bounds allow."""
    slack = 1e-9 * (1.0 + np.abs(speeds))
    bound = (speeds <= low + slack) | (speeds >= high - slack)
    rows = np.concatenate([task, np.eye(len(gap))[bound]])
    direction = gain * gap - np.where(bound, 0.0, speeds)
    without_rows(rows, direction)
    share = 1.0
    for step, value, least, most in zip(direction, speeds, low, high, strict=True):
        if abs(step) > 1e-15:
            share = min(share, max(0.0, ((most if step > 0.0 else least) - value) / step))
    return share * direction


def _vector(chain: Chain, q: ArrayLike) -> Array:
    values = chain.positions(q)
    if values.ndim != 1:
        raise InputError(f"joints of shape {values.shape}", where=chain.robot, valid=f"({chain.dof},)")
    return values


def _six(twist: ArrayLike) -> Array:
    try:
        values = np.array(twist, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (6,) or not np.isfinite(values).all():
        raise InputError(f"the twist {twist!r:.80} is none", valid="six finite numbers: linear, then angular")
    return values
