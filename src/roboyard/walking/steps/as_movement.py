"""A plan of steps as a movement: set-points of its feet, that whoever plays movements walks."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from roboyard.errors import InputError
from roboyard.walking.movement import PERIOD, Movement
from roboyard.walking.steps.plan import StepPlan
from roboyard.walking.walker import Walker

_LONGEST: Final = 12_000
"""Steps of a movement: of six feet as many as a safe reader of XML takes."""


def movement_of(plan: StepPlan, walker: Walker, *, pace: float = 1.0, name: str = "plan") -> Movement:
    """The movement of a plan: a step each period of 20 ms.

    All motion is kept: feet that stand go back in the body's frame as the body goes on, and down as it climbs.  Played
    with a tick from step to step, as it says, the feet are each period where the plan has them.

    Args:
        plan: Whose.
        walker: Its legs.
        pace: Of the plan's speed.
        name: Of the movement.

    Raises:
        InputError: a pace that is none, or a plan of too many periods.
    """
    if not 0.0 < pace <= 1.0:
        raise InputError(f"pace {pace:g}", valid="more than 0, up to 1")
    count = math.ceil(plan.duration / (PERIOD * pace) - 1e-9) + 1
    if count > _LONGEST:
        raise InputError(f"a movement of {count} steps", valid=f"up to {_LONGEST}: a shorter plan, or a larger pace")
    times = np.minimum(np.arange(count) * PERIOD * pace, plan.duration)
    return Movement((plan.local_feet(times) - walker.stance_feet).transpose(1, 0, 2), name, ticks=1)
