"""What efforts joints may take on their way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.control.topp_kernels import PathEffortConstraint
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.kinematics.dynamics import ChainDynamics
from roboyard.kinematics.dynamics_kernels import compute_path_effort_coefficients
from roboyard.manipulation.failure import PlanningError

_SPARE = 0.01
"""Of a joint's effort."""
_STILL = 1e-9
"""A joint that moves by less for each unit of path rests, and nothing rubs."""


class EffortError(PlanningError):
    """A joint cannot hold what it carries, or not move it."""

    cause = "effort_exceeded"


@dataclass(frozen=True, eq=False)
class EffortLimits:
    """How much of its joints' efforts an arm may use.

    Attributes:
        dynamics: What motions take.
        share: Of each joint's effort; the rest is left to the controllers, and to what nobody knows of the masses.
            Where more is needed only to move slowly, that is used, and `_SPARE` for what is done there.
    """

    dynamics: ChainDynamics
    share: float = 0.95

    def __post_init__(self) -> None:
        if not 0.0 < self.share <= 1.0:
            raise InputError(f"a share of effort of {self.share}", valid="more than 0, at most 1")

    @property
    def greatest(self) -> Array:
        """(n,) [N m or N]; infinite where a description states none, or zero, which means none."""
        effort = self.dynamics.chain.max_effort
        return np.asarray(np.where(effort > 0.0, effort, np.inf))

    @property
    def bind(self) -> bool:
        """Whether any joint has a limit."""
        return bool(np.isfinite(self.greatest).any())

    def holds(self, states: ArrayLike) -> NDArray[np.bool_]:
        """(k,) whether the joints can hold still in each state (k, n). Raises InputError."""
        return np.asarray((np.abs(self.dynamics.inverse_dynamics(states)) <= self.greatest).all(axis=-1))

    def check_held(self, state: ArrayLike, where: str) -> None:
        """Raises EffortError where a joint cannot hold still in a state (n,); ``where`` says which that is."""
        needed = self.dynamics.inverse_dynamics(state)
        self._refuse(np.abs(needed), "to hold still", where)

    def along(self, q: Array, slope: Array, bend: Array) -> PathEffortConstraint:
        """What a path takes.

        Args:
            q: (k, 2, n) joints at both ends of each of its intervals.
            slope: (k, 2, n) their derivatives by the length along it.
            bend: (k, n) the second ones, which are constant in an interval.

        Raises:
            EffortError: somewhere a joint cannot even be moved slowly.
        """
        out = np.empty((3, *q.shape))
        compute_path_effort_coefficients(self.dynamics.chain.arrays, self.dynamics.masses, q, slope, bend, out)
        way = np.sign(np.where(np.abs(slope) > _STILL, slope, 0.0))
        turns = (way.prod(axis=1) < 0.0)[:, None]  # back, within an interval: then it rubs both ways
        hold = out[2] + self.dynamics.friction * np.where(turns, 0.0, way)
        rubs = np.where(turns, self.dynamics.friction, 0.0)
        needed, most = np.abs(hold) + rubs, self.greatest
        worst = int(np.argmax((needed / most).max(axis=2)))
        place = "at the start" if worst == 0 else "at the end" if worst == 2 * len(q) - 1 else "on the way"
        i, end = divmod(worst, 2)
        self._refuse(needed[i, end], "to move slowly", f"{place}, {self._told(q[i, end])}")
        limit = np.minimum(np.maximum(self.share * most, needed + _SPARE * most), most) - rubs
        return PathEffortConstraint(out[0], out[1], self.dynamics.damping * slope, hold, limit)

    def _refuse(self, needed: Array, what: str, where: str) -> None:
        beyond = needed / self.greatest
        j = int(np.argmax(beyond))
        if beyond[j] > 1.0:
            chain = self.dynamics.chain
            unit = "N m" if chain.is_revolute[j] else "N"
            raise EffortError(
                f"{chain.joints[j]} needs {needed[j]:.3g} {unit} {what} {where}",
                location=chain.robot,
                valid=f"at most its {self.greatest[j]:.3g} {unit}",
            )

    def _told(self, q: Array) -> str:
        return ", ".join(f"{name} {value:.2f}" for name, value in zip(self.dynamics.chain.joints, q, strict=True))
