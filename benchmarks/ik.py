"""Inverse kinematics of arms: solved share, time, branches beside EAIK's and a search's, wishes that cannot be met.

Arms of ours, and the UR5e, Franka and Baxter of the folder that ROBOYARD_DATA names; with ``--robot`` any other.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.errors import RoboyardError
from roboyard.kinematics import Chain
from roboyard.kinematics.ik import IkConfig, IkFailure, PointingTarget, find_closed_form, solve_ik, solve_ik_batch
from roboyard.kinematics.ik.numeric_ik import IkTarget, search_from_seeds

ARMS = ("scitos_arm", "iisy", "youbot_arm")
OTHERS: dict[str, tuple[str, dict[str, str]]] = {
    "ur5e": ("ur5e/ur_description/urdf/ur.urdf.xacro", {"name": "ur5e", "ur_type": "ur5e"}),
    "franka": ("franka/franka_description/robots/panda/panda.expanded.urdf", {}),
    "baxter": ("baxter/baxter_description/urdf/baxter.urdf", {}),
}
POSES, NIGHTLY = 10_000, 100_000
PART = 100
"""Poses of one call, of which times are taken."""
COUNTED, SEARCHED, WISHES = 1000, 12, 25
EXACT = 1e-6


def arms(robot: str | None) -> Iterator[tuple[str, Chain]]:
    """Name and chain of each arm."""
    for name in (robot,) if robot is not None else ARMS:
        yield name, load_joint_groups(name, repair=True).chain()
    folder = os.environ.get("ROBOYARD_DATA")
    if robot is None and folder:
        for name, (path, arguments) in OTHERS.items():
            file = Path(folder) / "descriptions" / path
            if file.is_file():
                yield name, load_joint_groups(str(file), arguments=arguments, repair=True).chain()


def poses_of(chain: Chain, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    q = chain.sample_positions(np.random.default_rng(seed), count)
    return q, chain.forward(q)


def off(chain: Chain, q: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Metres and radians (k, 2) from the poses."""
    found = chain.forward(q)
    turn = np.einsum("kij,kil->kjl", T[:, :3, :3], found[:, :3, :3])
    skew = np.stack([turn[:, 2, 1] - turn[:, 1, 2], turn[:, 0, 2] - turn[:, 2, 0], turn[:, 1, 0] - turn[:, 0, 1]], 1)
    angle = np.arctan2(np.linalg.norm(skew, axis=1), np.trace(turn, axis1=1, axis2=2) - 1.0)
    return np.stack([np.linalg.norm(T[:, :3, 3] - found[:, :3, 3], axis=1), angle], axis=1)


def eaik_of(chain: Chain) -> tuple[Any, np.ndarray] | None:
    """EAIK's solver, and the positions that it counts from: at zero it refuses axes that are parallel there."""
    from eaik.IK_Homogeneous import HomogeneousRobot

    start = np.array([0.3, -0.8, 1.1, 0.7, -1.3, 0.5, 0.2])[: chain.dof]
    frames = [*chain.frames(start)[1:], chain.forward(start)]
    try:
        robot = HomogeneousRobot(np.stack(frames))
    except (RuntimeError, ValueError):
        return None
    return (robot, start) if robot.hasKnownDecomposition() else None


def within(chain: Chain, q: np.ndarray) -> np.ndarray:
    """Those of the positions (k, n) that some whole turns bring within the limits, each once."""
    kept: list[np.ndarray] = []
    for row in q:
        turns = 2.0 * math.pi * np.ceil((chain.lower - 1e-6 - row) / (2.0 * math.pi))
        at = row + np.where(np.isfinite(turns), turns, 0.0)
        apart = [np.abs(np.remainder(other - at + math.pi, 2.0 * math.pi) - math.pi).max() for other in kept]
        if (at <= chain.upper + 1e-6).all() and min(apart, default=1.0) > 1e-5:
            kept.append(at)
    return np.array(kept).reshape(-1, chain.dof)


def solved(nightly: bool, seed: int = 0, robot: str | None = None) -> dict[str, Any]:
    """Poses that forward kinematics reached, solved again."""
    figures, details = [], []
    for name, chain in arms(robot):
        q, T = poses_of(chain, NIGHTLY if nightly else POSES, seed)
        near = chain.sample_positions(np.random.default_rng(seed + 1), len(q))
        solve_ik_batch(chain, T[:2], near[:2])  # compiles
        closed = find_closed_form(chain) is not None
        times, found, slow = [], [], 0.0
        for k in range(0, len(q), PART):
            start = time.perf_counter()
            batch = solve_ik_batch(chain, T[k : k + PART], near[k : k + PART])
            times.append((time.perf_counter() - start) / PART * 1e6)
            found.append(batch.best)
        slow = max(times)
        answers = np.concatenate(found)
        there = np.isfinite(answers[:, 0])
        errors = off(chain, answers[there], T[there])
        share = float((errors <= EXACT).all(axis=1).sum()) / len(q)
        bound = 1.0 if closed else 0.995
        figures.append({"name": f"{name}: solved to 1 µm", "value": share, "target": f">= {bound}"})
        figure = {
            "name": f"{name}: one pose of {PART} at once",
            "value": float(np.median(times)),
            "unit": "µs",
            "limit": 10.0 if closed else 1000.0,
        }
        figures.append(figure | _eaik_time(chain, T[:1000]))
        details.append(f"{name}: {batch.method}, {len(q)} poses, the slowest hundred {slow:.1f} µs a pose")
        for k in np.flatnonzero(~there)[:3]:
            answer = solve_ik(chain, T[k], near[k])
            details.append(f"{name}: pose {k}: {answer.failure.value if answer.failure else 'found from another seed'}")
    return {"figures": figures, "details": details}


