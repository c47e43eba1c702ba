"""Hand-eye calibration: AX = XB by Park and Martin, refined by least squares, with covariance; and its files.

Eye in hand: the camera is mounted on the flange, the target is fixed.  Eye to hand: the camera is fixed, the target
is mounted on the flange.  Both are AX = XB with motions A of the flange and motions B of the target in the camera.

Sources: F. C. Park, B. J. Martin, "Robot sensor calibration: solving AX = XB on the Euclidean group", IEEE Transactions
on Robotics and Automation 10 (1994); R. Y. Tsai, R. K. Lenz, same, 5 (1989), on which motions suffice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from roboyard.config import load, parameter
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array

HandEyeSetup = Literal["eye-in-hand", "eye-to-hand"]
HAND_EYE_SETUPS: tuple[HandEyeSetup, ...] = ("eye-in-hand", "eye-to-hand")

MIN_POSES = 3
_MIN_ROTATION = math.radians(5.0)  # smallest rotation between two poses whose axis is used
_MIN_AXIS_ANGLE = math.radians(15.0)  # smallest angle between two rotation axes
_SOLVER_OPTIONS: dict[str, Any] = {"method": "lm", "xtol": 1e-14, "ftol": 1e-14, "gtol": 1e-14}


class HandEyeError(InputError):
    """The samples do not determine the pose of the camera; the message states the missing motion."""


@dataclass(frozen=True, eq=False)
class HandEyeCalibration:
    """Result of a hand-eye calibration.

    Attributes:
        setup: Eye in hand or eye to hand.
        T_mount_camera: Pose of the camera's optical frame on the flange (eye in hand) or in the arm's base (eye to
            hand).
        T_other_target: Pose of the target in the arm's base (eye in hand) or on the flange (eye to hand).
        covariance: (6, 6) of ``T_mount_camera``: translation [m], then rotation [rad], in the camera's frame.
        position_errors: (n,) distance of the target from its estimated position, for each sample [m].
        rotation_errors: (n,) the same for its rotation [rad].
        rotation_axis_spread: Angle by which the rotation axes of the samples differ [rad].
    """

    setup: HandEyeSetup
    T_mount_camera: SE3
    T_other_target: SE3
    covariance: Array
    position_errors: Array
    rotation_errors: Array
    rotation_axis_spread: float

    @property
    def position_std(self) -> float:
        """Standard deviation of the camera's position, along the worst axis [m]."""
        return float(math.sqrt(np.linalg.eigvalsh(self.covariance[:3, :3])[-1]))

    @property
    def rotation_std(self) -> float:
        """Standard deviation of the camera's rotation, about the worst axis [rad]."""
        return float(math.sqrt(np.linalg.eigvalsh(self.covariance[3:, 3:])[-1]))


def calibrate_hand_eye(
    T_base_flange: Sequence[SE3], T_camera_target: Sequence[SE3], setup: HandEyeSetup = "eye-in-hand"
) -> HandEyeCalibration:
    """Estimate the pose of a camera from poses of the arm and poses of a target that the camera measured there.

    Args:
        T_base_flange: Poses of the flange (n).
        T_camera_target: Poses of the target in the camera's optical frame (n).
        setup: ``eye-in-hand`` or ``eye-to-hand``.

    Raises:
        HandEyeError: There are too few poses, the rotations are too small, or all have the same axis.
        InputError: The numbers of poses of the arm and of the target differ, or the setup is unknown.
    """
    if setup not in HAND_EYE_SETUPS:
        raise InputError(f"setup {setup!r}", location="hand-eye", valid=", ".join(HAND_EYE_SETUPS))
    if len(T_base_flange) != len(T_camera_target):
        raise InputError(
            f"{len(T_base_flange)} poses of the arm and {len(T_camera_target)} of the target", location="hand-eye",
            valid="one of each for every image",
        )  # fmt: skip
    if len(T_base_flange) < MIN_POSES:
        raise HandEyeError(
            f"{len(T_base_flange)} poses do not determine the pose of the camera", location="hand-eye",
            valid=f"at least {MIN_POSES}, better 10 to 20, with rotations about different axes",
        )  # fmt: skip
    # With a fixed camera the base takes the role of the flange: it moves relative to the target.
    mount_poses = list(T_base_flange) if setup == "eye-in-hand" else [T.inverse() for T in T_base_flange]
    axis_spread = _check_rotation_axes(mount_poses)
    X = _solve_park_martin(mount_poses, T_camera_target)
    Z = _median_pose([H @ X @ B for H, B in zip(mount_poses, T_camera_target, strict=True)])
    return _refine(mount_poses, list(T_camera_target), X, Z, setup, axis_spread)


