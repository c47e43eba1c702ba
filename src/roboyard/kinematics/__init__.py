"""Kinematics and dynamics of robots: serial chains, Jacobians, inverse kinematics and inverse dynamics.

The names that most users need: `build_chain`, `Chain`, `solve_ik`, `IkConfig`, `PointingTarget`, `solve_ik_batch`,
`solve_differential_ik`, `ForwardKinematics`, `ChainDynamics`, `Payload`.

    chain = ry.kinematics.build_chain(model, "base", "tool")
    solution = ry.kinematics.solve_ik(chain, chain.forward(q))

More of inverse kinematics is in `roboyard.kinematics.ik`.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.kinematics.chain import Chain, build_chain
    from roboyard.kinematics.chain_kernels import ChainArrays
    from roboyard.kinematics.dynamics import ChainDynamics, Payload
    from roboyard.kinematics.forward_kinematics import ForwardKinematics, JointMotion, fixed_transforms
    from roboyard.kinematics.ik import (
        IkConfig,
        IkSolution,
        PointingTarget,
        solve_differential_ik,
        solve_ik,
        solve_ik_batch,
    )

# The names that most users need come first.
__all__ = [  # noqa: RUF022
    "build_chain",
    "Chain",
    "solve_ik",
    "IkConfig",
    "PointingTarget",
    "solve_ik_batch",
    "solve_differential_ik",
    "ForwardKinematics",
    "ChainDynamics",
    "Payload",
    "ChainArrays",
    "IkSolution",
    "JointMotion",
    "fixed_transforms",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "chain": ("Chain", "build_chain"),
    "chain_kernels": ("ChainArrays",),
    "dynamics": ("ChainDynamics", "Payload"),
    "forward_kinematics": ("ForwardKinematics", "JointMotion", "fixed_transforms"),
    "ik": ("IkConfig", "IkSolution", "PointingTarget", "solve_differential_ik", "solve_ik", "solve_ik_batch"),
})  # fmt: skip
