"""The pose graph solved: gtsam's Levenberg-Marquardt, loops under a robust kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE2


@dataclass(frozen=True, slots=True)
class OptimiseConfig:
    """How a graph is solved.

    Attributes:
        iterations: Most steps of a solution.
        loop_kernel: Width of the robust kernel on loops, in standard deviations.
        outlier: A loop farther off than this after solving is no loop, and is left out [standard deviations].
    """

    iterations: int = 20
    loop_kernel: float = 2.0
    outlier: float = 12.0


class Optimiser:
    """Solves a pose graph that grows; edges are handed over once.

    The first node is held where it is.

    Args:
        config: How.
    """

    def __init__(self, config: OptimiseConfig | None = None) -> None:
        self.config = config or OptimiseConfig()

    @cached_property
    def _gtsam(self) -> Any:
        """The library, imported at the first edge: many nodes that map are made and never run."""
        import gtsam

        return gtsam

    @cached_property
    def _factors(self) -> Any:
        return self._gtsam.NonlinearFactorGraph()

    def add(
        self, first: int, second: int, measured: SE2, information: NDArray[np.float64], loop: bool, far: bool = False
    ) -> int:
        """Add an edge; returns its number.

        Args:
            first: Node i.
            second: Node j.
            measured: ``T_i_j``.
            information: (3, 3) inverse covariance in the frame of i.
            loop: Whether a robust kernel holds it: Cauchy's, which lets go of what is far off.
            far: Whether the kernel is Huber's instead, which never lets go: for loops that may be far from fulfilled.
        """
        gtsam = self._gtsam
        turn = np.eye(3)
        turn[:2, :2] = measured.matrix()[:2, :2]
        own = turn.T @ information @ turn  # gtsam measures errors in the frame of j
        noise = gtsam.noiseModel.Gaussian.Information(0.5 * (own + own.T))
        if loop:
            kernels = gtsam.noiseModel.mEstimator
            kernel = (kernels.Huber if far else kernels.Cauchy).Create(self.config.loop_kernel)
            noise = gtsam.noiseModel.Robust.Create(kernel, noise)
        pose = gtsam.Pose2(measured.x, measured.y, measured.theta)
        self._factors.push_back(gtsam.BetweenFactorPose2(first, second, pose, noise))
        return int(self._factors.size()) - 1

    def drop(self, edge: int) -> None:
        """Take an edge out; the numbers of the others stay."""
        self._factors.remove(edge)

    def solve(self, poses: NDArray[np.float64]) -> NDArray[np.float64]:
        """Poses (n, 3) that agree best with the edges, from poses (n, 3) to begin with."""
        gtsam = self._gtsam
        values = gtsam.Values()
        for key, (x, y, theta) in enumerate(poses.tolist()):
            values.insert(key, gtsam.Pose2(x, y, theta))
        parameters = gtsam.LevenbergMarquardtParams()
        parameters.setMaxIterations(self.config.iterations)
        parameters.setRelativeErrorTol(1e-4)
        parameters.setAbsoluteErrorTol(1e-3)
        parameters.setOrderingType("COLAMD")
        held = gtsam.noiseModel.Isotropic.Sigma(3, 1e-6)
        factors = gtsam.NonlinearFactorGraph(self._factors)
        factors.push_back(gtsam.PriorFactorPose2(0, gtsam.Pose2(*poses[0].tolist()), held))
        solved = gtsam.LevenbergMarquardtOptimizer(factors, values, parameters).optimize()
        matrix = np.asarray(gtsam.utilities.extractPose2(solved), dtype=np.float64)
        return matrix


def edge_errors(
    poses: NDArray[np.float64],
    pairs: NDArray[np.int64],
    measurements: NDArray[np.float64],
    information: NDArray[np.float64],
) -> NDArray[np.float64]:
    """How far each edge (m,) is from being fulfilled [standard deviations]."""
    if not len(pairs):
        return np.zeros(0)
    first, second = poses[pairs[:, 0]], poses[pairs[:, 1]]
    c, s = np.cos(first[:, 2]), np.sin(first[:, 2])
    step = second[:, :2] - first[:, :2]
    along, aside = c * step[:, 0] + s * step[:, 1], c * step[:, 1] - s * step[:, 0]
    off = np.column_stack([along, aside, second[:, 2] - first[:, 2]])
    off -= measurements
    off[:, 2] = np.arctan2(np.sin(off[:, 2]), np.cos(off[:, 2]))
    return np.asarray(np.sqrt(np.einsum("ni,nij,nj->n", off, information, off)))
