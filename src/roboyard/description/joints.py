"""Joints as descriptions declare them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from roboyard.description.shapes import Vec3
from roboyard.geometry import SE3

JointType = Literal[
    "fixed",
    "revolute",
    "continuous",
    "prismatic",
    "ball",
    "universal",
    "screw",
    "revolute2",
    "gearbox",
    "planar",
    "floating",
]


@dataclass(frozen=True, slots=True)
class AxisLimits:
    """Range, speed and effort of an axis; infinite where the file gives none [rad, rad/s, N m or m, m/s, N]."""

    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    effort: float = math.inf


@dataclass(frozen=True, slots=True)
class JointDynamics:
    """Passive dynamics of an axis: viscous damping, dry friction, spring, inertia of the motor's rotor (MJCF, URDF)."""

    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    reference: float = 0.0
    armature: float = 0.0


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis, a unit vector in the joint frame."""

    xyz: Vec3 = (1.0, 0.0, 0.0)
    limits: AxisLimits = AxisLimits()
    dynamics: JointDynamics = JointDynamics()


@dataclass(frozen=True, slots=True)
class Mimic:
    """position = multiplier · position(joint) + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class SafetyController:
    """URDF's safety controller: soft limits inside the hard ones, and the gains that act towards them.

    Attributes:
        soft_lower: Where it stops the joint [rad or m]; without effect where both are alike.
        soft_upper: See ``soft_lower``.
        k_position: Speed allowed for each unit of distance to a soft limit [1/s]; 0 leaves the range out.
        k_velocity: Effort allowed for each unit of speed left [N m s/rad or N s/m]; 0 leaves the effort alone.
    """

    soft_lower: float = 0.0
    soft_upper: float = 0.0
    k_position: float = 0.0
    k_velocity: float = 0.0


@dataclass(frozen=True, slots=True)
class Joint:
    """A joint between ``parent`` and ``child`` links (``parent`` may be ``"world"``).

    ``T_parent_child`` is the child link's pose in the parent link at zero; ``T_child_joint`` places the joint frame in
    the child link (identity in URDF).  ``axes`` has one entry for revolute, continuous, prismatic and screw, two for
    universal, revolute2 and gearbox, none for fixed, ball and floating; planar has the plane's normal.
    ``thread_pitch`` of a screw: metres along the axis per positive revolution (SDF's ``screw_thread_pitch``).
    A gearbox holds ``angle(axis 2) = -gear_ratio · angle(axis 1)`` against ``gear_reference``.
    ``ball_axis`` of a ball: ``limits.upper`` bounds the angle by which it is turned from zero, ``dynamics`` acts about
    every direction (MJCF only).
    """

    name: str
    type: JointType
    parent: str
    child: str
    T_parent_child: SE3
    T_child_joint: SE3
    axes: tuple[Axis, ...] = ()
    mimic: Mimic | None = None
    thread_pitch: float = 0.0
    gear_ratio: float = 1.0
    gear_reference: str | None = None
    safety: SafetyController | None = None
    ball_axis: Axis | None = None
