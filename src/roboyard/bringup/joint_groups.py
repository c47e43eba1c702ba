"""Joint groups of a robot: from the file that its package names or that lies beside its description, or inferred."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from roboyard.bringup.derivation import find_groups_file
from roboyard.bringup.robot_config import RobotPackage
from roboyard.bringup.robot_loader import load_robot
from roboyard.bringup.servo_gains import with_servo_gains
from roboyard.control import JointAccelerationLimits
from roboyard.description import JointInterface, Model
from roboyard.manipulation import SemanticDescription, guess_groups, load_groups


def load_joint_groups(
    robot: str, base_folder: Path | None = None, arguments: Mapping[str, str] | None = None, *, repair: bool = False
) -> SemanticDescription:
    """Load the joint groups of a robot.

    Args:
        robot: As for `load_robot`.
        base_folder: Folder that a relative path starts from, before the working directory.
        arguments: Values for ``<xacro:arg>``; they override those of the package.
        repair: Repair what can be repaired in the description.

    Raises:
        UnknownNameError, InputError, ConfigError, DescriptionError: As `load_robot`, `load_model` and `load_groups`.
    """
    package = load_robot(robot, base_folder, dict(arguments or {}), repair=repair, use_calibration=False)
    return RobotJoints.from_package(package, package.load_model(arguments, repair=repair)).groups


@dataclass(frozen=True)
class RobotJoints:
    """Joints of a robot: its description with servo gains and start positions, and its joint groups.

    Attributes:
        model: Description of the robot, with the stated servo gains and start positions.
        declared_groups: Groups of its file of joint groups; None without such a file.
    """

    model: Model
    declared_groups: SemanticDescription | None

    @classmethod
    def from_package(cls, package: RobotPackage, model: Model) -> RobotJoints:
        """Create it for a package with a loaded description.

        Servo gains of the robot's file override those of its file of joint groups.

        Raises:
            ConfigError, DescriptionError: As `load_groups`.
        """
        path = package.companion_file("joint_groups") or find_groups_file(package.description)
        if path is None:
            return cls(with_servo_gains(model, package.config.gains), None)
        declared = load_groups(path, model)
        gains = {name: dict(one) for name, one in declared.gains.items()}
        model_with_gains = _with_start_poses(with_servo_gains(model, {**gains, **package.config.gains}), declared)
        return cls(model_with_gains, replace(declared, model=model_with_gains))

    @property
    def groups(self) -> SemanticDescription:
        """Joint groups of the file, or inferred ones without a file."""
        return self.declared_groups if self.declared_groups is not None else guess_groups(self.model)

    @property
    def acceleration_limits(self) -> JointAccelerationLimits:
        """Acceleration limits of the joints, which descriptions do not state."""
        return (
            JointAccelerationLimits()
            if self.declared_groups is None
            else JointAccelerationLimits(self.declared_groups.max_acceleration)
        )

    @property
    def links_off_ground(self) -> frozenset[str]:
        """Links of its arms and grippers, which do not touch the ground; none without a file of joint groups."""
        if self.declared_groups is None:
            return frozenset()
        joints = {name for group in self.declared_groups.groups.values() for name in group.joints}
        joints |= {name for gripper in self.declared_groups.grippers.values() for name in gripper.joints}
        links = {joint.child for joint in self.model.joints if joint.name in joints}
        while child_links := {joint.child for joint in self.model.joints if joint.parent in links} - links:
            links |= child_links
        return frozenset(links)


def _with_start_poses(model: Model, groups: SemanticDescription) -> Model:
    """Return the model with the start poses of its groups, for joints whose interfaces state no initial position."""
    groups_with_start = [group for group in groups.groups.values() if group.default_pose is not None]
    start_positions = {
        name: value
        for one in groups_with_start
        for name, value in zip(one.joints, one.poses[str(one.default_pose)], strict=True)
    }
    if not start_positions:
        return model
    interfaces = {one.joint: one for one in model.interfaces}
    for joint, value in start_positions.items():
        one = interfaces.get(joint, JointInterface(joint))
        interfaces[joint] = replace(one, initial=tuple({"position": value, **dict(one.initial)}.items()))
    return replace(model, interfaces=tuple(interfaces.values()))
