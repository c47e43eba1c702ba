"""Kernels of model predictive path integral control: many rollouts, and what each costs.

All positions are in the window's frame: metres from the corner of its cell (0, 0).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.planar_kernels import wrap_angle
from roboyard.navigation.controllers.surroundings import Ground, empty_ground, touches
from roboyard.navigation.costmap import INSCRIBED, LETHAL

F = NDArray[np.float32]
_LOOK = 10  # how many points of the path ahead of the nearest one may be nearer at the next look


def _batch() -> F:
    return np.zeros((2, 4), dtype=np.float32)


@kernel
def _clamped(value: np.float32, low: np.float32, high: np.float32) -> np.float32:
    return min(max(value, low), high)


@kernel(
    examples=lambda: [
        (_batch(), _batch(), _batch(), np.zeros((3, 4), dtype=np.float32), 0, np.ones(3, dtype=np.float32), 0.5,
         np.zeros(3), np.zeros(3), np.ones(6), 0.05, _batch(), _batch(), _batch())
    ]
)  # fmt: skip
def roll_out(
    vx: F,
    vy: F,
    wz: F,
    plan: F,
    first: int,
    spreads: F,
    lasting: float,
    pose: NDArray[np.float64],
    twist: NDArray[np.float64],
    limits: NDArray[np.float64],
    dt: float,
    xs: F,
    ys: F,
    yaws: F,
) -> None:
    """Drive variants of a plan.

    Args:
        vx: (batch, steps) normal numbers; afterwards what the base, within its limits, would really drive.  ``vy`` is
            used by bases that can go sideways only.
        vy: The same to the left.
        wz: The same turning.
        plan: (3, steps) commands to vary.
        first: Rows before this one are commands already, and are driven as they are.
        spreads: (3,) standard deviations of the variation.
        lasting: Correlation of a step's variation with that of the step before.
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
    ahead, back = np.float32(limits[0]), np.float32(-limits[1])
    side, turn = np.float32(limits[2]), np.float32(limits[3])
    step, half = np.float32(dt), np.float32(0.5)
    omni = limits[2] > 0.0
    keep, add = np.float32(lasting), np.float32(math.sqrt(1.0 - lasting * lasting))
    for k in range(batch):
        x, y, yaw = np.float32(pose[0]), np.float32(pose[1]), np.float32(pose[2])
        v, u, w = np.float32(twist[0]), np.float32(twist[1]), np.float32(twist[2])
        varied = k >= first
        nv, nu, nw = np.float32(0.0), np.float32(0.0), np.float32(0.0)
        if varied:
            nv, nu, nw = vx[k, 0], vy[k, 0] if omni else nu, wz[k, 0]
        for t in range(steps):
            if varied:
                nv = keep * nv + add * vx[k, t]
                nw = keep * nw + add * wz[k, t]
                wanted_v, wanted_w = plan[0, t] + spreads[0] * nv, plan[2, t] + spreads[2] * nw
            else:
                wanted_v, wanted_w = vx[k, t], wz[k, t]
            if omni:
                if varied:
                    nu = keep * nu + add * vy[k, t]
                    wanted_u = plan[1, t] + spreads[1] * nu
                else:
                    wanted_u = vy[k, t]
                wanted_u = _clamped(wanted_u, -side, side)
                # limits hold in any direction: no base is faster when it drives askew
                over = math.hypot(_clamped(wanted_v, back, ahead), wanted_u) / max(ahead, side)
                if over > 1.0:
                    wanted_v, wanted_u = wanted_v / np.float32(over), wanted_u / np.float32(over)
                u = _clamped(wanted_u, u - change, u + change)
                vy[k, t] = u
            v = _clamped(_clamped(wanted_v, back, ahead), v - change, v + change)
            w = _clamped(_clamped(wanted_w, -turn, turn), w - turn_change, w + turn_change)
            vx[k, t], wz[k, t] = v, w
            middle = yaw + half * w * step
            c, s = np.float32(math.cos(middle)), np.float32(math.sin(middle))
            yaw += w * step
            x += v * c * step
            y += v * s * step
            if omni:
                x -= u * s * step
                y += u * c * step
            xs[k, t], ys[k, t], yaws[k, t] = x, y, yaw


