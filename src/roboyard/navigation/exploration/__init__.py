"""Exploring an unknown place: frontiers, which is next, how much has been seen."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.navigation.exploration.choice import ChoiceConfig, Failure, choose
    from roboyard.navigation.exploration.coverage import coverage, reachable_floor
    from roboyard.navigation.exploration.explorer import Explorer, Progress
    from roboyard.navigation.exploration.frontiers import FrontierConfig, Frontiers, View, find_frontiers

__all__ = [
    "ChoiceConfig",
    "Explorer",
    "Failure",
    "FrontierConfig",
    "Frontiers",
    "Progress",
    "View",
    "choose",
    "coverage",
    "find_frontiers",
    "reachable_floor",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "choice": ("ChoiceConfig", "Failure", "choose"),
    "coverage": ("coverage", "reachable_floor"),
    "explorer": ("Explorer", "Progress"),
    "frontiers": ("FrontierConfig", "Frontiers", "View", "find_frontiers"),
})  # fmt: skip
