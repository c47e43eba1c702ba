"""Looks at a plan of steps from the outside: shares no code with the planners, and believes nothing that a plan says.

From where the plan puts body and feet it works out anew, every few milliseconds: joints, by inverse kinematics that
forward kinematics of the description confirms; their speeds; how far the body's middle is inside the hull of the feet;
what feet, limbs and body touch of the ground; whether feet stand on it, away from its edges; whether they slide.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry.arrays import Array
from roboyard.walking.steps.plan import StepPlan
from roboyard.walking.walker import Walker

Heights = Callable[[Array], Array]
"""Heights (…) of the ground at places (…, 2) [m]; nan where there is a hole."""

_HOLD, _RISE, _LEAD = 0.15, 0.3, 0.1  # of a swing: what a plan's file promises
_CONFIRMED: Final = 1e-6
_ON_GROUND: Final = 1e-3
_STEEP: Final = 1.0
"""A foot's ground rises and falls by less than this within its rim [m/m]."""


@dataclass(frozen=True)
class Limits:
    """What a plan is held to.

    Attributes:
        period: Time between two looks [s].
        margin: Least distance of the body's middle from the edges of the feet's hull, from above [m].
        tilt: Least angle by which the body has to turn about an edge, in space, until its middle is above it [rad].
        rate: Share of the joints' greatest speeds.
        rim: Half of a foot's print: ground this far from its middle must be there, and about as high [m].
        limb: Half of a limb's thickness [m].
        goal: How near to its goal the body ends [m].
    """

    period: float = 0.01
    margin: float = 0.05
    tilt: float = 0.2
    rate: float = 1.0
    rim: float = 0.008
    limb: float = 0.008
    goal: float = 0.01


@dataclass(frozen=True)
class Fault:
    """Something that a plan does and may not.

    Attributes:
        kind: "reach", "speed", "tipping", "tilt", "foothold", "slide", "ground", "limb", "belly", "order", "start" or
            "goal".
        time: When it happens first [s].
        what: In words.
        count: At how many looks it was seen.
    """

    kind: str
    time: float
    what: str
    count: int = 1


@dataclass(frozen=True)
class Verdict:
    """What was found.

    Attributes:
        faults: Each kind once, the earliest first.
        looks: How many moments were looked at.
        margin: The least margin [m].
        tilt: The least angle until it tips, with feet at their heights [rad].
        rate: The fastest joint, as a share of its greatest speed.
        confirmed: The largest distance between a foot and where forward kinematics puts it [m].
    """

    faults: tuple[Fault, ...]
    looks: int
    margin: float
    tilt: float
    rate: float
    confirmed: float


def check_plan(
    plan: StepPlan,
    walker: Walker,
    body: Array,
    heights: Heights,
    goal: tuple[float, float],
    limits: Limits | None = None,
) -> Verdict:
    """Look at a plan.

    Args:
        plan: Whose.
        walker: The legs.
        body: (2, 3) least and greatest corner of the body's box in its frame [m].
        heights: Of the ground.
        goal: Where the body shall end [m].
        limits: To hold it to.
    """
    asked = limits or Limits()
    times = _moments(plan, asked.period)
    places, down, where = _laid_out(plan, times)
    c, s = math.cos(plan.heading), math.sin(plan.heading)
    away = places - where[:, None]
    local = np.stack([c * away[..., 0] + s * away[..., 1], c * away[..., 1] - s * away[..., 0], away[..., 2]], axis=-1)
    found: dict[str, Fault] = {}

    def fault(kind: str, bad: Any, what: Callable[[int], str]) -> None:
        if bad.any():
            k = int(np.argmax(bad))
            found[kind] = Fault(kind, float(times[k]), what(k), int(bad.sum()))

    names = [leg.name for leg in walker.legs]
    q, solved = _joints(walker, local)
    fault("reach", ~solved.all(axis=1), lambda k: f"leg {names[int(np.argmin(solved[k]))]} cannot reach its foot")
    confirmed = 0.0
    for leg, one in enumerate(walker.legs):
        good = solved[:, leg]
        tips = one.chain.forward(q[good, leg])[:, :3, 3]
        if len(tips):
            confirmed = max(confirmed, float(np.linalg.norm(tips - local[good, leg], axis=1).max()))
    if confirmed > _CONFIRMED:
        found["reach"] = Fault("reach", 0.0, f"forward kinematics is off by {confirmed:.2g} m")
    speeds = np.abs(np.diff(q, axis=0)) / np.diff(times)[:, None, None] / (walker.speeds * asked.rate)
    fastest = speeds.max(axis=(1, 2), initial=0.0)
    fault(
        "speed", np.append(fastest > 1.0 + 1e-6, False),
        lambda k: f"leg {names[int(speeds[k].max(axis=1).argmax())]} turns a joint at {fastest[k]:.2f} of its speed",
    )  # fmt: skip
    margins, tilts = _margins(places, down, where)
    fault("tipping", margins < asked.margin - 1e-3, lambda k: f"{margins[k]:.4f} m inside of the feet's hull")
    fault("tilt", tilts < asked.tilt, lambda k: f"{math.degrees(tilts[k]):.1f}° more, and it tips over its lower feet")
    _look_at_feet(plan, heights, asked, names, found)
    below = np.nan_to_num(heights(places[..., :2]), nan=-np.inf)
    sunk = places[..., 2] < below - 2e-3
    fault("ground", sunk.any(axis=1), lambda k: f"foot {names[int(np.argmax(sunk[k]))]} is in the ground")
    hit = _limbs(walker, q, places, where, c, s, heights, asked.limb) & solved
    fault("limb", hit.any(axis=1), lambda k: f"leg {names[int(np.argmax(hit[k]))]} touches the ground")
    scraped = _belly(where, body, c, s, heights)
    fault("belly", scraped, lambda k: f"the body touches the ground at ({where[k, 0]:.2f}, {where[k, 1]:.2f})")
    crossed = _crossed(walker, places, c, s)
    fault("order", crossed.any(axis=1), lambda k: f"foot {names[int(np.argmax(crossed[k]))]} passes the one before it")
    off = float(np.hypot(*(where[-1, :2] - goal)))
    if off > asked.goal or not down[-1].all():
        found["goal"] = Fault(
            "goal", float(times[-1]), f"it ends {off:.3f} m from the goal, {down[-1].sum()} feet down"
        )
    if not down[0].all():
        found["start"] = Fault("start", 0.0, "not all feet are down")
    faults = tuple(sorted(found.values(), key=lambda one: (one.time, one.kind)))
    return Verdict(
        faults, len(times), float(margins.min()), float(tilts.min()), float(fastest.max(initial=0.0)), confirmed
    )


