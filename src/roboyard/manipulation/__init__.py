"""Arms: chains of joints, what is known about a robot's groups of them, and the ways between poses and joints.

Everything here works on arrays; a description gives chains by `build_chain`, or by its `Groups`.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.chains import Chain, build_chain
    from roboyard.manipulation.groups import Gripper, Group, Groups, Tool, guess_groups, load_groups
    from roboyard.manipulation.kinematics import (
        Aim,
        Cause,
        IkBatch,
        IkSettings,
        IkSolution,
        Nearest,
        ServoSettings,
        ServoStep,
        form_of,
        servo_step,
        servo_to,
        solve_ik,
        solve_ik_batch,
    )

__all__ = [
    "Aim",
    "Cause",
    "Chain",
    "Gripper",
    "Group",
    "Groups",
    "IkBatch",
    "IkSettings",
    "IkSolution",
    "Nearest",
    "ServoSettings",
    "ServoStep",
    "Tool",
    "build_chain",
    "form_of",
    "guess_groups",
    "load_groups",
    "servo_step",
    "servo_to",
    "solve_ik",
    "solve_ik_batch",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "groups": ("Gripper", "Group", "Groups", "Tool", "guess_groups", "load_groups"),
    "kinematics": ("Aim", "Cause", "IkBatch", "IkSettings", "IkSolution", "Nearest", "ServoSettings", "ServoStep",
        "form_of", "servo_step", "servo_to", "solve_ik", "solve_ik_batch"),
    "roboyard.chains": ("Chain", "build_chain"),
})  # fmt: skip
