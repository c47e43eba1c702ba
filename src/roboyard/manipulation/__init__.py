"""Arms: chains of joints, what is known about a robot's groups of them, and the ways between poses and joints.

Everything here works on arrays; a description gives chains by `build_chain`, or by its `Groups`.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.chains import Chain, build_chain
    from roboyard.manipulation.groups import Gripper, Group, Groups, Tool, guess_groups, load_groups
    from roboyard.manipulation.kinematics import (
        DifferentialIkConfig,
        DifferentialIkResult,
        IkBatch,
        IkConfig,
        IkFailure,
        IkSolution,
        NearestSolution,
        PointingTarget,
        find_closed_form,
        solve_differential_ik,
        solve_differential_ik_to_pose,
        solve_ik,
        solve_ik_batch,
    )

__all__ = [
    "Chain",
    "DifferentialIkConfig",
    "DifferentialIkResult",
    "Gripper",
    "Group",
    "Groups",
    "IkBatch",
    "IkConfig",
    "IkFailure",
    "IkSolution",
    "NearestSolution",
    "PointingTarget",
    "Tool",
    "build_chain",
    "find_closed_form",
    "guess_groups",
    "load_groups",
    "solve_differential_ik",
    "solve_differential_ik_to_pose",
    "solve_ik",
    "solve_ik_batch",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "groups": ("Gripper", "Group", "Groups", "Tool", "guess_groups", "load_groups"),
    "kinematics": ("PointingTarget", "IkFailure", "IkBatch", "IkConfig", "IkSolution", "NearestSolution",
        "DifferentialIkConfig", "DifferentialIkResult", "find_closed_form", "solve_differential_ik",
        "solve_differential_ik_to_pose", "solve_ik", "solve_ik_batch"),
    "roboyard.chains": ("Chain", "build_chain"),
})  # fmt: skip