def _moments(plan: StepPlan, period: float) -> Array:
    """Evenly, and where anything changes; until the body's track ends, and with it the plan."""
    ends = [t for swing in plan.swings for t in (swing.lifts, swing.lands)]
    even = np.arange(0.0, plan.track[-1, 0], period)
    times = np.unique(np.concatenate([even, plan.track[:, 0], ends]))
    times = times[times <= plan.track[-1, 0]]
    return np.asarray(times[np.concatenate([[True], np.diff(times) > 1e-7])])


def _laid_out(plan: StepPlan, times: Array) -> tuple[Array, NDArray[np.bool_], Array]:
    """Feet (n, l, 3), which are down (n, l), and the body (n, 3), as the file's words define them."""
    where = np.column_stack([np.interp(times, plan.track[:, 0], plan.track[:, k]) for k in (1, 2, 3)])
    places = np.broadcast_to(plan.feet, (len(times), *plan.feet.shape)).copy()
    down = np.ones(places.shape[:2], np.bool_)
    for one in plan.swings:
        u = (times - one.lifts) / max(one.lands - one.lifts, 1e-12)
        air = (u > 0.0) & (u < 1.0)
        f = min(1.0, one.quick / (one.lands - one.lifts)) if one.lands > one.lifts else 1.0
        e = 0.5 * (1.0 - np.cos(np.pi * np.clip((u - f * _HOLD) / (1.0 - 2.0 * f * _HOLD), 0.0, 1.0)))
        first, second = np.array(one.source), np.array(one.target)
        path = first + e[:, None] * (second - first)
        rise = 0.5 * (1.0 - np.cos(np.pi * np.clip(np.minimum(u, 1.0 - u) / (f * _RISE), 0.0, 1.0)))
        at = [one.lifts, one.lands]
        ends = np.column_stack([np.interp(at, plan.track[:, 0], plan.track[:, k]) for k in (1, 2)])
        lead = 0.5 * (1.0 - np.cos(np.pi * np.clip(np.minimum(u, 1.0 - u) / (f * _LEAD), 0.0, 1.0)))
        path[:, :2] += lead[:, None] * (where[:, :2] - ends[0] - e[:, None] * (ends[1] - ends[0]))
        base = np.where(u < 0.5, first[2], second[2])
        path[:, 2] = base + (one.top - base) * rise
        places[air, one.leg] = path[air]
        places[u >= 1.0, one.leg] = second
        down[air, one.leg] = False
    return places, down, where


