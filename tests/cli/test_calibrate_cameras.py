"""``roboyard calibrate camera`` and ``hand-eye``: results as text and JSON, refusals in one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.harness.live_bus import run_cli

from roboyard.geometry import SE3
from roboyard.vision.calibration.hand_eye import format_hand_eye_samples


def sample_file(count: int, *, is_rotated: bool) -> str:
    """A file of exact samples of arm and target poses; without ``is_rotated`` all rotations share one axis."""
    rng = np.random.default_rng(6)
    X, Z = SE3.from_xyz_rpy((0.05, 0.0, 0.03), (0.1, 0.0, 1.5)), SE3.from_xyz_rpy((0.5, 0.1, 0.0))
    arm = [
        SE3.from_xyz_rpy(rng.uniform(-0.2, 0.2, 3), rng.uniform(-0.6, 0.6, 3) if is_rotated else (0.0, 0.0, 0.2 * k))
        for k in range(count)
    ]
    return format_hand_eye_samples("eye-in-hand", arm, [(T @ X).inverse() @ Z for T in arm])


def test_hand_eye_command_writes_result_and_json(tmp_path: Path) -> None:
    file, out = tmp_path / "poses.yaml", tmp_path / "camera_pose.yaml"
    file.write_text(sample_file(8, is_rotated=True))
    result = run_cli("calibrate", "hand-eye", file, "--out", out, "--json")
    assert result.code == 0
    assert result.json["xyz"] == pytest.approx([0.05, 0.0, 0.03], abs=1e-6)
    assert result.json["frame"] == "flange"
    assert "covariance" in out.read_text()
    result = run_cli("calibrate", "hand-eye", file)
    assert result.code == 0
    assert "eye-in-hand" in result.out


def test_hand_eye_command_refuses_invalid_input(tmp_path: Path) -> None:
    file = tmp_path / "poses.yaml"
    for text, message in (
        (sample_file(6, is_rotated=False), "same axis"),
        (sample_file(2, is_rotated=True), "at least 3"),
        ("poses: 3\n", "poses"),
        ("", ""),
    ):
        file.write_text(text)
        result = run_cli("calibrate", "hand-eye", file)
        assert result.code == 2
        assert message in result.error
    assert run_cli("calibrate", "hand-eye", tmp_path / "none.yaml").code == 2


def test_camera_command_refuses_invalid_input(tmp_path: Path) -> None:
    empty, text = tmp_path / "empty.png", tmp_path / "text.png"
    Image.fromarray(np.full((60, 80, 3), 128, np.uint8)).save(empty)
    text.write_text("not a readable image")
    for arguments, message in (
        ((empty, "--board", "chessboard:9x6:25mm"), "0 of 1 images"),
        ((empty, "--board", "chess"), "chessboard:9x6:25mm"),
        ((text, "--board", "chessboard:9x6:25mm"), "not a readable image"),
        ((tmp_path / "none.png", "--board", "chessboard:9x6:25mm"), "no file"),
    ):
        result = run_cli("calibrate", "camera", *arguments)
        assert result.code == 2
        assert message in result.error
