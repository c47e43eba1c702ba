"""What a mapped plugin adds to a robot's package."""

from __future__ import annotations

from dataclasses import dataclass, field

from roboyard.hardware.interface import BaseMotion
from roboyard.scenarios.gains import Gains
from roboyard.scenarios.robot_package import Limits, NodeSpec


@dataclass(frozen=True)
class JointGroup:
    """Joints that take set-points from topics, in one mode."""

    mode: str
    joints: tuple[str, ...]
    topics: tuple[str, ...]
    initial: tuple[float, ...] = ()


@dataclass(frozen=True)
class Part:
    """Nodes, and what goes with them.

    Attributes:
        nodes: By name, in the order in which they come up.
        drives: Whether they move the robot (there can be one such part).
        groups: Joints for the joint command nodes.
        topics: Where standard topics lie.
        limits: Of the drive.
        base: What of the body's velocity is commanded.
        base_frame: That odometry moves.
        gains: Of joints' servos.
        joint_rate: At which joints must be read at least [Hz].
        standby: Nodes that are offered, but do not come up by themselves.
        findings: What was guessed or left out.
    """

    nodes: dict[str, NodeSpec] = field(default_factory=dict)
    drives: bool = False
    groups: tuple[JointGroup, ...] = ()
    topics: dict[str, str] = field(default_factory=dict)
    limits: Limits | None = None
    base: BaseMotion | None = None
    base_frame: str | None = None
    joint_rate: float | None = None
    gains: dict[str, Gains] = field(default_factory=dict)
    standby: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