def _joints(walker: Walker, local: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Joints (n, l, 3) near the stance's, and which feet are reached within limits (n, l)."""
    solved = walker.reached(local)
    # where a leg cannot, its place in the stance stands in, so that the others can be looked at
    return walker.reach(np.where(solved[..., None], local, walker.stance_feet)), solved


def _margins(places: Array, down: NDArray[np.bool_], where: Array) -> tuple[Array, Array]:
    """Of the sides of the hull of the feet that are down: the least distance from above (n,) [m], and angle (n,) [rad].

    The angle to a side in space: the body's height above the line between its two feet, square to it, and its distance.
    """
    from scipy.spatial import ConvexHull, QhullError

    out, tilts = np.full(len(places), -np.inf), np.full(len(places), -np.inf)
    known: dict[bytes, tuple[Array, Array, Array] | None] = {}
    for k in range(len(places)):
        feet = places[k, down[k]]
        key = feet.tobytes()
        if key not in known:
            try:
                hull = ConvexHull(feet[:, :2]) if len(feet) >= 3 else None
            except QhullError:
                hull = None
            ends = feet[hull.simplices] if hull is not None else None
            known[key] = None if hull is None or ends is None else (hull.equations, ends[:, 0], ends[:, 1])
        sides = known[key]
        if sides is None:
            continue
        lines, a, b = sides
        distance = -(lines[:, :2] @ where[k, :2]) - lines[:, 2]
        along = b - a
        length = np.hypot(along[:, 0], along[:, 1])
        slope = along[:, 2] / length
        over = ((where[k, :2] - a[:, :2]) * along[:, :2]).sum(axis=1) / length
        high = (where[k, 2] - a[:, 2] - slope * over) / np.hypot(1.0, slope)
        out[k], tilts[k] = distance.min(), np.arctan2(distance, high).min()
    return out, tilts


def _look_at_feet(plan: StepPlan, heights: Heights, asked: Limits, names: list[str], found: dict[str, Fault]) -> None:
    """Footholds: on the ground, none of the rim far below or above; each swing begins where its foot is."""
    turns = np.linspace(0.0, 2.0 * np.pi, 8, endpoint=False)
    rim = asked.rim * np.stack([np.cos(turns), np.sin(turns)], axis=-1)
    stands = [(leg, 0.0, place) for leg, place in enumerate(plan.feet)]
    stands += [(one.leg, one.lands, np.array(one.target)) for one in plan.swings]
    for leg, time, place in stands:
        own = float(heights(place[None, :2])[0])
        around = heights(place[:2] + rim)
        if math.isnan(own) or np.isnan(around).any() or np.abs(around - own).max() > _STEEP * asked.rim:
            what = f"foot {names[leg]} stands on an edge at ({place[0]:.3f}, {place[1]:.3f})"
        elif abs(place[2] - own) > _ON_GROUND + _STEEP * 0.01:
            what = f"foot {names[leg]} is {place[2] - own:.3f} m above the ground"
        else:
            continue
        if "foothold" not in found or time < found["foothold"].time:
            found["foothold"] = Fault("foothold", time, what)
    last = {leg: (0.0, place) for leg, place in enumerate(plan.feet)}
    for one in sorted(plan.swings, key=lambda swing: swing.lifts):
        since, place = last[one.leg]
        if one.lifts < since - 1e-9 or np.abs(np.array(one.source) - place).max() > 1e-9 or one.lands <= one.lifts:
            found.setdefault("slide", Fault("slide", one.lifts, f"foot {names[one.leg]} is not where its swing begins"))
        last[one.leg] = (one.lands, np.array(one.target))


def _limbs(
    walker: Walker, q: Array, places: Array, where: Array, c: float, s: float, heights: Heights, limb: float
) -> NDArray[np.bool_]:
    """(n, l) whether thigh or shank, at a few places between foot and hip, are in the ground; by frames of chains."""
    hit = np.zeros(places.shape[:2], np.bool_)
    turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    for leg, one in enumerate(walker.legs):
        frames = one.chain.frames(q[:, leg])[:, :, :3, 3]
        hip, knee = (frames[:, k] @ turn.T + where for k in (2, 3))
        foot = places[:, leg]
        for a, b, shares in ((foot, knee, (0.25, 0.5, 0.75, 1.0)), (knee, hip, (0.5,))):
            for share in shares:
                point = a + share * (b - a)
                ground = np.nan_to_num(heights(point[:, :2]), nan=-np.inf)
                hit[:, leg] |= point[:, 2] - limb < ground - 2e-3
    return hit


def _belly(where: Array, body: Array, c: float, s: float, heights: Heights) -> NDArray[np.bool_]:
    """(n,) whether a place under the body's box is as high as the box."""
    x, y = (np.linspace(body[0, k], body[1, k], 12) for k in (0, 1))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2) @ np.array([[c, s], [-s, c]])
    ground = np.nan_to_num(heights(where[:, None, :2] + grid), nan=-np.inf)
    touched: NDArray[np.bool_] = ground.max(axis=1) > where[:, 2] + body[0, 2]
    return touched


def _crossed(walker: Walker, places: Array, c: float, s: float) -> NDArray[np.bool_]:
    """(n, l) whether a foot is ahead of the next one before it on its side."""
    along = c * places[..., 0] + s * places[..., 1]
    home = walker.stance_feet
    out = np.zeros(along.shape, np.bool_)
    for leg in range(len(home)):
        before = [k for k in range(len(home)) if home[k, 0] > home[leg, 0] and home[k, 1] * home[leg, 1] > 0.0]
        if before:
            out[:, leg] = along[:, leg] >= along[:, before].min(axis=1)
    return out
