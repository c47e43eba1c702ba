"""Semantic description of a robot: planning groups, tool frames, grippers, named poses and allowed collisions.

`load_groups` reads it from a YAML file or an SRDF, `guess_groups` derives it from the description alone.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.manipulation.semantics.groups_file import load_groups
    from roboyard.manipulation.semantics.planning_groups import (
        AllowedCollisionReason,
        GripperSpec,
        PlanningGroup,
        SemanticDescription,
        ToolFrame,
        guess_groups,
    )

__all__ = [
    "AllowedCollisionReason",
    "GripperSpec",
    "PlanningGroup",
    "SemanticDescription",
    "ToolFrame",
    "guess_groups",
    "load_groups",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "groups_file": ("load_groups",),
    "planning_groups": ("AllowedCollisionReason", "GripperSpec", "PlanningGroup", "SemanticDescription",
        "ToolFrame", "guess_groups"),
})  # fmt: skip
