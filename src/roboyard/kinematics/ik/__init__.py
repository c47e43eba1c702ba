"""Inverse kinematics of serial chains: closed forms with all branches, numerical search, differential IK."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.kinematics.ik.closed_form import find_closed_form
    from roboyard.kinematics.ik.differential_ik import (
        DifferentialIkConfig,
        DifferentialIkResult,
        solve_differential_ik,
        solve_differential_ik_to_pose,
    )
    from roboyard.kinematics.ik.solve import (
        IkBatch,
        IkConfig,
        IkFailure,
        IkSolution,
        NearestSolution,
        PointingTarget,
        solve_ik,
        solve_ik_batch,
    )

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

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "closed_form": ("find_closed_form",),
        "differential_ik": (
            "DifferentialIkConfig",
            "DifferentialIkResult",
            "solve_differential_ik",
            "solve_differential_ik_to_pose",
        ),
        "solve": (
            "IkBatch",
            "IkConfig",
            "IkFailure",
            "IkSolution",
            "NearestSolution",
            "PointingTarget",
            "solve_ik",
            "solve_ik_batch",
        ),
    },
)
