"""Which order of recovery steps gets a robot out of trouble, over seeded worlds, in a closed loop without physics.

A robot of the rover's size, whose laser sees only ahead, drives by the navigator's own tasks and costmaps.  Every run
is one of six troubles that its map does not tell of.  It is to arrive within 120 s, and to touch nothing.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.control import ZERO_TWIST, PlanarTwist
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry, OccupancyGrid, cast_rays
from roboyard.navigation import Footprint, NavigationError
from roboyard.navigation.controllers import MotionLimits
from roboyard.navigation.costmap import CostmapConfig, Observation
from roboyard.navigation.navigator import (
    RECOVERY_POLICIES,
    MobileBase,
    NavigateTask,
    NavigationCostmaps,
    NavigationState,
    NavigatorConfig,
    NavigatorContext,
    PluginConfig,
    RecoveryConfig,
)
from roboyard.navigation.plugins import make_controller, make_planner

CELL, PERIOD, LONGEST = 0.05, 0.1, 120.0
OUTLINE = np.array([[0.25, 0.2], [-0.25, 0.2], [-0.25, -0.2], [0.25, -0.2]])
PADDED = Footprint(OUTLINE + np.sign(OUTLINE) * 0.02)
LIMITS = MotionLimits(
    max_forward_speed=0.8,
    max_backward_speed=0.2,
    max_angular_speed=1.5,
    max_acceleration=1.5,
    max_angular_acceleration=4.0,
)
BEAMS = np.linspace(-math.pi / 2.0, math.pi / 2.0, 181)
SHAPE = (120, 180)
"""Cells of a place of 6 x 9 m."""
WITH_MAP = ("static", "obstacles")
"""What the local costmap knows: what is forgotten of the map's walls beside and behind it, the laser does not show."""

Cells = NDArray[np.bool_]


@dataclass
class Trouble:
    """A place, what its map says, and what happens there.

    Attributes:
        map: What is known beforehand.
        true: What stands there at first.
        start: Of the robot.
        goal: Where it is to go.
        happens: Called each period with the time and the robot's pose; may change ``true`` and ``slip``.
        slip: By how much localisation is wrong (``T_map_true``).
    """

    map: Cells
    true: Cells
    start: SE2
    goal: SE2
    happens: Callable[[Trouble, float, SE2], None] = lambda trouble, time, pose: None
    slip: SE2 = field(default_factory=SE2.identity)


def hall() -> Cells:
    """Two rooms with a door of 1.2 m between them and another of 1 m at the far end."""
    cells = np.zeros(SHAPE, dtype=bool)
    cells[[0, -1]] = cells[:, [0, -1]] = True
    cells[:, 88:92] = True
    cells[30:54, 88:92] = cells[96:116, 88:92] = False
    return cells


def block(cells: Cells, x: float, y: float, length: float, width: float) -> None:
    """Put a box there [m]."""
    low, high = (round((v - 0.5 * s) / CELL) for v, s in ((y, width), (x, length)))
    cells[low : low + round(width / CELL), high : high + round(length / CELL)] = True


def boxed_in(rng: np.random.Generator) -> Trouble:
    """People stand all round it for a while."""
    cells, begin, stay = hall(), rng.uniform(1.5, 3.0), rng.uniform(5.0, 25.0)
    turned, away = rng.uniform(0.0, 1.0), rng.uniform(0.75, 0.9)  # it can stop before them

    def happens(trouble: Trouble, time: float, pose: SE2) -> None:
        if abs(time - begin) < 0.5 * PERIOD:
            for angle in turned + np.arange(11) * 2.0 * math.pi / 11.0:
                x, y = pose.xy + away * np.array([math.cos(angle), math.sin(angle)])
                if 0.2 < x < 8.8 and 0.2 < y < 5.8:
                    block(trouble.true, x, y, 0.15, 0.15)
        elif abs(time - begin - stay) < 0.5 * PERIOD:
            trouble.true = trouble.map.copy()

    return Trouble(cells, cells.copy(), SE2(1.0, rng.uniform(1.5, 3.0), 0.0), SE2(7.5, rng.uniform(1.0, 4.0)), happens)


