"""A camera's focal lengths, middle and distortion, from pictures of a board (Z. Zhang, PAMI 2000, by OpenCV)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry import CameraModel
from roboyard.geometry.arrays import U8, Array
from roboyard.vision.boards import Board, find_corners
from roboyard.vision.opencv import opencv

LEAST_VIEWS = 4
_TILT = math.radians(8.0)


@dataclass(frozen=True, eq=False)
class Intrinsics:
    """The result.

    Attributes:
        lens: The camera.
        sigma: Standard deviations of fx, fy, cx, cy [px], k1, k2, p1, p2, k3.
        error: Root mean square distance of corners from where they should be [px].
        view_errors: The same of each picture that counted [px].
        used: Which pictures those are.
        unseen: Those in which the board was not found.
        covered: Share of the picture's area within the corners' bounds.
    """

    lens: CameraModel
    sigma: Array
    error: float
    view_errors: Array
    used: tuple[int, ...]
    unseen: tuple[int, ...]
    covered: float


def calibrate_camera(images: Sequence[U8], board: Board) -> Intrinsics:
    """Find a camera's intrinsics.

    Args:
        images: (h, w, 3) in RGB or (h, w), all of one size.
        board: What they show.

    Raises:
        InputError: sizes differ; the board is seen in too few, or always squarely, so that focal length and distance
            cannot be told apart.
    """
    sizes = {image.shape[:2] for image in images}
    if len(sizes) > 1:
        told = ", ".join(f"{w} x {h}" for h, w in sorted(sizes))
        raise InputError(
            f"pictures of {told} pixels", location="camera calibration", valid="one size, one camera, one zoom"
        )
    found = [find_corners(image, board) for image in images]
    used = [k for k, one in enumerate(found) if one is not None]
    unseen = tuple(k for k, one in enumerate(found) if one is None)
    if len(used) < LEAST_VIEWS:
        raise InputError(
            f"the board is seen in {len(used)} of {len(images)} pictures", location="camera calibration",
            valid=f"at least {LEAST_VIEWS} with the board whole, sharp and of the stated size; 10 to 20 are good",
        )  # fmt: skip
    seen = [one for one in found if one is not None]
    places = [np.float32(one[0]) for one in seen]
    pixels = [np.float32(one[1]).reshape(-1, 1, 2) for one in seen]
    (height, width) = next(iter(sizes))
    cv2 = opencv()
    error, K, bend, turns, _, sigma, _, off = cv2.calibrateCameraExtended(
        places, pixels, (width, height), None, None
    )  # fmt: skip
    tilts = [math.acos(min(1.0, abs(float(cv2.Rodrigues(turn)[0][2, 2])))) for turn in turns]
    if max(tilts) < _TILT:
        raise InputError(
            f"the board is tilted by {math.degrees(max(tilts)):.1f}° at most", location="camera calibration",
            valid="pictures with the board tilted by 20° to 50° in several directions",
        )  # fmt: skip
    k = [float(value) for value in np.ravel(bend)[:5]]
    lens = CameraModel(width, height, float(K[0, 0]), float(K[1, 1]), float(K[0, 2]), float(K[1, 2]), "plumb_bob",
                (k[0], k[1], k[2], k[3], k[4]))  # fmt: skip
    every = np.concatenate([one[1] for one in seen])
    low, high = every.min(axis=0), every.max(axis=0)
    covered = float(np.prod(high - low) / (width * height))
    return Intrinsics(lens, np.ravel(sigma)[:9].astype(float), float(error), np.ravel(off).astype(float), tuple(used),
                      unseen, covered)  # fmt: skip
