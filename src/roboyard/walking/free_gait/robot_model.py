"""Model of a robot for free-gait planning: reachability tables, body box, limb masses and support states.

A support state is the set of feet on the ground.  At least three feet are in stance, and at least one on each side: for
six legs these are 40 states with 90 pairs that differ by one foot (table 2.2 of the thesis, after Herms), derived here
from the rule.  The rule alone does not prevent tipping; that depends on the foot positions.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from roboyard.compute import kernel
from roboyard.description import Box, Model
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.geometry.constants import GRAVITY
from roboyard.walking.leg import LegKinematicsArrays, example_legs, knee_side_of, solve_leg_ik
from roboyard.walking.legged_robot import LeggedRobot
from roboyard.walking.statics import MIN_SUPPORT_FEET


def body_box(model: Model, body: str) -> NDArray[np.float64]:
    """Return (2, 3) smallest and largest corner, in a link's frame, of the collision boxes fixed to the link [m].

    Raises:
        InputError: No box is fixed to the link.
    """
    fixed_links = {body}
    while True:
        joints = [joint for joint in model.joints if joint.type == "fixed"]
        neighbors = {joint.child for joint in joints if joint.parent in fixed_links}
        neighbors |= {joint.parent for joint in joints if joint.child in fixed_links}
        if neighbors <= fixed_links:
            break
        fixed_links |= neighbors
    links = {link.name: link for link in model.links}
    T_body_model, corners = links[body].T_model_link.inverse(), []
    for name in sorted(fixed_links & links.keys()):
        for shape in links[name].collisions:
            if isinstance(shape.geometry, Box):
                half = 0.5 * np.array(shape.geometry.size)
                signs = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
                corners.append(T_body_model @ links[name].T_model_link @ shape.T_link_geom @ (signs * half))
    if not corners:
        raise InputError(
            f"no box is fixed to {body}", location=model.name, valid="a body with a box for its collisions"
        )
    all_corners = np.concatenate(corners)
    return np.array([all_corners.min(axis=0), all_corners.max(axis=0)])


def limb_masses(model: Model, legs: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """Return (l, 2) masses of thigh and shank [kg]: what the second and the third joint of each leg move.

    Args:
        model: Description of the robot.
        legs: Names of the three joints of each leg, starting at the body.
    """
    children: dict[str, list[str]] = {}
    for joint in model.joints:
        children.setdefault(joint.parent, []).append(joint.child)
    link_masses = {link.name: link.inertial.mass if link.inertial else 0.0 for link in model.links}
    child = {joint.name: joint.child for joint in model.joints}

    def mass_below(link: str) -> float:
        return link_masses.get(link, 0.0) + sum(map(mass_below, children.get(link, [])))

    masses = np.array([[mass_below(child[name]) for name in joints[1:]] for joints in legs])
    masses[:, 0] -= masses[:, 1]
    return masses


def support_states(sides: Sequence[int]) -> list[int]:
    """Return all support states by number; bit k of a state is set if foot k is in stance.

    Args:
        sides: Side of each leg: 1 left, -1 right.
    """
    n_legs = len(sides)
    return [
        state
        for state in range(1 << n_legs)
        if state.bit_count() >= MIN_SUPPORT_FEET and {sides[k] for k in range(n_legs) if state >> k & 1} == {1, -1}
    ]


def state_transitions(states: Sequence[int]) -> dict[int, list[int]]:
    """Return for each state the states that differ by one foot, in the order of the feet."""
    known_states = set(states)
    n_legs = max(state.bit_length() for state in states)
    return {state: [state ^ 1 << k for k in range(n_legs) if state ^ 1 << k in known_states] for state in states}


TABLE_LAYERS: Final = 48
"""Number of layers of a reachability table: bits of a word."""


class FreeGaitModelArrays(NamedTuple):
    """A robot with l legs as arguments of kernels; feet and tables are in the body frame.

    Attributes:
        legs: Kinematics of the legs.
        stance_feet: (l, 3) feet of the stance [m].
        knee_side: (l,) side to which knees bend: the sign of the angle from thigh to shank.
        max_joint_speeds: (l, 3) maximum joint speeds [rad/s].
        leg_side: (l,) 1 left, -1 right.
        leading_leg: (l,) next leg in front on the same side, or -1.
        stance_reach: (l, n, n) words whose bit k is set if a stance foot reaches layer k with its margin.
        swing_reach: (l, n, n) the same for a swing foot.
        table_origin: (l, 3) center of the tables' first cell [m].
        cell_size: Edge of a table's cell along x and y [m].
        layer_height: Height of a table's layer [m].
        min_foot_gap: Minimum distance along x between feet of one side, which keep their order [m].
        limb_radius: Radius of a limb [m].
        mass_fractions: (l, 2) masses of thigh and shank as fractions of the robot's mass.
    """

    legs: LegKinematicsArrays
    stance_feet: Array
    knee_side: Array
    max_joint_speeds: Array
    leg_side: NDArray[np.int64]
    leading_leg: NDArray[np.int64]
    stance_reach: NDArray[np.uint64]
    swing_reach: NDArray[np.uint64]
    table_origin: Array
    cell_size: float
    layer_height: float
    min_foot_gap: float
    limb_radius: float
    mass_fractions: Array


class LegArrays(NamedTuple):
    """Arguments of plan evaluation about the legs; see `FreeGaitModelArrays`.

    Attributes:
        kinematics: Kinematics of the legs.
        knee_side: (l,) side to which knees bend.
        max_joint_speeds: (l, 3) maximum joint speeds [rad/s].
        leading_leg: (l,) next leg in front on the same side, or -1.
        mass_fractions: (l, 2) masses of thigh and shank as fractions of the robot's mass.
    """

    kinematics: LegKinematicsArrays
    knee_side: Array
    max_joint_speeds: Array
    leading_leg: NDArray[np.int64]
    mass_fractions: Array


def example_leg_arrays() -> LegArrays:
    """Return the legs with which kernels are compiled."""
    return LegArrays(example_legs(), np.ones(1), np.ones((1, 3)), np.zeros(1, np.int64), np.zeros((1, 2)))


@kernel(
    no_refcount=True,
    examples=lambda: [
        (
            example_legs(),
            np.ones(1),
            np.zeros((1, 3)),
            0.01,
            0.01,
            np.zeros(7),
            np.zeros((1, 2, 2, TABLE_LAYERS), np.bool_),
        )
    ],
)
def fill_reach_table(
    legs: LegKinematicsArrays,
    knee_side: Array,
    table_origin: Array,
    cell_size: float,
    layer_height: float,
    joint_scratch: Array,
    out: NDArray[np.bool_],
) -> None:
    """Mark which cells (l, n, n, TABLE_LAYERS) the feet reach: rows along x, columns along y; ``joint_scratch`` (7,) is
    scratch memory."""
    for i in range(out.shape[0]):
        for a in range(out.shape[1]):
            for b in range(out.shape[2]):
                for c in range(out.shape[3]):
                    x, y, z = (
                        table_origin[i, 0] + a * cell_size,
                        table_origin[i, 1] + b * cell_size,
                        table_origin[i, 2] + c * layer_height,
                    )
                    out[i, a, b, c] = solve_leg_ik(legs, knee_side, i, x, y, z, joint_scratch)


_TABLE_CELLS: Final = 64
"""Number of cells of a reachability table along x and y."""
REFERENCE_LEG_LENGTH: Final = 0.328
"""Length of coxa, femur and tibia of the Akrobat, for which the constants of the planners are given [m]."""
_STANCE_REACH_MARGIN: Final = 0.02
_SWING_REACH_MARGIN: Final = 0.012
"""Smaller than for stance feet, since swing feet carry no load [m]."""
_MIN_FOOT_GAP: Final = 0.02
_MIN_STABILITY_MARGIN: Final = 0.051
_REFERENCE_HALF_WIDTH: Final = 0.238
"""Half the width of the Akrobat's stance [m]."""


