"""Occupancy maps in the files of ROS's map_server: a picture, and a YAML that tells what its shades mean.

Semantics: Nav2's ``nav2_map_server/src/map_io.cpp`` (ROS 2 Jazzy), which ROS 1's map_server agrees with.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard import config
from roboyard.config import write_atomic
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2
from roboyard.grids import FREE, OCCUPIED, UNKNOWN, GridGeometry, OccupancyGrid
from roboyard.mapping.map_pictures import Picture, read_picture, write_picture

_GRAY: Final = 205
"""Shade of unknown cells in trinary pictures."""
_YES_NO: Final = {"yes": True, "no": False, "on": True, "off": False, "y": True, "n": False}


class MapMode(Enum):
    """What the shades of a picture mean."""

    TRINARY = "trinary"
    """Black occupied, white free, gray unknown."""
    SCALE = "scale"
    """The darker, the likelier occupied; transparent is unknown."""
    RAW = "raw"
    """Shades 0 to 100 are the cells' values, the others are unknown."""


@dataclass(frozen=True, slots=True)
class MapInfo:
    """What the YAML of a map says.

    Attributes:
        image: Picture, relative to the YAML's folder.
        resolution: Side of a pixel [m].
        origin: Pose of the lower left corner of the picture in the map: x, y [m], yaw [rad].
        negate: Dark is free.
        occupied_thresh: What is likelier occupied than this is occupied.
        free_thresh: What is less likely occupied than this is free.
        mode: What the shades mean.
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
    file = _picture_of(Path(path), info.image)
    if not file.is_file():
        raise InputError(
            f"its picture {file} does not exist", location=f"{path}, image", valid="a PGM, PNG or BMP file"
        )
    cells = _cells(read_picture(file), info)[::-1]
    return OccupancyGrid(cells, GridGeometry(info.resolution, cells.shape, SE2(*info.origin)))


def read_map_info(path: Path | str) -> MapInfo:
    """Read and check the YAML of a map; keys that map_server does not know are passed over.

    Raises:
        ConfigError: it cannot be read, or a key is missing or wrong.
    """
    node = config.read_yaml(path)
    if not isinstance(node.value, dict):
        raise ConfigError("is no mapping", location=str(path), valid=", ".join(MapInfo.__dataclass_fields__))
    known = {key: value for key, value in node.value.items() if key in MapInfo.__dataclass_fields__}
    negate = known.get("negate")
    if negate is not None:
        plain = negate.value
        plain = _YES_NO.get(plain.lower(), plain) if isinstance(plain, str) else plain
        plain = bool(plain) if isinstance(plain, int) and plain in (0, 1) else plain
        known["negate"] = config.YamlNode(plain, negate.location, negate.key_location)
    info = config.load(MapInfo, config.YamlNode(known, node.location, node.key_location, node.size))
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
    """Save a map; what ``load_map`` gives back is ``grid``, in the trinary mode with each cell as its class.

    Args:
        path: The YAML file to write; ``.yaml`` may be left out.  The picture gets the same name.
        grid: The map.
        mode: What the shades shall mean.
        image_format: "pgm" or "png"; chosen when empty: png for the mode scale, which has transparent pixels, else pgm.
        occupied_thresh: Only in the trinary mode: cells of this share of 100 and more are occupied; None for 0.65.
        free_thresh: Only in the trinary mode: cells of this share of 100 and less are free; None for 0.196.

    Returns:
        The YAML file.

    Raises:
        InputError: the files cannot be written, the thresholds are none, or the format cannot hold the map.
    """
    path = Path(path)
    path = path if path.suffix in (".yaml", ".yml") else path.with_name(f"{path.name}.yaml")
    if not grid.cells.size:
        raise InputError("a map without cells", location=str(path), valid="at least one cell")
    trinary = mode is MapMode.TRINARY
    high = occupied_thresh if occupied_thresh is not None else (0.65 if trinary else 1.0)
    low = free_thresh if free_thresh is not None else (0.196 if trinary else 0.0)
    if not trinary and (high, low) != (1.0, 0.0):
        raise InputError(f"thresholds in the mode {mode.value}", location=str(path), valid="none: all shades are kept")
    if trinary and not (0.0 < low <= high - 0.02 and high < 1.0):
        raise InputError(
            f"thresholds {low} and {high}", location=str(path), valid="0 < free < occupied < 1, 0.02 apart"
        )
    suffix = image_format.lower() or ("png" if mode is MapMode.SCALE else "pgm")
    shades, opacity = _shades(grid, mode, low, high)
    picture = path.with_suffix(f".{suffix}")
    if opacity is not None and suffix != "png" and (opacity == 255).all():
        opacity = None
    write_picture(picture, shades[::-1], None if opacity is None else opacity[::-1])
    pose = grid.geometry.T_map_grid
    info = MapInfo(picture.name, grid.geometry.resolution, (pose.x, pose.y, pose.theta), high, low, False, mode)
    try:
        write_atomic(path, _yaml(info))
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", location=str(path)) from error
    return path


def classified(grid: OccupancyGrid, occupied_thresh: float = 0.65, free_thresh: float = 0.196) -> OccupancyGrid:
    """The map with each cell free, occupied, or, between the thresholds, unknown."""
    low, high = _limits(free_thresh, occupied_thresh)
    cells = np.full(grid.cells.shape, UNKNOWN, dtype=np.int8)
    cells[(grid.cells >= 0) & (grid.cells <= low)] = FREE
    cells[grid.cells >= high] = OCCUPIED
    return OccupancyGrid(cells, grid.geometry)


def _limits(free_thresh: float, occupied_thresh: float) -> tuple[int, int]:
    return round(free_thresh * 100.0), round(occupied_thresh * 100.0)


def _picture_of(path: Path, image: str) -> Path:
    """The picture's file, which lies in the folder of the YAML or below."""
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


