"""Kernels: shortest ways of a car that turns no tighter than a circle of radius 1, in the open.

Forwards only after Dubins (1957); forwards and backwards after Reeds and Shepp (1990), whose words are numbered as in
their table 8 and found from a few by time reversal, reflection and running backwards.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.planar_kernels import wrap_angle

_ZERO = 1e-9
_QUARTER = 0.5 * math.pi


@kernel
def _positive(angle: float) -> float:
    """Into [0, 2π), what rounding left of a full circle as 0."""
    turned = angle - 2.0 * math.pi * math.floor(angle / (2.0 * math.pi))
    return 0.0 if turned > 2.0 * math.pi - _ZERO or turned < 0.0 else turned


@kernel
def _tau_omega(u: float, v: float, xi: float, eta: float, phi: float) -> tuple[float, float]:
    delta = wrap_angle(u - v)
    a, b = math.sin(u) - math.sin(delta), math.cos(u) - math.cos(delta) - 1.0
    first = math.atan2(eta * a - xi * b, xi * a + eta * b)
    second = 2.0 * (math.cos(delta) - math.cos(v) - math.cos(u)) + 3.0
    tau = wrap_angle(first + math.pi) if second < 0.0 else wrap_angle(first)
    return tau, wrap_angle(tau - u + v - phi)


@kernel
def _word(word: int, x: float, y: float, phi: float) -> tuple[bool, float, float, float]:
    """Whether one of Reeds and Shepp's eight formulas holds, and its t, u, v."""
    same_x, same_y = x - math.sin(phi), y - 1.0 + math.cos(phi)  # circles on the same side
    other_x, other_y = x + math.sin(phi), y - 1.0 - math.cos(phi)
    rho, theta = math.hypot(same_x, same_y), math.atan2(same_y, same_x)
    sigma, psi = math.hypot(other_x, other_y), math.atan2(other_y, other_x)
    t = u = v = 0.0
    if word == 0:  # L+ S+ L+
        t, u = theta, rho
        v = wrap_angle(phi - t)
        return t >= -_ZERO and v >= -_ZERO, t, u, v
    if word == 1 and sigma >= 2.0:  # L+ S+ R+
        u = math.sqrt(sigma * sigma - 4.0)
        t = wrap_angle(psi + math.atan2(2.0, u))
        v = wrap_angle(t - phi)
        return t >= -_ZERO and v >= -_ZERO, t, u, v
    if word == 2 and rho <= 4.0:  # L+ R- L
        u = -2.0 * math.asin(0.25 * rho)
        t = wrap_angle(theta + 0.5 * u + math.pi)
        v = wrap_angle(phi - t + u)
        return t >= -_ZERO and u <= _ZERO, t, u, v
    if word == 3:  # L+ Ru+ Lu- R-
        share = 0.25 * (2.0 + sigma)
        if share <= 1.0:
            u = math.acos(share)
            t, v = _tau_omega(u, -u, other_x, other_y, phi)
            return t >= -_ZERO and v <= _ZERO, t, u, v
    if word == 4:  # L+ Ru- Lu- R+
        share = (20.0 - sigma * sigma) / 16.0
        if 0.0 <= share <= 1.0:
            u = -math.acos(share)
            if u >= -_QUARTER:
                t, v = _tau_omega(u, u, other_x, other_y, phi)
                return t >= -_ZERO and v >= -_ZERO, t, u, v
    if word == 5 and rho >= 2.0:  # L+ R- S- L-
        r = math.sqrt(rho * rho - 4.0)
        u = 2.0 - r
        t = wrap_angle(theta + math.atan2(r, -2.0))
        v = wrap_angle(phi - _QUARTER - t)
        return t >= -_ZERO and u <= _ZERO and v <= _ZERO, t, u, v
    if word == 6 and sigma >= 2.0:  # L+ R- S- R-
        t = math.atan2(other_x, -other_y)
        u = 2.0 - sigma
        v = wrap_angle(t + _QUARTER - phi)
        return t >= -_ZERO and u <= _ZERO and v <= _ZERO, t, u, v
    if word == 7 and sigma >= 2.0:  # L+ R- S- L- R+
        u = 4.0 - math.sqrt(sigma * sigma - 4.0)
        if u <= _ZERO:
            a, b = (4.0 - u) * other_x - 2.0 * other_y, -2.0 * other_x + (u - 4.0) * other_y
            t = wrap_angle(math.atan2(a, b))
            v = wrap_angle(t - phi)
            return t >= -_ZERO and v >= -_ZERO, t, u, v
    return False, t, u, v


