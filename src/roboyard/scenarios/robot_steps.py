"""A robot as planners of steps see it: legs and body from its description."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from roboyard.scenarios.robot_legs import find_legged
from roboyard.walking.steps.rig import Rig


def find_rig(
    robot: str, base: Path | None = None, arguments: Mapping[str, str] | None = None, *, failed_leg: str | None = None
) -> Rig:
    """The legs and body of a robot by name, or of its YAML.

    Args:
        robot: As for `find_walker`.
        base: See there.
        arguments: See there.
        failed_leg: One that does not work, by name: it is not stood on, and kept out of the way as at rest.

    Raises:
        UnknownNameError, InputError, ConfigError, DescriptionError: as `find_walker`; there is no such leg.
    """
    walker, model = find_legged(robot, base, arguments)
    return Rig.of(walker if failed_leg is None else walker.without(failed_leg), model)
