"""Nodes of arms: motion planning and execution, servoing, skills, demonstrations and the self filter."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.manipulation.nodes.arm_demo import ArmGoalSequenceNode, MobileArmDemoNode
    from roboyard.manipulation.nodes.move_group import MoveGroupNode
    from roboyard.manipulation.nodes.self_filter import SelfFilterNode
    from roboyard.manipulation.nodes.servo import ServoNode
    from roboyard.manipulation.nodes.skills import SkillServerNode

__all__ = [
    "ArmGoalSequenceNode",
    "MobileArmDemoNode",
    "MoveGroupNode",
    "SelfFilterNode",
    "ServoNode",
    "SkillServerNode",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "arm_demo": ("ArmGoalSequenceNode", "MobileArmDemoNode"),
    "move_group": ("MoveGroupNode",),
    "self_filter": ("SelfFilterNode",),
    "servo": ("ServoNode",),
    "skills": ("SkillServerNode",),
})  # fmt: skip
