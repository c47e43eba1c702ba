"""What an arm with a camera and a gripper knows how to do: look, align, pick, place, stow, and the loop of all that.

Skills are state machines that are data (`Skill`, `Stack`): they ask for looks, motions and grips, and are told what
came of it.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.manipulation.skills.asking import (
        DONE,
        Ask,
        Go,
        Grip,
        Joints,
        Look,
        Move,
        Named,
        Outcome,
        Point,
        Ride,
        Show,
        Sighting,
        Stage,
        Target,
        Tip,
        Wait,
    )
    from roboyard.manipulation.skills.body import Body
    from roboyard.manipulation.skills.causes import Cause
    from roboyard.manipulation.skills.choice import SKILLS, Wish, make_skill
    from roboyard.manipulation.skills.config import SkillConfig
    from roboyard.manipulation.skills.loop import Finish, Loop, Rounds
    from roboyard.manipulation.skills.memory import Held, Memory
    from roboyard.manipulation.skills.moving import Lane, lanes_of
    from roboyard.manipulation.skills.skill import Event, Now, Skill, Stack, packed, unpacked

__all__ = [
    "DONE",
    "SKILLS",
    "Ask",
    "Body",
    "Cause",
    "Event",
    "Finish",
    "Go",
    "Grip",
    "Held",
    "Joints",
    "Lane",
    "Look",
    "Loop",
    "Memory",
    "Move",
    "Named",
    "Now",
    "Outcome",
    "Point",
    "Ride",
    "Rounds",
    "Show",
    "Sighting",
    "Skill",
    "SkillConfig",
    "Stack",
    "Stage",
    "Target",
    "Tip",
    "Wait",
    "Wish",
    "lanes_of",
    "make_skill",
    "packed",
    "unpacked",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "asking": ("DONE", "Ask", "Go", "Grip", "Joints", "Look", "Move", "Named", "Outcome", "Point", "Ride", "Show",
        "Sighting", "Stage", "Target", "Tip", "Wait"),
    "body": ("Body",),
    "causes": ("Cause",),
    "choice": ("SKILLS", "Wish", "make_skill"),
    "config": ("SkillConfig",),
    "loop": ("Finish", "Loop", "Rounds"),
    "memory": ("Held", "Memory"),
    "moving": ("Lane", "lanes_of"),
    "skill": ("Event", "Now", "Skill", "Stack", "packed", "unpacked"),
})  # fmt: skip
