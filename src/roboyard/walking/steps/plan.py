"""A plan of steps: where the body and the feet are at any moment."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.walking.steps.herd import SET
from roboyard.walking.steps.problem import Problem
from roboyard.walking.steps.search import ARRIVALS, CANDIDATES, EVENTS_TRIED, JUDGED, REFUSED, Search
from roboyard.walking.steps.swing import HOLD, LEAD, RISE


@dataclass(frozen=True)
class Swing:
    """One foot's way through the air.

    Attributes:
        leg: Number of it.
        lifts: When it leaves the ground [s].
        lands: When it is down again [s].
        source: (3) where it left the ground [m].
        target: (3) where it is set down [m].
        top: Height that it rises to [m].
        quick: Rising and coming down take their shares of so long a swing, if this one is longer [s].
        wish: (2) where a place was looked for, nearest first [m]; None: nobody says.
    """

    leg: int
    lifts: float
    lands: float
    source: tuple[float, float, float]
    target: tuple[float, float, float]
    top: float
    quick: float
    wish: tuple[float, float] | None = field(default=None, compare=False)

    @property
    def ends(self) -> float:
        """By how much shorter than their usual shares rising and coming down are, at most 1."""
        return min(1.0, self.quick / max(self.lands - self.lifts, 1e-12))


@dataclass(frozen=True)
class Effort:
    """What it took to find a plan.

    Attributes:
        planner: Who.
        seed: With which.
        events: Tried.
        candidates: Begun.
        arrivals: That reached the goal.
        judged: Of these looked at exactly.
        refused: Of these found wrong.
    """

    planner: str = ""
    seed: int = 0
    events: int = 0
    candidates: int = 0
    arrivals: int = 0
    judged: int = 0
    refused: int = 0

    def __add__(self, other: Effort) -> Effort:
        return Effort(
            self.planner, self.seed, self.events + other.events, self.candidates + other.candidates,
            self.arrivals + other.arrivals, self.judged + other.judged, self.refused + other.refused,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class StepPlan:
    """A plan of steps.

    Attributes:
        heading: Of the body, all the time [rad].
        feet: (l, 3) where feet stand at the start [m].
        track: (n, 4) time [s] and place [m] of the body's frame, straight and even in between.
        swings: In the order in which feet are lifted.
        cost: Its duration, longer the nearer to tipping and the poorer the ground [s].
        tipping: Mean of how near to tipping it is, 0 to 1.
        effort: What it took.
    """

    heading: float
    feet: Array = field(repr=False)
    track: Array = field(repr=False)
    swings: tuple[Swing, ...] = field(repr=False)
    cost: float = math.nan
    tipping: float = math.nan
    effort: Effort = Effort()

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return float(self.track[-1, 0])

    @property
    def length(self) -> float:
        """How far the body goes [m]."""
        return float(np.linalg.norm(np.diff(self.track[:, 1:], axis=0), axis=1).sum())

    def body(self, times: ArrayLike) -> Array:
        """(n, 3) places of the body's frame [m] at times (n,) [s]."""
        t = np.asarray(times, dtype=np.float64)
        return np.stack([np.interp(t, self.track[:, 0], self.track[:, 1 + k]) for k in range(3)], axis=-1)

    def velocity(self, time: float) -> Array:
        """(3,) of the body on the plane, in its own frame, over the next tenth of a second [m/s]."""
        (x0, y0, _), (x1, y1, _) = self.body([time, time + 0.1]).tolist()
        c, s = math.cos(self.heading), math.sin(self.heading)
        vx, vy = 10.0 * (x1 - x0), 10.0 * (y1 - y0)
        return np.array([c * vx + s * vy, c * vy - s * vx, 0.0])

    @property
    def footholds(self) -> Array:
        """(n, 3) where the swings end [m]."""
        return np.array([one.target for one in self.swings], np.float64).reshape(-1, 3)

    def feet_at(self, times: ArrayLike) -> tuple[Array, NDArray[np.bool_]]:
        """Places (n, l, 3) of the feet in the world [m], and which are down (n, l), at times (n,) [s]."""
        t = np.asarray(times, dtype=np.float64)
        places = np.repeat(self.feet[None], len(t), axis=0)
        down = np.ones(places.shape[:2], np.bool_)
        for swing in self.swings:
            leg, a, b = swing.leg, np.array(swing.source), np.array(swing.target)
            places[t >= swing.lands, leg] = b
            inside = (t > swing.lifts) & (t < swing.lands)
            share = (t[inside] - swing.lifts) / max(swing.lands - swing.lifts, 1e-12)
            places[inside, leg] = _swung(
                a, b, swing.top, share, swing.ends, *(self.body(u) for u in (t[inside], [swing.lifts], [swing.lands]))
            )
            down[inside, leg] = False
        return places, down

    def local_feet(self, times: ArrayLike) -> Array:
        """(n, l, 3) places of the feet in the body's frame [m] at times (n,) [s]."""
        places, _ = self.feet_at(times)
        turned = SE3.from_xyz_rpy((0.0, 0.0, 0.0), (0.0, 0.0, self.heading)).matrix()[:3, :3]
        local: Array = (places - self.body(times)[:, None]) @ turned
        return local


