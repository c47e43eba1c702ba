"""Where a camera sits on an arm, or beside it: AX = XB by Park and Martin, then refined, with its covariance.

Eye in hand: the camera rides on the flange, the target stands still.  Eye to hand: the camera stands still, the target
rides on the flange.  Both are AX = XB with the flange's motions A and the target's motions B seen by the camera.

Sources: F. C. Park, B. J. Martin, "Robot sensor calibration: solving AX = XB on the Euclidean group", IEEE Transactions
on Robotics and Automation 10 (1994); R. Y. Tsai, R. K. Lenz, same, 5 (1989), on which motions suffice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array

Setup = Literal["eye-in-hand", "eye-to-hand"]
SETUPS: tuple[Setup, ...] = ("eye-in-hand", "eye-to-hand")

LEAST_POSES = 3
_TURNS = math.radians(5.0)  # least turn between two poses for its axis to mean anything
_APART = math.radians(15.0)  # least angle between two axes of turns
_EXACT: dict[str, Any] = {"method": "lm", "xtol": 1e-14, "ftol": 1e-14, "gtol": 1e-14}


class HandEyeError(InputError):
    """The poses do not determine where the camera is; the message says why and what would."""


@dataclass(frozen=True, eq=False)
class HandEye:
    """The result.

    Attributes:
        setup: Which of the two.
        T_mount_camera: Pose of the camera's optical frame on the flange (eye in hand) or in the arm's base (eye to
            hand).
        T_other_target: Pose of the target in the arm's base (eye in hand) or on the flange (eye to hand).
        covariance: (6, 6) of ``T_mount_camera``: translation [m], then rotation [rad], in the camera's frame.
        position_errors: (n,) of each pose, how far the target is from where it should be [m].
        rotation_errors: (n,) [rad].
        spread: Least angle to which the axes of turns differ [rad].
    """

    setup: Setup
    T_mount_camera: SE3
    T_other_target: SE3
    covariance: Array
    position_errors: Array
    rotation_errors: Array
    spread: float

    @property
    def position_sigma(self) -> float:
        """Standard deviation of the camera's position, along the worst axis [m]."""
        return float(math.sqrt(np.linalg.eigvalsh(self.covariance[:3, :3])[-1]))

    @property
    def rotation_sigma(self) -> float:
        """Of its direction, about the worst axis [rad]."""
        return float(math.sqrt(np.linalg.eigvalsh(self.covariance[3:, 3:])[-1]))


def calibrate_hand_eye(
    T_base_flange: Sequence[SE3], T_camera_target: Sequence[SE3], setup: Setup = "eye-in-hand"
) -> HandEye:
    """Find the camera's place from poses of the arm and of a target that the camera saw at each.

    Args:
        T_base_flange: Of the arm, n times.
        T_camera_target: Of the target in the camera's optical frame, n times.
        setup: ``eye-in-hand`` or ``eye-to-hand``.

    Raises:
        HandEyeError: too few poses, too little turning, turns about one axis only.
        InputError: as many poses of the target as of the arm are needed; no such setup.
    """
    if setup not in SETUPS:
        raise InputError(f"setup {setup!r}", location="hand-eye", valid=", ".join(SETUPS))
    if len(T_base_flange) != len(T_camera_target):
        raise InputError(
            f"{len(T_base_flange)} poses of the arm and {len(T_camera_target)} of the target", location="hand-eye",
            valid="one of each for every picture",
        )  # fmt: skip
    if len(T_base_flange) < LEAST_POSES:
        raise HandEyeError(
            f"{len(T_base_flange)} poses do not tell where the camera is", location="hand-eye",
            valid=f"at least {LEAST_POSES}, better 10 to 20, with turns about different axes",
        )  # fmt: skip
    # With the camera beside the arm the base takes the flange's part: its motions are seen from there.
    hand = list(T_base_flange) if setup == "eye-in-hand" else [T.inverse() for T in T_base_flange]
    spread = _check_turns(hand)
    X = _park_martin(hand, T_camera_target)
    Z = _middle([H @ X @ B for H, B in zip(hand, T_camera_target, strict=True)])
    return _refined(hand, list(T_camera_target), X, Z, setup, spread)


def _motions(poses: Sequence[SE3]) -> list[tuple[int, int]]:
    """Pairs of poses: each with each, as errors of single ones then weigh least."""
    return [(i, j) for i in range(len(poses)) for j in range(i + 1, len(poses))]


def _turn(T: SE3) -> Array:
    """Rotation vector (3,) [rad]."""
    _, x, y, z = T.quaternion
    size = math.sqrt(x * x + y * y + z * z)
    return (T.angle / size if size > 1e-12 else 2.0) * np.array([x, y, z])


