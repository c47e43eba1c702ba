"""Occupancy maps in the files of ROS's map_server: an image, and a YAML file that states the meaning of its gray
values.

Semantics: Nav2's ``nav2_map_server/src/map_io.cpp`` (ROS 2 Jazzy), with which ROS 1's map_server agrees.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard import config
from roboyard.config import atomic_path, write_atomic
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2
from roboyard.grids import (
    FREE,
    FREE_THRESHOLD,
    OCCUPIED,
    OCCUPIED_THRESHOLD,
    UNKNOWN,
    GridGeometry,
    OccupancyGrid,
)

_UNKNOWN_GRAY: Final = 205
"""Shade of unknown cells in trinary pictures."""
_YES_NO: Final = {"yes": True, "no": False, "on": True, "off": False, "y": True, "n": False}


class MapMode(Enum):
    """Meaning of the gray values of an image."""

    TRINARY = "trinary"
    """Black pixels are occupied, white ones free, gray ones unknown."""
    SCALE = "scale"
    """Darker pixels are more likely occupied; transparent ones are unknown."""
    RAW = "raw"
    """Gray values 0 to 100 are the values of cells, others are unknown."""


@dataclass(frozen=True, slots=True)
class MapInfo:
    """Content of a map's YAML file.

    Attributes:
        image: Image, relative to the folder of the YAML file.
        resolution: Side of a pixel [m].
        origin: Pose of the lower left corner of the image in the map: x, y [m], yaw [rad].
        negate: Whether dark pixels are free.
        occupied_thresh: Occupancy above which a cell is occupied.
        free_thresh: Occupancy below which a cell is free.
        mode: Meaning of the gray values.
    """

    image: str
    resolution: float = config.parameter(unit="m", low=1e-6, high=1e6)
    origin: tuple[float, float, float] = config.parameter(unit=("m", "m", "rad"))
    occupied_thresh: float = config.parameter(low=0.0, high=1.0)
    free_thresh: float = config.parameter(low=0.0, high=1.0)
    negate: bool = False
    mode: MapMode = MapMode.TRINARY


def load_map(path: Path | str) -> OccupancyGrid:
    """Load a map.

    Args:
        path: Its YAML file; the picture lies in the same folder or below.

    Raises:
        InputError: the YAML or the picture cannot be read or used; names file and key.
    """
    info = read_map_info(path)
    image_path = _resolve_image(Path(path), info.image)
    if not image_path.is_file():
        raise InputError(
            f"its picture {image_path} does not exist", location=f"{path}, image", valid="a PGM, PNG or BMP file"
        )
    cells = _cells_from_image(read_image(image_path), info)[::-1]
    return OccupancyGrid(cells, GridGeometry(info.resolution, cells.shape, SE2(*info.origin)))


def read_map_info(path: Path | str) -> MapInfo:
    """Read and check the YAML of a map; keys that map_server does not know are passed over.

    Raises:
        ConfigError: it cannot be read, or a key is missing or wrong.
    """
    node = config.read_yaml(path)
    if not isinstance(node.value, dict):
        raise ConfigError("is no mapping", location=str(path), valid=", ".join(MapInfo.__dataclass_fields__))
    known_keys = {key: value for key, value in node.value.items() if key in MapInfo.__dataclass_fields__}
    negate = known_keys.get("negate")
    if negate is not None:
        raw_value = negate.value
        raw_value = _YES_NO.get(raw_value.lower(), raw_value) if isinstance(raw_value, str) else raw_value
        raw_value = bool(raw_value) if isinstance(raw_value, int) and raw_value in (0, 1) else raw_value
        known_keys["negate"] = config.YamlNode(raw_value, negate.location, negate.key_location)
    info = config.load(MapInfo, config.YamlNode(known_keys, node.location, node.key_location, node.size))
    if not info.free_thresh < info.occupied_thresh:
        raise ConfigError(
            f"free_thresh {info.free_thresh:g} is not below occupied_thresh {info.occupied_thresh:g}",
            location=str(path),
        )
    if not info.image:
        raise ConfigError("image is empty", location=str(path), valid="name of a picture")
    return info


def save_map(
    path: Path | str,
    grid: OccupancyGrid,
    mode: MapMode = MapMode.TRINARY,
    *,
    image_format: str = "",
    occupied_thresh: float | None = None,
    free_thresh: float | None = None,
) -> Path:
    """Save a map; ``load_map`` returns an equal one, in the trinary mode with each cell free, occupied or unknown.

    Args:
        path: YAML file to write; the ending ``.yaml`` is optional. The image gets the same name.
        grid: The map.
        mode: Meaning of the gray values.
        image_format: "pgm" or "png"; empty: png for the mode scale, which has transparent pixels, else pgm.
        occupied_thresh: In the trinary mode: occupancy from which a cell is occupied; None: 0.65.
        free_thresh: In the trinary mode: occupancy up to which a cell is free; None: 0.196.

    Returns:
        The YAML file.

    Raises:
        InputError: The files cannot be written, the thresholds are invalid, or the format cannot hold the map.
    """
    path = Path(path)
    path = path if path.suffix in (".yaml", ".yml") else path.with_name(f"{path.name}.yaml")
    if not grid.cells.size:
        raise InputError("a map without cells", location=str(path), valid="at least one cell")
    is_trinary = mode is MapMode.TRINARY
    high = occupied_thresh if occupied_thresh is not None else (OCCUPIED_THRESHOLD / 100 if is_trinary else 1.0)
    low = free_thresh if free_thresh is not None else (FREE_THRESHOLD / 100 if is_trinary else 0.0)
    if not is_trinary and (high, low) != (1.0, 0.0):
        raise InputError(f"thresholds in the mode {mode.value}", location=str(path), valid="none: all values are kept")
    if is_trinary and not (0.0 < low <= high - 0.02 and high < 1.0):
        raise InputError(
            f"thresholds {low} and {high}", location=str(path), valid="0 < free < occupied < 1, 0.02 apart"
        )
    suffix = image_format.lower() or ("png" if mode is MapMode.SCALE else "pgm")
    pixels, opacity = _pixels_from_cells(grid, mode, low, high)
    image_path = path.with_suffix(f".{suffix}")
    if opacity is not None and suffix != "png" and (opacity == 255).all():
        opacity = None
    write_image(image_path, pixels[::-1], None if opacity is None else opacity[::-1])
    pose = grid.geometry.T_map_grid
    info = MapInfo(image_path.name, grid.geometry.resolution, (pose.x, pose.y, pose.theta), high, low, False, mode)
    try:
        write_atomic(path, _format_yaml(info))
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", location=str(path)) from error
    return path


def classify_cells(
    grid: OccupancyGrid, occupied_thresh: float = OCCUPIED_THRESHOLD / 100, free_thresh: float = FREE_THRESHOLD / 100
) -> OccupancyGrid:
    """Return the map with each cell free, occupied, or, between the thresholds, unknown."""
    low, high = _thresholds_in_percent(free_thresh, occupied_thresh)
    cells = np.full(grid.cells.shape, UNKNOWN, dtype=np.int8)
    cells[(grid.cells >= 0) & (grid.cells <= low)] = FREE
    cells[grid.cells >= high] = OCCUPIED
    return OccupancyGrid(cells, grid.geometry)


def _thresholds_in_percent(free_thresh: float, occupied_thresh: float) -> tuple[int, int]:
    return round(free_thresh * 100.0), round(occupied_thresh * 100.0)


def _resolve_image(path: Path, image: str) -> Path:
    """Return the path of the image, which lies in the folder of the YAML file or below."""
    folder = path.parent
    file = folder / image
    try:
        inside = file.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigError(f"'{image[:80]}' is no path", location=f"{path}, image") from error
    if not inside:
        raise ConfigError(
            f"'{image[:200]}' lies outside of the folder {folder}",
            location=f"{path}, image",
            valid="a picture beside it",
        )
    return file


def _cells_from_image(image: GrayImage, info: MapInfo) -> NDArray[np.int8]:
    """Convert gray values to values of cells by a table over all gray values."""
    pixels, max_value, opacity = image.pixels, image.max_value, image.opacity
    if info.mode is MapMode.TRINARY and opacity is not None:
        pixels, max_value = pixels + opacity, max_value + 255  # map_server counts the opacity as one more channel there
    brightness = np.arange(max_value + 1) / max_value
    occupied = brightness if info.negate else 1.0 - brightness
    low, high = info.free_thresh, info.occupied_thresh
    if info.mode is MapMode.RAW:
        values = np.floor(brightness * 255.0 + 0.5)
        table = np.where(values <= OCCUPIED, values, UNKNOWN)
    else:
        between = (
            np.full(max_value + 1, UNKNOWN) if info.mode is MapMode.TRINARY else (occupied - low) / (high - low) * 100
        )
        table = np.where(high < occupied, OCCUPIED, np.where(occupied < low, FREE, np.rint(between)))
    cells: NDArray[np.int8] = table.astype(np.int8)[pixels]
    if info.mode is MapMode.SCALE and opacity is not None:
        cells[opacity != 255] = UNKNOWN
    return cells


def _pixels_from_cells(
    grid: OccupancyGrid, mode: MapMode, low: float, high: float
) -> tuple[NDArray[np.uint8], NDArray[np.uint8] | None]:
    cells = grid.cells
    is_known = cells >= 0
    if mode is MapMode.RAW:
        return np.where(is_known, cells, 255).astype(np.uint8), None
    if mode is MapMode.SCALE:
        pixels = np.where(is_known, np.rint((100.0 - cells) * 2.55), 128.0).astype(np.uint8)
        return pixels, np.where(is_known, 255, 0).astype(np.uint8)
    classes = classify_cells(grid, high, low).cells
    # the usual gray where it reads as unknown, else one in the middle
    gray = _UNKNOWN_GRAY if low <= 1.0 - _UNKNOWN_GRAY / 255.0 <= high else round((1.0 - 0.5 * (low + high)) * 255.0)
    free = 254 if low > 1.0 / 255.0 else 255
    pixels = np.where(classes == FREE, free, np.where(classes == OCCUPIED, 0, gray))
    return pixels.astype(np.uint8), None


def _format_yaml(info: MapInfo) -> str:
    x, y, yaw = (float(value) for value in info.origin)
    name: Any = config.dumps({"image": info.image}).strip()
    return (
        f"{name}\nmode: {info.mode.value}\nresolution: {info.resolution!r}\norigin: [{x!r}, {y!r}, {yaw!r}]\n"
        f"negate: {int(info.negate)}\noccupied_thresh: {info.occupied_thresh!r}\nfree_thresh: {info.free_thresh!r}\n"
    )


MAX_PIXELS: Final = 80_000_000
"""Pixels of a picture: at 5 cm a square of 447 m."""
_FORMATS: Final = ("PNG", "BMP")
_VALID: Final = "PGM (P5 or P2), PNG or BMP"
_HEADER: Final = re.compile(rb"P([25])(?:\s+|\s*#[^\n]*\n\s*)+")
_SPACE: Final = re.compile(rb"(?:\s|#[^\n]*\n)*")
_DIGITS: Final = re.compile(rb"[0-9]{1,9}")
_MAX_FILE_BYTES: Final = 8 * MAX_PIXELS


@dataclass(frozen=True, slots=True)
class GrayImage:
    """A grayscale image; the first row is the upper one.

    Attributes:
        pixels: (rows, columns) whole numbers from 0, black, to ``max_value``; for colours the sum of the channels.
        max_value: Shade of white.
        opacity: (rows, columns) uint8, 0 transparent to 255 opaque; None when all are opaque.
    """

    pixels: NDArray[Any]
    max_value: int
    opacity: NDArray[np.uint8] | None = None


def read_image(path: Path) -> GrayImage:
    """Read a picture.

    Raises:
        InputError: it cannot be read, is none of the formats, is damaged, or too large.
    """
    try:
        if not path.is_file():
            raise InputError("does not exist" if not path.exists() else "is no file", location=str(path))
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise InputError(f"is larger than {_MAX_FILE_BYTES} bytes", location=str(path))
        with path.open("rb") as file:
            start = file.read(2)
        return _read_pgm(path) if start in (b"P5", b"P2") else _read_with_pillow(path)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", location=str(path), valid=_VALID) from error


def write_image(path: Path, pixels: NDArray[np.uint8], opacity: NDArray[np.uint8] | None = None) -> None:
    """Write shades (rows, columns) from 0, black, to 255, white, as PGM or PNG by the file's name.

    Args:
        path: The file; it is there whole or not at all.
        pixels: The picture.
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
                rows, columns = pixels.shape
                temporary.write_bytes(b"P5\n%d %d\n255\n" % (columns, rows) + np.ascontiguousarray(pixels).tobytes())
            else:
                from PIL import Image

                data = pixels if opacity is None else np.dstack([pixels, opacity])
                Image.fromarray(np.ascontiguousarray(data)).save(temporary, format="PNG")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", location=str(path)) from error


