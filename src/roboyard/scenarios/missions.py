"""Missions of robots and people: a behavior tree (XML) or tasks (YAML)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from roboyard.bringup.catalog import find_file
from roboyard.bringup.robot_nodes import create_node
from roboyard.bus import Node
from roboyard.config import parameter
from roboyard.errors import InputError
from roboyard.evaluation.scenario_key import RobotBuilder

MISSION = "mission"
"""Key of a scenario, and name of the node."""
_NODE_TYPES: Final = {".xml": "tree_executor", ".yaml": "task_executor", ".yml": "task_executor"}


@dataclass(frozen=True)
class MissionConfig:
    """Behavior tree or tasks that a robot or a person executes."""

    file: str = parameter(doc="behavior tree (XML) or tasks (YAML)")
    parameters: dict[str, Any] = parameter(
        factory=dict, doc="parameters of the node `tree_executor` or `task_executor`"
    )
    remap: dict[str, str] = parameter(factory=dict, doc="remapping of its topics: {map: floor_map}")


def add_mission(robot: RobotBuilder, config: str | MissionConfig, base_folder: Path | None = None) -> None:
    """Start the node that executes a robot's mission. Raises as `create_mission_node`."""
    node, remap = create_mission_node(config, robot.resources(), base_folder)
    robot.add_node(node, MISSION, remap=remap)


def create_mission_node(
    config: str | MissionConfig, resources: Mapping[str, Any], base_folder: Path | None
) -> tuple[Node, dict[str, str]]:
    """Return the node that executes a behavior tree or tasks, and the remapping of its topics.

    Args:
        config: File, relative to the scenario or the working folder; or file, parameters and remapping.
        resources: Resources that the node may request, by name.
        base_folder: Folder of the scenario.

    Raises:
        InputError: The file does not exist or has another suffix, or a parameter is not valid.
        InvalidTreeError: The tree is not valid, or uses an unknown node type.
    """
    mission = MissionConfig(config) if isinstance(config, str) else config
    path = find_mission_file(mission, base_folder)
    node_type = _NODE_TYPES.get(path.suffix.lower())
    if node_type is None:
        raise InputError(f"{mission.file} is not a mission", location=MISSION, valid="a tree, .xml, or tasks, .yaml")
    parameters = {**mission.parameters, "file": str(path)}
    return create_node(node_type, parameters, resources, base_folder=base_folder, location=MISSION), mission.remap


def find_mission_file(config: str | MissionConfig, base_folder: Path | None) -> Path:
    """Return the path of the mission's file. Raises InputError if it does not exist."""
    try:
        return find_file(config if isinstance(config, str) else config.file, base_folder).resolve()
    except InputError as error:
        raise InputError(error.message, location=MISSION, valid=error.valid) from None
