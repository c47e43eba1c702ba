"""A description's joints as the engine's: hinges, slides, balls and what they couple."""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass

import mujoco
import numpy as np

from roboyard.description.joint_interfaces import LOCKED_RANGE, OPEN_LIMIT
from roboyard.description.model import Axis, Joint
from roboyard.simulation.naming import scoped

_J = mujoco.mjtJoint
HARD = (0.9999, 0.9999, 0.001, 0.5, 2.0)
"""The engine's impedance of what must hold: as hard as it allows."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """One scalar degree of freedom of a joint: its public name, the engine joint behind it, and its axis."""

    name: str
    element: str
    axis: Axis
    prismatic: bool


def add_joint(body: mujoco.MjsBody, joint: Joint, model: str, notes: list[str]) -> list[Scalar]:
    """Give ``body`` (the child link) the engine joints of ``joint``; returns its scalar degrees of freedom.

    A joint of several axes makes scalars ``name``, ``name_2``, ``name_3`` in the order of its axes.
    """
    origin = np.asarray(joint.T_child_joint.translation, float)
    turn = joint.T_child_joint.rotation_matrix()
    scalars: list[Scalar] = []

    def add(kind: int, axis: Axis, direction: tuple[float, float, float] | None = None) -> None:
        suffix = f"_{len(scalars) + 1}" if scalars else ""
        element = scoped(model, joint.name + suffix)
        made = body.add_joint(name=element, type=kind, pos=origin, axis=turn @ np.asarray(direction or axis.xyz, float))
        _limits(made, axis, element, notes)
        _dynamics(made, axis)
        scalars.append(Scalar(joint.name + suffix, element, axis, kind == _J.mjJNT_SLIDE))

    axes = joint.axes or (Axis(),)
    match joint.type:
        case "revolute" | "continuous":
            add(_J.mjJNT_HINGE, axes[0])
        case "prismatic":
            add(_J.mjJNT_SLIDE, axes[0])
        case "universal" | "revolute2":
            add(_J.mjJNT_HINGE, axes[0])
            add(_J.mjJNT_HINGE, axes[-1])
        case "gearbox":
            add(_J.mjJNT_HINGE, axes[-1])
            notes.append(f"{scoped(model, joint.name)}: the gearbox turns freely; its ratio is not simulated")
        case "screw":
            add(_J.mjJNT_HINGE, axes[0])
            add(_J.mjJNT_SLIDE, Axis(axes[0].xyz))
        case "planar":
            normal = np.asarray(axes[0].xyz, float)
            u = np.cross(normal, np.eye(3)[int(np.argmin(np.abs(normal)))])
            u /= np.linalg.norm(u)
            v = np.cross(normal, u)
            add(_J.mjJNT_SLIDE, Axis(), (float(u[0]), float(u[1]), float(u[2])))
            add(_J.mjJNT_SLIDE, Axis(), (float(v[0]), float(v[1]), float(v[2])))
            add(_J.mjJNT_HINGE, Axis(axes[0].xyz))
        case "ball":
            made = body.add_joint(name=scoped(model, joint.name), type=_J.mjJNT_BALL, pos=origin)
            if joint.ball_axis is not None:
                _limits(made, joint.ball_axis, scoped(model, joint.name), notes)
                _dynamics(made, joint.ball_axis)
        case "floating":
            for index, direction in enumerate(np.eye(3)):
                body.add_joint(
                    name=scoped(model, f"{joint.name}/{'xyz'[index]}"), type=_J.mjJNT_SLIDE, pos=origin, axis=direction
                )
            body.add_joint(name=scoped(model, f"{joint.name}/rotation"), type=_J.mjJNT_BALL, pos=origin)
        case "fixed":
            pass
    return scalars


def add_couplings(
    spec: mujoco.MjSpec, joint: Joint, scalars: list[Scalar], model: str, *, still: Container[str] = ()
) -> None:
    """Mimicked and threaded joints: position = multiplier · other + offset, as an equality constraint.

    Who mimics one of ``still``, joints that the engine does not have, stays at its offset.
    """
    if joint.mimic is not None and scalars:
        leader = scoped(model, joint.mimic.joint) if joint.mimic.joint not in still else ""
        couple(spec, scalars[0].element, leader, joint.mimic.offset, joint.mimic.multiplier)
    if joint.type == "screw" and len(scalars) == 2:
        # thread_pitch is metres of travel for one turn.
        couple(spec, scalars[1].element, scalars[0].element, 0.0, joint.thread_pitch / (2.0 * math.pi))


def couple(spec: mujoco.MjSpec, follower: str, leader: str, offset: float, ratio: float) -> None:
    """Hold ``follower = offset + ratio · leader`` between two engine joints; without leader at the offset."""
    equality = spec.add_equality(name=f"{follower}@{leader}", type=mujoco.mjtEq.mjEQ_JOINT)
    equality.objtype = mujoco.mjtObj.mjOBJ_JOINT
    equality.name1 = follower
    if leader:
        equality.name2 = leader
    data = np.zeros(mujoco.mjNEQDATA)
    data[:2] = offset, ratio
    equality.data = data
    equality.solref = (2.0 * spec.option.timestep, 0.5)  # see `closures.hold`
    equality.solimp = HARD


def _limits(element: mujoco.MjsJoint, axis: Axis, name: str, notes: list[str]) -> None:
    lower, upper = axis.limits.lower, axis.limits.upper
    if lower > upper:
        notes.append(f"{name}: its lower limit {lower} is above its upper limit {upper}; neither is used")
        return
    if lower == upper:
        lower, upper = lower - LOCKED_RANGE, upper + LOCKED_RANGE
    if math.isfinite(lower) or math.isfinite(upper):
        element.range = [max(lower, -OPEN_LIMIT), min(upper, OPEN_LIMIT)]
        element.limited = mujoco.mjtLimited.mjLIMITED_TRUE
        element.solref_limit = [0.005, 1.0]


def _dynamics(element: mujoco.MjsJoint, axis: Axis) -> None:
    dynamics = axis.dynamics
    element.damping = [max(dynamics.damping, 0.0), 0.0, 0.0]
    element.frictionloss = max(dynamics.friction, 0.0)
    element.solimp_friction = HARD  # what is held by dry friction does not creep
    element.stiffness = [max(dynamics.stiffness, 0.0), 0.0, 0.0]
    element.springref = dynamics.reference
    element.armature = max(dynamics.armature, 0.0)
