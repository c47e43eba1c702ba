"""The parts of the report that only some robots have, in the order in which they stand on the page."""

from __future__ import annotations

from roboyard.scenarios.report.arms import arm_part
from roboyard.scenarios.report.exploration import exploration_part
from roboyard.scenarios.report.handling import handling_part
from roboyard.scenarios.report.homing import homing_part
from roboyard.scenarios.report.people import people_part
from roboyard.scenarios.report.section import Part
from roboyard.scenarios.report.stepping import stepping_part
from roboyard.scenarios.report.walking import walking_part
from roboyard.scenarios.report.working import working_part

PARTS: tuple[Part, ...] = (
    working_part,
    handling_part,
    arm_part,
    people_part,
    exploration_part,
    homing_part,
    stepping_part,
    walking_part,
)
