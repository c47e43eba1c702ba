"""The robot of an environment: read once, put into a run for every episode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from roboyard.bringup.joint_groups import RobotJoints
from roboyard.bringup.robot_config import RobotPackage
from roboyard.bringup.robot_loader import load_robot
from roboyard.bringup.robot_nodes import DescribedRobot
from roboyard.control.joint_limits import JointGroupLimits
from roboyard.description import JointInterface, Model
from roboyard.errors import ConfigError
from roboyard.kinematics.chain import ONE_AXIS_TYPES
from roboyard.manipulation import SemanticDescription
from roboyard.walking.legged_robot import LeggedRobot


@dataclass(frozen=True)
class ReadRobot(RobotPackage):
    """A robot's package with its description, read already: episodes begin without looking at files.

    Attributes:
        model: The description.
    """

    model: Model = field(kw_only=True)

    @classmethod
    def of(cls, robot: str | Path, arguments: Mapping[str, str] | None = None) -> Self:
        """A robot by name, or a path to .yaml, .urdf, .xacro or .sdf; ``arguments`` are for xacro.

        Raises:
            UnknownNameError, InputError, ConfigError, DescriptionError: as `Run.add_robot`.
        """
        package = load_robot(str(robot), None, dict(arguments or {}))
        model = package.load_model(arguments)
        return cls(
            package.name, package.config, package.source, package.findings,
            node_registry=package.node_registry, is_installed=package.is_installed, model=model,
        )  # fmt: skip

    def load_model(self, arguments: Mapping[str, str] | None = None, *, repair: bool = False) -> Model:
        """The description, as it was read."""
        return self.model

    def starting(self, joints: Mapping[str, float]) -> Self:
        """The same robot, some joints of which begin elsewhere [rad or m]."""
        if not joints:
            return self
        there = {one.joint: one for one in self.model.interfaces}
        for name, value in joints.items():
            one = there.get(name, JointInterface(name))
            there[name] = replace(one, initial=tuple({**dict(one.initial), "position": float(value)}.items()))
        return replace(self, model=replace(self.model, interfaces=tuple(there.values())))

    @cached_property
    def known(self) -> RobotJoints:
        """What is known of its joints beside the description."""
        return RobotJoints.from_package(self, self.model)

    @property
    def groups(self) -> SemanticDescription:
        """Its groups of joints."""
        return self.known.groups

    @cached_property
    def legs(self) -> LeggedRobot:
        """Its legs. Raises ConfigError where it has none."""
        found: LeggedRobot | None = DescribedRobot(self, self.model).resource("legged_robot")
        if found is None:
            raise ConfigError(
                "has no legs", location=f"robot {self.name}", valid="a robot whose YAML names a file of legs"
            )
        return found

    @cached_property
    def moving(self) -> tuple[str, ...]:
        """Names of all joints with one axis, in file order."""
        return tuple(joint.name for joint in self.model.joints if joint.type in ONE_AXIS_TYPES)

    def bounds(self, joints: tuple[str, ...]) -> JointGroupLimits:
        """What joints can do. Raises ConfigError where there is no such joint."""
        for name in joints:
            if name not in self.moving:
                raise ConfigError(
                    f"no joint {name!r}", location=f"robot {self.name}", valid=", ".join(self.moving) or "none"
                )
        return JointGroupLimits.from_model(self.known.model, joints, self.known.acceleration_limits)
