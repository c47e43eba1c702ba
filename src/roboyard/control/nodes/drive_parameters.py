"""Base of the nodes whose parameters follow from the robot's drive, which is stated once, in the robot's file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import TypeVar

from roboyard.bus import Node, resource
from roboyard.config import Config
from roboyard.control.drive_config import DriveConfig, DriveLimits

DriveParameterConfigT = TypeVar("DriveParameterConfigT", bound=Config, default=Config, covariant=True)


class DriveParameterNode(Node[DriveParameterConfigT]):
    """Base of drive and odometry nodes: their default geometry and limits are those of the robot.

    A parameter that the robot's drive or its limits state has that value, unless the constructor is given another one.
    Subclasses narrow ``drive_geometry`` to the type of drive that they know, and declare ``drive_limits`` if they keep
    them. Without these resources the parameters have the defaults of their declaration.
    """

    drive_geometry: DriveConfig | None = resource(DriveConfig, optional=True)

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**{**self._robot_parameters(arguments), **arguments})

    @classmethod
    def _robot_parameters(cls, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters that the resources among the constructor's arguments state.

        A resource of a wrong class states none; the constructor rejects it.
        """
        keys = cls.config_class.keys()
        parameters: dict[str, Any] = {}
        for name in ("drive_geometry", "drive_limits"):
            stated = arguments.get(name)
            if isinstance(stated, DriveConfig | DriveLimits):
                parameters |= stated.node_parameters(keys)
        return parameters