@kernel
def _segments(word: int, t: float, u: float, v: float, sides: NDArray[np.int64], lengths: NDArray[np.float64]) -> int:
    """What a word's numbers mean: sides (1 left, 0 straight, -1 right) and signed lengths; how many."""
    if word <= 2:
        sides[0], sides[1], sides[2] = 1, (-1 if word == 2 else 0), (-1 if word == 1 else 1)
        lengths[0], lengths[1], lengths[2] = t, u, v
        return 3
    if word <= 4:
        sides[0], sides[1], sides[2], sides[3] = 1, -1, 1, -1
        lengths[0], lengths[1], lengths[2], lengths[3] = t, u, (-u if word == 3 else u), v
        return 4
    if word <= 6:
        sides[0], sides[1], sides[2], sides[3] = 1, -1, 0, (1 if word == 5 else -1)
        lengths[0], lengths[1], lengths[2], lengths[3] = t, -_QUARTER, u, v
        return 4
    sides[0], sides[1], sides[2], sides[3], sides[4] = 1, -1, 0, 1, -1
    lengths[0], lengths[1], lengths[2], lengths[3], lengths[4] = t, -_QUARTER, u, -_QUARTER, v
    return 5


@kernel(examples=lambda: [(1.0, 1.0, 0.5, np.zeros(5, dtype=np.int64), np.zeros(5))])
def reeds_shepp(x: float, y: float, phi: float, sides: NDArray[np.int64], lengths: NDArray[np.float64]) -> float:
    """The shortest way from the origin, looking along x, to a pose, forwards and backwards.

    Args:
        x: Of the pose, in turning radii.
        y: The same across.
        phi: Its heading [rad].
        sides: (5,) result: 1 left, 0 straight, -1 right.
        lengths: (5,) result in turning radii, negative backwards; 0 beyond the last segment.

    Returns:
        Its length in turning radii.
    """
    best = math.inf
    turned = np.zeros(5, dtype=np.int64)
    signed = np.zeros(5)
    back_x, back_y = x * math.cos(phi) + y * math.sin(phi), x * math.sin(phi) - y * math.cos(phi)
    for word in range(8):
        for backwards in range(2 if word in (2, 5, 6) else 1):
            px, py = (back_x, back_y) if backwards else (x, y)
            for flip in range(2):
                for mirror in range(2):
                    fx, fy = (-px if flip else px), (-py if mirror else py)
                    fits, t, u, v = _word(word, fx, fy, -phi if flip != mirror else phi)
                    if not fits:
                        continue
                    signed[:] = 0.0
                    turned[:] = 0
                    count = _segments(word, t, u, v, turned, signed)
                    total = np.abs(signed[:count]).sum()
                    if total >= best:
                        continue
                    best = total
                    lengths[:] = 0.0
                    sides[:] = 0
                    for k in range(count):
                        j = count - 1 - k if backwards else k
                        sides[k] = -turned[j] if mirror else turned[j]
                        lengths[k] = -signed[j] if flip else signed[j]
    return best


@kernel(examples=lambda: [(1.0, 1.0, 0.5, np.zeros(5, dtype=np.int64), np.zeros(5))])
def dubins(x: float, y: float, phi: float, sides: NDArray[np.int64], lengths: NDArray[np.float64]) -> float:
    """The same forwards only; see ``reeds_shepp``."""
    best = math.inf
    for word in range(6):
        a, b = (1 if word in (0, 2, 4) else -1), (1 if word in (0, 3, 4) else -1)
        # centres of the circles at the beginning and the end
        cx, cy = x - b * math.sin(phi), y + b * math.cos(phi) - a
        far, towards = math.hypot(cx, cy), math.atan2(cy, cx)
        middle = 0
        if word < 2:  # L S L, R S R
            u, heading = far, towards
        elif word < 4:  # L S R, R S L
            if far < 2.0:
                continue
            u = math.sqrt(far * far - 4.0)
            heading = towards + a * math.atan2(2.0, u)
        else:  # L R L, R L R
            if far > 4.0:
                continue
            middle = -a
            half = math.acos(0.25 * far)
            heading = towards + a * (half + _QUARTER)
            u = math.pi + 2.0 * half
        t = _positive(a * heading)
        v = _positive(b * (phi - heading)) if word < 4 else _positive(a * (phi - heading) + u)
        total = t + u + v
        if total < best:
            best = total
            sides[:] = 0
            lengths[:] = 0.0
            sides[0], sides[1], sides[2] = a, middle, b
            lengths[0], lengths[1], lengths[2] = t, u, v
    return best


@kernel(examples=lambda: [(np.zeros(3), 1.0, 0.5)])
def driven(pose: NDArray[np.float64], length: float, curvature: float) -> tuple[float, float, float]:
    """Where an arc of so much length (negative backwards) leads from a pose x, y, theta."""
    theta = pose[2]
    turn = length * curvature
    if abs(turn) < 1e-12:
        return pose[0] + length * math.cos(theta), pose[1] + length * math.sin(theta), theta
    radius = 1.0 / curvature
    x = pose[0] + radius * (math.sin(theta + turn) - math.sin(theta))
    y = pose[1] - radius * (math.cos(theta + turn) - math.cos(theta))
    return x, y, theta + turn
