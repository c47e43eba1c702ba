"""Actuators that the compiler adds to a MuJoCo model: joint servos and the servos of velocity-controlled bases."""

from __future__ import annotations

import math
from collections.abc import Sequence

import mujoco
import numpy as np

from roboyard.description.joint_interfaces import command_modes, effort_limit
from roboyard.description.model import Model
from roboyard.hardware.interface import BaseMotion
from roboyard.physics.compiled_world import scoped_name
from roboyard.physics.compiler.bodies import ScalarJoint

VELOCITY_BASE_AXES: dict[BaseMotion, tuple[int, ...]] = {"planar": (0, 1, 5), "free": (0, 1, 2, 3, 4, 5)}

SERVO_INPUTS = int(mujoco.mjtCtrlInput.mjINPUT_POS | mujoco.mjtCtrlInput.mjINPUT_VEL | mujoco.mjtCtrlInput.mjINPUT_FF)


def add_joint_servos(spec: mujoco.MjSpec, model: Model, model_name: str, joints: Sequence[ScalarJoint]) -> None:
    """Add an actuator to each scalar joint that can be commanded; it exerts no force before its first command."""
    for joint in joints:
        if not command_modes(model, joint.name):
            continue
        actuator = spec.add_actuator(name=joint.mujoco_name)
        actuator.trntype = mujoco.mjtTrn.mjTRN_JOINT
        actuator.target = joint.mujoco_name
        actuator.set_to_pid(kp=0.0, kv=0.0, ctrlspec=SERVO_INPUTS)
        limit = effort_limit(joint.axis)
        if math.isfinite(limit):
            actuator.forcelimited = mujoco.mjtLimited.mjLIMITED_TRUE
            actuator.forcerange = [-limit, limit]


def add_velocity_base(spec: mujoco.MjSpec, body: mujoco.MjsBody, model_name: str, motion: BaseMotion) -> None:
    """Add a velocity servo to a body for each component of ``motion``; it exerts no force before its first command."""
    site = body.add_site(name=scoped_name(model_name, "base"), group=5)
    for axis in VELOCITY_BASE_AXES[motion]:
        actuator = spec.add_actuator(name=scoped_name(model_name, f"base/{axis}"))
        actuator.trntype = mujoco.mjtTrn.mjTRN_SITE
        actuator.target = site.name
        gear = np.zeros(6)
        gear[axis] = 1.0
        actuator.gear = gear
        actuator.set_to_pid(
            kp=0.0, kv=0.0, ctrlspec=int(mujoco.mjtCtrlInput.mjINPUT_POS | mujoco.mjtCtrlInput.mjINPUT_VEL)
        )
