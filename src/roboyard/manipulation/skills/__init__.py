"""Skills of an arm with a camera and a gripper: detect, align, pick, place, stow, and the loop of these.

Skills are hierarchical state machines as plain data (`Skill`, `SkillStack`): they request detections, motions and
gripper commands, and receive the results.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.manipulation.skills.arm_geometry import ArmGeometry
    from roboyard.manipulation.skills.config import SkillConfig
    from roboyard.manipulation.skills.conveyor import ConveyorLane, conveyor_lanes
    from roboyard.manipulation.skills.loop import FinishSkill, PickPlaceLoop, PickPlaceLoopBase
    from roboyard.manipulation.skills.registry import SKILL_NAMES, SkillGoal, make_skill
    from roboyard.manipulation.skills.requests import (
        SUCCESS,
        ArmMotionRequest,
        ConveyorTrackingRequest,
        DelayRequest,
        DetectDiscsRequest,
        DriveRequest,
        GripperRequest,
        JointTarget,
        MotionTarget,
        NamedTarget,
        Point,
        SceneUpdateRequest,
        SkillRequest,
        SkillResult,
        SkillResultCode,
        TargetDetection,
        TimedToolPose,
        ToolTarget,
    )
    from roboyard.manipulation.skills.skill import (
        GraspedObject,
        Skill,
        SkillContext,
        SkillEvent,
        SkillMemory,
        SkillStack,
        skill_from_dict,
        to_dict,
    )

__all__ = [
    "SKILL_NAMES",
    "SUCCESS",
    "ArmGeometry",
    "ArmMotionRequest",
    "ConveyorLane",
    "ConveyorTrackingRequest",
    "DelayRequest",
    "DetectDiscsRequest",
    "DriveRequest",
    "FinishSkill",
    "GraspedObject",
    "GripperRequest",
    "JointTarget",
    "MotionTarget",
    "NamedTarget",
    "PickPlaceLoop",
    "PickPlaceLoopBase",
    "Point",
    "SceneUpdateRequest",
    "Skill",
    "SkillConfig",
    "SkillContext",
    "SkillEvent",
    "SkillGoal",
    "SkillMemory",
    "SkillRequest",
    "SkillResult",
    "SkillResultCode",
    "SkillStack",
    "TargetDetection",
    "TimedToolPose",
    "ToolTarget",
    "conveyor_lanes",
    "make_skill",
    "skill_from_dict",
    "to_dict",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "arm_geometry": ("ArmGeometry",),
    "config": ("SkillConfig",),
    "conveyor": ("ConveyorLane", "conveyor_lanes"),
    "loop": ("FinishSkill", "PickPlaceLoop", "PickPlaceLoopBase"),
    "registry": ("SKILL_NAMES", "SkillGoal", "make_skill"),
    "requests": ("SUCCESS", "ArmMotionRequest", "ConveyorTrackingRequest", "DelayRequest", "DetectDiscsRequest",
        "DriveRequest", "GripperRequest", "JointTarget", "MotionTarget", "NamedTarget", "Point",
        "SceneUpdateRequest", "SkillRequest", "SkillResult", "SkillResultCode", "TargetDetection",
        "TimedToolPose", "ToolTarget"),
    "skill": ("GraspedObject", "Skill", "SkillContext", "SkillEvent", "SkillMemory", "SkillStack",
        "skill_from_dict", "to_dict"),
})  # fmt: skip