@dataclass(frozen=True, eq=False)
class FreeGaitModel:
    """A legged robot, and lengths in proportion to it.

    Attributes:
        legged_robot: The legs.
        arrays: Arguments of kernels.
        body_box: (2, 3) smallest and largest corner of the body's box in its frame [m].
        scale: Size of the legs relative to the reference robot's.
        weight: Weight of the robot [N].
        min_stability_margin: Minimum distance of the body's center from the edges of the support polygon [m]; 51 mm for
            the reference robot.
    """

    legged_robot: LeggedRobot
    arrays: FreeGaitModelArrays
    body_box: Array
    scale: float
    weight: float
    min_stability_margin: float

    @classmethod
    def from_robot(cls, legged_robot: LeggedRobot, model: Model, limb_radius: float = 0.01) -> FreeGaitModel:
        """Return the model of a legged robot.

        Args:
            legged_robot: Robot with at least two legs on each side.
            model: Description of the robot.
            limb_radius: Radius of a limb [m].

        Raises:
            InputError: There are fewer than two legs on a side, or no box is fixed to the body.
        """
        leg_arrays, stance_feet = legged_robot.arrays, legged_robot.stance_feet
        leg_side = np.where(stance_feet[:, 1] > 0.0, 1, -1).astype(np.int64)
        if min((leg_side == 1).sum(), (leg_side == -1).sum()) < 2:
            raise InputError("fewer than two legs on a side", location=legged_robot.name, valid="two or more on each")
        lengths = (
            np.hypot(*leg_arrays.T_hip_knee[:, :2, 3].T) + np.hypot(*leg_arrays.thigh.T) + np.hypot(*leg_arrays.shank.T)
        )
        scale = float(lengths.min()) / REFERENCE_LEG_LENGTH
        knee_side = np.sign(
            [knee_side_of(leg_arrays, i, float(legged_robot.stance_pose[i, 2])) for i in range(len(stance_feet))]
        )
        max_leg_length = float(lengths.max())
        cell_size = 2.0 * max_leg_length / (_TABLE_CELLS - 1)
        table_origin = leg_arrays.T_body_hip[:, :3, 3] - max_leg_length
        layer_height = 1.2 * max_leg_length / (TABLE_LAYERS - 1)
        table_origin[:, 2] = leg_arrays.T_body_hip[:, 2, 3] - 0.95 * max_leg_length
        is_reachable = np.zeros((len(stance_feet), _TABLE_CELLS, _TABLE_CELLS, TABLE_LAYERS), np.bool_)
        fill_reach_table(leg_arrays, knee_side, table_origin, cell_size, layer_height, np.empty(7), is_reachable)
        stance_reach, swing_reach = (
            np.zeros((len(stance_feet), _TABLE_CELLS, _TABLE_CELLS), np.uint64) for _ in range(2)
        )
        for i, one in enumerate(is_reachable):
            distance = distance_transform_edt(one, sampling=(cell_size, cell_size, layer_height))
            for reach_table, reach_margin in ((stance_reach, _STANCE_REACH_MARGIN), (swing_reach, _SWING_REACH_MARGIN)):
                bits = (distance > reach_margin * scale).astype(np.uint64) << np.arange(TABLE_LAYERS, dtype=np.uint64)
                reach_table[i] = bits.sum(axis=-1, dtype=np.uint64)
        leading_leg = np.full(len(stance_feet), -1, np.int64)
        for i in range(len(stance_feet)):
            leading_legs = [
                k
                for k in range(len(stance_feet))
                if leg_side[k] == leg_side[i] and stance_feet[k, 0] > stance_feet[i, 0]
            ]
            if leading_legs:
                leading_leg[i] = min(leading_legs, key=lambda k: stance_feet[k, 0])
        model_arrays = FreeGaitModelArrays(
            leg_arrays,
            stance_feet.copy(),
            knee_side,
            legged_robot.max_joint_speeds.copy(),
            leg_side,
            leading_leg,
            stance_reach,
            swing_reach,
            table_origin,
            cell_size,
            layer_height,
            _MIN_FOOT_GAP * scale,
            limb_radius,
            limb_masses(model, [leg.joints for leg in legged_robot.legs]) / model.mass,
        )
        margin = _MIN_STABILITY_MARGIN * float(np.abs(stance_feet[:, 1]).min()) / _REFERENCE_HALF_WIDTH
        return cls(legged_robot, model_arrays, body_box(model, legged_robot.body), scale, GRAVITY * model.mass, margin)
