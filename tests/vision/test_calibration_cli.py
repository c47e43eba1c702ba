"""``roboyard calibrate camera`` and ``hand-eye``: results as text and JSON, refusals in one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from roboyard.cli.main import run
from roboyard.geometry import SE3
from roboyard.vision.hand_eye_file import sightings_text


def poses(count: int, *, turned: bool) -> str:
    rng = np.random.default_rng(6)
    X, Z = SE3.from_xyz_rpy((0.05, 0.0, 0.03), (0.1, 0.0, 1.5)), SE3.from_xyz_rpy((0.5, 0.1, 0.0))
    arm = [
        SE3.from_xyz_rpy(rng.uniform(-0.2, 0.2, 3), rng.uniform(-0.6, 0.6, 3) if turned else (0.0, 0.0, 0.2 * k))
        for k in range(count)
    ]
    return sightings_text("eye-in-hand", arm, [(T @ X).inverse() @ Z for T in arm])


def test_hand_eye_command_writes_result_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "poses.yaml", tmp_path / "camera_pose.yaml"
    file.write_text(poses(8, turned=True))
    assert run(["calibrate", "hand-eye", str(file), "--out", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["xyz"] == pytest.approx([0.05, 0.0, 0.03], abs=1e-6)
    assert found["frame"] == "flange"
    assert "covariance" in out.read_text()
    assert run(["calibrate", "hand-eye", str(file)]) == 0
    assert "eye-in-hand" in capsys.readouterr().out


def test_hand_eye_command_refuses_invalid_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "poses.yaml"
    for text, message in (
        (poses(6, turned=False), "same axis"),
        (poses(2, turned=True), "at least 3"),
        ("poses: 3\n", "poses"),
        ("", ""),
    ):
        file.write_text(text)
        assert run(["calibrate", "hand-eye", str(file)]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert "Traceback" not in error
    assert run(["calibrate", "hand-eye", str(tmp_path / "none.yaml")]) == 2


def test_camera_command_refuses_invalid_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty, text = tmp_path / "empty.png", tmp_path / "text.png"
    Image.fromarray(np.full((60, 80, 3), 128, np.uint8)).save(empty)
    text.write_text("no picture")
    for arguments, message in (
        ([str(empty), "--board", "chessboard:9x6:25mm"], "0 of 1 pictures"),
        ([str(empty), "--board", "chess"], "chessboard:9x6:25mm"),
        ([str(text), "--board", "chessboard:9x6:25mm"], "no picture"),
        ([str(tmp_path / "none.png"), "--board", "chessboard:9x6:25mm"], "no file"),
    ):
        assert run(["calibrate", "camera", *arguments]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert "Traceback" not in error
