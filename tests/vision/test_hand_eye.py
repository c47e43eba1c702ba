"""Camera mounts on arms: exact without noise, within bounds with noise, refused where they are not observable."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE3
from roboyard.vision.calibration.hand_eye import (
    HAND_EYE_SETUPS,
    HandEyeError,
    HandEyeSetup,
    calibrate_hand_eye,
    format_hand_eye_calibration,
    format_hand_eye_samples,
    load_hand_eye_samples,
)


def random_pose(rng: np.random.Generator, max_distance: float, max_rotation: float) -> SE3:
    axis = rng.normal(size=3)
    position = rng.uniform(-max_distance, max_distance, 3)
    return SE3.exp([*position, *(axis / np.linalg.norm(axis) * rng.uniform(-max_rotation, max_rotation))])


def simulate_calibration(
    seed: int, count: int, setup: HandEyeSetup, position_noise: float = 0.0, rotation_noise: float = 0.0
) -> tuple[SE3, list[SE3], list[SE3]]:
    """True pose of the camera, poses of the arm, and poses of the target in the camera with noise [m], [rad]."""
    rng = np.random.default_rng(seed)
    X, Z = random_pose(rng, 0.1, 2.0), random_pose(rng, 0.6, 2.0)
    arm = [random_pose(rng, 0.3, 1.0) for _ in range(count)]
    mounts = arm if setup == "eye-in-hand" else [T.inverse() for T in arm]
    observed = [(H @ X).inverse() @ Z for H in mounts]
    noisy = [B @ SE3.exp([*rng.normal(0.0, position_noise, 3), *rng.normal(0.0, rotation_noise, 3)]) for B in observed]
    return X, arm, noisy


@pytest.mark.parametrize("setup", HAND_EYE_SETUPS)
def test_hand_eye_is_exact_without_noise(setup: HandEyeSetup) -> None:
    for seed in range(4):
        X, arm, observed = simulate_calibration(seed, 6, setup)
        result = calibrate_hand_eye(arm, observed, setup)
        T_error = X.inverse() @ result.T_mount_camera
        assert np.linalg.norm(T_error.translation) < 1e-9
        assert T_error.angle < 1e-7
        assert result.position_errors.max() < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("setup", HAND_EYE_SETUPS)
def test_hand_eye_errors_match_the_covariance(setup: HandEyeSetup) -> None:
    squared_distances = []
    for seed in range(12):
        X, arm, observed = simulate_calibration(100 + seed, 12, setup, 0.001, 0.003)
        result = calibrate_hand_eye(arm, observed, setup)
        T_error = X.inverse() @ result.T_mount_camera
        assert np.linalg.norm(T_error.translation) < 0.004
        assert T_error.angle < 0.008
        error = np.array([*T_error.translation, *rotation_vector(T_error)])
        squared_distances.append(float(error @ np.linalg.solve(result.covariance, error)))
    # chi squared with six degrees of freedom: the mean is 6, a covariance from 12 poses is a little small
    assert 2.0 < np.mean(squared_distances) < 14.0


def rotation_vector(T: SE3) -> np.ndarray:
    w, *v = T.quaternion
    return 2.0 * np.array(v) / max(w, 1e-9)


@pytest.mark.slow
def test_hand_eye_error_falls_with_more_poses() -> None:
    errors = []
    for count in (5, 10, 40):
        position_errors = []
        for seed in range(6):
            X, arm, observed = simulate_calibration(200 + seed, count, "eye-in-hand", 0.001, 0.002)
            position_errors.append(
                np.linalg.norm((X.inverse() @ calibrate_hand_eye(arm, observed).T_mount_camera).translation)
            )
        errors.append(float(np.median(position_errors)))
    assert errors[0] > errors[1] > errors[2]


# What OpenCV 4.14's calibrateHandEye gives for this experiment: translation [m], and the first row of the rotation.
OPENCV = {
    "Tsai": ([-0.126711600985, 0.004130425911, 0.005400765552], [-0.14827919653, 0.676109929186, -0.7217261555]),
    "Park": ([-0.126726428531, 0.004234119692, 0.00543147827], [-0.148835770432, 0.676795362935, -0.720968758096]),
    "Horaud": ([-0.126710854708, 0.004231076079, 0.005423424814], [-0.148856283449, 0.676813697951, -0.720947310935]),
    "Daniilidis": (
        [-0.126823367558, 0.004204888443, 0.004948905821],
        [-0.148211140715, 0.676499331179, -0.721375153912],
    ),
}


def test_hand_eye_agrees_with_opencv_methods() -> None:
    """Other methods on the same poses: they agree within what noise allows, and none is much nearer to the truth."""
    X, arm, observed = simulate_calibration(11, 10, "eye-in-hand", 0.001, 0.002)
    result = calibrate_hand_eye(arm, observed)
    error = float(np.linalg.norm(result.T_mount_camera.translation - X.translation))
    for position, row in OPENCV.values():
        assert np.linalg.norm(result.T_mount_camera.translation - position) < 3.0 * result.position_std
        assert np.linalg.norm(result.T_mount_camera.rotation_matrix()[0] - row) < 5.0 * result.rotation_std
        assert error < 1.2 * np.linalg.norm(np.array(position) - X.translation)


def rotations_around(axis: tuple[float, float, float], count: int = 6) -> list[SE3]:
    return [SE3.exp([0.1 * k, 0.02 * k * k, 0.0, *(0.3 * k * np.array(axis))]) for k in range(count)]


def test_degenerate_motions_are_refused() -> None:
    arm = rotations_around((0.0, 0.0, 1.0))
    with pytest.raises(HandEyeError, match=r"same axis \(0\.00, 0\.00, 1\.00\).*second axis"):
        calibrate_hand_eye(arm, arm)
    translations = [SE3.exp([0.1 * k, 0.05 * k * k, 0.0, 0.0, 0.0, 0.0]) for k in range(6)]
    with pytest.raises(HandEyeError, match="rotates by 0.0°"):
        calibrate_hand_eye(translations, translations)
    with pytest.raises(HandEyeError, match="2 poses"):
        calibrate_hand_eye(arm[:2], arm[:2])
    with pytest.raises(InputError, match="one of each"):
        calibrate_hand_eye(arm, arm[:4])
    with pytest.raises(InputError, match="eye-in-hand"):
        calibrate_hand_eye(arm, arm, "eye-on-desk")  # type: ignore[arg-type]


def test_hand_eye_files_are_read_back(tmp_path: Path) -> None:
    _, arm, observed = simulate_calibration(5, 8, "eye-to-hand", 0.0005, 0.001)
    path = tmp_path / "poses.yaml"
    path.write_text(format_hand_eye_samples("eye-to-hand", arm, observed))
    setup, arm_read, observed_read = load_hand_eye_samples(path)
    assert setup == "eye-to-hand"
    for one, two in zip([*arm, *observed], [*arm_read, *observed_read], strict=True):
        assert np.allclose(one.matrix(), two.matrix(), atol=1e-8)
    assert "covariance" in format_hand_eye_calibration(calibrate_hand_eye(arm_read, observed_read, setup))
    path.write_text("poses:\n  - arm: {xyz: [0, 0, 0]}\n    target: {xyz: [0, 0, 0], rpy: [0, 0, 0]}\n")
    with pytest.raises(ConfigError, match=r"poses\[0\].arm.*one rotation"):
        load_hand_eye_samples(path)
    path.write_text("setup: eye-in-foot\n")
    with pytest.raises(ConfigError, match="eye-in-hand"):
        load_hand_eye_samples(path)
