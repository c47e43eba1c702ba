"""Getting to where there is room to turn, by the cheapest manoeuvre that touches nothing."""

from __future__ import annotations

import heapq
import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.control import PlanarTwist
from roboyard.geometry import SE2
from roboyard.grids import distance_transform
from roboyard.navigation.controllers import Surroundings
from roboyard.navigation.controllers.surroundings import Ground, empty_ground, touches
from roboyard.navigation.costmap import LETHAL, UNKNOWN
from roboyard.navigation.driving.behaviors import Body, check_positive
from roboyard.navigation.driving.situation import Remembering, Situation
from roboyard.navigation.errors import Blocked, TimeOut

_REACH = 3.0
"""So far off it looks for room [m]."""
_STEP = 0.05
"""Of a motion [m]."""
_HEADINGS = 72
"""Parts of a turn that are told apart; a motion turns by one of them at most."""
_TURN_PRICE = 0.25
"""A turn of one radian costs as much as so much way [m]."""
_CHANGE_PRICE, _BEND_PRICE = 0.1, 0.02
"""So do another direction than before, and another bend: it drives on rather than to and fro [m]."""
_UNSEEN = 5.0
"""A motion over ground that nobody has seen costs so many times another one."""
_INSIDE = 0.7
"""Share of the outline that must have been seen: cells at its edge never lay wholly under it."""
_BUDGET = 20_000
"""Poses at most that it looks on from."""
_SHARES = (1.0, 0.5, 0.25)
"""Of the speed: close to obstacles it goes on more slowly."""


class MakeRoom(Remembering):
    """Moves the robot to where it can turn on the spot; where it can already, that is done at once.

    What keeps a robot in a narrow place is mostly that its corners would touch something if it turned.  It drives the
    cheapest manoeuvre, ahead, back, in bends and in small turns, and looks for another where that is not free any more.
    It may use the padding about the robot's outline.

    Args:
        body: Of the robot.
        speed: Fastest [m/s].
        allowance: Longest time [s].

    Raises:
        InputError: a speed or time that is not positive.
    """

    remembered = ("_began", "_plan", "_from")

    def __init__(self, body: Body, speed: float, allowance: float) -> None:
        check_positive(speed=speed, time_allowance=allowance)
        self._body, self._speed, self._allowance = replace(body, footprint=body.outline), speed, allowance
        self._room = body.footprint.circumscribed_radius
        self._motions = _MOTIONS if body.limits.backward > 0.0 else _MOTIONS[_MOTIONS[:, 0] >= 0.0]
        self._began: float | None = None
        self._plan: list[int] = []  # motions that are left, the present one first, which began at `_from`
        self._from = (0.0, 0.0, 0.0)

    def step(self, now: Situation) -> PlanarTwist | None:
        """See ``Task``."""
        seen = Surroundings.about(now.pose, now.local, self._body.footprint, _REACH)
        ground = seen.ground
        room = distance_transform(ground.cells == LETHAL, ground.resolution) > self._room + ground.resolution
        row, column = (math.floor(value / ground.resolution) for value in (seen.here.y, seen.here.x))
        if not (0 <= row < room.shape[0] and 0 <= column < room.shape[1]) or room[row, column]:
            return None
        self._began = now.time if self._began is None else self._began
        if now.time - self._began > self._allowance:
            raise TimeOut("the robot got to no room to turn in the time allowed")
        here = now.T_odom_base
        while self._plan and self._is_done(here):
            self._plan = self._plan[1:]
            self._from = (here.x, here.y, here.theta)
        if self._plan:
            try:
                return self._driven(now)
            except Blocked:
                pass  # something has come into its way, or is seen more clearly
        plan = manoeuvre(ground, distance_transform(room, ground.resolution), self._motions, _BUDGET)
        self._plan, self._from = [int(k) for k in plan], (here.x, here.y, here.theta)
        if not self._plan:
            raise Blocked("no manoeuvre leads to where the robot could turn", valid="room to turn near by")
        return self._driven(now)

    def _is_done(self, here: SE2) -> bool:
        """Whether the present motion was driven to its end."""
        length, turn = self._motions[self._plan[0]]
        moved = SE2(*self._from).inverse() @ here
        return bool(moved.x / length >= 1.0 if length else moved.theta / turn >= 1.0)

    def _driven(self, now: Situation) -> PlanarTwist:
        """The velocity of the present motion, slow enough to stop before anything is touched.

        Raises:
            Blocked: none is.
        """
        limits, (length, turn) = self._body.limits, (float(value) for value in self._motions[self._plan[0]])
        fastest = min(self._speed, limits.backward if length < 0.0 else limits.forward)
        duration = max(abs(length) / fastest, 2.0 * abs(turn) / limits.turn)
        for share in _SHARES:
            twist = PlanarTwist(share * length / duration, 0.0, share * turn / duration)
            try:
                self._body.check(now, twist)
            except Blocked:
                if share == _SHARES[-1]:
                    raise
            else:
                break
        return twist


