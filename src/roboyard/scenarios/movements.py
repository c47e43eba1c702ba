"""A movement file that a scenario's robot plays once it stands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from roboyard.errors import InputError, RoboyardError
from roboyard.scenarios.catalog import find_file
from roboyard.scenarios.robot_legs import legs_of
from roboyard.scenarios.robot_package import RobotPackage
from roboyard.walking.movement import Between, play
from roboyard.walking.movement_file import load_movement

_WHERE = "movement"


def with_movement(
    package: RobotPackage, file: str, base: Path | None = None, arguments: Mapping[str, str] | None = None
) -> RobotPackage:
    """The package of a robot whose gait node plays a movement file, looked through from its first step to its last.

    Args:
        package: Of a robot on legs.
        file: The movement, beside the scenario or as seen from the working folder.
        base: The scenario's folder.
        arguments: For xacro.

    Raises:
        InputError: there is no such file, or the robot has no legs or no gait node.
        DescriptionError: it is no movement file.
        RoboyardError: the robot cannot play it; with step, leg, joint, value and limit.
    """
    try:
        path = find_file(file, base)
    except InputError as error:
        raise InputError(error.message, location=_WHERE, valid=error.valid) from None
    legs = legs_of(package, package.load_model(arguments))
    gait = next((name for name, spec in package.file.nodes.items() if spec.use == "gait"), None)
    if legs is None or gait is None:
        raise InputError(f"{package.name} plays none", location=_WHERE, valid="a robot on legs with a node `gait`")
    between: Between = "spline" if package.node(gait).parameters.get("between") == "spline" else "cosine"
    try:
        play(load_movement(path), legs, between=between)
    except RoboyardError as error:
        if str(path) not in str(error):
            error.location = f"{path}, {error.location}" if error.location else str(path)
        raise
    return package.customised({gait: {"movement": str(path.resolve())}}, {})