def _check_turns(hand: Sequence[SE3]) -> float:
    """Least angle by which axes of turns differ [rad].

    Raises:
        HandEyeError: there are no turns, or all are about one axis.
    """
    turns = [_turn(hand[i].inverse() @ hand[j]) for i, j in _motions(hand)]
    large = np.array([turn for turn in turns if np.linalg.norm(turn) > _TURNS]).reshape(-1, 3)
    if len(large) < 2:
        most = math.degrees(max((float(np.linalg.norm(turn)) for turn in turns), default=0.0))
        raise HandEyeError(
            f"the arm turns by {most:.1f}° at most between its poses", location="hand-eye",
            valid=f"turns of more than {math.degrees(_TURNS):.0f}° about two axes at least; 30° and more are good",
        )  # fmt: skip
    axes = large / np.linalg.norm(large, axis=1, keepdims=True)
    # Second moment of the axes: if they are all parallel, one direction holds everything.
    values = np.linalg.eigvalsh(axes.T @ axes / len(axes))
    spread = math.asin(min(1.0, math.sqrt(max(0.0, float(values[0] + values[1])))))
    if spread < 0.5 * _APART:
        direction = np.linalg.eigh(axes.T @ axes)[1][:, 2]
        told = ", ".join(f"{value:.2f}" for value in direction)
        raise HandEyeError(
            f"all turns are about nearly the same axis ({told}) of the flange: the camera may lie anywhere along it",
            location="hand-eye", valid=f"turns about a second axis, {math.degrees(_APART):.0f}° away at least",
        )  # fmt: skip
    return spread


def _park_martin(hand: Sequence[SE3], seen: Sequence[SE3]) -> SE3:
    """Closed form: the rotation that turns the seen axes into the hand's, then the translation by least squares."""
    M, rows, right = np.zeros((3, 3)), [], []
    pairs = _motions(hand)
    motions = [(hand[i].inverse() @ hand[j], seen[i] @ seen[j].inverse()) for i, j in pairs]
    for A, B in motions:
        M += np.outer(_turn(B), _turn(A))
    U, _, Vt = np.linalg.svd(M)
    # (M' M)^(-1/2) M' of the paper is the rotation nearest to M'; by singular values it is one even for few motions.
    R = Vt.T @ np.diag([1.0, 1.0, np.sign(np.linalg.det(Vt.T @ U.T))]) @ U.T
    for A, B in motions:
        rows.append(A.rotation_matrix() - np.eye(3))
        right.append(R @ B.translation - A.translation)
    t = np.linalg.lstsq(np.concatenate(rows), np.concatenate(right), rcond=None)[0]
    return SE3.from_rotation_matrix(R, t)


def _middle(poses: Sequence[SE3]) -> SE3:
    """Mean of poses that lie close together."""
    first = poses[0]
    twists = np.array([[*(T.translation - first.translation), *_turn(first.inverse() @ T)] for T in poses])
    mean = np.median(twists, axis=0)
    turned = first @ SE3.exp([0.0, 0.0, 0.0, *mean[3:]])
    return SE3(turned.rotation, first.translation + mean[:3])


def _refined(hand: Sequence[SE3], seen: Sequence[SE3], X: SE3, Z: SE3, setup: Setup, spread: float) -> HandEye:
    """Both unknown poses by least squares of where the target is seen and where it should be.

    Positions and directions are weighed by their own spread, found from the residuals of a first round.
    """
    from scipy.optimize import least_squares

    scale = 1.0

    def errors(p: Array) -> Array:
        X_p, Z_p = X @ SE3.exp(p[:6]), Z @ SE3.exp(p[6:])
        out = np.empty((len(hand), 6))
        for k, (H, B) in enumerate(zip(hand, seen, strict=True)):
            gap = (H @ X_p @ B).inverse() @ Z_p
            out[k, :3], out[k, 3:] = gap.translation, _turn(gap)
        return out

    def weighed(p: Array) -> Array:
        found = errors(p)
        return np.concatenate([found[:, :3].ravel(), scale * found[:, 3:].ravel()])

    fit = least_squares(weighed, np.zeros(12), **_EXACT)
    for _ in range(2):
        found = errors(fit.x)
        far, turned = math.sqrt(float(np.mean(found[:, :3] ** 2))), math.sqrt(float(np.mean(found[:, 3:] ** 2)))
        scale = min(max(far / max(turned, 1e-12), 1e-2), 1e2) if turned > 1e-9 else 1.0
        fit = least_squares(weighed, fit.x, **_EXACT)
    p, found = fit.x, errors(fit.x)
    freedom = max(6 * len(hand) - 12, 1)
    variance = 2.0 * fit.cost / freedom
    J = np.asarray(fit.jac, dtype=np.float64)
    covariance = np.asarray(variance * np.linalg.pinv(J.T @ J)[:6, :6], dtype=np.float64)
    return HandEye(
        setup, X @ SE3.exp(p[:6]), Z @ SE3.exp(p[6:]), covariance, _lengths(found[:, :3]),
        _lengths(found[:, 3:]), spread,
    )  # fmt: skip


def _lengths(rows: Array) -> Array:
    return np.asarray(np.sqrt(np.sum(rows**2, axis=1)), dtype=np.float64)