@kernel(
    examples=lambda: [
        (_batch(), _batch(), _batch(), np.zeros((2, 2)), False, 1, np.zeros((3, 3)), np.zeros(3), np.zeros(3),
         np.ones(6), 0.05)
    ]
)  # fmt: skip
def pursue(
    vx: F,
    vy: F,
    wz: F,
    pursuits: NDArray[np.float64],
    backward: bool,
    first: int,
    path: NDArray[np.float64],
    pose: NDArray[np.float64],
    twist: NDArray[np.float64],
    limits: NDArray[np.float64],
    dt: float,
) -> None:
    """Write commands of pure pursuit into some rows: good guesses, wherever the last plan has gone.

    Args:
        vx: (batch, steps) written, as are the next two.
        vy: See above.
        wz: See above.
        pursuits: (n, 2) how far the point to follow lies ahead [m], and the speed [m/s].
        backward: Whether to drive backward.
        first: Row of the first of them.
        path: (m, 3).
        pose: x, y, theta now.
        twist: vx, vy, wz now.
        limits: As in ``roll_out``.
        dt: Of a step [s].
    """
    steps = vx.shape[1]
    way = -1.0 if backward else 1.0
    last = len(path) - 1
    for k in range(len(pursuits)):
        ahead, speed = pursuits[k]
        x, y, yaw = pose
        v, u, w = twist[0], twist[1], twist[2]
        i = 0
        for t in range(steps):
            while i < last and math.hypot(path[i, 0] - x, path[i, 1] - y) < ahead:
                i += 1
            dx, dy = path[i, 0] - x, path[i, 1] - y
            c, s = math.cos(yaw), math.sin(yaw)
            px, py = c * dx + s * dy, c * dy - s * dx
            square = max(px * px + py * py, 1e-6)
            side = math.atan2(py * way, px * way)
            across = 0.0
            if limits[2] > 0.0:  # it goes where the point lies, and need not look there
                fast = min(speed, math.sqrt(limits[4] * math.sqrt(square))) if i == last else speed
                wanted, across, turn = fast * px / math.sqrt(square), fast * py / math.sqrt(square), 0.0
            elif abs(side) > 0.9:
                wanted, turn = 0.0, 3.0 * side
            else:
                bend = 2.0 * py / square
                # so that it can turn as the circle wants, and stop at the path's end
                wanted = way * min(speed, limits[3] / max(abs(bend), 1e-6))
                if i == last:
                    wanted = way * min(abs(wanted), math.sqrt(limits[4] * math.sqrt(square)))
                turn = wanted * bend
            v = min(max(min(max(wanted, -limits[1]), limits[0]), v - limits[4] * dt), v + limits[4] * dt)
            w = min(max(min(max(turn, -limits[3]), limits[3]), w - limits[5] * dt), w + limits[5] * dt)
            u = min(max(min(max(across, -limits[2]), limits[2]), u - limits[4] * dt), u + limits[4] * dt)
            vx[first + k, t], vy[first + k, t], wz[first + k, t] = v, u, w
            middle = yaw + 0.5 * w * dt
            x += (v * math.cos(middle) - u * math.sin(middle)) * dt
            y += (v * math.sin(middle) + u * math.cos(middle)) * dt
            yaw += w * dt


@kernel(
    examples=lambda: [
        (_batch(), _batch(), _batch(), empty_ground(), 2, np.ones(3), np.zeros(2))
    ]
)  # fmt: skip
def obstacle_costs(
    xs: F,
    ys: F,
    yaws: F,
    ground: Ground,
    stride: int,
    weights: NDArray[np.float64],
    costs: NDArray[np.float64],
) -> int:
    """Add what each rollout pays for obstacles.

    Costs of places are paid by the metre, as planners pay them: who stands still pays nothing, and gains nothing.

    Args:
        xs: (batch, steps), as are ``ys`` and ``yaws``.
        ys: See above.
        yaws: See above.
        ground: What lies about the robot.
        stride: Every how many steps to look.
        weights: Of collision, of a metre at the highest cost [1/m], and of speed there [1/m].
        costs: (batch,) that are added to.

    Returns:
        Number of rollouts that touch nothing.
    """
    batch, steps = xs.shape
    cells, scale = ground.cells, 1.0 / ground.resolution
    rows, columns = cells.shape
    free = 0
    for k in range(batch):
        total = 0.0
        hit = False
        px, py = ground.start[0], ground.start[1]
        for t in range(stride - 1, steps, stride):
            if touches(ground, xs[k, t], ys[k, t], yaws[k, t], True):
                # the sooner it touches, the worse: then the best of bad rollouts is the one that brakes
                hit = True
                costs[k] += weights[0] * (1.0 + (steps - t) / steps)
                break
            length = math.hypot(xs[k, t] - px, ys[k, t] - py)
            px, py = xs[k, t], ys[k, t]
            x, y = px * scale, py * scale
            if 0.0 <= x < columns and 0.0 <= y < rows:
                cost = cells[int(y), int(x)]
                if 0 < cost <= LETHAL:
                    share = min(cost / INSCRIBED, 1.0)
                    total += share * length * (weights[1] + weights[2] * share * length)
        if not hit:
            free += 1
            costs[k] += total
    return free


