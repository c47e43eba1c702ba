"""An arm of two joints with ideal drives, and what the tests of nodes that move single joints do to it."""

from __future__ import annotations

import numpy as np
from tests.harness.bus import BusHarness
from tests.harness.hardware import FakeHardware

from roboyard.control.joint_limits import JointAccelerationLimits
from roboyard.control.nodes.joint_motion import JointMotionNode
from roboyard.description.model import Axis, AxisLimits, Joint, Link, Model
from roboyard.geometry import SE3
from roboyard.messages import msg

NAMES = ("turn", "slide")
SPEED, ACCELERATION = 1.0, 2.0
KINDS = {"turn": "revolute", "slide": "prismatic"}
ARM = Model(
    "arm",
    tuple(Link(name, SE3.identity()) for name in ("base", "upper", "lower")),
    tuple(
        Joint(
            name, KINDS[name], parent, child, SE3.identity(), SE3.identity(),
            (Axis((0, 0, 1), AxisLimits(-2.0, 2.0, effort=5.0, velocity=SPEED)),),
        )
        for name, parent, child in zip(NAMES, ("base", "upper"), ("upper", "lower"), strict=True)
    ),
)  # fmt: skip


def make_node(harness: BusHarness, kind: type[JointMotionNode], **more: object) -> tuple[FakeHardware, JointMotionNode]:
    """Add a node that moves the joints of a new arm."""
    arm = make_arm(harness)
    rates = JointAccelerationLimits(dict.fromkeys(NAMES, ACCELERATION))
    node = kind(hardware=arm, description=ARM, joints=NAMES, rate=1000.0, acceleration_limits=rates, **more)
    return arm, harness.add(node, "moves")


def make_arm(harness: BusHarness) -> FakeHardware:
    """Joints that are at their set-points at once."""
    return FakeHardware(NAMES, lambda: harness.now_ns, modes=["position"], position=[0.1, -0.1])


def is_within_limits(arm: FakeHardware) -> bool:
    """Whether speeds and accelerations of all commands are within the limits."""
    speeds = np.diff(np.array(arm.history), axis=0) * 1000.0
    rates = np.diff(speeds, axis=0) * 1000.0
    return bool(np.abs(speeds).max() <= SPEED * (1 + 1e-9) and np.abs(rates).max() <= ACCELERATION * (1 + 1e-6))


def joint_list(kind: str, *rows: tuple[str, str, float]) -> object:
    """A message of positions or velocities: (joint, unit, value)."""
    entries = [msg.JointValue(joint_uri=uri, unit=unit, value=value) for uri, unit, value in rows]
    return msg.JointPositions(positions=entries) if kind == "position" else msg.JointVelocities(velocities=entries)


def command_by_number(harness: BusHarness, quantity: str, value: float) -> None:
    """Command the first joint by its number."""
    harness.publish(f"/move_{quantity}", msg.IDAndFloat(id=1, value=value))


def command_by_name(harness: BusHarness, quantity: str, value: float) -> None:
    """Command the first joint by its name."""
    unit = "rad" if quantity == "position" else "s^-1 rad"
    harness.publish(f"/{quantity}_command", joint_list(quantity, ("turn", unit, value)))
