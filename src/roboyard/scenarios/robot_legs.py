"""A robot's legs: from the file that its package names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from roboyard.description import Model
from roboyard.errors import InputError
from roboyard.scenarios.catalog import find_robot
from roboyard.scenarios.robot_package import RobotPackage
from roboyard.walking.walker import Walker
from roboyard.walking.walker_file import load_walker


def find_walker(robot: str, base: Path | None = None, arguments: Mapping[str, str] | None = None) -> Walker:
    """The legs of a robot by name, or of its YAML.

    Args:
        robot: As for `find_robot`.
        base: Folder of the file that mentions it.
        arguments: Values for ``<xacro:arg>``, beside those of the package.

    Raises:
        UnknownNameError, InputError, ConfigError, DescriptionError: as `find_robot`, `load_model` and `load_walker`;
            InputError where the robot has no legs.
    """
    return find_legged(robot, base, arguments)[0]


def find_legged(
    robot: str, base: Path | None = None, arguments: Mapping[str, str] | None = None
) -> tuple[Walker, Model]:
    """The legs of a robot, and its description; see `find_walker`."""
    package = find_robot(robot, base, dict(arguments or {}), calibrated=False)
    model = package.load_model(arguments)
    found = legs_of(package, model)
    if found is None:
        raise InputError("has no legs", location=str(package.source), valid="a robot whose YAML names a file of `legs`")
    return found, model


def legs_of(package: RobotPackage, model: Model) -> Walker | None:
    """The legs of a package whose description is loaded; None without. Raises ConfigError."""
    path = package.beside("legs")
    return None if path is None else load_walker(path, model)
