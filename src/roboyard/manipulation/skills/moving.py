"""Things and places on belts: where they will be, and where and when a hand can meet them.  Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from roboyard.manipulation.skills.asking import Outcome, Point, Sighting, Stage, Tip
from roboyard.manipulation.skills.causes import Cause
from roboyard.manipulation.skills.config import SkillConfig
from roboyard.manipulation.skills.memory import Memory
from roboyard.manipulation.skills.skill import Now

Lane = tuple[float, float, float, float, float, float]
"""A strip on which things move: x and y of its begin and of its end, its width, and how high things reach there [m]."""
PLANS: Final = 0.3
"""A ride is asked for at least so long before it begins [s]."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where and when the hand joins something that moves.

    Attributes:
        begin_ns: When it sets out from over `place`.
        place: Where the thing is half of the time of joining later: a tool that gains its speed evenly is over it then.
    """

    begin_ns: int
    place: Point


def belt_of(config: SkillConfig, name: str) -> tuple[float, ...] | None:
    """x, y of begin and end, and width, of a field's belt; None: its floor stands."""
    if name not in config.moving:
        return None
    at = 5 * config.moving.index(name)
    return config.belts[at : at + 5]


def on_belt(seen: tuple[Sighting, ...], config: SkillConfig, name: str) -> tuple[Sighting, ...]:
    """What was seen, where it moves on a field's belt only along that."""
    belt = belt_of(config, name)
    if belt is None:
        return seen
    x, y, u, v, _ = belt
    length = math.hypot(u - x, v - y)
    ahead = (u - x) / length, (v - y) / length
    found = []
    for one in seen:
        speed = one.velocity[0] * ahead[0] + one.velocity[1] * ahead[1]
        found.append(replace(one, velocity=(speed * ahead[0], speed * ahead[1])))
    return tuple(found)


def moves(one: Sighting, config: SkillConfig) -> bool:
    """Whether it does not just stand."""
    return one.speed > config.still


def lanes_of(config: SkillConfig, memory: Memory) -> tuple[Lane, ...]:
    """Strips that arms keep out of: where things were seen moving last."""
    found = []
    for name, height in memory.lanes:
        belt = belt_of(config, name)
        if belt is not None:
            x, y, u, v, width = belt
            found.append((x, y, u, v, width, height))
    return tuple(found)


def silent(now: Now, name: str) -> Outcome | None:
    """Why nothing can be done on a field's belt: nobody tells of it; None: somebody does, or nobody is asked."""
    if math.isfinite(now.flows.get(name, 0.0)):
        return None
    return Outcome(Cause.BELT_SILENT, f"nobody tells how fast the belt of {name} moves: is there one?")


def changed(now: Now, one: Sighting) -> Outcome | None:
    """Why the belt is not what it was when something was seen on it; None: it is, or nobody is asked."""
    if (why := silent(now, now.memory.at)) is not None:
        return why
    told = now.flows.get(now.memory.at)
    if told is not None and abs(abs(told) - one.speed) > now.config.unsteady:
        return Outcome(Cause.UNSTEADY, f"the belt moved at {one.speed:.3f} m/s, now at {abs(told):.3f}")
    return None


def belt_here(now: Now) -> str:
    """The field that the robot is at, where its floor is a belt; else empty."""
    return now.memory.at if now.memory.at in now.config.moving else ""


def started(now: Now, field: str) -> Outcome | None:
    """Why the hand does not go for what stood on a field's belt: it moves; None: it does not, or there is none."""
    speed = abs(now.flows.get(field, 0.0))
    if speed <= now.config.still:
        return None
    return Outcome(Cause.UNSTEADY, f"the belt stood, now it moves at {speed:.3f} m/s")


def duration(config: SkillConfig) -> float:
    """So long the place that is ridden along with moves on, as far as the tool goes with it [s]."""
    return 0.5 * config.join + config.down + config.close + config.up + 0.5 * config.leave


def meeting(now: Now, one: Sighting, lead: float, over: Point | None = None) -> Meeting | Outcome:
    """The first meeting with something that moves, or why there is none.

    Args:
        now: Of the arm and its cell.
        one: What moves.
        lead: Until the hand can set out [s].
        over: Where the hand waits over its way already; None: it can go anywhere.

    Returns:
        Causes: TOO_FAST, OUT_OF_REACH.
    """
    config, speed = now.config, one.speed
    first, last = _window(now, one)
    need = speed * duration(config)
    if last - first <= 0.0:
        return Outcome(Cause.OUT_OF_REACH, "its way leads past the arm's reach", position=one.at(now.time_ns))
    if need > last - first:
        text = f"it moves at {speed:.3f} m/s; within reach the arm can follow {(last - first) / duration(config):.3f}"
        return Outcome(Cause.TOO_FAST, text, position=one.at(now.time_ns))
    soonest = speed * (1e-9 * (now.time_ns - one.time_ns) + lead + 0.5 * config.join)
    wanted = first if over is None else math.dist(one.position[:2], over[:2])
    gone = max(wanted, soonest)
    if gone + need > last:
        text = "it leaves the arm's reach before the hand can be there"
        return Outcome(Cause.OUT_OF_REACH, text, position=one.at(now.time_ns))
    passes_ns = one.time_ns + round(1e9 * gone / speed)
    return Meeting(passes_ns - round(0.5e9 * config.join), one.at(passes_ns))


def _window(now: Now, one: Sighting) -> tuple[float, float]:
    """From where to where on its way the hand can go along with it, from where it was seen [m]."""
    config, (x, y, _) = now.config, one.position
    u, v = one.velocity[0] / one.speed, one.velocity[1] / one.speed
    low, high = config.reach
    foot = now.body.T_root_base @ now.body.foot
    dx, dy = float(foot[0]) - x, float(foot[1]) - y
    along, aside = dx * u + dy * v, abs(dx * v - dy * u)
    if aside >= high:
        return 0.0, 0.0
    first, last = along - math.sqrt(high**2 - aside**2), along + math.sqrt(high**2 - aside**2)
    if aside < low:  # it passes under the arm: as far as there
        last = along - math.sqrt(low**2 - aside**2)
    belt = belt_of(config, now.memory.at)
    if belt is not None:
        ends = sorted((px - x) * u + (py - y) * v for px, py in (belt[:2], belt[2:4]))
        first, last = max(first, ends[0] + config.thing_radius), min(last, ends[1] - config.thing_radius)
    return first, last


def stages(
    one: Sighting, begin_ns: int, over: float, low: float, yaw: float, config: SkillConfig,
    aside: tuple[float, float] = (0.0, 0.0),
) -> tuple[Stage, ...]:  # fmt: skip
    """A ride: join it, go straight down, stay while the fingers move, go up, come to rest.

    Args:
        one: What moves.
        begin_ns: When the tool sets out.
        over: The tip over it, before and after [m].
        low: And below [m].
        yaw: Of the hand.
        config: Of the cell.
        aside: How far what is held is off the tool's middle, in x and y [m].
    """

    def stage(time_ns: int, at_ns: int, height: float, velocity: tuple[float, float]) -> Stage:
        x, y, z = one.at(at_ns)
        return Stage(time_ns, Tip((x - aside[0], y - aside[1], z + height), yaw), velocity)

    found, time = [], begin_ns
    for seconds, height in ((config.join, over), (config.down, low), (config.close, low), (config.up, over)):
        time += round(1e9 * seconds)
        found.append(stage(time, time, height, one.velocity))
    rest = round(1e9 * config.leave)
    found.append(stage(time + rest, time + rest // 2, over, (0.0, 0.0)))
    return tuple(found)
