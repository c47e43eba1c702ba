"""A robot on legs: its stance, its feet, and the joints that bring body and feet to where they shall be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import read_only
from roboyard.config.wording import did_you_mean as similar
from roboyard.description import Model
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.kinematics import build_chain
from roboyard.walking.leg import Leg, stacked, unreachable
from roboyard.walking.leg_kernels import LegRows, all_finite, nearest_solutions, place_feet


@dataclass(frozen=True, eq=False)
class Walker:
    """A body on l legs of three joints each.

    Attributes:
        robot: Name of the model.
        body: Link that the legs are on, in whose frame feet are.
        legs: In the order in which feet are counted, from 0 on.
        stance: (l, 3) joints of the stance that movements are relative to [rad].
        rest: (l, 3) joints of the robot at rest, flat on the ground [rad].
    """

    robot: str
    body: str
    legs: tuple[Leg, ...]
    stance: Array = field(repr=False)
    rest: Array = field(repr=False)

    @classmethod
    def of(
        cls,
        model: Model,
        body: str,
        feet: Mapping[str, str],
        stance: Sequence[float] | Mapping[str, Sequence[float]],
        rest: Sequence[float] | Mapping[str, Sequence[float]],
    ) -> Walker:
        """A walker of a description.

        Args:
            model: The robot.
            body: Link or frame that its legs are on.
            feet: Link or frame of each leg's foot, by name of the leg.
            stance: Joints of every leg [rad], or by name of the leg.
            rest: The same at rest.

        Raises:
            UnknownNameError: there is no such link or leg.
            InputError: a leg is none, a stance is beyond limits, or the legs share joints.
        """
        if len(feet) < 3:
            raise InputError(f"{len(feet)} legs", location=model.name, valid="three or more")
        legs = tuple(Leg.of(name, build_chain(model, body, foot)) for name, foot in feet.items())
        joints = [joint for leg in legs for joint in leg.joints]
        if len(set(joints)) < len(joints):
            twice = next(joint for joint in joints if joints.count(joint) > 1)
            raise InputError(
                f"joint {twice} is in two legs", location=model.name, valid="joints of its own for each leg"
            )
        return cls(model.name, body, legs, _positions(legs, stance, "stance"), _positions(legs, rest, "rest"))

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """(3 l) names, leg after leg."""
        return tuple(joint for leg in self.legs for joint in leg.joints)

    @cached_property
    def rows(self) -> LegRows:
        """What kernels take."""
        return stacked(self.legs)

    @cached_property
    def stance_feet(self) -> Array:
        """(l, 3) feet of the stance in the body [m]."""
        return self.feet(self.stance)

    @cached_property
    def stance_height(self) -> float:
        """How high the body is above the feet of the stance [m]."""
        return -float(self.stance_feet[:, 2].mean())

    @cached_property
    def lower(self) -> Array:
        """(l, 3) least positions [rad]."""
        return self.rows.lower

    @cached_property
    def upper(self) -> Array:
        """(l, 3) greatest positions [rad]."""
        return self.rows.upper

    @cached_property
    def speeds(self) -> Array:
        """(l, 3) greatest speeds [rad/s]."""
        return np.array([leg.chain.max_velocity for leg in self.legs])

    def without(self, leg: str) -> Walker:
        """The same robot with a leg less to stand on. Raises UnknownNameError."""
        names = [one.name for one in self.legs]
        if leg not in names:
            raise UnknownNameError(f"no leg {leg!r}{similar(leg, names)}", location=self.robot, valid=", ".join(names))
        k = names.index(leg)
        legs = (*self.legs[:k], *self.legs[k + 1 :])
        return Walker(self.robot, self.body, legs, np.delete(self.stance, k, 0), np.delete(self.rest, k, 0))

    def feet(self, q: ArrayLike) -> Array:
        """Feet (…, l, 3) in the body [m] of joints (…, l, 3) [rad]. Raises InputError."""
        given = _shaped(q, len(self.legs), "joints")
        out = np.empty_like(given)
        place_feet(self.rows, self._which(given.size // 3), given.reshape(-1, 3), out.reshape(-1, 3))
        return out

    def reach(self, feet: ArrayLike, near: ArrayLike | None = None) -> Array:
        """Joints (…, l, 3) [rad] that put the feet (…, l, 3) of the body [m] there, within limits.

        Args:
            feet: Of every leg.
            near: (l, 3) or as ``feet``: joints to be near to; those of the stance unless given.

        Raises:
            FootOutOfReach, LegBeyondLimits: of the first foot that cannot be there.
            InputError: what is given has another shape or is not finite.
        """
        places = _shaped(feet, len(self.legs), "feet")
        wanted = self.stance if near is None else _shaped(near, len(self.legs), "joints")
        if wanted.shape != places.shape:
            wanted = np.ascontiguousarray(np.broadcast_to(wanted, places.shape))
        out, states, k = self._solved(places, wanted)
        if k < len(states):
            leg = self.legs[k % len(self.legs)]
            raise unreachable(leg, places.reshape(-1, 3)[k], out.reshape(-1, 3)[k], int(states[k]))
        return out

    def reached(self, feet: ArrayLike) -> NDArray[np.bool_]:
        """(…, l) which feet (…, l, 3) of the body [m] legs can reach within limits. Raises InputError."""
        places = _shaped(feet, len(self.legs), "feet")
        _, states, _ = self._solved(places, np.ascontiguousarray(np.broadcast_to(self.stance, places.shape)))
        kept: NDArray[np.bool_] = (states == 0).reshape(places.shape[:-1])
        return kept

    def posed(self, T_stance_body: SE3, feet: ArrayLike | None = None) -> Array:
        """Joints (l, 3) that move the body while the feet stay where they are.

        Args:
            T_stance_body: The body, in the frame that it has in the stance: shifted, tilted, turned.
            feet: (l, 3) in the stance's frame of the body [m]; those of the stance unless given.

        Raises:
            FootOutOfReach, LegBeyondLimits: a leg cannot follow.
        """
        places = self.stance_feet if feet is None else _shaped(feet, len(self.legs), "feet")
        matrix = T_stance_body.inverse().matrix()
        return self.reach(places @ matrix[:3, :3].T + matrix[:3, 3])

    def leg(self, name: str) -> Leg:
        """A leg by name. Raises UnknownNameError."""
        for one in self.legs:
            if one.name == name:
                return one
        names = [leg.name for leg in self.legs]
        raise UnknownNameError(
            f"no leg {name!r}{similar(name, names)}", location=self.robot, valid=f"legs: {', '.join(names)}"
        )

    def _which(self, count: int) -> NDArray[np.int64]:
        """(count) whose foot each is, leg after leg."""
        return self._once if count == len(self.legs) else np.tile(self._once, count // len(self.legs))

    @cached_property
    def _once(self) -> NDArray[np.int64]:
        return np.arange(len(self.legs))

    def _solved(self, places: Array, wanted: Array) -> tuple[Array, NDArray[np.int64], int]:
        """Joints, states of all solutions, and which is the first that is none; as many as there are, without."""
        count = places.size // 3
        out, states = np.empty((count, 3)), np.empty(count, np.int64)
        which = self._which(count)
        first = nearest_solutions(
            self.rows, which, read_only(places.reshape(-1, 3)), read_only(wanted.reshape(-1, 3)), out, states
        )
        return out.reshape(places.shape), states, first


def _positions(legs: Sequence[Leg], given: Sequence[float] | Mapping[str, Sequence[float]], what: str) -> Array:
    """(l, 3) joints of all legs, checked."""
    rows = []
    for leg in legs:
        if isinstance(given, Mapping) and leg.name not in given:
            raise InputError(f"no {what} of leg {leg.name}", valid=f"joints of each leg: {', '.join(leg.joints)}")
        values = given[leg.name] if isinstance(given, Mapping) else given
        q = leg.chain.as_positions(values)
        if not leg.chain.is_within_limits(q):
            k = int(np.maximum(leg.chain.lower - q, q - leg.chain.upper).argmax())
            raise InputError(
                f"{what} of leg {leg.name}: {leg.joints[k]} at {q[k]:.4f} rad",
                valid=f"{leg.chain.lower[k]:.4f} to {leg.chain.upper[k]:.4f} rad",
            )
        rows.append(q)
    return np.array(rows)


def _shaped(values: ArrayLike, legs: int, what: str) -> Array:
    given = np.ascontiguousarray(values, dtype=np.float64)
    if given.shape[-2:] != (legs, 3) or not all_finite(given.reshape(-1)):
        raise InputError(f"{what} of shape {given.shape}", valid=f"finite numbers (…, {legs}, 3)")
    return given
