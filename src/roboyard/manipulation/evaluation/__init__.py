"""Metrics and report sections of arms."""

from roboyard.evaluation.plugin import PageSection, RunPlugin
from roboyard.manipulation.evaluation.motion import ArmGoalMetrics, JointGroupGroundTruth, JointJogMetrics, arm_section
from roboyard.manipulation.evaluation.pick_place import FaultRecoveryMetrics, PickPlaceMetrics, pick_place_section

PLUGIN = RunPlugin(
    "manipulation",
    (ArmGoalMetrics, JointJogMetrics, PickPlaceMetrics, FaultRecoveryMetrics),
    (PageSection(pick_place_section, 20), PageSection(arm_section, 30)),
    {"arm_truth": JointGroupGroundTruth.create},
)