def _cells(picture: Picture, info: MapInfo) -> NDArray[np.int8]:
    """Values of cells by a table over all shades."""
    shades, white, opacity = picture.shades, picture.white, picture.opacity
    if info.mode is MapMode.TRINARY and opacity is not None:
        shades, white = shades + opacity, white + 255  # map_server counts the opacity as one more channel there
    bright = np.arange(white + 1) / white
    occupied = bright if info.negate else 1.0 - bright
    low, high = info.free_thresh, info.occupied_thresh
    if info.mode is MapMode.RAW:
        values = np.floor(bright * 255.0 + 0.5)
        table = np.where(values <= OCCUPIED, values, UNKNOWN)
    else:
        between = np.full(white + 1, UNKNOWN) if info.mode is MapMode.TRINARY else (occupied - low) / (high - low) * 100
        table = np.where(high < occupied, OCCUPIED, np.where(occupied < low, FREE, np.rint(between)))
    cells: NDArray[np.int8] = table.astype(np.int8)[shades]
    if info.mode is MapMode.SCALE and opacity is not None:
        cells[opacity != 255] = UNKNOWN
    return cells


def _shades(
    grid: OccupancyGrid, mode: MapMode, low: float, high: float
) -> tuple[NDArray[np.uint8], NDArray[np.uint8] | None]:
    cells = grid.cells
    known = cells >= 0
    if mode is MapMode.RAW:
        return np.where(known, cells, 255).astype(np.uint8), None
    if mode is MapMode.SCALE:
        shades = np.where(known, np.rint((100.0 - cells) * 2.55), 128.0).astype(np.uint8)
        return shades, np.where(known, 255, 0).astype(np.uint8)
    classes = classified(grid, high, low).cells
    # the usual gray where it reads as unknown, else one in the middle
    gray = _GRAY if low <= 1.0 - _GRAY / 255.0 <= high else round((1.0 - 0.5 * (low + high)) * 255.0)
    free = 254 if low > 1.0 / 255.0 else 255
    shades = np.where(classes == FREE, free, np.where(classes == OCCUPIED, 0, gray))
    return shades.astype(np.uint8), None


def _yaml(info: MapInfo) -> str:
    x, y, yaw = (float(value) for value in info.origin)
    name: Any = config.dumps({"image": info.image}).strip()
    return (
        f"{name}\nmode: {info.mode.value}\nresolution: {info.resolution!r}\norigin: [{x!r}, {y!r}, {yaw!r}]\n"
        f"negate: {int(info.negate)}\noccupied_thresh: {info.occupied_thresh!r}\nfree_thresh: {info.free_thresh!r}\n"
    )
