"""Boards, intrinsics, fiducials: recovered from rendered pictures whose truth is exact."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE3, CameraModel
from roboyard.vision.boards import Board, find_corners
from roboyard.vision.camera_file import camera_text, read_camera
from roboyard.vision.fiducials import families, find_fiducials, marker_picture
from roboyard.vision.intrinsics import calibrate_camera
from roboyard.vision.synthetic.pictures import facing
from roboyard.vision.synthetic.planes import plane_picture

DISTORTED = CameraModel(640, 480, 540.0, 535.0, 325.0, 236.0, "plumb_bob", (-0.12, 0.08, 0.001, -0.0008, 0.0))
PLAIN = CameraModel(320, 240, 270.0, 270.0, 159.5, 119.5)
T_FLIP = SE3((0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 0.0))  # from z towards the camera and y up to z away and y down


def board_pose(rng: np.random.Generator, board: Board, tilt: tuple[float, float]) -> SE3:
    center = np.array([rng.uniform(-0.08, 0.08), rng.uniform(-0.06, 0.06), rng.uniform(0.35, 0.6)])
    n = -facing(center, rng.uniform(*tilt), rng.uniform(0.0, 6.28)).rotation_matrix()[:, 2]
    x = np.cross([0.0, 1.0, 0.0], n)
    x /= np.linalg.norm(x)
    R = np.stack([x, np.cross(n, x), n], axis=1)
    return SE3.from_rotation_matrix(R, center - R @ board.corners.mean(axis=0))


@lru_cache
def render_boards(
    text: str, count: int = 10, tilt: tuple[float, float] = (0.1, 0.7)
) -> tuple[tuple[np.ndarray, SE3], ...]:
    board, rng = Board.parse(text), np.random.default_rng(3)
    drawing, origin = board.picture(40)
    poses = [board_pose(rng, board, tilt) for _ in range(count)]
    return tuple((plane_picture(DISTORTED, T, drawing, origin, board.square / 40, rng), T) for T in poses)


BOARDS = ("chessboard:9x6:25mm", "charuco:9x6:30mm:22mm:5x5_100")


@pytest.mark.slow
@pytest.mark.parametrize("text", BOARDS)
def test_intrinsics_are_recovered_from_rendered_boards(text: str, tmp_path: Path) -> None:
    result = calibrate_camera([image for image, _ in render_boards(text)], Board.parse(text))
    lens = result.lens
    assert result.error < 0.25
    assert len(result.used) >= 8
    for name, bound in (("fx", 5.0), ("fy", 5.0), ("cx", 5.0), ("cy", 5.0)):
        assert abs(getattr(lens, name) - getattr(DISTORTED, name)) < bound, name
    # what counts of the distortion is where it puts pixels
    x, y = np.meshgrid(np.linspace(-0.4, 0.4, 9), np.linspace(-0.3, 0.3, 7))
    points = np.stack([x, y, np.ones_like(x)], axis=-1)
    shift = lens.project(points) - DISTORTED.project(points)
    assert np.abs(shift - shift.mean(axis=(0, 1))).max() < 3.5
    path = tmp_path / "camera.yaml"
    path.write_text(camera_text(lens, "wrist"))
    assert np.allclose(read_camera(path).project(points), lens.project(points), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("text", BOARDS)
def test_board_corners_are_found_where_drawn(text: str) -> None:
    board = Board.parse(text)
    image, T = render_boards(text, 2)[0]
    found = find_corners(image, board)
    assert found is not None
    places, pixels = found
    # a chessboard looks the same when it is turned round
    orders = (pixels, pixels[::-1]) if board.kind == "chessboard" else (pixels,)
    distances = min((np.linalg.norm(DISTORTED.project(T @ places) - order, axis=1) for order in orders), key=np.median)
    assert len(places) > 0.7 * len(board.corners)
    assert np.median(distances) < 0.15


def test_invalid_boards_and_pictures_are_refused() -> None:
    for text in ("board", "chessboard:9x6", "chessboard:2x2:25mm", "charuco:7x5:40mm", "charuco:7x5:40mm:50mm",
                 "charuco:7x5:40mm:30mm:9x9_1"):  # fmt: skip
        with pytest.raises(InputError, match=r"board|markers|family"):
            Board.parse(text)
    board = Board.parse(BOARDS[0])
    gray = np.full((120, 160), 120, np.uint8)
    with pytest.raises(InputError, match="0 of 3 pictures"):
        calibrate_camera([gray] * 3, board)
    with pytest.raises(InputError, match="one size"):
        calibrate_camera([gray, gray[:100]], board)


@pytest.mark.slow
def test_calibration_without_tilted_boards_is_refused() -> None:
    board, rng = Board.parse(BOARDS[0]), np.random.default_rng(5)
    drawing, origin = board.picture(40)
    center = board.corners.mean(axis=0)
    images = []
    for z in (0.4, 0.45, 0.5, 0.55):
        T = SE3((1.0, 0.0, 0.0, 0.0), np.array([0.0, 0.0, z]) - center)
        images.append(plane_picture(DISTORTED, T, drawing, origin, board.square / 40, rng))
    with pytest.raises(InputError, match="tilted"):
        calibrate_camera(images, board)


def test_invalid_camera_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "camera.yaml"
    text = camera_text(DISTORTED)
    for old, new, message in (
        ("plumb_bob", "equidistant", "plumb_bob"),
        ("image_width: 640", "image_width: wide", "image_width"),
        ("540, 0, 325", "-540, 0, 325", "focal"),
        ("cols: 5\n  data: [-0.12,", "cols: 5\n  data: [1, 2, -0.12,", "numbers"),
    ):
        assert old in text
        path.write_text(text.replace(old, new))
        with pytest.raises(ConfigError, match=message):
            read_camera(path)
    with pytest.raises(InputError, match="plumb_bob"):
        camera_text(CameraModel(640, 480, model="equidistant"))


# -- fiducials ---------------------------------------------------------------------------------------------------------
def marker_view(family: str, number: int, T: SE3, lens: CameraModel, size: float) -> np.ndarray:
    drawing = np.pad(marker_picture(family, number, 200), 50, constant_values=255)
    return plane_picture(lens, T @ T_FLIP, drawing, np.array([149.5, 149.5]), size / 200, np.random.default_rng(4))


@pytest.mark.parametrize("family", ["4x4_50", "apriltag_36h11"])
def test_fiducial_identity_and_pose_are_recovered(family: str) -> None:
    size = 0.06
    for k, tilt in enumerate((0.25, 0.5, 0.8)):
        T = facing(np.array([0.04 * k - 0.04, 0.02, 0.35]), tilt, 1.0 + k, 0.4 * k)
        (found,) = find_fiducials(marker_view(family, 5 + k, T, PLAIN, size), family, PLAIN, size)
        assert found.id == 5 + k
        assert np.linalg.norm(found.centre - PLAIN.project(T.translation)) < 0.15
        assert found.T_camera_tag is not None
        assert found.covariance is not None
        off = T.inverse() @ found.T_camera_tag
        assert np.linalg.norm(off.translation) < 0.035 * 0.35
        assert off.angle < math.radians(6.0)
        sigma = np.sqrt(found.covariance.diagonal())
        assert (np.abs(off.translation) < 4.0 * sigma[:3] + 1e-3).all()
        assert found.clear == (found.ambiguity <= 0.5)
        assert found.other is not None
        assert np.linalg.norm(found.other.translation - T.translation) < 0.05


def test_fiducial_ambiguity_grows_with_distance() -> None:
    ambiguity = []
    for z in (0.25, 1.0):
        T = facing(np.array([0.0, 0.0, z]), 0.4, 1.0)
        (found,) = find_fiducials(marker_view("4x4_50", 3, T, PLAIN, 0.08), "4x4_50", PLAIN, 0.08)
        ambiguity.append(found.ambiguity)
    assert ambiguity[0] < ambiguity[1]


def test_fiducials_without_a_lens_have_no_pose() -> None:
    T = facing(np.array([0.0, 0.0, 0.3]), 0.2, 1.0)
    image = marker_view("4x4_50", 3, T, PLAIN, 0.06)
    (found,) = find_fiducials(image, "4x4_50")
    assert found.T_camera_tag is None
    assert not found.clear
    assert find_fiducials(np.full((240, 320), 90, np.uint8), "4x4_50") == []
    with pytest.raises(InputError, match="apriltag_36h11"):
        find_fiducials(image, "qr")
    with pytest.raises(InputError, match="0 to 49"):
        marker_picture("4x4_50", 50)
    with pytest.raises(InputError, match="plumb_bob"):
        find_fiducials(image, "4x4_50", CameraModel(320, 240, model="equidistant"), 0.06)
    assert all(marker_picture(family, 0, 60).shape == (60, 60) for family in families())
