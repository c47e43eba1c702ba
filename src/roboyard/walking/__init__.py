"""Legs and what they do: kinematics of legs and bodies, movements, gaits."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.walking.steps.rig import Rig
    from roboyard.walking.walker import Walker
    from roboyard.walking.walker_file import load_walker

__all__ = ["Rig", "Walker", "load_walker"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "steps.rig": ("Rig",),
    "walker": ("Walker",),
    "walker_file": ("load_walker",),
})  # fmt: skip
