"""Looking ahead while a motion is under way: does anything stand in what is left of it?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision.bodies import make_work
from roboyard.manipulation.collision.clearance import free_line
from roboyard.manipulation.scene import Pair, PlanningScene

KEPT = 0.4
"""A planned way keeps half of the margin everywhere; what is nearer than this share of it is in the way."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """Where a motion cannot go on.

    Attributes:
        time: From the motion's begin [s].
        pair: What would touch.
    """

    time: float
    pair: Pair


def blocked(scene: PlanningScene, times: Array, points: Array, since: float) -> Blocked | None:
    """The first touch on what is left of a motion, or None.

    Between way points the joints are taken to go straight, and the way is proven free, not only looked at.

    Args:
        scene: The arm and what must not be touched.
        times: (k,) of the way points [s].
        points: (k, n) joints there [rad or m].
        since: What was before does not count [s].
    """
    bodies = scene.bodies._replace(margin=KEPT * scene.margin)
    left = np.flatnonzero(times > since)
    if not len(left):
        return None
    here = np.array([np.interp(since, times, column) for column in points.T])
    work = make_work(bodies)
    low, high = scene.chain.lower, scene.chain.upper
    before, at = np.clip(here, low, high), since
    for k in left.tolist():
        after = np.clip(points[k], low, high)
        if not free_line(bodies, work, before, after):
            return Blocked(at, scene.named(work.who) or ("", ""))
        before, at = after, float(times[k])
    return None
