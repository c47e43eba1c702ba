"""Admissible stretches of a plan: how far along its way the body could be while the same feet are down."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.walking.stability import stability_margin
from roboyard.walking.steps.plan import StepPlan
from roboyard.walking.steps.rig import Rig

_FINE: Final = 0.01
"""Between two places that are looked at [m]."""
_SLACK: Final = 1e-3
"""What is less than this below the least margin counts as within [m], as the exact look at plans has it."""


class Stretch(NamedTuple):
    """While the same feet are down.

    Attributes:
        begin: When it begins [s].
        end: And ends [s].
        low: First place on the way, from its start, where the body could be [m].
        high: Last one [m].
    """

    begin: float
    end: float
    low: float
    high: float


def along_way(plan: StepPlan, times: Array) -> Array:
    """(n,) how far the body has gone at times (n,) [s], from the start [m]."""
    gone = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(plan.track[:, 1:], axis=0), axis=1))])
    found: Array = np.interp(times, plan.track[:, 0], gone)
    return found


def stretches(plan: StepPlan, rig: Rig) -> list[Stretch]:
    """The stretch of the way about where the body is, from event to event.

    The body is within reach of all feet that are down, joints within limits, and inside of their polygon by the robot's
    margin.  Herms 2004; step 2a of the thesis's random sampling.
    """
    ends = {time for one in plan.swings for time in (one.lifts, one.lands)}
    events = np.array(sorted(ends | {0.0, plan.duration}))
    turn = SE3.from_xyz_rpy((0.0, 0.0, 0.0), (0.0, 0.0, plan.heading)).matrix()[:3, :3]
    gone = along_way(plan, plan.track[:, 0])
    found = []
    for begin, end in zip(events[:-1].tolist(), events[1:].tolist(), strict=True):
        if end - begin < 1e-9:
            continue
        middle = np.array([0.5 * (begin + end)])
        (feet,), (down,) = plan.feet_at(middle)
        here = float(along_way(plan, middle)[0])
        at = np.union1d(np.arange(0.0, gone[-1], _FINE), [here, gone[-1]])
        places = np.stack([np.interp(at, gone, plan.track[:, k]) for k in (1, 2, 3)], axis=-1)
        reached = rig.walker.reached((feet - places[:, None]) @ turn)
        firm = np.array([stability_margin(feet[down], place) for place in places]) >= rig.margin - _SLACK
        inside, k = (reached | ~down).all(axis=1) & firm, int(np.searchsorted(at, here))
        out = np.flatnonzero(~inside)
        low, high = out[out < k].max(initial=-1) + 1, out[out > k].min(initial=len(at)) - 1
        found.append(Stretch(begin, end, float(at[low]), float(at[high])))
    return found
