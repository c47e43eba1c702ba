"""Joints that close a loop of others: the tree carries both ends already, and these hold them together.

A ball is a connection of two points, a fixed joint a weld.  Every other joint is made as if it were part of the tree:
the child's body is cut in two halves of half its mass, one hangs where it hung, the other on the closing joint, and a
weld holds them together (`halves`).  So limits, damping, friction, springs and servos act there as anywhere, and just
the joint's own directions are free.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import Joint
from roboyard.geometry import SE3
from roboyard.simulation.assembly.joints import HARD, Scalar, couple

PARALLEL = 0.99
"""Cosine from which on two axes count as one."""

Bodies = Callable[[str], tuple[str, SE3]]
"""Body that a link belongs to, "world" for what stands still, and T_body_link."""


COUPLED, HELD = ("screw", "gearbox"), ("fixed", "ball")
"""Types that may be couplings of joints of the tree, and those that are constraints between bodies."""


@dataclass(frozen=True, slots=True)
class Step:
    """A scalar joint on the way from one link to another: forwards (+1) when it moves the far end.

    ``axis`` is its direction in the model, all joints at zero.
    """

    scalar: Scalar
    sign: float
    axis: NDArray[np.float64]


def hold_ends(spec: mujoco.MjSpec, joint: Joint, name: str, bodies: Bodies) -> str:
    """Add the constraint that holds the ends of a fixed or ball joint together; why a joint cannot be held so.

    Args:
        spec: Takes the constraint.
        joint: The joint.
        name: What the constraint is called.
        bodies: Finds the links' bodies.
    """
    if joint.ball_axis is not None:
        return "its limit and its friction need a joint of its own"
    (child, T_child), (parent, T_parent) = bodies(joint.child), bodies(joint.parent)
    if child == parent:
        return ""
    first = child, T_child @ joint.T_child_joint
    second = parent, T_parent @ joint.T_parent_child @ joint.T_child_joint
    if child == "world":
        first, second = second, first
    if joint.type == "fixed":
        hold(spec, mujoco.mjtEq.mjEQ_WELD, name, first[0], second[0], second[1].xyz, first[1] @ second[1].inverse())
    else:
        hold(spec, mujoco.mjtEq.mjEQ_CONNECT, name, first[0], second[0], first[1].xyz)
    return ""


def hold(
    spec: mujoco.MjSpec,
    kind: int,
    name: str,
    first: str,
    second: str,
    anchor: NDArray[np.float64],
    T_first_second: SE3 | None = None,
) -> None:
    """Connect two bodies at a point, or weld them at ``T_first_second``; without, as they start.

    The gains are those with which one step takes an error back at once, without overshoot: any softer, and a loop that
    turns fast opens by what its bodies are bent from their straight way within the time constant.
    """
    equality = spec.add_equality(name=name, type=kind)
    equality.objtype = mujoco.mjtObj.mjOBJ_BODY
    equality.name1, equality.name2 = first, second
    data = np.zeros(mujoco.mjNEQDATA)
    data[:3] = anchor  # of a connection in the first body, of a weld in the second
    if kind == mujoco.mjtEq.mjEQ_WELD:
        data[10] = 1.0  # as stiff in turning as in moving
        if T_first_second is not None:
            data[3:6], data[6:10] = T_first_second @ anchor, T_first_second.quaternion
    equality.data = data
    equality.solref = (2.0 * spec.option.timestep, 0.5)
    equality.solimp = HARD


def couple_steps(spec: mujoco.MjSpec, joint: Joint, path: Sequence[Step], axes: Sequence[NDArray[np.float64]]) -> str:
    """A thread or a pair of gears between two scalar joints of the tree; why there is none, empty when there is.

    Args:
        spec: Takes the coupling.
        joint: The screw or gearbox.
        path: Scalar joints of the tree from its parent to its child.
        axes: Its axes in the model or world, all joints at zero.
    """
    if joint.type == "screw":
        along = [(step, step.sign * float(step.axis @ axes[0])) for step in path]
        turns = [(step, share) for step, share in along if not step.scalar.prismatic and abs(share) > PARALLEL]
        slides = [(step, share) for step, share in along if step.scalar.prismatic and abs(share) > PARALLEL]
        if len(turns) == len(slides) == 1:  # slide = pitch / 2π · turn, both of the child in the parent
            ratio = joint.thread_pitch / (2.0 * math.pi) * turns[0][1] / slides[0][1]
            couple(spec, slides[0][0].scalar.element, turns[0][0].scalar.element, 0.0, ratio)
            return ""
        return "a screw that does not join a joint that turns with one that slides along its axis is not simulated"
    # SDF: theta_2 = -ratio theta_1; theta_1 is the parent's about the first axis, theta_2 the child's about the second.
    turning = [step for step in path if not step.scalar.prismatic]
    driving = [step for step in turning if step.sign < 0.0 and abs(step.axis @ axes[0]) > PARALLEL]
    driven = [step for step in turning if step.sign > 0.0 and abs(step.axis @ axes[-1]) > PARALLEL]
    if len(driving) == len(driven) == 1:
        ratio = -joint.gear_ratio * float(driving[0].axis @ axes[0]) / float(driven[0].axis @ axes[-1])
        couple(spec, driven[0].scalar.element, driving[0].scalar.element, 0.0, ratio)
        return ""
    return "a gearbox that does not join two joints that turn about its axes is not simulated"


def root_of(joints: Sequence[Joint], link: str) -> str:
    """The link at the top of the tree that ``link`` is in; "world" where it hangs on that."""
    above = {joint.child: joint.parent for joint in joints}
    while link in above:
        link = above[link]
    return link


def path_between(joints: Sequence[Joint], parent: str, child: str) -> list[tuple[Joint, float]] | None:
    """The joints of a tree from ``parent`` to ``child``: -1 against, +1 along their direction; None without a way."""
    above: Mapping[str, Joint] = {joint.child: joint for joint in joints}

    def up(name: str) -> list[Joint]:
        chain = []
        while name in above:
            chain.append(above[name])
            name = above[name].parent
        return chain

    back, forth = up(parent), up(child)
    while back and forth and back[-1] is forth[-1]:
        back.pop()
        forth.pop()
    ends = {(back[-1].parent if back else parent), (forth[-1].parent if forth else child)}
    if len(ends) != 1:
        return None
    return [(joint, -1.0) for joint in back] + [(joint, 1.0) for joint in reversed(forth)]