def _pose_pairs(poses: Sequence[SE3]) -> list[tuple[int, int]]:
    """Return the indices of all pairs of poses: with all pairs the errors of single poses have the least weight."""
    return [(i, j) for i in range(len(poses)) for j in range(i + 1, len(poses))]


def _rotation_vector(T: SE3) -> Array:
    """Rotation vector (3,) [rad]."""
    _, x, y, z = T.quaternion
    norm = math.sqrt(x * x + y * y + z * z)
    return (T.angle / norm if norm > 1e-12 else 2.0) * np.array([x, y, z])


def _check_rotation_axes(mount_poses: Sequence[SE3]) -> float:
    """Return the angle by which the rotation axes of the motions differ [rad].

    Raises:
        HandEyeError: There are no rotations, or all have the same axis.
    """
    rotations = [_rotation_vector(mount_poses[i].inverse() @ mount_poses[j]) for i, j in _pose_pairs(mount_poses)]
    large_rotations = np.array(
        [rotation for rotation in rotations if np.linalg.norm(rotation) > _MIN_ROTATION]
    ).reshape(-1, 3)
    if len(large_rotations) < 2:
        max_angle = math.degrees(max((float(np.linalg.norm(rotation)) for rotation in rotations), default=0.0))
        raise HandEyeError(
            f"the arm rotates by {max_angle:.1f}° at most between its poses", location="hand-eye",
            valid=f"rotations of more than {math.degrees(_MIN_ROTATION):.0f}° about two axes at least; 30° and "
            "more are good",
        )  # fmt: skip
    axes = large_rotations / np.linalg.norm(large_rotations, axis=1, keepdims=True)
    # Second moment of the axes: if all are parallel, it has one nonzero eigenvalue.
    eigenvalues = np.linalg.eigvalsh(axes.T @ axes / len(axes))
    axis_spread = math.asin(min(1.0, math.sqrt(max(0.0, float(eigenvalues[0] + eigenvalues[1])))))
    if axis_spread < 0.5 * _MIN_AXIS_ANGLE:
        direction = np.linalg.eigh(axes.T @ axes)[1][:, 2]
        axis_text = ", ".join(f"{value:.2f}" for value in direction)
        raise HandEyeError(
            f"all rotations have nearly the same axis ({axis_text}) of the flange: the position of the camera along "
            "it is arbitrary",
            location="hand-eye",
            valid=f"rotations about a second axis, {math.degrees(_MIN_AXIS_ANGLE):.0f}° away at least",
        )
    return axis_spread


def _solve_park_martin(mount_poses: Sequence[SE3], target_poses: Sequence[SE3]) -> SE3:
    """Closed form: the rotation between the axes of both motions, then the translation by least squares."""
    M, coefficients, constants = np.zeros((3, 3)), [], []
    pairs = _pose_pairs(mount_poses)
    motions = [
        (mount_poses[i].inverse() @ mount_poses[j], target_poses[i] @ target_poses[j].inverse()) for i, j in pairs
    ]
    for A, B in motions:
        M += np.outer(_rotation_vector(B), _rotation_vector(A))
    U, _, Vt = np.linalg.svd(M)
    # (M' M)^(-1/2) M' of the paper is the rotation nearest to M'; by singular values it is one even for few motions.
    R = Vt.T @ np.diag([1.0, 1.0, np.sign(np.linalg.det(Vt.T @ U.T))]) @ U.T
    for A, B in motions:
        coefficients.append(A.rotation_matrix() - np.eye(3))
        constants.append(R @ B.translation - A.translation)
    t = np.linalg.lstsq(np.concatenate(coefficients), np.concatenate(constants), rcond=None)[0]
    return SE3.from_rotation_matrix(R, t)


