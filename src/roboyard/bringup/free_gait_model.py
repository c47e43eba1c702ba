"""Model of a robot for free-gait planning: legs and body from its description."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from roboyard.bringup.legged_robot import load_legged_robot_and_model
from roboyard.walking.steps.rig import Rig


def load_free_gait_model(
    robot: str,
    base_folder: Path | None = None,
    arguments: Mapping[str, str] | None = None,
    *,
    failed_leg: str | None = None,
) -> Rig:
    """The legs and body of a robot by name, or of its YAML.

    Args:
        robot: As for `load_legged_robot`.
        base_folder: See there.
        arguments: See there.
        failed_leg: One that does not work, by name: it is not stood on, and kept out of the way as at rest.

    Raises:
        UnknownNameError, InputError, ConfigError, DescriptionError: as `load_legged_robot`; there is no such leg.
    """
    legged_robot, model = load_legged_robot_and_model(robot, base_folder, arguments)
    return Rig.of(legged_robot if failed_leg is None else legged_robot.without(failed_leg), model)
