"""Pictures of maps: how bright each pixel is, out of PGM, PNG and BMP files, and back into PGM and PNG."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.config import atomic_path
from roboyard.errors import InputError

MAX_CELLS: Final = 80_000_000
"""Pixels of a picture: at 5 cm a square of 447 m."""
_FORMATS: Final = ("PNG", "BMP")
_VALID: Final = "PGM (P5 or P2), PNG or BMP"
_HEADER: Final = re.compile(rb"P([25])(?:\s+|\s*#[^\n]*\n\s*)+")
_SPACE: Final = re.compile(rb"(?:\s|#[^\n]*\n)*")
_DIGITS: Final = re.compile(rb"[0-9]{1,9}")
_MAX_TEXT: Final = 8 * MAX_CELLS


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture in shades of gray; the first row is the upper one.

    Attributes:
        shades: (rows, columns) whole numbers from 0, black, to ``white``; for colours the sum of the channels.
        white: Shade of white.
        opacity: (rows, columns) uint8, 0 transparent to 255 opaque; None when all are opaque.
    """

    shades: NDArray[Any]
    white: int
    opacity: NDArray[np.uint8] | None = None


def read_picture(path: Path) -> Picture:
    """Read a picture.

    Raises:
        InputError: it cannot be read, is none of the formats, is damaged, or too large.
    """
    try:
        if not path.is_file():
            raise InputError("does not exist" if not path.exists() else "is no file", location=str(path))
        if path.stat().st_size > _MAX_TEXT:
            raise InputError(f"is larger than {_MAX_TEXT} bytes", location=str(path))
        with path.open("rb") as file:
            start = file.read(2)
        return _read_pgm(path) if start in (b"P5", b"P2") else _read_with_pillow(path)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", location=str(path), valid=_VALID) from error


def write_picture(path: Path, shades: NDArray[np.uint8], opacity: NDArray[np.uint8] | None = None) -> None:
    """Write shades (rows, columns) from 0, black, to 255, white, as PGM or PNG by the file's name.

    Args:
        path: The file; it is there whole or not at all.
        shades: The picture.
        opacity: (rows, columns) 0 transparent to 255 opaque; only PNG can hold it.

    Raises:
        InputError: it cannot be written, or the format cannot hold it.
    """
    suffix = path.suffix.lower()
    if suffix not in (".pgm", ".png") or (opacity is not None and suffix != ".png"):
        valid = ".pgm or .png" if opacity is None else ".png, since parts are transparent"
        raise InputError(f"a map cannot be written as '{suffix}'", location=str(path), valid=valid)
    try:
        with atomic_path(path) as temporary:
            if suffix == ".pgm":
                rows, columns = shades.shape
                temporary.write_bytes(b"P5\n%d %d\n255\n" % (columns, rows) + np.ascontiguousarray(shades).tobytes())
            else:
                from PIL import Image

                data = shades if opacity is None else np.dstack([shades, opacity])
                Image.fromarray(np.ascontiguousarray(data)).save(temporary, format="PNG")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", location=str(path)) from error


def _read_pgm(path: Path) -> Picture:
    data = path.read_bytes()
    where = str(path)
    header = _HEADER.match(data)
    if header is None:
        raise InputError("is no PGM file", location=where, valid=_VALID)
    at, sizes = header.end(), []
    for _ in range(3):
        space = _SPACE.match(data, at)
        at = space.end() if space else at
        digits = _DIGITS.match(data, at)
        if digits is None:
            raise InputError("width, height and brightest shade are missing", location=where, valid="a PGM header")
        sizes.append(int(digits[0]))
        at = digits.end()
    columns, rows, white = sizes
    if not 1 <= white <= 65535:
        raise InputError(f"the brightest shade is {white}", location=where, valid="1 to 65535")
    _check_size(rows, columns, where)
    if header[1] == b"5":
        kind = np.dtype(np.uint8) if white < 256 else np.dtype(">u2")
        body = data[at + 1 : at + 1 + rows * columns * kind.itemsize]
        if len(body) < rows * columns * kind.itemsize:
            raise InputError(
                f"is cut off: {columns} x {rows} pixels are announced", location=where, valid="all of them"
            )
        shades: NDArray[Any] = np.frombuffer(body, kind).reshape(rows, columns).astype(kind.newbyteorder("="))
    else:
        words = re.sub(rb"#[^\n]*", b"", data[at:]).split(maxsplit=rows * columns)[: rows * columns]
        if len(words) < rows * columns or not all(word.isdigit() and len(word) < 6 for word in words):
            raise InputError(f"does not hold {columns} x {rows} whole numbers", location=where, valid="a whole picture")
        shades = np.array(words).astype(np.int64).reshape(rows, columns)
    if int(shades.max()) > white:
        raise InputError(f"a pixel is brighter than {white}, the brightest", location=where, valid=f"0 to {white}")
    return Picture(shades, white)


def _read_with_pillow(path: Path) -> Picture:
    from PIL import Image, UnidentifiedImageError

    where = str(path)
    try:
        with Image.open(path, formats=_FORMATS) as image:
            _check_size(image.height, image.width, where)
            if image.mode.startswith("I"):  # gray with 16 bits
                return Picture(np.asarray(image).astype(np.uint16), 65535)
            transparent = "A" in image.mode or "transparency" in image.info
            pixels = np.asarray(image.convert("RGBA"))
    except UnidentifiedImageError as error:
        raise InputError("is no picture of a kind that is read", location=where, valid=_VALID) from error
    except (SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise InputError(f"is damaged: {error}", location=where, valid=_VALID) from error
    shades = pixels[:, :, :3].sum(axis=2, dtype=np.uint16)
    return Picture(shades, 3 * 255, pixels[:, :, 3].copy() if transparent else None)


def _check_size(rows: int, columns: int, where: str) -> None:
    if not (rows > 0 and columns > 0 and rows * columns <= MAX_CELLS):
        raise InputError(f"{columns} x {rows} pixels", location=where, valid=f"1 to {MAX_CELLS} in all")
