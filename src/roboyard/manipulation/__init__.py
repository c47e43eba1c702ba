"""Robot arms: joint groups, planning scenes, motion planning, grasping and servoing.

Everything here works on arrays; the nodes that connect it to topics are in `roboyard.manipulation.nodes`.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.manipulation.groups import Gripper, Group, Groups, Tool, guess_groups, load_groups

__all__ = [
    "Gripper",
    "Group",
    "Groups",
    "Tool",
    "guess_groups",
    "load_groups",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "groups": ("Gripper", "Group", "Groups", "Tool", "guess_groups", "load_groups"),
})  # fmt: skip
