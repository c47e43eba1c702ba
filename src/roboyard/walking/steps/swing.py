"""How a foot goes through the air."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array

RISE: Final = 0.3
"""Share of a swing in which the foot rises; as long it comes down."""
LEAD: Final = 0.1
"""Share of a swing after which the foot goes evenly as the body sees it, and as long before its end."""
HOLD: Final = 0.15
"""Share of a swing for which it stays over its place, at either end."""


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(0.5,)])
def eased(share: float) -> float:
    """0 to 1 as a share goes from 0 to 1, by half a cosine, as the thesis's playback."""
    if share <= 0.0:
        return 0.0
    return 0.5 - 0.5 * math.cos(math.pi * share) if share < 1.0 else 1.0


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(np.zeros(3), np.zeros(3), 0.1, 0.5, 1.0, *(np.zeros(3),) * 4)],
)
def swing_place(
    start: Array, end: Array, top: float, share: float, ends: float, body: Array, body_start: Array, body_end: Array,
    out: Array,
) -> None:  # fmt: skip
    """Where a foot in the air is (3,) at a share of its swing: up, across, down, overlapping.

    Once off the ground it goes evenly as the body sees it, rather than as the ground does, so that its leg reaches all
    its way however unevenly the body goes meanwhile.  Rising and coming down take ``ends`` of their usual shares: less
    than 1 where a foot is carried for long.
    """
    along = eased((share - HOLD * ends) / (1.0 - 2.0 * HOLD * ends))
    rise, lead = eased(min(share, 1.0 - share) / (RISE * ends)), eased(min(share, 1.0 - share) / (LEAD * ends))
    for k in range(2):
        ahead = body[k] - body_start[k] - along * (body_end[k] - body_start[k])
        out[k] = start[k] + along * (end[k] - start[k]) + lead * ahead
    low = start[2] if share < 0.5 else end[2]
    out[2] = low + (top - low) * rise
