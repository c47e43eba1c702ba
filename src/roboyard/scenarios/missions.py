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
from roboyard.scenarios.run_builder import RobotBuilder

MISSION = "mission"
"""The key of a scenario, and the node's name."""
_NODE_TYPES: Final = {".xml": "tree_executor", ".yaml": "task_executor", ".yml": "task_executor"}


@dataclass(frozen=True)
class MissionConfig:
    """What a robot or a person does by themselves."""

    file: str = parameter(doc="a behaviour tree (XML) or tasks (YAML)")
    parameters: dict[str, Any] = parameter(factory=dict, doc="of the node `tree_executor` or `task_executor`")
    remap: dict[str, str] = parameter(factory=dict, doc="its topics: {map: floor_map}")


def add_mission(robot: RobotBuilder, config: str | MissionConfig, base_folder: Path | None = None) -> None:
    """Have a robot run a tree, or pursue tasks. Raises as `create_mission_node`."""
    node, remap = create_mission_node(config, robot.resources(), base_folder)
    robot.add_node(node, MISSION, remap=remap)


def create_mission_node(
    config: str | MissionConfig, resources: Mapping[str, Any], base_folder: Path | None
) -> tuple[Node, dict[str, str]]:
    """The node that runs a tree or pursues tasks, and its topics' other names.

    Args:
        config: The file, beside the scenario or as seen from the working folder; and the node's parameters.
        resources: What there is to hand out by name.
        base_folder: The scenario's folder.

    Raises:
        InputError: there is no such file, it is none of tasks, or a parameter is wrong.
        TreeError: it is no tree, or one of leaves that there are not.
    """
    mission = MissionConfig(config) if isinstance(config, str) else config
    path = find_mission_file(mission, base_folder)
    node_type = _NODE_TYPES.get(path.suffix.lower())
    if node_type is None:
        raise InputError(f"{mission.file} is no mission", location=MISSION, valid="a tree, .xml, or tasks, .yaml")
    parameters = {**mission.parameters, "file": str(path)}
    return create_node(node_type, parameters, resources, base_folder=base_folder, location=MISSION), mission.remap


def find_mission_file(config: str | MissionConfig, base_folder: Path | None) -> Path:
    """Where its file is. Raises InputError if there is none."""
    try:
        return find_file(config if isinstance(config, str) else config.file, base_folder).resolve()
    except InputError as error:
        raise InputError(error.message, location=MISSION, valid=error.valid) from None
