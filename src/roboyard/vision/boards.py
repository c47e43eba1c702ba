"""Boards with corners at known places: chessboards, and ChArUco boards, which may be seen in part."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry.arrays import U8, Array
from roboyard.vision.fiducials import dictionary, families
from roboyard.vision.opencv import opencv

_FORM = re.compile(r"(chessboard|charuco):(\d+)x(\d+):([\d.]+)mm(?::([\d.]+)mm)?(?::(\w+))?")
_VALID = "chessboard:9x6:25mm (inner corners, square) or charuco:7x5:40mm:30mm:4x4_50 (squares, square, marker, family)"


@dataclass(frozen=True)
class Board:
    """A flat board.

    Attributes:
        kind: ``chessboard`` or ``charuco``.
        columns: Inner corners along x of a chessboard; squares of a ChArUco board.
        rows: Along y.
        square: Edge of a square [m].
        marker: Edge of a ChArUco board's marker [m].
        family: Of these markers.
    """

    kind: Literal["chessboard", "charuco"]
    columns: int
    rows: int
    square: float
    marker: float = 0.0
    family: str = "4x4_50"

    def __post_init__(self) -> None:
        least = 3 if self.kind == "chessboard" else 2
        if min(self.columns, self.rows) < least or max(self.columns, self.rows) > 60 or not self.square > 0.0:
            raise InputError(
                f"a board of {self.columns} x {self.rows} at {self.square:g} m", location="board", valid=_VALID
            )
        if self.kind == "charuco" and not 0.0 < self.marker < self.square:
            raise InputError(
                f"markers of {self.marker:g} m in squares of {self.square:g} m", location="board",
                valid="markers smaller than squares",
            )  # fmt: skip

    @classmethod
    def parse(cls, text: str) -> Board:
        """From a text such as ``chessboard:9x6:25mm`` or ``charuco:7x5:40mm:30mm:4x4_50``.

        Raises:
            InputError: not of this form.
        """
        match = _FORM.fullmatch(text)
        if (
            match is None
            or (match[1] == "chessboard" and (match[5] or match[6]))
            or (match[1] == "charuco" and not match[5])
        ):
            raise InputError(f"board {text!r}", location="board", valid=_VALID)
        square = 1e-3 * float(match[4])
        if match[1] == "chessboard":
            return cls("chessboard", int(match[2]), int(match[3]), square)
        family = match[6] or "4x4_50"
        if family not in families():
            raise InputError(f"family {family!r}", location="board", valid=", ".join(families()))
        return cls("charuco", int(match[2]), int(match[3]), square, 1e-3 * float(match[5]), family)

    @property
    def corners(self) -> Array:
        """All inner corners (n, 3) on the board [m], row by row."""
        columns, rows = (self.columns, self.rows) if self.kind == "chessboard" else (self.columns - 1, self.rows - 1)
        x, y = np.meshgrid(np.arange(columns), np.arange(rows))
        flat = np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1).astype(np.float64)
        return self.square * flat if self.kind == "chessboard" else self.square * (flat + np.array([1.0, 1.0, 0.0]))

    def picture(self, pixels: int = 40) -> tuple[U8, Array]:
        """The board to print, with a white margin of a square, and where (0, 0) of ``corners`` lies in it (2,) [px].

        Args:
            pixels: Of a square's edge.
        """
        if self.kind == "charuco":
            size = (self.columns * pixels + 2 * pixels, self.rows * pixels + 2 * pixels)
            image = _charuco(self).generateImage(size, marginSize=pixels, borderBits=1)
            return np.asarray(image), np.array([pixels - 0.5, pixels - 0.5])
        column, row = np.meshgrid(np.arange(self.columns + 1), np.arange(self.rows + 1))
        squares = np.where((column + row) % 2 == 0, 0, 255).astype(np.uint8)
        image = np.pad(np.kron(squares, np.ones((pixels, pixels), np.uint8)), pixels, constant_values=255)
        return image, np.array([2.0 * pixels - 0.5, 2.0 * pixels - 0.5])


def find_corners(image: U8, board: Board) -> tuple[Array, Array] | None:
    """Corners of a board in a picture: places on the board (n, 3) [m] and pixels (n, 2); None if it is not seen.

    Args:
        image: (h, w, 3) in RGB, or (h, w).
        board: What is looked for; a chessboard must be seen whole.
    """
    cv2 = opencv()
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) if image.ndim == 3 else np.ascontiguousarray(image)
    if board.kind == "chessboard":
        flags = cv2.CALIB_CB_ACCURACY | cv2.CALIB_CB_EXHAUSTIVE | cv2.CALIB_CB_NORMALIZE_IMAGE
        found, pixels = cv2.findChessboardCornersSB(grey, (board.columns, board.rows), flags=flags)
        return (board.corners, np.asarray(pixels, np.float64).reshape(-1, 2)) if found else None
    pixels, numbers, _, _ = cv2.aruco.CharucoDetector(_charuco(board)).detectBoard(grey)
    if numbers is None or len(numbers) < 6:
        return None
    return board.corners[np.asarray(numbers).ravel()], np.asarray(pixels, np.float64).reshape(-1, 2)


def _charuco(board: Board) -> Any:
    cv2 = opencv()
    return cv2.aruco.CharucoBoard(
        (board.columns, board.rows), board.square, board.marker, dictionary(board.family)
    )  # fmt: skip
