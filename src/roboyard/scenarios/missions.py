"""A behaviour tree or tasks that a scenario's main robot has for a mission."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from roboyard.errors import InputError
from roboyard.scenarios.catalog import find_file
from roboyard.scenarios.node_factory import make_node
from roboyard.scenarios.robot_handle import RobotHandle
from roboyard.scenarios.schema import MissionEntry

MISSION = "mission"
"""The key of a scenario, and the node's name."""
_NODES: Final = {".xml": "tree_mission", ".yaml": "goal_mission", ".yml": "goal_mission"}


def add_mission(robot: RobotHandle, entry: str | MissionEntry, base: Path | None = None) -> None:
    """Have a robot run a tree, or pursue tasks.

    Args:
        robot: Which.
        entry: The file, beside the scenario or as seen from the working folder; and the node's parameters.
        base: The scenario's folder.

    Raises:
        InputError: there is no such file, it is none of tasks, or a parameter is wrong.
        TreeError: it is no tree, or one of leaves that there are not.
    """
    said = MissionEntry(entry) if isinstance(entry, str) else entry
    path = mission_file(said, base)
    use = _NODES.get(path.suffix.lower())
    if use is None:
        raise InputError(f"{said.file} is no mission", where=MISSION, valid="a tree, .xml, or tasks, .yaml")
    parameters = {**said.parameters, "file": str(path)}
    robot.add_node(make_node(use, parameters, robot.resources(), base=base, where=MISSION), MISSION, remap=said.remap)


def mission_file(entry: str | MissionEntry, base: Path | None) -> Path:
    """Where its file is. Raises InputError if there is none."""
    try:
        return find_file(entry if isinstance(entry, str) else entry.file, base).resolve()
    except InputError as error:
        raise InputError(error.what, where=MISSION, valid=error.valid) from None
