"""A robot's groups of joints: from the file that its package names, or one beside its description, or guessed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from roboyard.control.limits import JointRates
from roboyard.description import JointInterface, Model
from roboyard.manipulation import Groups, guess_groups, load_groups
from roboyard.scenarios.catalog import find_robot
from roboyard.scenarios.gains import with_gains
from roboyard.scenarios.robot_package import RobotPackage

_BESIDE = (".groups.yaml", ".srdf", ".srdf.xacro")
"""What a description's name ends in, instead of its own suffixes, where its groups lie beside it."""


def find_groups(
    robot: str, base: Path | None = None, arguments: Mapping[str, str] | None = None, *, repair: bool = False
) -> Groups:
    """The groups of a robot by name, of its YAML, or of a bare description.

    Args:
        robot: As for `find_robot`.
        base: Folder of the file that mentions it.
        arguments: Values for ``<xacro:arg>``, beside those of the package.
        repair: Mend what can be mended in the description.

    Raises:
        UnknownNameError, InputError, ConfigError, DescriptionError: as `find_robot`, `load_model` and `load_groups`.
    """
    package = find_robot(robot, base, dict(arguments or {}), repair=repair, calibrated=False)
    return KnownJoints.of(package, package.load_model(arguments, repair=repair)).groups


@dataclass(frozen=True)
class KnownJoints:
    """What is known of a robot's joints beside its description.

    Attributes:
        model: The description, its joints' servos with the gains that are stated.
        stated: Its groups, of the file that says them; None where there is none.
    """

    model: Model
    stated: Groups | None

    @classmethod
    def of(cls, package: RobotPackage, model: Model) -> KnownJoints:
        """Of a package whose description is loaded; its own gains count before those of its groups' file.

        Raises:
            ConfigError, DescriptionError: as `load_groups`.
        """
        path = package.beside("groups") or groups_beside(package.description)
        if path is None:
            return cls(with_gains(model, package.file.gains), None)
        stated = load_groups(path, model)
        gains = {name: dict(one) for name, one in stated.gains.items()}
        known = _started(with_gains(model, {**gains, **package.file.gains}), stated)
        return cls(known, replace(stated, model=known))

    @property
    def groups(self) -> Groups:
        """Those that are stated, or guessed ones."""
        return self.stated if self.stated is not None else guess_groups(self.model)

    @property
    def rates(self) -> JointRates:
        """What joints can do that descriptions do not tell."""
        return JointRates() if self.stated is None else JointRates(self.stated.acceleration)

    @property
    def aloft(self) -> frozenset[str]:
        """Links of its arms and grippers, not meant to touch the ground; none where no file says groups."""
        if self.stated is None:
            return frozenset()
        moved = {name for group in self.stated.groups.values() for name in group.joints}
        moved |= {name for gripper in self.stated.grippers.values() for name in gripper.joints}
        links = {joint.child for joint in self.model.joints if joint.name in moved}
        while further := {joint.child for joint in self.model.joints if joint.parent in links} - links:
            links |= further
        return frozenset(links)


def _started(model: Model, groups: Groups) -> Model:
    """The model whose groups begin in the poses that they say, where no interface says where a joint begins."""
    starts = [group for group in groups.groups.values() if group.start is not None]
    first = {name: value for one in starts for name, value in zip(one.joints, one.poses[str(one.start)], strict=True)}
    if not first:
        return model
    there = {one.joint: one for one in model.interfaces}
    for joint, value in first.items():
        one = there.get(joint, JointInterface(joint))
        there[joint] = replace(one, initial=tuple({"position": value, **dict(one.initial)}.items()))
    return replace(model, interfaces=tuple(there.values()))


def groups_beside(description: Path) -> Path | None:
    """The file beside a description that says its groups: of ``arm.v2.urdf`` for ``arm.v2``, else for ``arm``."""
    parts = description.name.split(".")
    names = (".".join(parts[:count]) for count in range(max(1, len(parts) - 1), 0, -1))
    beside = (description.with_name(name + suffix) for name in names for suffix in _BESIDE)
    return next((one for one in beside if one.is_file()), None)
