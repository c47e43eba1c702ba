"""Kinematics and dynamics of robots: forward kinematics, serial chains, Jacobians and inverse dynamics.

Inverse kinematics is in `roboyard.kinematics.ik`.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.kinematics.chain import Chain, build_chain
    from roboyard.kinematics.chain_kernels import ChainArrays
    from roboyard.kinematics.dynamics import ChainDynamics, Payload
    from roboyard.kinematics.forward_kinematics import ForwardKinematics, JointMotion, fixed_transforms

__all__ = [
    "Chain",
    "ChainArrays",
    "ChainDynamics",
    "ForwardKinematics",
    "JointMotion",
    "Payload",
    "build_chain",
    "fixed_transforms",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "chain": ("Chain", "build_chain"),
        "chain_kernels": ("ChainArrays",),
        "dynamics": ("ChainDynamics", "Payload"),
        "forward_kinematics": ("ForwardKinematics", "JointMotion", "fixed_transforms"),
    },
)
