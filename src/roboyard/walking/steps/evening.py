"""How evenly the body goes: a draft says where it is at each event, as drawn; here it goes on rather than to and fro.

That may take feet out of reach that rise or swing meanwhile, so each event is looked at again, and stays nearer to
where it was drawn where it has to.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.walking.steps.draft import Draft, make_draft, schedule
from roboyard.walking.steps.herd import SET, Herd, PlanningContext, Ways, make_herd, sample_parts
from roboyard.walking.steps.order import clear_of_air, in_order
from roboyard.walking.steps.placing import rise_reached, swing_reached

_PASSES: Final = 3
"""Rounds of evening out how the body goes."""
_BACK: Final = 4
"""Rounds of going back to what was drawn, at most, and the parts of which each event goes back one."""


@kernel(examples=lambda: [(sample_parts()[0], make_draft())])
def even_out(world: PlanningContext, draft: Draft) -> float:
    """Let the body go as evenly as its stretches allow, rather than as drawn; the duration [s]."""
    m = draft.events[0]
    duration, end = schedule(world, draft), draft.at[m + 1]
    # no farther than where it can be later, so that it seldom has to go back
    most, ahead = np.empty(m), end
    for k in range(m - 1, -1, -1):
        ahead = max(min(float(draft.high[k]), ahead), float(draft.low[k]))
        most[k] = ahead
    for _ in range(_PASSES):
        time, last = 0.0, 0.0
        for k in range(m):
            time += draft.gap[k]
            if k < draft.events[1]:
                last = draft.at[k + 1]
                continue
            wanted = max(end * time / max(duration, 1e-9), last)
            last = min(max(wanted, float(draft.low[k])), most[k])
            draft.at[k + 1] = last
        duration = schedule(world, draft)
    return duration


@kernel(
    no_refcount=True, forceinline=True, examples=lambda: [(*sample_parts()[:2], make_draft(), make_herd(1, 1), 0, 0)]
)
def fits(world: PlanningContext, ways: Ways, draft: Draft, trial: Herd, k: int, at: int) -> bool:
    """Whether legs reach what they have to at an event, with the body at a sample; ``trial`` is what was before it."""
    leg, p = draft.leg[k], draft.place
    if draft.kind[k] == SET:
        return in_order(world, ways, trial, 0, leg, p[k, 0], p[k, 1], at) and swing_reached(
            world, ways, trial, 0, leg, p[k, 0], p[k, 1], p[k, 2], at
        )
    return clear_of_air(world, ways, trial, 0, at) and rise_reached(world, ways, trial, 0, leg, at)


@kernel(examples=lambda: [(*sample_parts()[:2], 0, make_draft(), np.zeros(4), make_herd(1, 1))])
def keep_in_reach(world: PlanningContext, ways: Ways, w: int, draft: Draft, drawn: Array, trial: Herd) -> None:
    """Let the body go back towards where it was drawn to be, (m + 2,) samples, at events that do not fit otherwise.

    Args:
        world: See there.
        ways: See there.
        w: The draft's way.
        draft: Evened out.
        drawn: (m + 2,) its ``at`` before.
        trial: Room for one plan.
    """
    m, even = draft.events[0], draft.at.copy()
    back = np.zeros(m, np.int64)
    for _ in range(_BACK):
        again = False
        trial.way[0] = w
        for leg in range(trial.down.shape[1]):
            trial.down[0, leg] = True
            for j in range(3):
                trial.feet[0, leg, j] = world.feet[leg, j]
        for k in range(m):
            leg, at = draft.leg[k], int(draft.at[k + 1] + 0.5)
            if k >= draft.events[1]:
                while True:
                    draft.at[k + 1] = even[k + 1] + back[k] / _BACK * (drawn[k + 1] - even[k + 1])
                    at = int(draft.at[k + 1] + 0.5)
                    fit = fits(world, ways, draft, trial, k, at)
                    if fit or back[k] == _BACK:
                        break
                    back[k] += 1
                before = draft.mate[k]
                if not fit and draft.kind[k] == SET and before >= draft.events[1] and back[before] < _BACK:
                    back[before], again = _BACK, True
            if draft.kind[k] == SET:
                trial.down[0, leg] = True
                for j in range(3):
                    trial.feet[0, leg, j] = draft.place[k, j]
            else:
                trial.down[0, leg], trial.rose[0, leg] = False, at
        if not again:
            break