def _motions() -> NDArray[np.float64]:
    """(n, 2) each length [m] and turn [rad]: gentle bends lead away from a wall along the robot's side."""
    turn = 2.0 * math.pi / _HEADINGS
    bends = [(length, bend) for length in (_STEP, -_STEP) for bend in (0.0, 0.2 * turn, -0.2 * turn, turn, -turn)]
    return np.array([*bends, (0.0, turn), (0.0, -turn)])


_MOTIONS = _motions()


@kernel(examples=lambda: [(empty_ground(), np.zeros((5, 5), dtype=np.float32), _MOTIONS, 10)])
def manoeuvre(
    ground: Ground, left: NDArray[np.float32], motions: NDArray[np.float64], budget: int
) -> NDArray[np.int64]:
    """The cheapest sequence (m,) of motions to a place with room, empty where none is found.

    A* over poses; one is remembered for each half of a cell and each heading that motions lead to.

    Args:
        ground: What lies about the robot.
        left: (rows, columns) how far it is at least to a place with room [m].
        motions: (n, 2) each length [m] and turn [rad].
        budget: Poses at most to look on from.
    """
    scale = 1.0 / ground.resolution
    rows, columns = ground.cells.shape
    best = np.full((2 * rows, 2 * columns, _HEADINGS), np.inf, dtype=np.float32)
    most = budget * len(motions) + 1
    poses = np.empty((most, 3))
    parents, by = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    costs = np.empty(most)
    poses[0] = ground.start
    parents[0], by[0], costs[0] = -1, -1, 0.0
    count, seen = 1, 0
    queue = [(0.0, 0)]
    while len(queue) > 0 and seen < budget:
        _, u = heapq.heappop(queue)
        x, y, theta = poses[u]
        row, column = int(y * scale), int(x * scale)
        if left[row, column] == 0.0:
            return _back_from(u, parents, by)
        r, c, h = int(2.0 * y * scale), int(2.0 * x * scale), _heading(theta)
        if np.float32(costs[u]) > best[r, c, h]:
            continue
        seen += 1
        for k in range(len(motions)):
            length, turn = motions[k]
            px, py, angle, free = x, y, theta, True
            for _ in range(2):  # so that nothing stands between two looks
                middle = angle + 0.25 * turn
                px += 0.5 * length * math.cos(middle)
                py += 0.5 * length * math.sin(middle)
                angle += 0.5 * turn
                if touches(ground, px, py, angle, False):
                    free = False
                    break
            if not free:
                continue
            price = abs(length) + _TURN_PRICE * abs(turn)
            if _unseen(ground, px * scale, py * scale, angle):
                price *= _UNSEEN
            if k != by[u]:
                price += _BEND_PRICE if by[u] >= 0 and motions[by[u], 0] * length > 0.0 else _CHANGE_PRICE
            cost = costs[u] + price
            r, c, h = int(2.0 * py * scale), int(2.0 * px * scale), _heading(angle)
            if np.float32(cost) >= best[r, c, h]:
                continue
            best[r, c, h] = cost
            poses[count, 0], poses[count, 1], poses[count, 2] = px, py, angle
            parents[count], by[count], costs[count] = u, k, cost
            heapq.heappush(queue, (cost + np.float64(left[int(py * scale), int(px * scale)]), count))
            count += 1
    return np.zeros(0, dtype=np.int64)


@kernel
def _back_from(u: int, parents: NDArray[np.int64], by: NDArray[np.int64]) -> NDArray[np.int64]:
    """The motions (m,) that lead to a pose."""
    steps, v = 0, u
    while parents[v] >= 0:
        steps, v = steps + 1, parents[v]
    motions = np.empty(steps, dtype=np.int64)
    for k in range(steps - 1, -1, -1):
        motions[k], u = by[u], parents[u]
    return motions


@kernel
def _heading(theta: float) -> int:
    return math.floor(theta * _HEADINGS / (2.0 * math.pi) + 0.5) % _HEADINGS


@kernel
def _unseen(ground: Ground, x: float, y: float, theta: float) -> bool:
    """Whether part of what lies under the robot, at a pose in cells, is not known."""
    c, s = math.cos(theta), math.sin(theta)
    rows, columns = ground.cells.shape
    for k in range(len(ground.corners) + 1):
        px, py = x, y
        if k < len(ground.corners):
            bx, by = _INSIDE * ground.corners[k, 0], _INSIDE * ground.corners[k, 1]
            px, py = x + c * bx - s * by, y + s * bx + c * by
        inside = px >= 0.0 and py >= 0.0 and px < columns and py < rows
        if not inside or ground.cells[int(py), int(px)] == UNKNOWN:
            return True
    return False