def _swung(a: Array, b: Array, top: float, share: Array, ends: float, body: Array, first: Array, last: Array) -> Array:
    """(n, 3) places of a foot in the air at shares (n,) of its swing, see `swing_place`; and the body's (n or 1, 3)."""

    def eased(x: Array) -> Array:
        return 0.5 - 0.5 * np.cos(np.pi * np.clip(x, 0.0, 1.0))

    along = eased((share - HOLD * ends) / (1.0 - 2.0 * HOLD * ends))
    out = a + along[:, None] * (b - a)
    rise, low = eased(np.minimum(share, 1.0 - share) / (RISE * ends)), np.where(share < 0.5, a[2], b[2])
    lead = eased(np.minimum(share, 1.0 - share) / (LEAD * ends))
    out[:, :2] += (lead[:, None] * (body - first - along[:, None] * (last - first)))[:, :2]
    out[:, 2] = low + (top - low) * rise
    return out


def plan_of(problem: Problem, search: Search, effort: Effort) -> StepPlan | None:
    """The best plan of a search; None without one."""
    if not np.isfinite(search.cost[0]):
        return None
    draft, m = search.best, int(search.best.events[0])
    way = search.best_way[: int(search.best_size[0])]
    times = np.concatenate([[0.0], np.cumsum(draft.gap[: m + 1])])
    rows: list[tuple[float, float]] = []
    for k in range(m + 1):
        first, last, begin, gap = draft.at[k], draft.at[k + 1], times[k], draft.gap[k]
        rows.append((float(begin), float(first)))
        low, high = sorted((first, last))
        between = np.arange(math.floor(low) + 1, math.ceil(high))
        inner = between if last >= first else between[::-1]
        rows += [(float(begin + gap * (sample - first) / (last - first)), float(sample)) for sample in inner]
    rows.append((float(times[-1]), float(draft.at[m + 1])))
    table = np.array(rows)
    table = table[np.concatenate([[True], np.diff(table[:, 0]) > 1e-12])]
    samples = np.arange(len(way))
    track = np.column_stack([table[:, 0], *(np.interp(table[:, 1], samples, way[:, k]) for k in range(3))])
    swings = [
        Swing(
            int(draft.leg[k]), float(times[draft.mate[k] + 1]), float(times[k + 1]),
            _triple(draft.place[draft.mate[k]]), _triple(draft.place[k]), float(draft.top[k]),
            float(draft.quick[k]), (float(draft.wish[k, 0]), float(draft.wish[k, 1])),
        )
        for k in range(m) if draft.kind[k] == SET
    ]  # fmt: skip
    swings.sort(key=lambda swing: (swing.lifts, swing.leg))
    return StepPlan(
        problem.ground.heading, problem.feet.copy(), track, tuple(swings), float(search.cost[0]),
        float(search.about[2]), effort,
    )  # fmt: skip


def effort_of(planner: str, seed: int, search: Search) -> Effort:
    """What a search took."""
    counts = (int(search.tally[k]) for k in (EVENTS_TRIED, CANDIDATES, ARRIVALS, JUDGED, REFUSED))
    return Effort(planner, seed, *counts)


def _triple(values: Array) -> tuple[float, float, float]:
    x, y, z = (float(value) for value in values)
    return x, y, z


def plan_as_data(plan: StepPlan) -> dict[str, Any]:
    """A plan as plain data."""
    said = {"heading": plan.heading, "feet": plan.feet.copy(), "track": plan.track.copy(), "cost": plan.cost}
    swings, effort = [asdict(one) for one in plan.swings], asdict(plan.effort)
    return said | {"tipping": plan.tipping, "swings": swings, "effort": effort}


def plan_of_data(said: dict[str, Any]) -> StepPlan:
    """The plan of what `plan_as_data` gave."""
    places = ("source", "target", "wish")
    swings = tuple(
        Swing(**(one | {name: tuple(one[name]) for name in places if one[name] is not None})) for one in said["swings"]
    )
    return StepPlan(
        said["heading"], np.array(said["feet"]), np.array(said["track"]), swings, said["cost"], said["tipping"],
        Effort(**said["effort"]),
    )  # fmt: skip
