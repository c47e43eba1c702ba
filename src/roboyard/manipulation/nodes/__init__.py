"""Nodes of arms: what brings them where goals say, who asks for that, and what keeps them out of clouds."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.manipulation.nodes.arm_mission import ArmMissionNode
    from roboyard.manipulation.nodes.arm_tour import ArmTourNode
    from roboyard.manipulation.nodes.move_group import MoveGroupNode
    from roboyard.manipulation.nodes.self_filter import SelfFilterNode
    from roboyard.manipulation.nodes.servo import ServoNode
    from roboyard.manipulation.nodes.skills import SkillsNode
    from roboyard.manipulation.nodes.thesis_skills import ThesisSkillsNode

__all__ = [
    "ArmMissionNode",
    "ArmTourNode",
    "MoveGroupNode",
    "SelfFilterNode",
    "ServoNode",
    "SkillsNode",
    "ThesisSkillsNode",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "arm_mission": ("ArmMissionNode",),
    "arm_tour": ("ArmTourNode",),
    "move_group": ("MoveGroupNode",),
    "self_filter": ("SelfFilterNode",),
    "servo": ("ServoNode",),
    "skills": ("SkillsNode",),
    "thesis_skills": ("ThesisSkillsNode",),
})  # fmt: skip
