"""Boards, intrinsics, fiducials: recovered from rendered images whose ground truth is exact."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE3, CameraModel
from roboyard.vision.calibration.camera_calibration import (
    CalibrationBoard,
    calibrate_camera,
    detect_board_corners,
    format_camera_info,
    load_camera_info,
)
from roboyard.vision.fiducials import detect_fiducials, fiducial_families, render_marker
from roboyard.vision.synthetic.board_images import render_plane
from roboyard.vision.synthetic.disc_scenes import plane_pose

DISTORTED = CameraModel(640, 480, 540.0, 535.0, 325.0, 236.0, "plumb_bob", (-0.12, 0.08, 0.001, -0.0008, 0.0))
UNDISTORTED = CameraModel(320, 240, 270.0, 270.0, 159.5, 119.5)
T_FLIP = SE3((0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 0.0))  # from z towards the camera and y up to z away and y down


def board_pose(rng: np.random.Generator, calibration_board: CalibrationBoard, tilt: tuple[float, float]) -> SE3:
    center = np.array([rng.uniform(-0.08, 0.08), rng.uniform(-0.06, 0.06), rng.uniform(0.35, 0.6)])
    n = -plane_pose(center, rng.uniform(*tilt), rng.uniform(0.0, 6.28)).rotation_matrix()[:, 2]
    x = np.cross([0.0, 1.0, 0.0], n)
    x /= np.linalg.norm(x)
    R = np.stack([x, np.cross(n, x), n], axis=1)
    return SE3.from_rotation_matrix(R, center - R @ calibration_board.corners.mean(axis=0))


@lru_cache
def render_boards(
    text: str, count: int = 10, tilt: tuple[float, float] = (0.1, 0.7)
) -> tuple[tuple[np.ndarray, SE3], ...]:
    calibration_board, rng = CalibrationBoard.parse(text), np.random.default_rng(3)
    print_image, origin = calibration_board.render(40)
    poses = [board_pose(rng, calibration_board, tilt) for _ in range(count)]
    return tuple(
        (render_plane(DISTORTED, T, print_image, origin, calibration_board.square_size / 40, rng), T) for T in poses
    )


BOARDS = ("chessboard:9x6:25mm", "charuco:9x6:30mm:22mm:5x5_100")


@pytest.mark.slow
@pytest.mark.parametrize("text", BOARDS)
def test_intrinsics_are_recovered_from_rendered_boards(text: str, tmp_path: Path) -> None:
    result = calibrate_camera([image for image, _ in render_boards(text)], CalibrationBoard.parse(text))
    camera_model = result.camera_model
    assert result.reprojection_error < 0.25
    assert len(result.used_images) >= 8
    for name, bound in (("fx", 5.0), ("fy", 5.0), ("cx", 5.0), ("cy", 5.0)):
        assert abs(getattr(camera_model, name) - getattr(DISTORTED, name)) < bound, name
    # distortions are compared by the pixels to which they project points
    x, y = np.meshgrid(np.linspace(-0.4, 0.4, 9), np.linspace(-0.3, 0.3, 7))
    points = np.stack([x, y, np.ones_like(x)], axis=-1)
    shift = camera_model.project(points) - DISTORTED.project(points)
    assert np.abs(shift - shift.mean(axis=(0, 1))).max() < 3.5
    path = tmp_path / "camera.yaml"
    path.write_text(format_camera_info(camera_model, "wrist"))
    assert np.allclose(load_camera_info(path).project(points), camera_model.project(points), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("text", BOARDS)
def test_board_corners_are_detected_where_drawn(text: str) -> None:
    calibration_board = CalibrationBoard.parse(text)
    image, T = render_boards(text, 2)[0]
    corners = detect_board_corners(image, calibration_board)
    assert corners is not None
    object_points, pixels = corners
    # a chessboard looks the same after half a rotation
    orders = (pixels, pixels[::-1]) if calibration_board.kind == "chessboard" else (pixels,)
    distances = min(
        (np.linalg.norm(DISTORTED.project(T @ object_points) - order, axis=1) for order in orders), key=np.median
    )
    assert len(object_points) > 0.7 * len(calibration_board.corners)
    assert np.median(distances) < 0.15


def test_invalid_boards_and_images_are_refused() -> None:
    for text in ("board", "chessboard:9x6", "chessboard:2x2:25mm", "charuco:7x5:40mm", "charuco:7x5:40mm:50mm",
                 "charuco:7x5:40mm:30mm:9x9_1"):  # fmt: skip
        with pytest.raises(InputError, match=r"board|markers|family"):
            CalibrationBoard.parse(text)
    calibration_board = CalibrationBoard.parse(BOARDS[0])
    gray = np.full((120, 160), 120, np.uint8)
    with pytest.raises(InputError, match="0 of 3 images"):
        calibrate_camera([gray] * 3, calibration_board)
    with pytest.raises(InputError, match="one size"):
        calibrate_camera([gray, gray[:100]], calibration_board)


@pytest.mark.slow
def test_calibration_without_tilted_boards_is_refused() -> None:
    calibration_board, rng = CalibrationBoard.parse(BOARDS[0]), np.random.default_rng(5)
    print_image, origin = calibration_board.render(40)
    center = calibration_board.corners.mean(axis=0)
    images = []
    for z in (0.4, 0.45, 0.5, 0.55):
        T = SE3((1.0, 0.0, 0.0, 0.0), np.array([0.0, 0.0, z]) - center)
        images.append(render_plane(DISTORTED, T, print_image, origin, calibration_board.square_size / 40, rng))
    with pytest.raises(InputError, match="tilted"):
        calibrate_camera(images, calibration_board)


def test_invalid_camera_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "camera.yaml"
    text = format_camera_info(DISTORTED)
    for old, new, message in (
        ("plumb_bob", "equidistant", "plumb_bob"),
        ("image_width: 640", "image_width: wide", "image_width"),
        ("540, 0, 325", "-540, 0, 325", "focal"),
        ("cols: 5\n  data: [-0.12,", "cols: 5\n  data: [1, 2, -0.12,", "numbers"),
    ):
        assert old in text
        path.write_text(text.replace(old, new))
        with pytest.raises(ConfigError, match=message):
            load_camera_info(path)
    with pytest.raises(InputError, match="plumb_bob"):
        format_camera_info(CameraModel(640, 480, model="equidistant"))


# -- fiducials ---------------------------------------------------------------------------------------------------------
def render_marker_image(family: str, marker_id: int, T: SE3, camera_model: CameraModel, size: float) -> np.ndarray:
    print_image = np.pad(render_marker(family, marker_id, 200), 50, constant_values=255)
    return render_plane(
        camera_model, T @ T_FLIP, print_image, np.array([149.5, 149.5]), size / 200, np.random.default_rng(4)
    )


@pytest.mark.parametrize("family", ["4x4_50", "apriltag_36h11"])
def test_fiducial_identity_and_pose_are_recovered(family: str) -> None:
    size = 0.06
    for k, tilt in enumerate((0.25, 0.5, 0.8)):
        T = plane_pose(np.array([0.04 * k - 0.04, 0.02, 0.35]), tilt, 1.0 + k, 0.4 * k)
        (found,) = detect_fiducials(render_marker_image(family, 5 + k, T, UNDISTORTED, size), family, UNDISTORTED, size)
        assert found.id == 5 + k
        assert np.linalg.norm(found.center - UNDISTORTED.project(T.translation)) < 0.15
        assert found.T_camera_tag is not None
        assert found.covariance is not None
        T_error = T.inverse() @ found.T_camera_tag
        assert np.linalg.norm(T_error.translation) < 0.035 * 0.35
        assert T_error.angle < math.radians(6.0)
        sigma = np.sqrt(found.covariance.diagonal())
        assert (np.abs(T_error.translation) < 4.0 * sigma[:3] + 1e-3).all()
        assert found.is_unambiguous == (found.ambiguity <= 0.5)
        assert found.alternative_pose is not None
        assert np.linalg.norm(found.alternative_pose.translation - T.translation) < 0.05


def test_fiducial_ambiguity_grows_with_distance() -> None:
    ambiguity = []
    for z in (0.25, 1.0):
        T = plane_pose(np.array([0.0, 0.0, z]), 0.4, 1.0)
        (found,) = detect_fiducials(render_marker_image("4x4_50", 3, T, UNDISTORTED, 0.08), "4x4_50", UNDISTORTED, 0.08)
        ambiguity.append(found.ambiguity)
    assert ambiguity[0] < ambiguity[1]


def test_fiducials_without_a_camera_model_have_no_pose() -> None:
    T = plane_pose(np.array([0.0, 0.0, 0.3]), 0.2, 1.0)
    image = render_marker_image("4x4_50", 3, T, UNDISTORTED, 0.06)
    (found,) = detect_fiducials(image, "4x4_50")
    assert found.T_camera_tag is None
    assert not found.is_unambiguous
    assert detect_fiducials(np.full((240, 320), 90, np.uint8), "4x4_50") == []
    with pytest.raises(InputError, match=r"an image of float64 \(480, 640\)"):
        detect_fiducials(np.zeros((480, 640)), "4x4_50")
    with pytest.raises(InputError, match="apriltag_36h11"):
        detect_fiducials(image, "qr")
    with pytest.raises(InputError, match="0 to 49"):
        render_marker("4x4_50", 50)
    with pytest.raises(InputError, match="plumb_bob"):
        detect_fiducials(image, "4x4_50", CameraModel(320, 240, model="equidistant"), 0.06)
    assert all(render_marker(family, 0, 60).shape == (60, 60) for family in fiducial_families())
