"""Reading a walker from a file beside its robot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from roboyard.config import load, parameter
from roboyard.description import Model
from roboyard.errors import ConfigError, RoboyardError
from roboyard.evaluation.scenario_key import RobotFiles
from roboyard.walking.walker import Walker


@dataclass(frozen=True)
class WalkerFile:
    """What `legs.yaml` may say."""

    body: str = parameter(doc="link that the legs are on, in whose frame feet are")
    feet: dict[str, str] = parameter(
        doc="link or frame of each foot, by name of its leg, in the order in which feet count"
    )
    stance_pose: tuple[float, float, float] = parameter(unit="rad", doc="joints of every leg in the stance")
    rest_pose: tuple[float, float, float] = parameter(unit="rad", doc="joints of every leg at rest, flat on the ground")
    stance_poses: dict[str, tuple[float, ...]] = parameter(
        factory=dict, doc="of legs that stand otherwise [rad], by name"
    )
    rest_poses: dict[str, tuple[float, ...]] = parameter(factory=dict, doc="of legs that rest otherwise [rad], by name")


def load_walker(path: Path, model: Model) -> Walker:
    """A robot's legs from a YAML file.

    Args:
        path: The file.
        model: The robot that it speaks of.

    Raises:
        ConfigError: it says something it may not, names what the robot has not, or a leg is none.
    """
    said = load(WalkerFile, path)
    for key in ("stance_poses", "rest_poses"):
        for name in getattr(said, key):
            if name not in said.feet:
                raise ConfigError(f"no leg {name!r}", location=f"{path}, {key}", valid=f"legs: {', '.join(said.feet)}")
    try:
        return Walker.of(
            model,
            said.body,
            said.feet,
            {name: said.stance_poses.get(name, said.stance_pose) for name in said.feet},
            {name: said.rest_poses.get(name, said.rest_pose) for name in said.feet},
        )
    except RoboyardError as error:
        raise ConfigError(error.message, location=str(path), valid=error.valid) from None


def create_legs(robot: RobotFiles) -> Walker | None:
    """Return the legs of a robot from the file that its package names; None if it has none. Raises ConfigError."""
    path = robot.companion_file("legs")
    return None if path is None else load_walker(path, robot.model)
