"""Exploring an unknown place: frontiers, which is next, how much has been seen."""

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