def _eaik_time(chain: Chain, T: np.ndarray) -> dict[str, Any]:
    """A pose by EAIK, its answers unchecked and beyond limits too."""
    try:
        peer = eaik_of(chain)
    except ImportError as error:
        return {"peer": "EAIK", "missing": str(error)}
    if peer is None:
        return {"peer": "EAIK", "missing": "it knows no closed form for this arm"}
    robot, _ = peer
    start = time.perf_counter()
    for pose in T:
        robot.IK(pose)
    value = (time.perf_counter() - start) / len(T) * 1e6
    return {"peer": "EAIK, limits and errors unchecked", "peer_value": value}


def branches(nightly: bool, seed: int = 0, robot: str | None = None) -> dict[str, Any]:
    """Branches beside an independent count: EAIK's, and a search's from everywhere."""
    figures, details = [], []
    for name, chain in arms(robot):
        if find_closed_form(chain) is None:
            continue
        _, T = poses_of(chain, COUNTED * (10 if nightly else 1), seed + 2)
        ours = solve_ik_batch(chain, T)
        try:
            peer = eaik_of(chain)
        except ImportError:
            peer = None
        if peer is not None:
            robot_, start = peer
            fewer = more = 0
            for k, pose in enumerate(T):
                every = np.array(robot_.IK(pose).Q).reshape(-1, chain.dof) + start
                right = every[(off(chain, every, np.repeat(pose[None], len(every), 0)) < EXACT).all(axis=1)]
                theirs = len(within(chain, right))
                fewer += int(ours.n_solutions[k] < theirs)
                more += int(ours.n_solutions[k] > theirs)
            figures.append({"name": f"{name}: poses with fewer branches than EAIK finds", "value": fewer, "limit": 0})
            details.append(f"{name}: more branches than EAIK at {more} of {len(T)} poses")
        missing = sum(_missing(chain, pose, seed) for pose in T[: SEARCHED * (10 if nightly else 1)])
        figures.append({"name": f"{name}: branches that a search finds beside ours", "value": missing, "limit": 0})
        bounds = chain.is_within_limits(ours.solutions[np.isfinite(ours.solutions[..., 0])])
        figures.append({"name": f"{name}: branches beyond limits", "value": int((~bounds).sum()), "limit": 0})
        details.append(f"{name}: {ours.n_solutions.mean():.2f} branches a pose, at most {ours.n_solutions.max()}")
    return {"figures": figures, "details": details}


def _missing(chain: Chain, pose: np.ndarray, seed: int) -> int:
    seeds, out = chain.sample_positions(np.random.default_rng(seed + 3), 3000), np.empty((64, chain.dof))
    wish = IkTarget(pose, np.zeros(3), np.array([1.0, 0.1]))
    count, _ = search_from_seeds(chain.arrays, wish, np.array([1e-8, 1e-8]), seeds, 64, 80, out)
    known = np.array(solve_ik(chain, pose).solutions)
    apart = np.abs(np.remainder(out[:count, None] - known[None] + math.pi, 2 * math.pi) - math.pi).max(axis=2)
    return int((apart.min(axis=1, initial=math.inf) > 1e-2).sum())


def wishes(nightly: bool, seed: int = 0, robot: str | None = None) -> dict[str, Any]:
    """Places and directions that five joints cannot meet, beside the best of many starts of scipy's least squares."""
    figures, details = [], []
    for name, chain in arms(robot):
        if chain.dof != 5:
            continue
        rng = np.random.default_rng(seed + 4)
        ratios, times, angles = [], [], []
        while len(ratios) < WISHES * (8 if nightly else 1):
            place = chain.forward(chain.sample_positions(rng, 1)[0])[:3, 3] + rng.normal(0.0, 0.05, 3)
            goal = PointingTarget(place, rng.normal(size=3))
            start = time.perf_counter()
            answer = solve_ik(chain, goal)
            if answer.nearest is None or answer.nearest.cost < 1e-6:
                continue
            times.append((time.perf_counter() - start) * 1e3)
            angles.append(answer.nearest.angle)
            ratios.append(answer.nearest.cost / brute_force(chain, goal, rng))
        figures.append({"name": f"{name}: worst wish beside brute force", "value": max(ratios), "limit": 1.01})
        figures.append({"name": f"{name}: a wish that cannot be met", "value": float(np.median(times)), "unit": "ms"})
        details.append(
            f"{name}: {len(ratios)} wishes, wrong by {math.degrees(float(np.mean(angles))):.0f}° in the mean"
        )
    return {"figures": figures, "details": details}


