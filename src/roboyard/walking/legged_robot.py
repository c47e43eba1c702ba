"""A body on legs: stance, foot positions, inverse kinematics of all legs, and the file `legs.yaml` that declares
them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import read_only
from roboyard.config import load, parameter
from roboyard.config.wording import did_you_mean as similar
from roboyard.description import Model
from roboyard.errors import ConfigError, InputError, RoboyardError, UnknownNameError
from roboyard.evaluation.scenario_key import RobotFiles
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.kinematics import build_chain
from roboyard.walking.leg import (
    Leg,
    LegKinematicsArrays,
    all_finite,
    foot_forward_kinematics,
    ik_error,
    nearest_ik_solutions,
    stack_legs,
)


@dataclass(frozen=True, eq=False)
class LeggedRobot:
    """A body on l legs of three joints each.

    Attributes:
        name: Name of the robot's model.
        body: Link that the legs are attached to; foot positions are in its frame.
        legs: The legs, in the order of their indices.
        stance_pose: (l, 3) joint positions of the stance, from which foot movements are measured [rad].
        rest_pose: (l, 3) joint positions of the robot lying flat on the ground [rad].
    """

    name: str
    body: str
    legs: tuple[Leg, ...]
    stance_pose: Array = field(repr=False)
    rest_pose: Array = field(repr=False)

    @classmethod
    def from_model(
        cls,
        model: Model,
        body: str,
        feet: Mapping[str, str],
        stance_pose: Sequence[float] | Mapping[str, Sequence[float]],
        rest_pose: Sequence[float] | Mapping[str, Sequence[float]],
    ) -> LeggedRobot:
        """Return the legged robot of a description.

        Args:
            model: Description of the robot.
            body: Link or frame that the legs are attached to.
            feet: Link or frame of each foot, by name of its leg.
            stance_pose: Joint positions of every leg in the stance [rad], or by name of the leg.
            rest_pose: Joint positions of every leg at rest [rad], or by name of the leg.

        Raises:
            UnknownNameError: A link or leg does not exist.
            InputError: A chain is not a leg, a pose is outside the limits, or legs share joints.
        """
        if len(feet) < 3:
            raise InputError(f"{len(feet)} legs", location=model.name, valid="three or more")
        legs = tuple(Leg.from_chain(name, build_chain(model, body, foot)) for name, foot in feet.items())
        joints = [joint for leg in legs for joint in leg.joints]
        if len(set(joints)) < len(joints):
            shared_joint = next(joint for joint in joints if joints.count(joint) > 1)
            raise InputError(
                f"joint {shared_joint} is in two legs", location=model.name, valid="joints of its own for each leg"
            )
        return cls(
            model.name,
            body,
            legs,
            _validated_joints(legs, stance_pose, "stance"),
            _validated_joints(legs, rest_pose, "rest"),
        )

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """(3 l) names of the joints, leg after leg."""
        return tuple(joint for leg in self.legs for joint in leg.joints)

    @cached_property
    def arrays(self) -> LegKinematicsArrays:
        """Kinematics of all legs as arguments of kernels."""
        return stack_legs(self.legs)

    @cached_property
    def stance_feet(self) -> Array:
        """(l, 3) foot positions of the stance in the body frame [m]."""
        return self.foot_positions(self.stance_pose)

    @cached_property
    def stance_height(self) -> float:
        """Height of the body above the feet of the stance [m]."""
        return -float(self.stance_feet[:, 2].mean())

    @cached_property
    def lower(self) -> Array:
        """(l, 3) lower joint limits [rad]."""
        return self.arrays.lower

    @cached_property
    def upper(self) -> Array:
        """(l, 3) upper joint limits [rad]."""
        return self.arrays.upper

    @cached_property
    def max_joint_speeds(self) -> Array:
        """(l, 3) maximum joint speeds [rad/s]."""
        return np.array([leg.chain.max_velocity for leg in self.legs])

    def without_leg(self, leg: str) -> LeggedRobot:
        """Return the same robot with one leg less to stand on. Raises UnknownNameError."""
        names = [one.name for one in self.legs]
        if leg not in names:
            raise UnknownNameError(f"no leg {leg!r}{similar(leg, names)}", location=self.name, valid=", ".join(names))
        k = names.index(leg)
        remaining_legs = (*self.legs[:k], *self.legs[k + 1 :])
        return LeggedRobot(
            self.name, self.body, remaining_legs, np.delete(self.stance_pose, k, 0), np.delete(self.rest_pose, k, 0)
        )

    def foot_positions(self, q: ArrayLike) -> Array:
        """Return foot positions (…, l, 3) in the body frame [m] of joints (…, l, 3) [rad]. Raises InputError."""
        joints = _validated_array(q, len(self.legs), "joints")
        out = np.empty_like(joints)
        foot_forward_kinematics(
            self.arrays, self._repeated_leg_indices(joints.size // 3), joints.reshape(-1, 3), out.reshape(-1, 3)
        )
        return out

    def solve_ik(self, feet: ArrayLike, seed: ArrayLike | None = None) -> Array:
        """Return joint positions (…, l, 3) [rad] within the limits that put the feet at positions (…, l, 3) in the body
        frame [m].

        Args:
            feet: Foot positions of every leg.
            seed: (l, 3) or shaped as ``feet``: joint positions to stay near; None: those of the stance.

        Raises:
            FootOutOfReachError, LegJointLimitError: For the first foot that cannot be there.
            InputError: An argument has another shape or is not finite.
        """
        foot_positions = _validated_array(feet, len(self.legs), "feet")
        seed_joints = self.stance_pose if seed is None else _validated_array(seed, len(self.legs), "joints")
        if seed_joints.shape != foot_positions.shape:
            seed_joints = np.ascontiguousarray(np.broadcast_to(seed_joints, foot_positions.shape))
        out, statuses, k = self._solve(foot_positions, seed_joints)
        if k < len(statuses):
            leg = self.legs[k % len(self.legs)]
            raise ik_error(leg, foot_positions.reshape(-1, 3)[k], out.reshape(-1, 3)[k], int(statuses[k]))
        return out

    def is_reachable(self, feet: ArrayLike) -> NDArray[np.bool_]:
        """Return (…, l) which feet (…, l, 3) in the body frame [m] the legs reach within their limits. Raises
        InputError."""
        foot_positions = _validated_array(feet, len(self.legs), "feet")
        _, statuses, _ = self._solve(
            foot_positions, np.ascontiguousarray(np.broadcast_to(self.stance_pose, foot_positions.shape))
        )
        is_within_reach: NDArray[np.bool_] = (statuses == 0).reshape(foot_positions.shape[:-1])
        return is_within_reach

    def joints_at_body_pose(self, T_stance_body: SE3, feet: ArrayLike | None = None) -> Array:
        """Return the joint positions (l, 3) of a moved body whose feet keep their positions on the ground.

        Args:
            T_stance_body: Pose of the body in its frame of the stance: shifted, tilted, rotated.
            feet: (l, 3) foot positions in the frame of the stance [m]; None: those of the stance.

        Raises:
            FootOutOfReachError, LegJointLimitError: A leg cannot follow.
        """
        foot_positions = self.stance_feet if feet is None else _validated_array(feet, len(self.legs), "feet")
        matrix = T_stance_body.inverse().matrix()
        return self.solve_ik(foot_positions @ matrix[:3, :3].T + matrix[:3, 3])

    def leg(self, name: str) -> Leg:
        """Return a leg by name. Raises UnknownNameError."""
        for one in self.legs:
            if one.name == name:
                return one
        names = [leg.name for leg in self.legs]
        raise UnknownNameError(
            f"no leg {name!r}{similar(name, names)}", location=self.name, valid=f"legs: {', '.join(names)}"
        )

    def _repeated_leg_indices(self, count: int) -> NDArray[np.int64]:
        """Return (count) the leg index of each foot, leg after leg."""
        return self._leg_indices if count == len(self.legs) else np.tile(self._leg_indices, count // len(self.legs))

    @cached_property
    def _leg_indices(self) -> NDArray[np.int64]:
        return np.arange(len(self.legs))

    def _solve(self, foot_positions: Array, seed_joints: Array) -> tuple[Array, NDArray[np.int64], int]:
        """Return joints, statuses of all solutions, and the index of the first failure (their number if there is
        none)."""
        count = foot_positions.size // 3
        out, statuses = np.empty((count, 3)), np.empty(count, np.int64)
        leg_indices = self._repeated_leg_indices(count)
        first_failure = nearest_ik_solutions(
            self.arrays,
            leg_indices,
            read_only(foot_positions.reshape(-1, 3)),
            read_only(seed_joints.reshape(-1, 3)),
            out,
            statuses,
        )
        return out.reshape(foot_positions.shape), statuses, first_failure


def _validated_joints(
    legs: Sequence[Leg], joints_by_leg: Sequence[float] | Mapping[str, Sequence[float]], name: str
) -> Array:
    """Return joint positions (l, 3) of all legs after a check of names and limits."""
    joint_rows = []
    for leg in legs:
        if isinstance(joints_by_leg, Mapping) and leg.name not in joints_by_leg:
            raise InputError(f"no {name} of leg {leg.name}", valid=f"joints of each leg: {', '.join(leg.joints)}")
        values = joints_by_leg[leg.name] if isinstance(joints_by_leg, Mapping) else joints_by_leg
        q = leg.chain.as_positions(values)
        if not leg.chain.is_within_limits(q):
            k = int(np.maximum(leg.chain.lower - q, q - leg.chain.upper).argmax())
            raise InputError(
                f"{name} of leg {leg.name}: {leg.joints[k]} at {q[k]:.4f} rad",
                valid=f"{leg.chain.lower[k]:.4f} to {leg.chain.upper[k]:.4f} rad",
            )
        joint_rows.append(q)
    return np.array(joint_rows)


def _validated_array(values: ArrayLike, n_legs: int, name: str) -> Array:
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape[-2:] != (n_legs, 3) or not all_finite(array.reshape(-1)):
        raise InputError(f"{name} of shape {array.shape}", valid=f"finite numbers (…, {n_legs}, 3)")
    return array


@dataclass(frozen=True)
class LegsFile:
    """Content of `legs.yaml`."""

    body: str = parameter(doc="Link that the legs are attached to; foot positions are in its frame.")
    feet: dict[str, str] = parameter(
        doc="Link or frame of each foot by name of its leg, in the order in which arrays hold the legs."
    )
    stance_pose: tuple[float, float, float] = parameter(unit="rad", doc="Joint positions of every leg in the stance.")
    rest_pose: tuple[float, float, float] = parameter(
        unit="rad", doc="Joint positions of every leg while the robot lies flat on the ground."
    )
    stance_poses: dict[str, tuple[float, ...]] = parameter(
        factory=dict, doc="Joint positions [rad] of legs that stand differently, by name of the leg."
    )
    rest_poses: dict[str, tuple[float, ...]] = parameter(
        factory=dict, doc="Joint positions [rad] of legs that rest differently, by name of the leg."
    )


def load_legs(path: Path, model: Model) -> LeggedRobot:
    """Load a robot's legs from a YAML file.

    Args:
        path: The file.
        model: Description of the robot.

    Raises:
        ConfigError: A key or value is not valid, a name is not the robot's, or a chain is not a leg.
    """
    legs_file = load(LegsFile, path)
    for key in ("stance_poses", "rest_poses"):
        for name in getattr(legs_file, key):
            if name not in legs_file.feet:
                raise ConfigError(
                    f"no leg {name!r}", location=f"{path}, {key}", valid=f"legs: {', '.join(legs_file.feet)}"
                )
    try:
        return LeggedRobot.from_model(
            model,
            legs_file.body,
            legs_file.feet,
            {name: legs_file.stance_poses.get(name, legs_file.stance_pose) for name in legs_file.feet},
            {name: legs_file.rest_poses.get(name, legs_file.rest_pose) for name in legs_file.feet},
        )
    except RoboyardError as error:
        raise ConfigError(error.message, location=str(path), valid=error.valid) from None


def create_legged_robot(robot: RobotFiles) -> LeggedRobot | None:
    """Return the legs of a robot from the file that its package names; None if it has none. Raises ConfigError."""
    path = robot.companion_file("legs")
    return None if path is None else load_legs(path, robot.model)
