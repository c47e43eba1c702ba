"""Legs of a robot, from the file that its package names, and its model for free-gait planning."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from roboyard.bringup.robot_loader import load_robot
from roboyard.bringup.robot_nodes import DescribedRobot
from roboyard.description import Model
from roboyard.errors import InputError
from roboyard.walking import LeggedRobot

if TYPE_CHECKING:
    from roboyard.walking import FreeGaitModel


def load_legged_robot(
    robot: str, base_folder: Path | None = None, arguments: Mapping[str, str] | None = None
) -> LeggedRobot:
    """Load the legs of a robot.

    Args:
        robot: As for `load_robot`.
        base_folder: Folder that a relative path starts from, before the working directory.
        arguments: Values for ``<xacro:arg>``; they override those of the package.

    Raises:
        UnknownNameError, InputError, ConfigError, DescriptionError: As `load_robot`, `load_model` and `load_legs`;
            InputError where the robot has no legs.
    """
    return load_legged_robot_and_model(robot, base_folder, arguments)[0]


def load_legged_robot_and_model(
    robot: str, base_folder: Path | None = None, arguments: Mapping[str, str] | None = None
) -> tuple[LeggedRobot, Model]:
    """Load the legs of a robot and return them with its description; see `load_legged_robot`."""
    package = load_robot(robot, base_folder, dict(arguments or {}), use_calibration=False)
    model = package.load_model(arguments)
    legged_robot: LeggedRobot | None = DescribedRobot(package, model).resource("legged_robot")
    if legged_robot is None:
        raise InputError("has no legs", location=str(package.source), valid="a robot whose YAML names a file of `legs`")
    return legged_robot, model


def load_free_gait_model(
    robot: str,
    base_folder: Path | None = None,
    arguments: Mapping[str, str] | None = None,
    *,
    failed_leg: str | None = None,
) -> FreeGaitModel:
    """Load a robot's legs and body, as planners of free gaits see them.

    Args:
        robot: As for `load_legged_robot`.
        base_folder: As for `load_legged_robot`.
        arguments: As for `load_legged_robot`.
        failed_leg: Name of a leg that does not work: the robot does not stand on it, and holds it as at rest.

    Raises:
        UnknownNameError, InputError, ConfigError, DescriptionError: As `load_legged_robot`; there is no such leg.
    """
    from roboyard.walking import FreeGaitModel  # with its planner's kernels, which nobody who walks by a gait needs

    legged_robot, model = load_legged_robot_and_model(robot, base_folder, arguments)
    return FreeGaitModel.from_robot(legged_robot if failed_leg is None else legged_robot.without_leg(failed_leg), model)
