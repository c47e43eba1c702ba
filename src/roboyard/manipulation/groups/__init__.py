"""What a robot's description does not say: which joints make an arm, where its tool is, what may touch what.

`load_groups` reads it from a YAML file of ours or an SRDF, `guess_groups` finds what the description alone tells.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.manipulation.groups.file import load_groups
    from roboyard.manipulation.groups.guessing import guess_groups
    from roboyard.manipulation.groups.model import Gripper, Group, Groups, Reason, Tool

__all__ = ["Gripper", "Group", "Groups", "Reason", "Tool", "guess_groups", "load_groups"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "file": ("load_groups",),
    "guessing": ("guess_groups",),
    "model": ("Gripper", "Group", "Groups", "Reason", "Tool"),
})  # fmt: skip
