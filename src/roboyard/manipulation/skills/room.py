"""Room for fingers beside what stands around."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from roboyard.manipulation.skills.asking import Point
from roboyard.manipulation.skills.config import SkillConfig


def finger_room(target: Point, yaw: float, others: Sequence[Point], config: SkillConfig) -> float:
    """Least distance between the open fingers and cylinders around them [m]; negative where they would overlap.

    Args:
        target: Where the hand goes down.
        yaw: Of the hand's x axis; the fingers stand along its y axis.
        others: Axes of the cylinders.
        config: Sizes of fingers and cylinders.
    """
    if not others:
        return math.inf
    offsets = np.array(others)[:, :2] - np.array(target)[:2]
    c, s = math.cos(yaw), math.sin(yaw)
    local = np.abs(offsets @ np.array([[c, -s], [s, c]]))
    thickness, width = config.finger
    middle = 0.5 * (config.opening + thickness)
    gap = np.hypot(
        np.maximum(local[:, 0] - 0.5 * width, 0.0), np.maximum(np.abs(local[:, 1] - middle) - 0.5 * thickness, 0.0)
    )
    return float(gap.min()) - config.thing_radius


def hand_turns(target: Point, azimuth: float, others: Sequence[Point], config: SkillConfig) -> list[float]:
    """Turns of the hand in which the fingers have room, those near the arm's plane first [rad].

    There is none where another thing touches the target, which would go along with it.  Half a turn looks the same to
    the fingers, but not to the joint that turns them: both are given.
    """
    between = 2.0 * config.thing_radius + config.room
    if any(math.dist(target[:2], other[:2]) < between for other in others):
        return []
    steps = [0.0]
    for k in range(1, config.turns // 2 + 1):
        steps += [k * math.pi / config.turns, -k * math.pi / config.turns]
    free = [
        step for step in steps[: config.turns] if finger_room(target, azimuth + step, others, config) >= config.room
    ]
    return [azimuth + step + turn for turn in (0.0, math.pi) for step in free]


def touching(one: Point, others: Sequence[Point], config: SkillConfig) -> bool:
    """Whether a cylinder stands so near to another that fingers cannot go between."""
    gap = 2.0 * config.thing_radius + config.finger[0]
    return any(math.dist(one[:2], other[:2]) < gap for other in others)