def _read_pgm(path: Path) -> GrayImage:
    data = path.read_bytes()
    location = str(path)
    header = _HEADER.match(data)
    if header is None:
        raise InputError("is no PGM file", location=location, valid=_VALID)
    offset, sizes = header.end(), []
    for _ in range(3):
        space = _SPACE.match(data, offset)
        offset = space.end() if space else offset
        digits = _DIGITS.match(data, offset)
        if digits is None:
            raise InputError("width, height and brightest shade are missing", location=location, valid="a PGM header")
        sizes.append(int(digits[0]))
        offset = digits.end()
    columns, rows, max_value = sizes
    if not 1 <= max_value <= 65535:
        raise InputError(f"the brightest shade is {max_value}", location=location, valid="1 to 65535")
    _check_size(rows, columns, location)
    if header[1] == b"5":
        dtype = np.dtype(np.uint8) if max_value < 256 else np.dtype(">u2")
        body = data[offset + 1 : offset + 1 + rows * columns * dtype.itemsize]
        if len(body) < rows * columns * dtype.itemsize:
            raise InputError(
                f"is cut off: {columns} x {rows} pixels are announced", location=location, valid="all of them"
            )
        pixels: NDArray[Any] = np.frombuffer(body, dtype).reshape(rows, columns).astype(dtype.newbyteorder("="))
    else:
        words = re.sub(rb"#[^\n]*", b"", data[offset:]).split(maxsplit=rows * columns)[: rows * columns]
        if len(words) < rows * columns or not all(word.isdigit() and len(word) < 6 for word in words):
            raise InputError(
                f"does not hold {columns} x {rows} whole numbers", location=location, valid="a whole picture"
            )
        pixels = np.array(words).astype(np.int64).reshape(rows, columns)
    if int(pixels.max()) > max_value:
        raise InputError(
            f"a pixel is brighter than {max_value}, the brightest", location=location, valid=f"0 to {max_value}"
        )
    return GrayImage(pixels, max_value)


def _read_with_pillow(path: Path) -> GrayImage:
    from PIL import Image, UnidentifiedImageError

    location = str(path)
    try:
        with Image.open(path, formats=_FORMATS) as image:
            _check_size(image.height, image.width, location)
            if image.mode.startswith("I"):  # gray with 16 bits
                return GrayImage(np.asarray(image).astype(np.uint16), 65535)
            transparent = "A" in image.mode or "transparency" in image.info
            rgba = np.asarray(image.convert("RGBA"))
    except UnidentifiedImageError as error:
        raise InputError("is no picture of a kind that is read", location=location, valid=_VALID) from error
    except (SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise InputError(f"is damaged: {error}", location=location, valid=_VALID) from error
    pixels = rgba[:, :, :3].sum(axis=2, dtype=np.uint16)
    return GrayImage(pixels, 3 * 255, rgba[:, :, 3].copy() if transparent else None)


def _check_size(rows: int, columns: int, location: str) -> None:
    if not (rows > 0 and columns > 0 and rows * columns <= MAX_PIXELS):
        raise InputError(f"{columns} x {rows} pixels", location=location, valid=f"1 to {MAX_PIXELS} in all")
