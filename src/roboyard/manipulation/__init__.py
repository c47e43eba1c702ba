"""Manipulation: planning scenes, motion planning, grasping and servoing of robot arms.

Everything here works on arrays; the nodes that connect it to topics are in `roboyard.manipulation.nodes`.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.manipulation.semantics import (
        GripperSpec,
        PlanningGroup,
        SemanticDescription,
        ToolFrame,
        guess_groups,
        load_groups,
    )

__all__ = [
    "GripperSpec",
    "PlanningGroup",
    "SemanticDescription",
    "ToolFrame",
    "guess_groups",
    "load_groups",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "semantics": ("GripperSpec", "PlanningGroup", "SemanticDescription", "ToolFrame", "guess_groups",
        "load_groups"),
})  # fmt: skip
