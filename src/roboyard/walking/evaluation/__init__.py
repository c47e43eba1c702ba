"""What walking contributes to runs: metrics, report sections, and the scenario key ``movement``."""

from roboyard.evaluation.plugin import PageSection, RunPlugin
from roboyard.walking.evaluation.gait import GaitMetrics, LegModel
from roboyard.walking.evaluation.gait_report import gait_section
from roboyard.walking.evaluation.movement_key import MovementKey
from roboyard.walking.evaluation.step_plan import StepPlanMetrics, step_plan_section

PLUGIN = RunPlugin(
    "walking",
    (GaitMetrics, StepPlanMetrics),
    (PageSection(step_plan_section, 70), PageSection(gait_section, 80)),
    {"leg_model": LegModel.create},
    (MovementKey(),),
)
