"""Support states: which feet may be down at once, and which state may follow which.

At least three feet are down, and at least one on each side.  For six legs these are 40 states with 90 pairs that differ
by one foot: table 2.2 of the thesis, after Herms, here derived from the rule.  The rule alone does not keep a body from
tipping; that is a matter of where the feet are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

FEWEST: Final = 3
"""So many feet are down, at least."""


def support_states(sides: Sequence[int]) -> list[int]:
    """All states, as numbers whose bit k tells that foot k is down; by number.

    Args:
        sides: Of each leg: 1 on the left, -1 on the right.
    """
    legs = len(sides)
    return [
        state
        for state in range(1 << legs)
        if state.bit_count() >= FEWEST and {sides[k] for k in range(legs) if state >> k & 1} == {1, -1}
    ]


def transitions(states: Sequence[int]) -> dict[int, list[int]]:
    """Of each state those that differ by one foot, in the order of the foot."""
    known = set(states)
    legs = max(state.bit_length() for state in states)
    return {state: [state ^ 1 << k for k in range(legs) if state ^ 1 << k in known] for state in states}
