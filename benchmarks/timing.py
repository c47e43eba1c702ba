"""Arms' paths in time, beside toppra: how long that takes, and how long the motions last.

Paths of six joints are lines through five places drawn at random, with parabolas in their corners; limits of speed and
acceleration are drawn, too.  toppra is given the same pieces, on 400 grid points and the places where pieces meet.
Times are of the thread's own clock, the least of several.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from roboyard.manipulation.time_parameterization import JointLimits, JointPath

JOINTS, CORNERS = 6, 3
PATHS, NIGHTLY, REPEATS = 20, 200, 5
GRID = 400


def limits_of(rng: np.random.Generator) -> JointLimits:
    names = tuple(f"joint_{k}" for k in range(JOINTS))
    return JointLimits(names, rng.uniform(0.3, 4.0, JOINTS), rng.uniform(0.3, 20.0, JOINTS), np.full(JOINTS, 200.0))


def bent_path(rng: np.random.Generator, names: tuple[str, ...]) -> JointPath:
    """Lines with parabolas in the corners: each piece is c₀ + c₁ s + c₂ s²."""
    points = rng.uniform(-2.0, 2.0, (CORNERS + 2, JOINTS))
    ways = np.diff(points, axis=0)
    lengths = np.linalg.norm(ways, axis=1)
    along = ways / lengths[:, None]
    pieces, sizes, at = [], [], points[0]
    for k in range(CORNERS + 1):
        cut = 0.2 * min(lengths[k], lengths[min(k + 1, CORNERS)])
        end = points[k + 1] - (cut * along[k] if k < CORNERS else 0.0)
        pieces.append(np.stack([at, along[k], np.zeros(JOINTS)]))
        sizes.append(float(np.linalg.norm(end - at)))
        if k < CORNERS:
            pieces.append(np.stack([end, along[k], (along[k + 1] - along[k]) / (4.0 * cut)]))
            sizes.append(2.0 * cut)
            at = points[k + 1] + cut * along[k + 1]
    return JointPath.from_segments(names, np.array(pieces), np.array(sizes))


def least(call: Callable[[], Any]) -> float:
    """Time of a call [ms]."""
    found = []
    for _ in range(REPEATS):
        start = time.thread_time()
        call()
        found.append((time.thread_time() - start) * 1e3)
    return min(found)


def toppra_of(path: JointPath, limits: JointLimits) -> Callable[[], float]:
    """A call that gives how long toppra's motion lasts [s]; raises ImportError without toppra."""
    import toppra
    from toppra import algorithm, constraint

    toppra.setup_logging("ERROR")
    starts = np.concatenate([[0.0], np.cumsum(path.lengths)])

    class Given(toppra.interpolator.AbstractGeometricPath):
        dof = JOINTS
        path_interval = np.array([0.0, starts[-1]])
        waypoints = None

        def __call__(self, s: Any, order: int = 0) -> Any:
            x = np.atleast_1d(s)
            i = np.clip(np.searchsorted(starts, x, side="right") - 1, 0, len(path.lengths) - 1)
            d, c = (x - starts[i])[:, None], path.segments[i]
            found = (c[:, 0] + d * (c[:, 1] + d * c[:, 2]), c[:, 1] + 2 * d * c[:, 2], 2 * c[:, 2])[order]
            return found[0] if np.ndim(s) == 0 else found

    both = [np.stack([-one, one], axis=1) for one in (limits.velocity, limits.acceleration)]
    grid = np.unique(np.concatenate([np.linspace(0.0, starts[-1], GRID), starts]))
    asked = [constraint.JointVelocityConstraint(both[0]), constraint.JointAccelerationConstraint(both[1])]

    def call() -> float:
        solver = algorithm.TOPPRA(asked, Given(), gridpoints=grid, parametrizer="ParametrizeConstAccel")
        return float(solver.compute_trajectory().duration)

    return call


def run(nightly: bool, runs: int | None = None, seed: int = 0) -> dict[str, Any]:
    """Paths of a six-jointed arm."""
    rng = np.random.default_rng(seed)
    ours, theirs, longer, beyond, missing = [], [], [], 0.0, None
    for _ in range(runs if runs is not None else NIGHTLY if nightly else PATHS):
        limits = limits_of(rng)
        path = bent_path(rng, limits.joints)
        motion = path.parameterize(limits)
        ours.append(least(lambda path=path, limits=limits: path.parameterize(limits)))
        at = motion.sample_at(np.linspace(0.0, motion.duration, 2000))
        beyond = max(beyond, limits.utilization(at.velocity, at.acceleration) - 1.0)
        try:
            peer = toppra_of(path, limits)
        except ImportError as error:
            missing = str(error)
            continue
        theirs.append(least(peer))
        longer.append(motion.duration / peer() - 1.0)
    figures: list[dict[str, Any]] = [
        {
            "name": "a path in time, median", "value": median(ours), "unit": "ms", "target": "ratio >= 10",
            "peer": "toppra", "peer_value": median(theirs) if theirs else None,
            "ratio": median(theirs) / median(ours) if theirs else None, "missing": missing,
        },
        {"name": "limits exceeded, at most", "value": 100.0 * beyond, "unit": "%", "target": "<= 0.1"},
    ]  # fmt: skip
    if longer:
        worst = 100.0 * max(longer)
        figures.append({"name": "longer than toppra's motion, at most", "value": worst, "unit": "%", "target": "<= 3"})
    return {"figures": figures, "details": [f"{len(ours)} paths, the slowest {max(ours):.2f} ms"]}
