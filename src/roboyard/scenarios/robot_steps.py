"""A robot as planners of steps see it: legs and body from its description."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from roboyard.scenarios.robot_legs import find_legged
from roboyard.walking.steps.body import body_box
from roboyard.walking.steps.rig import Rig


def find_rig(robot: str, base: Path | None = None, arguments: Mapping[str, str] | None = None) -> Rig:
    """The legs and body of a robot by name, or of its YAML.

    Raises:
        UnknownNameError, InputError, ConfigError, DescriptionError: as `find_walker`.
    """
    walker, model = find_legged(robot, base, arguments)
    return Rig.of(walker, body_box(model, walker.body))