def _median_pose(poses: Sequence[SE3]) -> SE3:
    """Median of poses that are close together."""
    first = poses[0]
    twists = np.array([[*(T.translation - first.translation), *_rotation_vector(first.inverse() @ T)] for T in poses])
    median = np.median(twists, axis=0)
    rotated = first @ SE3.exp([0.0, 0.0, 0.0, *median[3:]])
    return SE3(rotated.rotation, first.translation + median[:3])


def _refine(
    mount_poses: Sequence[SE3], target_poses: Sequence[SE3], X: SE3, Z: SE3, setup: HandEyeSetup, axis_spread: float
) -> HandEyeCalibration:
    """Estimate both unknown poses by least squares of the differences between measured and estimated target poses.

    Positions and rotations are weighted by their standard deviations, estimated from the residuals of the last fit.
    """
    from scipy.optimize import least_squares

    scale = 1.0

    def pose_errors(p: Array) -> Array:
        X_p, Z_p = X @ SE3.exp(p[:6]), Z @ SE3.exp(p[6:])
        rows = np.empty((len(mount_poses), 6))
        for k, (H, B) in enumerate(zip(mount_poses, target_poses, strict=True)):
            T_error = (H @ X_p @ B).inverse() @ Z_p
            rows[k, :3], rows[k, 3:] = T_error.translation, _rotation_vector(T_error)
        return rows

    def weighted_errors(p: Array) -> Array:
        residuals = pose_errors(p)
        return np.concatenate([residuals[:, :3].ravel(), scale * residuals[:, 3:].ravel()])

    fit = least_squares(weighted_errors, np.zeros(12), **_SOLVER_OPTIONS)
    for _ in range(2):
        residuals = pose_errors(fit.x)
        position_rms, rotation_rms = (
            math.sqrt(float(np.mean(residuals[:, :3] ** 2))),
            math.sqrt(float(np.mean(residuals[:, 3:] ** 2))),
        )
        scale = min(max(position_rms / max(rotation_rms, 1e-12), 1e-2), 1e2) if rotation_rms > 1e-9 else 1.0
        fit = least_squares(weighted_errors, fit.x, **_SOLVER_OPTIONS)
    p, residuals = fit.x, pose_errors(fit.x)
    degrees_of_freedom = max(6 * len(mount_poses) - 12, 1)
    variance = 2.0 * fit.cost / degrees_of_freedom
    J = np.asarray(fit.jac, dtype=np.float64)
    covariance = np.asarray(variance * np.linalg.pinv(J.T @ J)[:6, :6], dtype=np.float64)
    return HandEyeCalibration(
        setup, X @ SE3.exp(p[:6]), Z @ SE3.exp(p[6:]), covariance, _row_norms(residuals[:, :3]),
        _row_norms(residuals[:, 3:]), axis_spread,
    )  # fmt: skip


def _row_norms(rows: Array) -> Array:
    return np.asarray(np.sqrt(np.sum(rows**2, axis=1)), dtype=np.float64)


@dataclass(frozen=True)
class PoseEntry:
    """A pose in a file of samples.

    Attributes:
        xyz: Position [m].
        quaternion: w, x, y, z; or
        rpy: Roll, pitch, yaw about fixed axes [rad].
    """

    xyz: tuple[float, float, float]
    quaternion: tuple[float, float, float, float] | None = None
    rpy: tuple[float, float, float] | None = None

    def to_se3(self, location: str) -> SE3:
        """Convert to a pose.

        Raises:
            ConfigError: Neither or both of ``quaternion`` and ``rpy`` are given, or the quaternion is no rotation.
        """
        if (self.quaternion is None) == (self.rpy is None):
            raise ConfigError(
                "a pose needs one rotation", location=location, valid="quaternion: [w, x, y, z] or rpy: [r, p, y]"
            )
        try:
            return (
                SE3(self.quaternion, self.xyz) if self.quaternion else SE3.from_xyz_rpy(self.xyz, self.rpy or (0, 0, 0))
            )
        except InputError as error:
            raise ConfigError(error.message, location=location, valid=error.valid) from error


@dataclass(frozen=True)
class HandEyeSample:
    """One sample: poses at the moment of an image.

    Attributes:
        arm: Pose of the flange in the arm's base.
        target: Pose of the target in the camera's optical frame.
    """

    arm: PoseEntry
    target: PoseEntry


