"""Kernels: angles that fulfil the equations which come up again and again when a chain is solved."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel

Array = NDArray[np.float64]
SLACK = 1e-6
"""By which share an equation may miss, since a stretched-out arm reaches its goal only but for rounding."""


@kernel(examples=lambda: [(1.0, 0.5, 0.3, np.zeros(4))])
def angles_of_line(a: float, b: float, d: float, out: Array) -> int:
    """Angles x with ``a cos x + b sin x = d``, into ``out``; how many (0 to 2)."""
    length = math.hypot(a, b)
    if length < 1e-12 or abs(d) > length * (1.0 + SLACK):
        return 0
    middle = math.atan2(b, a)
    apart = math.acos(min(1.0, max(-1.0, d / length)))
    out[0] = middle + apart
    if apart < 1e-12 or apart > math.pi - 1e-12:
        return 1
    out[1] = middle - apart
    return 2


@kernel(inline="always", examples=lambda: [(np.ones(5), 4, 0.1)])
def _value(poly: Array, degree: int, x: float) -> float:
    value: float = poly[degree]
    for i in range(degree - 1, -1, -1):
        value = value * x + poly[i]
    return value


@kernel(examples=lambda: [(np.ones(5), np.zeros(4))])
def real_roots(poly: Array, out: Array) -> int:
    """Real roots of a polynomial of degree up to 4, in rising order; how many.

    Between neighbouring roots of its derivative a polynomial rises or falls, so each interval holds one root at most. A
    root of the derivative at which the polynomial nearly vanishes counts as a double one.

    Args:
        poly: (degree + 1,) coefficients, the constant first; the last must not vanish.
        out: (4,) is filled.
    """
    top = poly.shape[0] - 1
    bound = 0.0
    for i in range(top):
        bound = max(bound, abs(poly[i] / poly[top]))
    bound += 1.0
    derived = np.empty((top + 1, top + 1))
    derived[top, : top + 1] = poly
    for n in range(top, 0, -1):
        for i in range(n):
            derived[n - 1, i] = derived[n, i + 1] * (i + 1)
    roots, count = np.empty(top + 2), 0
    ends = np.empty(top + 2)
    for n in range(1, top + 1):
        p = derived[n]
        ends[0] = -bound
        ends[1 : count + 1] = roots[:count]
        ends[count + 1] = bound
        borders, count = count + 2, 0
        for k in range(borders - 1):
            low, high = ends[k], ends[k + 1]
            at_low, at_high = _value(p, n, low), _value(p, n, high)
            size = 0.0
            for i in range(n + 1):
                size += abs(p[i]) * abs(low) ** i
            if k > 0 and abs(at_low) < SLACK * SLACK * size:
                if count == 0 or low - roots[count - 1] > 1e-12 * bound:
                    roots[count] = low
                    count += 1
                continue
            if at_low * at_high >= 0.0:
                continue
            x = 0.5 * (low + high)
            for _ in range(100):
                value = _value(p, n, x)
                if value * at_low > 0.0:
                    low = x
                else:
                    high = x
                slope = _value(derived[n - 1], n - 1, x) if n > 1 else derived[0, 0]
                step = value / slope if slope != 0.0 else math.inf
                following = x - step
                if not low < following < high:
                    following = 0.5 * (low + high)
                if abs(following - x) <= 1e-15 * (1.0 + abs(x)):
                    break
                x = following
            roots[count] = x
            count += 1
    out[:count] = roots[:count]
    return count


@kernel(examples=lambda: [(np.ones(6), np.zeros(4))])
def angles_of_conic(conic: Array, out: Array) -> int:
    """Angles x with ``A c² + B c s + C s² + D c + E s + F = 0``, c and s being cos x and sin x; how many (0 to 4).

    With t = tan(x' / 2) it is a polynomial of degree 4. x' is x less an angle for which x' = pi is far from a root,
    since t has no number for that.

    Args:
        conic: (6,) A to F.
        out: (4,) is filled.
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
