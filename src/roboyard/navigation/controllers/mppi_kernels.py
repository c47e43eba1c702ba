"""Kernels of model predictive path integral control: many rollouts, and what each costs.

All positions are in the grid's frame: metres from the corner of its cell (0, 0).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.navigation.costmap import INSCRIBED, LETHAL
from roboyard.navigation.footprint import fitted_cost

F = NDArray[np.float32]


def _batch() -> F:
    return np.zeros((2, 4), dtype=np.float32)


@kernel(
    examples=lambda: [
        (_batch(), _batch(), _batch(), np.zeros(3), np.zeros(3), np.ones(6), 0.05, _batch(), _batch(), _batch())
    ]
)
def roll_out(
    vx: F,
    vy: F,
    wz: F,
    pose: NDArray[np.float64],
    twist: NDArray[np.float64],
    limits: NDArray[np.float64],
    dt: float,
    xs: F,
    ys: F,
    yaws: F,
) -> None:
    """Drive every sequence of commands.

    Args:
        vx: (batch, steps) commands; afterwards what the base, within its limits, would really drive.
        vy: The same to the left.
        wz: The same turning.
        pose: x, y, theta now.
        twist: vx, vy, wz now.
        limits: Forward, backward, sideways, turn, acceleration, turn acceleration.
        dt: Of a step [s].
        xs: (batch, steps) result: where the base is after each step.
        ys: The same.
        yaws: The same, not wrapped.
    """
    batch, steps = vx.shape
    change, turn_change = np.float32(limits[4] * dt), np.float32(limits[5] * dt)
    ahead, back, side, turn = (
        np.float32(limits[0]),
        np.float32(-limits[1]),
        np.float32(limits[2]),
        np.float32(limits[3]),
    )
    step = np.float32(dt)
    omni = limits[2] > 0.0
    for k in range(batch):
        x, y, yaw = np.float32(pose[0]), np.float32(pose[1]), np.float32(pose[2])
        v, u, w = np.float32(twist[0]), np.float32(twist[1]), np.float32(twist[2])
        for t in range(steps):
            v = min(max(min(max(vx[k, t], back), ahead), v - change), v + change)
            w = min(max(min(max(wz[k, t], -turn), turn), w - turn_change), w + turn_change)
            vx[k, t], wz[k, t] = v, w
            middle = yaw + np.float32(0.5) * w * step
            c, s = np.float32(math.cos(middle)), np.float32(math.sin(middle))
            yaw += w * step
            x += v * c * step
            y += v * s * step
            if omni:
                u = min(max(min(max(vy[k, t], -side), side), u - change), u + change)
                vy[k, t] = u
                x -= u * s * step
                y += u * c * step
            xs[k, t], ys[k, t], yaws[k, t] = x, y, yaw


@kernel(
    examples=lambda: [
        (_batch(), _batch(), _batch(), np.zeros((5, 5), dtype=np.uint8), np.zeros((4, 2)), 1, 20.0, 2,
         np.ones(4), False, np.zeros(2)),
    ]
)  # fmt: skip
def obstacle_costs(
    xs: F,
    ys: F,
    yaws: F,
    cells: NDArray[np.uint8],
    border: NDArray[np.float64],
    possible: int,
    scale: float,
    stride: int,
    weights: NDArray[np.float64],
    near_goal: bool,
    costs: NDArray[np.float64],
) -> int:
    """Add what each rollout pays for obstacles.

    Args:
        xs: (batch, steps), as are ``ys`` and ``yaws``.
        ys: See above.
        yaws: See above.
        cells: (rows, columns) of the costmap.
        border: (n, 2) points of the outline [cells].
        possible: Cost of a centre whose nearest obstacle is a circumscribed radius away.
        scale: Cells per metre.
        stride: Every how many steps to look.
        weights: Of collision, of being inscribed, of the mean cost, and exponent.
        near_goal: Whether the goal is so near that costs of places do not count.
        costs: (batch,) that are added to.

    Returns:
        Number of rollouts that touch nothing.
    """
    batch, steps = xs.shape
    free = 0
    for k in range(batch):
        total = 0.0
        hit = False
        for t in range(stride - 1, steps, stride):
            cost = fitted_cost(cells, border, possible, xs[k, t] * scale, ys[k, t] * scale, yaws[k, t])
            if cost >= INSCRIBED:
                # the sooner it touches, the worse: then the best of bad rollouts is the one that brakes
                hit = True
                total += (steps - t) / steps
                break
            if not near_goal:
                total += cost / LETHAL
        if hit:
            costs[k] += weights[0] * (1.0 + total)
        else:
            free += 1
            costs[k] += (weights[2] * total * stride / steps) ** weights[3]
    return free


@kernel(examples=lambda: [(_batch(), _batch(), np.zeros((3, 3)), 0)])
def furthest_reached(xs: F, ys: F, path: NDArray[np.float64], nearest: int) -> int:
    """Index of the path's point farthest along it to which the end of any rollout is nearest.

    Args:
        xs: (batch, steps).
        ys: (batch, steps).
        path: (n, 3).
        nearest: Index of the point that the base is nearest to.
    """
    furthest = nearest
    for k in range(len(xs)):
        x, y = xs[k, -1], ys[k, -1]
        best, index = np.inf, nearest
        for i in range(nearest, len(path)):
            distance = (path[i, 0] - x) ** 2 + (path[i, 1] - y) ** 2
            if distance < best:
                best, index = distance, i
        furthest = max(furthest, index)
    return furthest


@kernel(
    examples=lambda: [
        (
            _batch(),
            _batch(),
            _batch(),
            np.zeros((3, 3)),
            np.zeros(3),
            np.zeros(3, dtype=np.uint8),
            0,
            2,
            4,
            1.0,
            np.zeros(2),
        )
    ]
)
def align_costs(
    xs: F,
    ys: F,
    yaws: F,
    path: NDArray[np.float64],
    along: NDArray[np.float64],
    blocked: NDArray[np.uint8],
    nearest: int,
    furthest: int,
    stride: int,
    weight: float,
    costs: NDArray[np.float64],
) -> None:
    """Add how far each rollout lies from the path, mean over its points against the path's point as far along.

    Args:
        xs: (batch, steps), as are ``ys`` and ``yaws``.
        ys: See above.
        yaws: See above.
        path: (n, 3).
        along: (n,) length of the path up to each point [m].
        blocked: (n,) whether an obstacle lies on the point; such do not count.
        nearest: Where on the path the base is.
        furthest: How far along it any rollout comes.
        stride: Every how many steps to look.
        weight: Of the mean distance, per metre.
        costs: (batch,) that are added to.
    """
    batch, steps = xs.shape
    for k in range(batch):
        total, count = 0.0, 0
        travelled = along[nearest]
        px, py = xs[k, 0], ys[k, 0]
        i = nearest
        for t in range(stride, steps, stride):
            x, y = xs[k, t], ys[k, t]
            travelled += math.hypot(x - px, y - py)
            px, py = x, y
            while i < furthest and along[i + 1] <= travelled:
                i += 1
            j = i + 1 if i < furthest and travelled - along[i] > along[i + 1] - travelled else i
            if blocked[j] == 0:
                total += math.hypot(path[j, 0] - x, path[j, 1] - y)
                count += 1
        if count:
            costs[k] += weight * total / count


@kernel(
    examples=lambda: [
        (_batch(), _batch(), _batch(), _batch(), np.zeros((3, 3)), np.zeros(8), 0.05, 1, 1, np.zeros(2)),
    ]
)
def aim_costs(
    xs: F,
    ys: F,
    yaws: F,
    vx: F,
    path: NDArray[np.float64],
    weights: NDArray[np.float64],
    dt: float,
    ahead: int,
    look: int,
    costs: NDArray[np.float64],
) -> None:
    """Add what each rollout pays for where it ends and how it drives.

    Args:
        xs: (batch, steps), as are the next three.
        ys: See above.
        yaws: See above.
        vx: See above.
        path: (n, 3); its last point is the goal.
        weights: Of the distance to the path's point ``ahead`` [1/m], of the direction to the point ``look`` [1/rad], of
            the mean distance to the goal [1/m], of the mean difference to the goal's heading [1/rad], of driving
            backward [1/m], of turning [1/rad].
        dt: Of a step [s].
        ahead: Index of a point of the path.
        look: Index of a point of the path.
        costs: (batch,) that are added to.
    """
    batch, steps = xs.shape
    gx, gy, heading = path[-1, 0], path[-1, 1], path[-1, 2]
    for k in range(batch):
        x, y, yaw = xs[k, -1], ys[k, -1], yaws[k, -1]
        cost = 0.0
        if weights[0] > 0.0:
            cost += weights[0] * math.hypot(path[ahead, 0] - x, path[ahead, 1] - y)
        if weights[1] > 0.0:
            wanted = math.atan2(path[look, 1] - y, path[look, 0] - x)
            cost += weights[1] * abs(_wrapped(wanted - yaw))
        if weights[2] > 0.0 or weights[3] > 0.0:
            far = turned = 0.0
            for t in range(steps):
                far += math.hypot(gx - xs[k, t], gy - ys[k, t])
                turned += abs(_wrapped(heading - yaws[k, t]))
            cost += (weights[2] * far + weights[3] * turned) / steps
        if weights[4] > 0.0:
            back = np.float32(0.0)
            for t in range(steps):
                back += max(-vx[k, t], np.float32(0.0))
            cost += weights[4] * back * dt
        if weights[5] > 0.0:
            twirl = 0.0
            for t in range(1, steps):
                twirl += abs(yaws[k, t] - yaws[k, t - 1])
            cost += weights[5] * twirl
        costs[k] += cost


@kernel
def _wrapped(angle: float) -> float:
    return angle - 2.0 * math.pi * math.floor((angle + math.pi) / (2.0 * math.pi))
