"""The nodes that move a robot's arms, where a file beside its description says what its groups are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from roboyard.description import Model
from roboyard.manipulation import load_groups
from roboyard.scenarios.gains import Gains
from roboyard.scenarios.plugins import Part
from roboyard.scenarios.robot_package import NodeSpec

_TRAJECTORIES: dict[str, Any] = {"lead": 0.01, "path_tolerance": 0.1, "start_tolerance": 0.05}


def arm_nodes(model: Model, groups: Path | None, part: Part) -> tuple[dict[str, NodeSpec], dict[str, Gains]]:
    """Nodes by name, and the gains of joints that the file states.

    The first group's trajectories are followed by ``arm``, further ones' by nodes of the groups' names; ``move_group``
    plans for the first.  Where the description's plugins command a group's joints already, theirs are taken.

    Args:
        model: The robot.
        groups: The file; None where there is none.
        part: What the plugins say.

    Raises:
        ConfigError, DescriptionError: as `load_groups`.
    """
    if groups is None:
        return {}, {}
    stated = load_groups(groups, model)
    nodes: dict[str, NodeSpec] = {}
    for number, group in enumerate(stated.groups.values()):
        by = (name for name, spec in part.nodes.items() if set(group.joints) <= set(spec.parameters.get("joints", ())))
        name = next(by, "arm" if number == 0 else group.name)
        if name not in part.nodes:
            nodes[name] = NodeSpec("joint_trajectory", {"joints": list(group.joints), **_TRAJECTORIES})
        if number == 0:
            nodes["move_group"] = NodeSpec("move_group", {"controller": f"{name}/follow_joint_trajectory"})
    return nodes, {name: dict(gains) for name, gains in stated.gains.items()}
