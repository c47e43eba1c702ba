"""A robot's groups of joints: from the file that its package names, or one beside its description, or guessed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from roboyard.control.limits import JointRates
from roboyard.description import Model, load_model
from roboyard.manipulation import Groups, guess_groups, load_groups
from roboyard.scenarios.catalog import find_robot
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
    given = {**package.file.arguments, **(arguments or {})}
    return groups_of(package, load_model(package.description, arguments=given, repair=repair))


def groups_of(package: RobotPackage, model: Model) -> Groups:
    """The groups of a package whose description is loaded. Raises ConfigError, DescriptionError."""
    path = _file_of(package)
    return guess_groups(model) if path is None else load_groups(path, model)


def rates_of(package: RobotPackage, model: Model) -> JointRates:
    """What the package's groups say of joints that descriptions do not. Raises ConfigError, DescriptionError."""
    path = _file_of(package)
    return JointRates() if path is None else JointRates(load_groups(path, model).acceleration)


def _file_of(package: RobotPackage) -> Path | None:
    """The file that says a package's groups: the one that it names, or one beside the description."""
    said = package.beside("groups")
    if said is not None:
        return said
    name = package.description.name.split(".")[0]
    beside = (package.description.with_name(name + suffix) for suffix in _BESIDE)
    return next((one for one in beside if one.is_file()), None)
