"""What a plan takes beside time: the work of its joints; and how it would stand if a foot gave way.

Worked out anew from where a plan puts body and feet, for plans of whatever origin; `extras` is what planners weigh.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from roboyard.geometry.arrays import Array
from roboyard.walking.loads import foot_loads
from roboyard.walking.stability import stability_margin
from roboyard.walking.steps.plan import StepPlan
from roboyard.walking.steps.rig import Rig

_FINE: Final = 0.02
"""Between two looks [s]."""


def work(plan: StepPlan, rig: Rig) -> float:
    """What the joints do on a plan [J], forwards and held back, against gravity.

    The feet that stand carry the weight as evenly as balance allows; each joint bears it, and what hangs on it of the
    leg: thigh and shank, at their middles.  Nothing that one joint gives back helps another.
    """
    times = _moments(plan)
    _, down = plan.feet_at(times)
    local, legs = plan.local_feet(times), rig.walker.legs
    q = rig.walker.reach(local)
    middle = 0.5 * (q[1:] + q[:-1])
    turned, total = np.diff(q, axis=0), 0.0
    loads = np.array([foot_loads(feet, 1.0, stands) for feet, stands in zip(local, down.astype(float), strict=True)])
    for leg, one in enumerate(legs):
        thigh, shank = rig.rows.share[leg]
        frames = one.chain.frames(middle[:, leg])[:, :, :3]
        tips = one.chain.forward(middle[:, leg])[:, :3, 3]
        hips, knees = frames[:, 2, :, 3], frames[:, 3, :, 3]
        for joint in range(3):
            axis, pivot = frames[:, joint + 1, :, 2], frames[:, joint + 1, :, 3]
            parts = [(-0.5 * (loads[1:, leg] + loads[:-1, leg]), tips), (shank, 0.5 * (knees + tips))]
            if joint < 2:
                parts.append((thigh, 0.5 * (hips + knees)))
            lift = sum(share * np.cross(axis, place - pivot)[:, 2] for share, place in parts)
            total += float(np.abs(lift * turned[:, leg, joint]).sum())
    return rig.weight * total


def leg_loss_margins(plan: StepPlan) -> tuple[Array, Array]:
    """Times (n,) [s], and the stability margins (n,) then if the foot gave way without which it would be least [m].

    -inf where the feet that are left are fewer than three.
    """
    times = _moments(plan)
    feet, down = plan.feet_at(times)
    body, out = plan.body(times), np.empty(len(times))
    for k, stands in enumerate(down):
        legs = np.flatnonzero(stands)
        out[k] = min(stability_margin(feet[k, legs[legs != leg]], body[k]) for leg in legs)
    return times, out


def _moments(plan: StepPlan) -> Array:
    """Evenly, ends included."""
    return np.linspace(0.0, plan.duration, max(int(plan.duration / _FINE), 1) + 1)
