"""The key ``movement`` of scenario files: a movement file that the main robot plays after it has stood up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roboyard.errors import InputError, RoboyardError
from roboyard.evaluation.scenario_key import FileLookup, RobotSetup, ScenarioKey
from roboyard.walking.foot_movement import Interpolation, load_movement, play_movement


class MovementKey(ScenarioKey[str]):
    """Gives the movement file to the gait node of the main robot, after a check of all its steps."""

    key = "movement"
    config = str
    doc = "movement file that the main robot plays after it has stood up"
    path_keys = ("",)

    def resolve(self, value: str, find_file: FileLookup) -> str:
        """Return the absolute path of the file. Raises InputError."""
        return str(find_file(value))

    def node_parameters(self, value: str, robot: RobotSetup) -> Mapping[str, Mapping[str, Any]]:
        """Return the parameter of the main robot's gait node.

        Raises:
            InputError: The robot has no legs or no gait node.
            DescriptionError: The file is no movement file.
            RoboyardError: The robot cannot play it; the error names step, leg, joint, value and limit.
        """
        if not robot.is_main:
            return {}
        legs = robot.resource("legged_robot")
        gait_node = next((name for name, node_type in robot.node_types.items() if node_type == "gait"), None)
        if legs is None or gait_node is None:
            raise InputError(f"{robot.name} plays none", valid="a robot on legs with a node `gait`")
        interpolation: Interpolation = (
            "spline" if robot.node_parameters(gait_node).get("interpolation") == "spline" else "cosine"
        )
        path = Path(value)
        try:
            play_movement(load_movement(path), legs, interpolation=interpolation)
        except RoboyardError as error:
            if str(path) not in str(error):
                error.location = f"{path}, {error.location}" if error.location else str(path)
            raise
        return {gait_node: {self.key: value}}
