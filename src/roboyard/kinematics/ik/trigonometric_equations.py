"""Kernels: closed-form solutions of the trigonometric equations of inverse kinematics."""

from __future__ import annotations

import math

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array

TOLERANCE = 1e-6
"""Relative tolerance of the equations: a stretched arm reaches its goal only up to rounding."""


@kernel(examples=lambda: [(1.0, 0.5, 0.3, np.zeros(4))])
def solve_linear_trig(a: float, b: float, d: float, out: Array) -> int:
    """Solve ``a cos x + b sin x = d`` for angles x in `out`; return their number (0 to 2)."""
    length = math.hypot(a, b)
    if length < 1e-12 or abs(d) > length * (1.0 + TOLERANCE):
        return 0
    center = math.atan2(b, a)
    half_width = math.acos(min(1.0, max(-1.0, d / length)))
    out[0] = center + half_width
    if half_width < 1e-12 or half_width > math.pi - 1e-12:
        return 1
    out[1] = center - half_width
    return 2


@kernel(inline="always", examples=lambda: [(np.ones(5), 4, 0.1)])
def _evaluate_polynomial(poly: Array, degree: int, x: float) -> float:
    value: float = poly[degree]
    for i in range(degree - 1, -1, -1):
        value = value * x + poly[i]
    return value


@kernel(examples=lambda: [(np.ones(5), np.zeros(4))])
def real_roots(poly: Array, out: Array) -> int:
    """Compute the real roots of a polynomial of degree up to 4, in ascending order; return their number.

    Between adjacent roots of its derivative a polynomial is monotonic, so each interval has at most one root. A root of
    the derivative at which the polynomial nearly vanishes counts as a double root.

    Args:
        poly: (degree + 1,) coefficients, the constant first; the last must not vanish.
        out: (4,) result.
    """
    degree = poly.shape[0] - 1
    bound = 0.0
    for i in range(degree):
        bound = max(bound, abs(poly[i] / poly[degree]))
    bound += 1.0
    derivatives = np.empty((degree + 1, degree + 1))
    derivatives[degree, : degree + 1] = poly
    for n in range(degree, 0, -1):
        for i in range(n):
            derivatives[n - 1, i] = derivatives[n, i + 1] * (i + 1)
    roots, count = np.empty(degree + 2), 0
    ends = np.empty(degree + 2)
    for n in range(1, degree + 1):
        p = derivatives[n]
        ends[0] = -bound
        ends[1 : count + 1] = roots[:count]
        ends[count + 1] = bound
        n_ends, count = count + 2, 0
        for k in range(n_ends - 1):
            low, high = ends[k], ends[k + 1]
            at_low, at_high = _evaluate_polynomial(p, n, low), _evaluate_polynomial(p, n, high)
            magnitude = 0.0
            for i in range(n + 1):
                magnitude += abs(p[i]) * abs(low) ** i
            if k > 0 and abs(at_low) < TOLERANCE * TOLERANCE * magnitude:
                if count == 0 or low - roots[count - 1] > 1e-12 * bound:
                    roots[count] = low
                    count += 1
                continue
            if at_low * at_high >= 0.0:
                continue
            x = 0.5 * (low + high)
            for _ in range(100):
                value = _evaluate_polynomial(p, n, x)
                if value * at_low > 0.0:
                    low = x
                else:
                    high = x
                slope = _evaluate_polynomial(derivatives[n - 1], n - 1, x) if n > 1 else derivatives[0, 0]
                step = value / slope if slope != 0.0 else math.inf
                next_x = x - step
                if not low < next_x < high:
                    next_x = 0.5 * (low + high)
                if abs(next_x - x) <= 1e-15 * (1.0 + abs(x)):
                    break
                x = next_x
            roots[count] = x
            count += 1
    out[:count] = roots[:count]
    return count


@kernel(examples=lambda: [(np.ones(6), np.zeros(4))])
def solve_quadratic_trig(conic: Array, out: Array) -> int:
    """Solve ``A c² + B c s + C s² + D c + E s + F = 0`` with c = cos x and s = sin x; return the number of angles (0 to
    4).

    The substitution t = tan(x' / 2) gives a polynomial of degree 4. x' is x shifted by an angle for which x' = pi is
    far from a root, because t is infinite there.

    Args:
        conic: (6,) coefficients A to F.
        out: (4,) result: angles x.
    """
    A, B, C, D, E, F = conic[0], conic[1], conic[2], conic[3], conic[4], conic[5]
    best, shift = -1.0, 0.0
    for k in range(8):
        x = k * (math.pi / 4.0) + 0.1
        c, s = math.cos(x), math.sin(x)
        value = abs(A * c * c + B * c * s + C * s * s + D * c + E * s + F)
        if value > best:
            best, shift = value, x - math.pi
    if best < 1e-13:
        return 0
    c, s = math.cos(shift), math.sin(shift)
    a = A * c * c + B * c * s + C * s * s
    b = 2.0 * (C - A) * c * s + B * (c * c - s * s)
    e = A * s * s - B * c * s + C * c * c
    g, h = D * c + E * s, E * c - D * s
    poly = np.array([a + g + F, 2.0 * (b + h), 4.0 * e - 2.0 * a + 2.0 * F, 2.0 * (h - b), a - g + F])
    count = real_roots(poly, out)
    for i in range(count):
        out[i] = 2.0 * math.atan(out[i]) + shift
    return count
