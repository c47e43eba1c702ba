"""A behaviour tree or tasks that a scenario's main robot, or a person, has for a mission."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from roboyard.bus import Node
from roboyard.config import parameter
from roboyard.errors import InputError
from roboyard.scenarios.catalog import find_file
from roboyard.scenarios.node_factory import make_node

if TYPE_CHECKING:
    from roboyard.scenarios.robot_handle import RobotHandle

MISSION = "mission"
"""The key of a scenario, and the node's name."""
_NODES: Final = {".xml": "tree_mission", ".yaml": "goal_mission", ".yml": "goal_mission"}


@dataclass(frozen=True)
class MissionEntry:
    """What a robot or a person does by themselves."""

    file: str = parameter(doc="a behaviour tree (XML) or tasks (YAML)")
    parameters: dict[str, Any] = parameter(factory=dict, doc="of the node `tree_mission` or `goal_mission`")
    remap: dict[str, str] = parameter(factory=dict, doc="its topics: {map: floor_map}")


def add_mission(robot: RobotHandle, entry: str | MissionEntry, base: Path | None = None) -> None:
    """Have a robot run a tree, or pursue tasks. Raises as `mission_node`."""
    node, remap = mission_node(entry, robot.resources(), base)
    robot.add_node(node, MISSION, remap=remap)


def mission_node(
    entry: str | MissionEntry, resources: Mapping[str, Any], base: Path | None
) -> tuple[Node, dict[str, str]]:
    """The node that runs a tree or pursues tasks, and its topics' other names.

    Args:
        entry: The file, beside the scenario or as seen from the working folder; and the node's parameters.
        resources: What there is to hand out by name.
        base: The scenario's folder.

    Raises:
        InputError: there is no such file, it is none of tasks, or a parameter is wrong.
        TreeError: it is no tree, or one of leaves that there are not.
    """
    said = MissionEntry(entry) if isinstance(entry, str) else entry
    path = mission_file(said, base)
    use = _NODES.get(path.suffix.lower())
    if use is None:
        raise InputError(f"{said.file} is no mission", location=MISSION, valid="a tree, .xml, or tasks, .yaml")
    parameters = {**said.parameters, "file": str(path)}
    return make_node(use, parameters, resources, base=base, where=MISSION), said.remap


def mission_file(entry: str | MissionEntry, base: Path | None) -> Path:
    """Where its file is. Raises InputError if there is none."""
    try:
        return find_file(entry if isinstance(entry, str) else entry.file, base).resolve()
    except InputError as error:
        raise InputError(error.message, location=MISSION, valid=error.valid) from None