@dataclass(frozen=True)
class HandEyeFile:
    """Content of a file of samples.

    Attributes:
        setup: ``eye-in-hand`` or ``eye-to-hand``.
        poses: One sample for each image.
    """

    setup: HandEyeSetup = parameter("eye-in-hand", doc="Mount of the camera.")
    poses: tuple[HandEyeSample, ...] = ()


def load_hand_eye_samples(path: str | Path) -> tuple[HandEyeSetup, list[SE3], list[SE3]]:
    """Load the setup, the poses of the flange in the base, and the poses of the target in the camera.

    Raises:
        ConfigError: The file is unreadable or has another form; the message names file, key and valid values.
    """
    data = load(HandEyeFile, path)
    arm = [one.arm.to_se3(f"{path}: poses[{k}].arm") for k, one in enumerate(data.poses)]
    target = [one.target.to_se3(f"{path}: poses[{k}].target") for k, one in enumerate(data.poses)]
    return data.setup, arm, target


@dataclass(frozen=True)
class CameraMountFile:
    """Result file of `roboyard calibrate hand-eye`: pose of the camera with standard deviations.

    Attributes:
        setup: ``eye-in-hand``: on the flange; ``eye-to-hand``: in the arm's base.
        xyz: Position of its optical frame [m].
        quaternion: w, x, y, z.
        rpy: The same rotation as angles, for readers; ignored when the file is loaded.
        sigma_xyz: Standard deviations [m]; ignored when the file is loaded.
        sigma_rotation: Standard deviations [rad]; ignored when the file is loaded.
        covariance: Covariance of translation and rotation; ignored when the file is loaded.
    """

    setup: HandEyeSetup
    xyz: tuple[float, float, float]
    quaternion: tuple[float, float, float, float]
    rpy: tuple[float, ...] = ()
    sigma_xyz: tuple[float, ...] = ()
    sigma_rotation: tuple[float, ...] = ()
    covariance: tuple[tuple[float, ...], ...] = ()


def load_camera_mount(path: str | Path) -> SE3:
    """Load the calibrated pose of the camera's optical frame on the flange or in the base.

    Raises:
        ConfigError: The file is unreadable or has another form; the message names file, key and valid values.
    """
    data = load(CameraMountFile, path)
    return PoseEntry(data.xyz, data.quaternion).to_se3(str(path))


def format_hand_eye_samples(setup: HandEyeSetup, arm: Sequence[SE3], target: Sequence[SE3]) -> str:
    """Return the text of a file of samples."""
    lines = [f"setup: {setup}", "poses:"]
    for arm_pose, target_pose in zip(arm, target, strict=True):
        lines += [f"  - arm: {_format_pose(arm_pose)}", f"    target: {_format_pose(target_pose)}"]
    return "\n".join(lines) + "\n"


def format_hand_eye_calibration(calibration: HandEyeCalibration) -> str:
    """Return YAML of the camera's pose, as in URDF and as a quaternion, with standard deviations and covariance."""
    T, sigma = calibration.T_mount_camera, calibration.covariance.diagonal() ** 0.5
    rows = "\n".join(f"  - {_format_numbers(row)}" for row in calibration.covariance)
    return (
        "# Pose of the camera's optical frame "
        f"{'on the flange' if calibration.setup == 'eye-in-hand' else 'in the base'}.\n"
        f"setup: {calibration.setup}\nxyz: {_format_numbers(T.translation)}\nquaternion: "
        f"{_format_numbers(T.rotation)}\n"
        f"rpy: {_format_numbers(T.rpy)}\nsigma_xyz: {_format_numbers(sigma[:3])}\nsigma_rotation: "
        f"{_format_numbers(sigma[3:])}\n"
        f"covariance:\n{rows}\n"
    )


def _format_pose(T: SE3) -> str:
    return f"{{xyz: {_format_numbers(T.translation)}, quaternion: {_format_numbers(T.rotation)}}}"


def _format_numbers(values: Sequence[float] | NDArray[np.float64]) -> str:
    return "[" + ", ".join(f"{float(value):.9g}" for value in values) + "]"
