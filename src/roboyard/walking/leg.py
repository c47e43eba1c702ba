"""A leg of three joints: where its foot is, and all positions of its joints that put it somewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError, RoboyardError
from roboyard.geometry.arrays import Array
from roboyard.kinematics import Chain
from roboyard.walking.errors import FootOutOfReach, LegBeyondLimits
from roboyard.walking.leg_kernels import MOST, OUT_OF_LIMITS, LegRows, leg_solutions, nearest_solutions, place_feet

_SQUARE = 1e-6
"""Axes may miss a right angle, or each other's direction, by so much."""


@dataclass(frozen=True, eq=False)
class LegSolution:
    """Positions that put a foot somewhere.

    Attributes:
        q: (3,) of the joints [rad].
        kept: Whether they keep their limits.
        singular: What is lost there: "stretched" or "folded" for the knee, "on the axis" where the first joint does not
            move the foot; else empty.
    """

    q: Array
    kept: bool
    singular: str


@dataclass(frozen=True, eq=False)
class Leg:
    """A leg.

    Attributes:
        name: Of it.
        chain: From the body to the foot.
        rows: What kernels take, of this leg alone.
    """

    name: str
    chain: Chain
    rows: LegRows = field(repr=False)

    @classmethod
    def of(cls, name: str, chain: Chain) -> Leg:
        """A leg of a chain of three turning joints, the last two parallel, the first at right angles to them.

        Raises:
            InputError: it is none.
        """
        where = f"leg {name} of {chain.robot}"
        rows = chain.arrays
        if chain.dof != 3 or len(chain.moving_joints) != 3 or not chain.is_revolute.all():
            raise InputError(f"{chain.dof} joints ({', '.join(chain.joints)})", location=where, valid="three that turn")
        hip, knee, ankle = rows.origins
        bend = float(ankle[2, 2])
        if abs(knee[2, 2]) > _SQUARE or abs(abs(bend) - 1.0) > _SQUARE:
            raise InputError(
                f"axes of {', '.join(chain.joints)}",
                location=where,
                valid="the last two parallel, the first square to them",
            )
        shank = ankle[:3, :3] @ rows.T_tip[:3, 3]
        made = LegRows(
            hip[None],
            knee[None],
            np.array([ankle[2, 3] + shank[2]]),
            ankle[None, :2, 3].copy(),
            shank[None, :2].copy(),
            np.array([math.copysign(1.0, bend)]),
            chain.lower[None].copy(),
            chain.upper[None].copy(),
        )
        return cls(name, chain, made)

    @property
    def joints(self) -> tuple[str, ...]:
        """(3) names, from the body on."""
        return self.chain.joints

    @property
    def hip(self) -> Array:
        """(3,) where the first axis is in the body, at the first joint's frame [m]."""
        return np.array(self.rows.T_body_hip[0, :3, 3])

    def foot(self, q: ArrayLike) -> Array:
        """Place (3,) of the foot in the body of joints (3,), or (k, 3) of (k, 3). Raises InputError."""
        given = self.chain.as_positions(q)
        states = given.reshape(-1, 3)
        out = np.empty_like(states)
        place_feet(self.rows, np.zeros(len(states), np.int64), states, out)
        return out.reshape(given.shape)

    def solutions(self, foot: ArrayLike, near: ArrayLike | None = None) -> list[LegSolution]:
        """All positions that put the foot somewhere; those that keep the limits first, then the nearest.

        Args:
            foot: In the body [m].
            near: (3,) positions to be near to [rad]; the middle of the limits unless given.

        Raises:
            InputError: what is given is no three finite numbers.
        """
        place, wanted = _three(foot, f"foot of leg {self.name}"), self._near(near)
        out = np.empty((MOST, 3))
        count = leg_solutions(self.rows, 0, place, float(wanted[0]), out)
        found = [LegSolution(q.copy(), bool(self.chain.is_within_limits(q)), self._lost(q)) for q in out[:count]]
        return sorted(found, key=lambda one: (not one.kept, float(np.abs(one.q - wanted).max())))

    def reach(self, foot: ArrayLike, near: ArrayLike | None = None) -> Array:
        """The positions (3,) within the limits, nearest to ``near``, that put the foot at a place (3,) of the body.

        Raises:
            FootOutOfReach: the leg is too short, or too long.
            LegBeyondLimits: with the leg, the joint, its value and its limit.
            InputError: what is given is no three finite numbers.
        """
        place, wanted = _three(foot, f"foot of leg {self.name}"), self._near(near)
        out, states = np.empty((1, 3)), np.zeros(1, np.int64)
        nearest_solutions(self.rows, np.zeros(1, np.int64), place[None], wanted[None], out, states)
        if states[0]:
            raise unreachable(self, place, out[0], int(states[0]))
        found: Array = out[0]
        return found

    def _near(self, near: ArrayLike | None) -> Array:
        if near is not None:
            return _three(near, f"joints of leg {self.name}")
        middle = 0.5 * (self.chain.lower + self.chain.upper)
        nearest: Array = np.where(np.isfinite(middle), middle, 0.0)
        return nearest

    def _lost(self, q: Array) -> str:
        """Which singularity the joints are at."""
        rows, foot = self.rows, self.foot(q)
        H = rows.T_body_hip[0]
        across = H[:3, :2].T @ (foot - H[:3, 3])
        if math.hypot(*across) < 1e-6:
            return "on the axis"
        c, s = math.cos(rows.bend[0] * q[2]), math.sin(rows.bend[0] * q[2])
        shank = np.array([[c, -s], [s, c]]) @ rows.shank[0]
        thigh = rows.thigh[0]
        sine = (thigh[0] * shank[1] - thigh[1] * shank[0]) / (np.linalg.norm(thigh) * np.linalg.norm(shank))
        if abs(sine) > 1e-6:
            return ""
        return "stretched" if thigh @ shank > 0.0 else "folded"


def stacked(legs: Sequence[Leg]) -> LegRows:
    """Rows of several legs, as kernels take them."""
    return LegRows(*(np.concatenate(parts) for parts in zip(*(leg.rows for leg in legs), strict=True)))


def unreachable(leg: Leg, foot: Array, q: Array, state: int) -> RoboyardError:
    """The error for a foot's place (3,) that a leg does not reach, with the best positions (3,) found."""
    where = f"leg {leg.name} of {leg.chain.robot}"
    wanted = f"foot at {', '.join(f'{x:.3f}' for x in foot)} m of the body"
    if state == OUT_OF_LIMITS:
        beyond = np.maximum(leg.chain.lower - q, q - leg.chain.upper)
        k = int(beyond.argmax())
        return LegBeyondLimits(
            f"{wanted} needs {leg.joints[k]} at {q[k]:.4f} rad",
            where=where,
            valid=f"{leg.chain.lower[k]:.4f} to {leg.chain.upper[k]:.4f} rad",
            joint=leg.joints[k],
            value=float(q[k]),
        )
    thigh, shank = (float(np.linalg.norm(side[0])) for side in (leg.rows.thigh, leg.rows.shank))
    return FootOutOfReach(
        f"{wanted} is out of reach",
        location=where,
        valid=f"between {abs(thigh - shank):.3f} and {thigh + shank:.3f} m from its second axis, in the leg's plane",
    )


def _three(values: ArrayLike, what: str) -> Array:
    given = np.asarray(values, dtype=np.float64)
    if given.shape != (3,) or not np.isfinite(given).all():
        raise InputError(f"{given.tolist()}", location=what, valid="three finite numbers")
    return given