def slipped(rng: np.random.Generator) -> Trouble:
    """Localisation slips before the door for some seconds: walls are marked where none are."""
    cells, begin, lasts = hall(), rng.uniform(1.0, 2.5), rng.uniform(1.0, 4.0)
    wrong = SE2(0.0, rng.choice([-1.0, 1.0]) * rng.uniform(0.4, 0.8), 0.0)

    def happens(trouble: Trouble, time: float, pose: SE2) -> None:
        trouble.slip = wrong if begin <= time < begin + lasts else SE2.identity()

    return Trouble(cells, cells.copy(), SE2(1.5, rng.uniform(1.5, 3.0), 0.0), SE2(7.5, rng.uniform(1.0, 4.0)), happens)


def niche(rng: np.random.Generator) -> Trouble:
    """It stands with its nose in a niche too narrow to turn in."""
    cells = hall()
    width, deep = rng.uniform(0.5, 0.6), rng.uniform(0.4, 0.7)
    block(cells, 0.5 * deep, 2.0, deep, 4.0)
    row = round(2.0 / CELL)
    half = round(0.5 * width / CELL)
    cells[row - half : row + half, 1 : round(deep / CELL)] = False
    nose = rng.uniform(0.03, 0.1)
    return Trouble(cells, cells.copy(), SE2(CELL + nose + 0.25, 2.0, math.pi), SE2(7.5, rng.uniform(1.0, 4.0)))


def beside_a_wall(rng: np.random.Generator) -> Trouble:
    """It stands along a wall, nearer than it can turn, with a box before it; it is to go the other way."""
    cells = hall()
    start = SE2(rng.uniform(1.5, 3.0), 6.0 - CELL - 0.2 - rng.uniform(0.05, 0.1), rng.choice([0.0, math.pi]))
    true = cells.copy()
    ahead = start @ SE2(0.25 + rng.uniform(0.1, 0.3) + 0.15, 0.0, 0.0)
    block(true, ahead.x, ahead.y - 0.1, 0.3, 0.5)
    return Trouble(cells, true, start, SE2(7.5, rng.uniform(1.0, 4.0)))


def door_shut(rng: np.random.Generator) -> Trouble:
    """The near door is blocked by what the map does not know; for good, or until somebody clears it."""
    cells = hall()
    true = cells.copy()
    true[30:54, 88:92] = True
    opens = rng.uniform(20.0, 40.0) if rng.random() < 0.5 else math.inf

    def happens(trouble: Trouble, time: float, pose: SE2) -> None:
        if time >= opens:
            trouble.true[30:54, 88:92] = False

    mapped = cells.copy()
    if math.isfinite(opens):  # there is no other door
        mapped[96:116, 88:92] = true[96:116, 88:92] = True
    return Trouble(mapped, true, SE2(2.0, rng.uniform(1.0, 3.5), 0.0), SE2(7.5, rng.uniform(1.0, 4.0)), happens)


def dropped(rng: np.random.Generator) -> Trouble:
    """A box falls right before its nose, twice."""
    cells, falls = hall(), (rng.uniform(1.5, 2.5), rng.uniform(6.0, 12.0))

    def happens(trouble: Trouble, time: float, pose: SE2) -> None:
        if any(abs(time - fall) < 0.5 * PERIOD for fall in falls):
            place = pose @ SE2(0.25 + 0.6, rng.uniform(-0.1, 0.1), 0.0)
            if 0.6 < place.x < 8.4 and abs(place.x - 4.5) > 0.8 and 0.6 < place.y < 5.4:
                block(trouble.true, place.x, place.y, 0.2, 0.6)

    return Trouble(cells, cells.copy(), SE2(1.0, rng.uniform(1.5, 3.0), 0.0), SE2(7.5, rng.uniform(1.0, 4.0)), happens)