def brute_force(chain: Chain, goal: PointingTarget, rng: np.random.Generator) -> float:
    """Least weighted error [m] from 60 random starts."""
    axis = np.array(goal.axis) / np.linalg.norm(goal.axis)
    weight = IkConfig().meters_per_radian

    def missing(q: np.ndarray) -> np.ndarray:
        T = chain.forward(q)
        across = np.cross(T[:3, 2], axis)
        sine = float(np.linalg.norm(across))
        scale = math.atan2(sine, float(T[:3, 2] @ axis)) / max(sine, 1e-12)
        return np.concatenate([T[:3, 3] - goal.position, weight * scale * across])

    starts = chain.sample_positions(rng, 60)
    return min(
        float(np.linalg.norm(least_squares(missing, at, bounds=(chain.lower, chain.upper)).fun)) for at in starts
    )


def peers(nightly: bool, seed: int = 0, robot: str | None = None) -> dict[str, Any]:
    """Pinocchio's usual loop (damped least squares, from one seed, clamped to the limits) beside ours."""
    import pinocchio as pin

    from roboyard.description.write import write_urdf

    figures: list[dict[str, Any]] = []
    for name, chain in arms(robot):
        groups = load_joint_groups(name, repair=True) if name not in OTHERS else None
        if groups is None:
            continue
        model = pin.buildModelFromXML(write_urdf(groups.model).text)
        keep = [model.getJointId(joint) for joint in chain.joints]
        rest = [j for j in range(1, model.njoints) if j not in keep]
        model = pin.buildReducedModel(model, rest, np.zeros(model.nq))
        data, frame = model.createData(), model.getFrameId(chain.tip)
        order = [model.joints[model.getJointId(joint)].idx_q for joint in chain.joints]
        count = 200
        q, T = poses_of(chain, count, seed)
        pin.framesForwardKinematics(model, data, _sorted(q[0], order))
        base = data.oMf[model.getFrameId(chain.base)]
        met, start = 0, time.perf_counter()
        middle = _sorted(0.5 * (chain.lower + chain.upper), order)
        for pose in T:
            met += _pinocchio(pin, model, data, frame, base * pin.SE3(pose), middle.copy())
        taken = (time.perf_counter() - start) / count * 1e6
        solve_ik_batch(chain, T[:2])  # compiles
        began = time.perf_counter()
        solve_ik_batch(chain, T)
        ours = (time.perf_counter() - began) / count * 1e6
        figures.append(
            {
                "name": f"{name}: a pose, beside Pinocchio from one seed",
                "value": ours,
                "unit": "µs",
                "peer": f"Pinocchio: {met / count:.0%} solved",
                "peer_value": taken,
                "ratio": taken / ours,
            }
        )
    return {"figures": figures}


def _sorted(q: np.ndarray, order: list[int]) -> np.ndarray:
    out = np.empty(len(q))
    out[order] = q
    return out


def _pinocchio(pin: Any, model: Any, data: Any, frame: int, goal: Any, q: np.ndarray) -> bool:
    for _ in range(200):
        pin.framesForwardKinematics(model, data, q)
        gap = data.oMf[frame].actInv(goal)
        error = pin.log(gap).vector
        if np.linalg.norm(error) < EXACT:
            return True
        J = pin.computeFrameJacobian(model, data, q, frame)
        J = -pin.Jlog6(gap.inverse()) @ J
        v = -J.T @ np.linalg.solve(J @ J.T + 1e-6 * np.eye(6), error)
        q = np.clip(pin.integrate(model, q, v), model.lowerPositionLimit, model.upperPositionLimit)
    return False


def unknown(nightly: bool, seed: int = 0, robot: str | None = None) -> dict[str, Any]:
    """Causes of what cannot be: each of poses moved out of reach is told as such."""
    figures = []
    for name, chain in arms(robot):
        _, T = poses_of(chain, 20, seed + 5)
        T[:, :3, 3] += 10.0
        told = sum(solve_ik(chain, pose).failure is IkFailure.OUT_OF_REACH for pose in T)
        figures.append({"name": f"{name}: out of reach, and told so", "value": told / len(T), "target": ">= 1"})
    return {"figures": figures}


PARTS = [solved, branches, wishes, unknown, peers]

if __name__ == "__main__":
    for part in PARTS:
        try:
            for figure in part(False)["figures"]:
                print(figure)
        except (ImportError, RoboyardError) as error:
            print(part.__name__, error)
