"""From where a tool shall be to joints: closed forms with all branches, searches, the nearest that can be done."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.manipulation.kinematics.goals import (
        IkBatch,
        IkConfig,
        IkFailure,
        IkSolution,
        NearestSolution,
        PointingTarget,
    )
    from roboyard.manipulation.kinematics.servo import (
        DifferentialIkConfig,
        DifferentialIkResult,
        solve_differential_ik,
        solve_differential_ik_to_pose,
    )
    from roboyard.manipulation.kinematics.solve import solve_ik, solve_ik_batch
    from roboyard.manipulation.kinematics.structure import find_closed_form

__all__ = [
    "DifferentialIkConfig",
    "DifferentialIkResult",
    "IkBatch",
    "IkConfig",
    "IkFailure",
    "IkSolution",
    "NearestSolution",
    "PointingTarget",
    "find_closed_form",
    "solve_differential_ik",
    "solve_differential_ik_to_pose",
    "solve_ik",
    "solve_ik_batch",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "goals": ("PointingTarget", "IkFailure", "IkBatch", "IkConfig", "IkSolution", "NearestSolution"),
    "servo": ("DifferentialIkConfig", "DifferentialIkResult", "solve_differential_ik", "solve_differential_ik_to_pose"),
    "solve": ("solve_ik", "solve_ik_batch"),
    "structure": ("find_closed_form",),
})  # fmt: skip
