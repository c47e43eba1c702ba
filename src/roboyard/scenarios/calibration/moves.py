"""The moves that calibrate a drive: straights, turns on the spot and arcs, each driven there and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roboyard.errors import InputError

LEAST_TURNS = 4
_SHARE = (0.3, 0.9)
"""Least and largest share of the drive's speeds that moves take."""


@dataclass(frozen=True, slots=True)
class Move:
    """From rest to rest at one twist.

    Attributes:
        kind: "straight", "spot" or "arc".
        v: [m/s].
        w: [rad/s].
        seconds: How long the twist is held.
    """

    kind: str
    v: float
    w: float
    seconds: float

    def back(self) -> Move:
        """The same the other way."""
        return Move(self.kind, -self.v, -self.w, self.seconds)


def plan_moves(turns: int, speed: float, turn_rate: float, room: float, seed: int) -> tuple[Move, ...]:
    """``turns`` turns, half of them on the spot, and as many straights; every second move takes back the one before.

    Args:
        turns: At least four; made even.
        speed: Largest [m/s].
        turn_rate: Largest [rad/s].
        room: How far moves may lead away [m].
        seed: Of the speeds, which differ from move to move.

    Raises:
        InputError: fewer turns than can be fitted.
    """
    if turns < LEAST_TURNS:
        raise InputError(f"{turns} turns", valid=f"at least {LEAST_TURNS}")
    random = np.random.default_rng(seed)

    def some(top: float) -> float:
        return float(random.uniform(*_SHARE)) * top

    moves: list[Move] = []
    for k in range((turns + 1) // 2):
        sign = 1.0 if k % 4 < 2 else -1.0
        rate = sign * some(turn_rate)
        if k % 2 == 0:
            turning = Move("spot", 0.0, rate, min(float(random.uniform(1.5, 5.0)) / abs(rate), 8.0))
        else:
            v = some(speed)
            turning = Move("arc", v, rate, min(float(random.uniform(1.5, 4.0)) / abs(rate), 2.0 * room / v, 8.0))
        v = some(speed)
        straight = Move("straight", v, 0.0, min(room / v, 6.0))
        moves += [turning, turning.back(), straight, straight.back()]
    return tuple(moves)
