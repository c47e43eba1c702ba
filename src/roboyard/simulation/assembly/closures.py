"""Joints that close a loop of others, as constraints: the tree carries both ends, and these hold them together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import Joint
from roboyard.geometry import SE3
from roboyard.simulation.assembly.joints import Scalar, couple

LEVER = 0.1
"""Distance along a hinge's axis of the two points that hold it [m]."""
PARALLEL = 0.99
"""Cosine from which on two axes count as one."""
STIFF = (0.004, 1.0)
"""Time constant [s] and damping ratio with which a loop closes."""

Bodies = Callable[[str], tuple[str, SE3]]
"""Body that a link belongs to, "world" for what stands still, and T_body_link."""


@dataclass(frozen=True, slots=True)
class Step:
    """A scalar joint on the way from one link to another: forwards (+1) when it moves the far end.

    ``axis`` is its direction in the model, all joints at zero.
    """

    scalar: Scalar
    sign: float
    axis: NDArray[np.float64]


def close_loop(
    spec: mujoco.MjSpec,
    joint: Joint,
    name: str,
    bodies: Bodies,
    path: Sequence[Step],
    axes: Sequence[NDArray[np.float64]],
) -> str:
    """Add what holds ``joint``'s ends together; why it cannot be held, empty when it is.

    Args:
        spec: Takes the constraints.
        joint: The joint.
        name: What the constraints are called.
        bodies: Finds the links' bodies.
        path: Scalar joints of the tree from its parent to its child.
        axes: Its axes in the model, all joints at zero.
    """
    if joint.type in ("screw", "gearbox"):
        return _couple(spec, joint, path, axes)
    (child, T_child), (parent, T_parent) = bodies(joint.child), bodies(joint.parent)
    if child == parent:
        return ""
    first = child, T_child @ joint.T_child_joint
    second = parent, T_parent @ joint.T_parent_child @ joint.T_child_joint
    if child == "world":
        first, second = second, first
    if joint.type == "fixed":
        _hold(spec, mujoco.mjtEq.mjEQ_WELD, name, first[0], second[0], second[1].xyz)
    elif joint.type in ("ball", "revolute", "continuous", "universal"):
        points = [np.zeros(3)]
        if joint.type in ("revolute", "continuous"):
            direction = np.asarray(joint.axes[0].xyz, float)
            points = [-0.5 * LEVER * direction, 0.5 * LEVER * direction]
        for index, point in enumerate(points):
            element = f"{name}#{index}" if index else name
            _hold(spec, mujoco.mjtEq.mjEQ_CONNECT, element, first[0], second[0], first[1] @ point)
        if joint.type == "universal":
            return "it is held as a ball joint: its axes are not kept at right angles"
    else:
        return f"a {joint.type} joint that closes a loop is not simulated"
    return ""


def _hold(spec: mujoco.MjSpec, kind: int, name: str, first: str, second: str, anchor: NDArray[np.float64]) -> None:
    equality = spec.add_equality(name=name, type=kind)
    equality.objtype = mujoco.mjtObj.mjOBJ_BODY
    equality.name1, equality.name2 = first, second
    data = np.zeros(mujoco.mjNEQDATA)
    data[:3] = anchor  # of a connection in the first body, of a weld in the second
    if kind == mujoco.mjtEq.mjEQ_WELD:
        data[10] = 1.0  # as stiff in turning as in moving; the relative pose is that at the start
    equality.data = data
    equality.solref = STIFF


def _couple(spec: mujoco.MjSpec, joint: Joint, path: Sequence[Step], axes: Sequence[NDArray[np.float64]]) -> str:
    """A thread or a pair of gears between two scalar joints of the tree."""
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
