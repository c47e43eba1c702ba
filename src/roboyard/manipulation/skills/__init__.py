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
    from roboyard.manipulation.skills.registry import SKILLS, SkillGoal, make_skill, skill_names
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
        BayState,
        GraspedObject,
        Skill,
        SkillContext,
        SkillEvent,
        SkillMemory,
        SkillStack,
        phase,
        skill_from_dict,
        to_dict,
    )

__all__ = [
    "SKILLS",
    "SUCCESS",
    "ArmGeometry",
    "ArmMotionRequest",
    "BayState",
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
    "phase",
    "skill_from_dict",
    "skill_names",
    "to_dict",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "arm_geometry": ("ArmGeometry",),
    "config": ("SkillConfig",),
    "conveyor": ("ConveyorLane", "conveyor_lanes"),
    "loop": ("FinishSkill", "PickPlaceLoop", "PickPlaceLoopBase"),
    "registry": ("SKILLS", "SkillGoal", "make_skill", "skill_names"),
    "requests": ("SUCCESS", "ArmMotionRequest", "ConveyorTrackingRequest", "DelayRequest", "DetectDiscsRequest",
        "DriveRequest", "GripperRequest", "JointTarget", "MotionTarget", "NamedTarget", "Point",
        "SceneUpdateRequest", "SkillRequest", "SkillResult", "SkillResultCode", "TargetDetection",
        "TimedToolPose", "ToolTarget"),
    "skill": ("BayState", "GraspedObject", "Skill", "SkillContext", "SkillEvent", "SkillMemory", "SkillStack", "phase",
        "skill_from_dict", "to_dict"),
})  # fmt: skip
