"""Skills that look: at a field, and at a thing after the arm has turned towards it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from roboyard.manipulation.skills.asking import (
    DONE,
    Joints,
    Look,
    Mode,
    Move,
    Named,
    Outcome,
    Point,
    Polarity,
    Sighting,
    Wait,
)
from roboyard.manipulation.skills.causes import UNSEEN, Cause
from roboyard.manipulation.skills.config import SkillConfig
from roboyard.manipulation.skills.skill import Now, Request, Skill


def view_of(now: Now, name: str) -> Joints | Named:
    """Where the arm looks at a field from."""
    config = now.config
    at = config.fields.index(name)
    pose = config.views[at]
    if not config.bearings:
        return Named(pose)
    return Joints((config.bearings[at], *now.body.poses[pose][1:]))


def nearest(seen: tuple[Sighting, ...], point: Point, config: SkillConfig) -> Sighting | None:
    """What was seen where something is expected; None: nothing was."""
    found = min(seen, key=lambda one: math.dist(one.position, point), default=None)
    return found if found is not None and math.dist(found.position, point) <= config.match else None


@dataclass
class LookAround(Skill):
    """Look at a field: all discs, or middles of pairs.

    Attributes:
        polarity: Of the discs.
        mode: single or pair.
        looks: Pictures.
        where: Which field; empty: from where the arm is.
        moving: Whether they may move.
    """

    name = "look"
    polarity: Polarity = "white"
    mode: Mode = "single"
    looks: int = 5
    where: str = ""
    moving: bool = False

    def _begin(self, now: Now, came: Outcome) -> Request | Outcome:
        if not self.where:
            return self._moved(now, DONE)
        return self.then("moved", Move((view_of(now, self.where),), holding=now.memory.held is not None))

    def _moved(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            return came
        config = now.config
        return self.then("settled", Wait(config.moving_settle if self.moving else config.settle))

    def _settled(self, now: Now, came: Outcome) -> Request | Outcome:
        return self.then("seen", Look(self.polarity, self.mode, self.looks, self.moving))

    def _seen(self, now: Now, came: Outcome) -> Request | Outcome:
        return came


@dataclass
class Align(Skill):
    """Turn the first joint until a disc, or the middle of a pair, lies in the arm's plane, and look closely.

    The thesis calls it VorIk.  What comes back is the position, and all that was seen in the last look.

    Attributes:
        polarity: Of the disc.
        mode: single or pair.
        target: Where it is expected; None: the nearest to the robot's root.
        turns: Of the joint so far.
        empty: Looks so far in which it was not seen.
        close: Whether the arm stands right as far as is known.
    """

    name = "align"
    polarity: Polarity = "white"
    mode: Mode = "single"
    target: Point | None = None
    turns: int = 0
    empty: int = 0
    close: bool = False

    def about(self) -> Outcome:
        """What it deals with."""
        return Outcome(position=self.target)

    def _begin(self, now: Now, came: Outcome) -> Request | Outcome:
        return self._glance(now) if self.target is None else self._turn(now)

    def _glance(self, now: Now) -> Request:
        self.close = False
        return self.then("seen", Look(self.polarity, self.mode, now.config.glances))

    def _seen(self, now: Now, came: Outcome) -> Request | Outcome:
        config = now.config
        found = came.seen[0] if came.seen and self.target is None else None
        if found is None and self.target is not None:
            found = nearest(came.seen, self.target, config)
        if found is None:
            if not came.done and came.cause not in UNSEEN:
                return came
            self.empty += came_looks(self, config)
            if self.empty >= config.empty_looks:
                what = "no disc" if self.mode == "single" else "no pair of discs"
                return Outcome(Cause.VIEW_EMPTY, f"{what} in {self.empty} looks", came.seen, self.target)
            return self._glance(now)
        self.target, self.empty = found.position, 0
        if len(now.joints) and abs(now.body.turn_to(now.joints, self.target)) <= config.align_tolerance and self.close:
            return Outcome(seen=came.seen, position=self.target)
        return self._turn(now)

    def _turn(self, now: Now) -> Request | Outcome:
        config, joints = now.config, now.joints
        if not joints or self.target is None:
            return Outcome(Cause.NOT_FOLLOWED, "nobody says where the joints are", position=self.target)
        angle = now.body.turn_to(joints, self.target)
        if abs(angle) <= config.align_tolerance:
            return self._turned(now, DONE)
        if self.turns >= config.align_turns:
            text = f"still {angle:.4f} rad off the arm's plane after {self.turns} turns"
            return Outcome(Cause.NOT_FOLLOWED, text, position=self.target)
        self.turns += 1
        first = joints[0] + angle
        low, high = float(now.body.chain.lower[0]), float(now.body.chain.upper[0])
        if not low <= first <= high:
            text = f"{now.body.chain.joints[0]} would have to turn to {first:.2f} rad"
            return Outcome(Cause.NOT_REACHABLE, text, position=self.target)
        return self.then("turned", Move((Joints((first, *joints[1:])),), holding=now.memory.held is not None))

    def _turned(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            return Outcome(came.cause, came.text, position=self.target)
        return self.then("settled", Wait(now.config.settle))

    def _settled(self, now: Now, came: Outcome) -> Request | Outcome:
        self.close = True
        return self.then("seen", Look(self.polarity, self.mode, now.config.looks))


def came_looks(align: Align, config: SkillConfig) -> int:
    """Pictures of the look that just ended."""
    return config.looks if align.close else config.glances
