"""The report sections of all domains, in the order of the page."""

from __future__ import annotations

from roboyard.behavior.evaluation import work_section
from roboyard.evaluation.section import SectionBuilder
from roboyard.manipulation.evaluation.motion import arm_section
from roboyard.manipulation.evaluation.pick_place import pick_place_section
from roboyard.navigation.evaluation.exploration import exploration_section
from roboyard.navigation.evaluation.homing import homing_section
from roboyard.safety.evaluation import collaborative_safety_section
from roboyard.walking.evaluation.gait import gait_section
from roboyard.walking.evaluation.step_plan import step_plan_section

SECTION_BUILDERS: tuple[SectionBuilder, ...] = (
    work_section,
    pick_place_section,
    arm_section,
    collaborative_safety_section,
    exploration_section,
    homing_section,
    step_plan_section,
    gait_section,
)
