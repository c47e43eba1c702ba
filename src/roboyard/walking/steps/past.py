"""What is settled of a plan that is under way: what plans that may take over from it begin with."""

from __future__ import annotations

import itertools
import math
from typing import Final

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.walking.steps.draft import Draft, make_draft
from roboyard.walking.steps.herd import EVENTS, LIFTED, LONGEST, SET, STEP
from roboyard.walking.steps.plan import StepPlan

_FINE: Final = 0.0025
"""From one sample of the way to the next where it is not over yet, at most: the body goes evenly between them, within a
millimetre of a plan whose own samples are elsewhere [m]."""


def settled(plan: StepPlan, now: float, bad: frozenset[int] = frozenset()) -> tuple[Draft, Array]:
    """The events of a plan up to some time after now, and the body's way (n, 3) until then.

    Up to where the feet come down that are in the air now, so that each lands where it is about to; but to no foothold
    that is bad, and to nothing that comes after one.  Samples of the way lie evenly in time from event to event.

    Args:
        plan: Under way.
        now: Its time at which another one takes over [s]; what is before that is over.
        bad: Numbers of swings, in the plan's order, that cannot end where they should.

    Raises:
        InputError: there are too many events, or the way is too long.
    """
    swings = list(enumerate(plan.swings))
    ends = sorted({time for _, one in swings for time in (one.lifts, one.lands)})
    spoilt = min((one.lands for k, one in swings if k in bad), default=np.inf)
    wanted = max((one.lands for _, one in swings if one.lifts <= now < one.lands), default=now)
    until = next((time for time in ends if time >= wanted), now)
    if until >= spoilt:
        until = max((time for time in ends if now <= time < spoilt), default=now)
    events = sorted(
        [(one.lifts, 1, one.leg, one.source) for _, one in swings if one.lifts <= until]
        + [(one.lands, 0, one.leg, one.target) for _, one in swings if one.lands <= until]
    )  # at one time feet come down before others rise
    knots = np.array([0.0, *(time for time, *_ in events), until])
    counts = [
        max(math.ceil(_length(plan, a, b) / (STEP if b <= now else _FINE)), 1) for a, b in itertools.pairwise(knots)
    ]
    at = np.concatenate([[0], np.cumsum(counts)])
    way = plan.body(np.interp(np.arange(at[-1] + 1), at, knots))
    if len(events) >= EVENTS - 2 or len(way) >= LONGEST - 2:
        raise InputError(f"a plan of {len(events)} events, {len(way)} places", valid=f"up to {EVENTS} and {LONGEST}")
    draft, before = make_draft(), 0.0
    for k, (time, rises, leg, place) in enumerate(events):
        draft.leg[k], draft.kind[k], draft.place[k] = leg, LIFTED if rises else SET, place
        draft.gap[k], before = time - before, time
        if not rises:
            one = next(one for _, one in swings if one.leg == leg and one.lands == time)
            draft.top[k], draft.quick[k] = one.top, one.quick
        draft.at[k + 1] = at[k + 1]
    draft.events[:] = len(events), len(events), sum(time <= now for time, *_ in events)
    return draft, way


def _length(plan: StepPlan, begin: float, end: float) -> float:
    """How far the body goes from one time to another [m]."""
    times = plan.track[:, 0]
    inner = times[(times > begin) & (times < end)]
    places = plan.body(np.concatenate([[begin], inner, [end]]))
    return float(np.linalg.norm(np.diff(places, axis=0), axis=1).sum())
