"""A behaviour tree that a scenario's main robot runs."""

from __future__ import annotations

from pathlib import Path

from roboyard.behavior.nodes import TreeMissionNode
from roboyard.errors import InputError
from roboyard.scenarios.catalog import find_file
from roboyard.scenarios.robot_handle import RobotHandle

MISSION = "mission"
"""The key of a scenario, and the node's name."""


def add_mission(robot: RobotHandle, file: str, base: Path | None = None) -> None:
    """Have a robot run a tree.

    Args:
        robot: Which.
        file: The tree, beside the scenario or as seen from the working folder.
        base: The scenario's folder.

    Raises:
        InputError: there is no such file.
        TreeError: it is no tree, or one of leaves that there are not.
    """
    try:
        path = find_file(file, base)
    except InputError as error:
        raise InputError(error.what, where=MISSION, valid=error.valid) from None
    robot.add_node(TreeMissionNode(file=str(path.resolve())), MISSION)
