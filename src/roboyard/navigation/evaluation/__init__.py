"""Metrics and report sections of navigation, exploration and homing."""

from roboyard.evaluation.plugin import PageSection, RunPlugin
from roboyard.navigation.evaluation.exploration import ExplorationMetrics, exploration_section
from roboyard.navigation.evaluation.homing import HomingMetrics, homing_section
from roboyard.navigation.evaluation.navigation import NavigationMetrics

PLUGIN = RunPlugin(
    "navigation",
    (NavigationMetrics, ExplorationMetrics, HomingMetrics),
    (PageSection(exploration_section, 50), PageSection(homing_section, 60)),
)