TROUBLES: dict[str, Callable[[np.random.Generator], Trouble]] = {
    "boxed in": boxed_in, "slipped": slipped, "niche": niche, "beside a wall": beside_a_wall, "door shut": door_shut,
    "dropped": dropped,
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """Of one drive: whether it arrived, after how long [s], with how many recovery steps, and whether it touched."""

    arrived: bool
    time: float
    recoveries: int
    touched: bool


def drive(trouble: Trouble, steps: tuple[str, ...], local: tuple[str, ...] = WITH_MAP) -> Outcome:
    """Until it arrives, gives up, or the time is over."""
    settings = NavigatorConfig(
        controller=PluginConfig("regulated_pure_pursuit"),
        costmap=CostmapConfig(local_layers=local),
        recovery=RecoveryConfig(steps=steps),
    )
    body = MobileBase(PADDED, Footprint(OUTLINE), LIMITS, PERIOD)
    surroundings = NavigationCostmaps(settings.costmap, PADDED, OUTLINE)
    frame = GridGeometry(CELL, SHAPE)
    surroundings.set_map(OccupancyGrid(np.where(trouble.map, 100, 0).astype(np.int8), frame))
    controller = make_controller(settings.controller, body, settings.goal_tolerance, allow_reverse=False)
    driver = NavigatorContext(
        make_planner(settings.planner, PADDED, settings.smoother), controller, body, surroundings, settings
    )
    task = NavigateTask(driver, [trouble.goal])
    border = Footprint(OUTLINE).sample_border(CELL / 2.0)
    pose, twist = trouble.start, ZERO_TWIST
    surroundings.update(pose, trouble.slip)
    came = [_scan(trouble.true, pose @ SE2(0.0, 0.0, turn)) for turn in (math.pi, 0.0)]
    surroundings.add_observations({"obstacles": came}, trouble.slip)  # what it saw when it came there
    for k in range(round(LONGEST / PERIOD)):
        time = k * PERIOD
        trouble.happens(trouble, time, pose)
        surroundings.add_observations({"obstacles": [_scan(trouble.true, pose)]}, trouble.slip)
        surroundings.update(pose, trouble.slip)
        now = NavigationState(
            time, trouble.slip @ pose, twist, surroundings.local_costmap_in_map(trouble.slip), trouble.slip
        )
        try:
            wanted = task.compute_command(now)
        except NavigationError:
            return Outcome(False, time, task.recoveries, False)
        if wanted is None:
            return Outcome(True, time, task.recoveries, False)
        dv, dw = LIMITS.max_acceleration * PERIOD, LIMITS.max_angular_acceleration * PERIOD
        v = twist.vx + min(max(wanted.vx - twist.vx, -dv), dv)
        w = twist.wz + min(max(wanted.wz - twist.wz, -dw), dw)
        twist = PlanarTwist(v, 0.0, w)
        pose = pose @ SE2.exp([v * PERIOD, 0.0, w * PERIOD])
        cells = frame.cells_of_points(pose @ border)
        if not frame.contains(cells).all() or trouble.true[cells[:, 0], cells[:, 1]].any():
            return Outcome(False, time, task.recoveries, True)
    return Outcome(False, LONGEST, task.recoveries, False)


def _scan(true: Cells, pose: SE2) -> Observation:
    origin = pose @ np.array([0.1, 0.0])
    rays = np.column_stack([np.tile(origin / CELL, (len(BEAMS), 1)), BEAMS + pose.theta])
    ranges = cast_rays(true, rays, 10.0 / CELL) * CELL
    ways = np.column_stack([np.cos(rays[:, 2]), np.sin(rays[:, 2])])
    ends = np.column_stack([origin + (ranges[:, None] + 1e-3) * ways, np.full(len(BEAMS), 0.2)])
    return Observation(np.array([*origin, 0.2]), ends, ranges < 9.9, "laser")


def run(nightly: bool = False, *, runs: int | None = None, seed: int = 0) -> dict[str, Any]:
    """Each policy in ``runs`` worlds of each trouble."""
    count = runs or (40 if nightly else 8)
    figures: list[dict[str, Any]] = []
    details = []
    for policy, steps in RECOVERY_POLICIES.items():
        found = {
            name: [drive(make(np.random.default_rng([seed + k, index])), steps) for k in range(count)]
            for index, (name, make) in enumerate(TROUBLES.items())
        }
        everything = [outcome for outcomes in found.values() for outcome in outcomes]
        times = [outcome.time for outcome in everything if outcome.arrived]
        figures += [
            {"name": f"{policy}: arrived", "value": sum(o.arrived for o in everything) / len(everything), "unit": ""},
            {"name": f"{policy}: touched something", "value": sum(o.touched for o in everything), "unit": ""},
            {"name": f"{policy}: time of those that arrived, mean", "value": statistics.mean(times), "unit": "s"},
        ]
        each = ", ".join(f"{name} {sum(o.arrived for o in outcomes)}" for name, outcomes in found.items())
        steps_taken = sum(o.recoveries for o in everything) / len(everything)
        details.append(f"{policy}, of {count} each: {each}; {steps_taken:.1f} recovery steps a drive")
    return {"figures": figures, "details": details}


if __name__ == "__main__":
    results = run()
    for figure in results["figures"]:
        print(figure["name"], f"{figure['value']:.4g}", figure["unit"])
    print(*results["details"], sep="\n")