@kernel(
    examples=lambda: [
        (_batch(), _batch(), _batch(), np.zeros((3, 3)), np.zeros(3), np.zeros(3, dtype=np.uint8), 4, np.zeros(5),
         np.zeros(2))
    ]
)  # fmt: skip
def path_costs(
    xs: F,
    ys: F,
    yaws: F,
    path: NDArray[np.float64],
    along: NDArray[np.float64],
    blocked: NDArray[np.uint8],
    stride: int,
    weights: NDArray[np.float64],
    costs: NDArray[np.float64],
) -> None:
    """Add what each rollout pays for being off the path, and for what of it is left at its end.

    The place along the path only grows, and by steps of a few points, so that a path that comes near itself is not cut
    short.

    Args:
        xs: (batch, steps), as are ``ys`` and ``yaws``.
        ys: See above.
        yaws: See above.
        path: (n, 3) from where the base is on.
        along: (n,) length of the path up to each point [m].
        blocked: (n,) whether an obstacle lies on the point; such need not be kept to.
        stride: Every how many steps to look.
        weights: Of the mean distance to the path [1/m], of the length that is left [1/m], of looking away from the path
            at the end [1/rad], of the mean distance to the path's end [1/m], of the difference to its heading there
            [1/rad]; the latter two in proportion to how near it is.
        costs: (batch,) that are added to.
    """
    batch, steps = xs.shape
    last = len(path) - 1
    gx, gy, heading = path[last, 0], path[last, 1], path[last, 2]
    for k in range(batch):
        total, to_goal, count, looks = 0.0, 0.0, 0, 0
        i = 0
        for t in range(stride - 1, steps, stride):
            x, y = xs[k, t], ys[k, t]
            best = (path[i, 0] - x) ** 2 + (path[i, 1] - y) ** 2
            j = i + 1
            until = min(i + _LOOK, last)
            while j <= until:
                square = (path[j, 0] - x) ** 2 + (path[j, 1] - y) ** 2
                if square <= best:
                    best, i = square, j
                    until = min(i + _LOOK, last)
                j += 1
            if blocked[i] == 0:
                total += math.sqrt(best)
                count += 1
            to_goal += math.hypot(gx - x, gy - y)
            looks += 1
        x, y, yaw = xs[k, steps - 1], ys[k, steps - 1], yaws[k, steps - 1]
        if count:
            costs[k] += weights[0] * total / count
        costs[k] += weights[1] * (along[last] - along[i])
        ahead = min(i + _LOOK, last)
        if weights[2] > 0.0 and ahead > i:
            wanted = math.atan2(path[ahead, 1] - y, path[ahead, 0] - x)
            costs[k] += weights[2] * abs(wrap_angle(wanted - yaw))
        if weights[3] > 0.0 and looks:
            costs[k] += weights[3] * to_goal / looks
        if weights[4] > 0.0:
            costs[k] += weights[4] * abs(wrap_angle(heading - yaw))


@kernel(examples=lambda: [(_batch(), _batch(), _batch(), False, np.zeros(3), np.zeros(3), 0.05, np.zeros(2))])
def motion_costs(
    vx: F,
    vy: F,
    wz: F,
    omni: bool,
    weights: NDArray[np.float64],
    deadbands: NDArray[np.float64],
    dt: float,
    costs: NDArray[np.float64],
) -> None:
    """Add what each rollout pays for how it drives.

    Args:
        vx: (batch, steps), as are the next two.
        vy: See above.
        wz: See above.
        omni: Whether ``vy`` is used.
        weights: Of driving backward [1/m] (negative: of driving forward), of turning [1/rad], and of velocities within
            the dead bands, by how much they fall short of them [1/m, 1/rad].
        deadbands: (3,) of vx, vy, wz: the base does not answer to less.
        dt: Of a step [s].
        costs: (batch,) that are added to.
    """
    batch, steps = vx.shape
    zero = np.float32(0.0)
    sign = np.float32(-1.0 if weights[0] > 0.0 else 1.0)
    dead = deadbands.max() > 0.0
    ahead, side, turn = np.float32(deadbands[0]), np.float32(deadbands[1]), np.float32(deadbands[2])
    for k in range(batch):
        wrong, turned = zero, zero
        for t in range(steps):
            wrong += max(sign * vx[k, t], zero)
            turned += abs(wz[k, t])
        costs[k] += (abs(weights[0]) * wrong + weights[1] * turned) * dt
        if dead:
            short = zero
            for t in range(steps):
                short += max(ahead - abs(vx[k, t]), zero) + max(turn - abs(wz[k, t]), zero)
                if omni:
                    short += max(side - abs(vy[k, t]), zero)
            costs[k] += weights[2] * short * dt
