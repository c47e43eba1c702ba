"""Files of plans of steps: all that is needed to look at one again without whoever made it.

YAML, or JSON, which is YAML.  A foot in the air, from ``source`` at ``lifts`` to ``target`` at ``lands``, is at share u
of that time where

    f = min(1, quick / (lands - lifts)),  c(v) = (1 - cos(pi v)) / 2 of v clipped to 0 … 1
    e = c((u - 0.15 f) / (1 - 0.3 f)),  r = c(min(u, 1 - u) / (0.3 f)),  l = c(min(u, 1 - u) / (0.1 f))
    x, y: source + e (target - source) + l (b(u) - b(0) - e (b(1) - b(0))),  b being the body's place
    z:    r of the way from source (or, from the middle on, target) up to ``top``.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import ArrayLike

from roboyard.config import load, parameter
from roboyard.errors import ConfigError, InputError
from roboyard.geometry.arrays import Array
from roboyard.scenarios.ground import TerrainEntry
from roboyard.walking.steps.checker import Heights
from roboyard.walking.steps.ground import LARGEST, Ground
from roboyard.walking.steps.plan import StepPlan, Swing
from roboyard.walking.steps.rig import Rig
from roboyard.walking.walker import Walker

_PICTURES: Final = ("PNG", "JPEG", "TIFF", "BMP", "PPM", "GIF", "WEBP")
"""What is read as heights; other readers of Pillow's start programs."""


@dataclass(frozen=True)
class HeightMapFile:
    """Ground from a file."""

    file: Path = parameter(doc=".npy of heights [m], rows from the least y on; or a grey picture")
    cell_size: float = parameter(0.02, unit="m", low=0.002, high=1.0, doc="edge of a cell")
    origin: tuple[float, float] = parameter((0.0, 0.0), unit="m", doc="least x and y")
    height_range: float = parameter(0.3, unit="m", low=0.0, high=10.0, doc="height of white, of a picture")

    def heights(self) -> Array:
        """(rows, columns) [m], nan where there is none. Raises InputError."""
        return read_heights(self.file, self.height_range)


@dataclass(frozen=True)
class SwingEntry:
    """One foot's way through the air."""

    leg: str = parameter(doc="whose")
    lifts: float = parameter(unit="s", low=0.0, doc="when it leaves the ground")
    lands: float = parameter(unit="s", low=0.0, doc="when it is down again")
    source: tuple[float, float, float] = parameter(unit="m", doc="where it was")
    target: tuple[float, float, float] = parameter(unit="m", doc="where it is set down")
    top: float = parameter(unit="m", doc="height that it rises to")
    quick: float = parameter(
        unit="s", low=1e-6, doc="it rises and comes down as in a swing of this time, if it is longer"
    )
    wish: tuple[float, float] | None = parameter(
        None, unit="m", doc="from where on a place was looked for, nearest first"
    )


@dataclass(frozen=True)
class StepsFile:
    """A plan of steps."""

    format: Literal["roboyard steps 1"] = parameter(doc="of this file")
    robot: str = parameter(doc="whose legs")
    goal: tuple[float, float] = parameter(unit="m", doc="where its body ends")
    feet: dict[str, tuple[float, float, float]] = parameter(doc="where feet stand at the start [m], by leg")
    track: list[tuple[float, float, float, float]] = parameter(
        unit=("s", "m", "m", "m"), doc="time and place of the body's frame, even in between"
    )
    swings: list[SwingEntry] = parameter(doc="in the order in which feet are lifted")
    heading: float = parameter(0.0, unit="rad", doc="of the body, all the time")
    terrain: TerrainEntry | None = parameter(None, doc="ground by type and seed")
    map: HeightMapFile | None = parameter(None, doc="or from a file")
    failed_leg: str | None = parameter(None, doc="a leg that does not work, kept out of the way as at rest")
    about: dict[str, str] = parameter(factory=dict, doc="who made it, and with what")

    def __post_init__(self) -> None:
        if (self.terrain is None) == (self.map is None):
            raise ConfigError("names no ground, or two", valid="either terrain or map")
        times = [row[0] for row in self.track]
        if not times or times[0] != 0.0 or any(b <= a for a, b in pairwise(times)):
            raise ConfigError("times that do not grow from 0", location="track", valid="rows, later and later")
        for number, one in enumerate(self.swings):
            if one.leg not in self.feet:
                raise ConfigError(f"no leg {one.leg!r}", location=f"swings[{number}]", valid=", ".join(self.feet))
            if not one.lifts < one.lands <= times[-1] + 1e-9:
                raise ConfigError(
                    f"from {one.lifts:g} to {one.lands:g} s",
                    location=f"swings[{number}]",
                    valid=f"within 0 to {times[-1]:g} s",
                )

    @property
    def ground(self) -> TerrainEntry | HeightMapFile:
        """What is walked on."""
        ground = self.terrain or self.map
        if ground is None:
            raise ConfigError("names no ground", valid="either terrain or map")
        return ground

    def plan(self, walker: Walker) -> StepPlan:
        """The plan for a robot. Raises ConfigError where its legs are others."""
        names = [leg.name for leg in walker.legs]
        if sorted(names) != sorted(self.feet):
            said = ", ".join(self.feet)
            raise ConfigError(f"legs {said}", location="feet", valid=f"those of {walker.robot}: {', '.join(names)}")
        swings = tuple(
            Swing(names.index(one.leg), one.lifts, one.lands, one.source, one.target, one.top, one.quick, one.wish)
            for one in self.swings
        )
        return StepPlan(self.heading, np.array([self.feet[name] for name in names]), np.array(self.track), swings)


def load_steps(path: Path) -> StepsFile:
    """A plan from its file. Raises ConfigError with line, what is wrong, and what would be right."""
    return load(StepsFile, path)


def steps_text(
    plan: StepPlan, walker: Walker, robot: str, goal: tuple[float, float], ground: TerrainEntry | HeightMapFile,
    failed_leg: str | None = None,
) -> str:  # fmt: skip
    """A plan as its file's text; numbers as they are, so that reading gives the same."""
    names = [leg.name for leg in walker.legs]
    said: dict[str, Any] = {"format": "roboyard steps 1", "robot": robot, "goal": list(goal), "heading": plan.heading}
    if failed_leg is not None:
        said["failed_leg"] = failed_leg
    plain = {key: value for key, value in asdict(ground).items() if value is not None}
    if isinstance(ground, HeightMapFile):
        said["map"] = plain | {"file": str(ground.file)}
    else:
        said["terrain"] = plain
    said["about"] = {
        "planner": plan.effort.planner, "seed": str(plan.effort.seed), "events": str(plan.effort.events),
        "cost": f"{plan.cost:.6g}",
    }  # fmt: skip
    said["feet"] = dict(zip(names, plan.feet.tolist(), strict=True))
    head = json.dumps(said, indent=1)[:-2]
    track = ",\n".join(f"  {json.dumps(row)}" for row in plan.track.tolist())
    swings = ",\n".join(f"  {json.dumps(asdict(one) | {'leg': names[one.leg]})}" for one in plan.swings)
    return f'{head},\n "track": [\n{track}\n ],\n "swings": [\n{swings}\n ]\n}}\n'


def read_heights(file: Path, height_range: float) -> Array:
    """(rows, columns) heights [m] of a .npy, or of a grey picture whose white is ``height_range`` high.

    Raises:
        InputError: it is no such file.
    """
    if not file.is_file():
        raise InputError("there is no such file", location=str(file), valid=".npy or .png")
    try:
        found = open_memmap(file, mode="r") if file.suffix.lower() == ".npy" else _picture(file, height_range)
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - readers of pictures raise whatever comes to them
        what = f"{type(error).__name__}, {' '.join(str(error).split())[:100]}"
        raise InputError(f"cannot be read: {what}", location=str(file), valid=".npy of numbers, or a picture") from None
    if found.ndim != 2 or found.dtype.kind not in "fiu" or found.size > LARGEST:
        what = f"holds {found.dtype} of shape {found.shape}"
        raise InputError(what, location=str(file), valid=f"numbers, rows x columns, {LARGEST} or fewer")
    return np.array(found, np.float64)


def _picture(file: Path, height_range: float) -> Array:
    """(rows, columns) heights [m] of a picture, the lowest row first."""
    import warnings

    from PIL import Image

    quiet = warnings.catch_warnings(action="ignore", category=Image.DecompressionBombWarning)
    with quiet, Image.open(file, formats=_PICTURES) as picture:
        if picture.width * picture.height > LARGEST:  # known before anything of it is unpacked
            what = f"a picture of {picture.width} x {picture.height}"
            raise InputError(what, location=str(file), valid=f"{LARGEST} or fewer points")
        if picture.mode == "F":
            raise InputError("a picture of fractions", location=str(file), valid="8 or 16 bits a point, or .npy")
        deep = picture.mode.startswith("I")  # 16 bits
        grey = np.asarray(picture.convert("I" if deep else "L"), np.float64)
    heights: Array = grey[::-1] * (height_range / (65535.0 if deep else 255.0))
    return heights


def ground_of(entry: TerrainEntry | HeightMapFile, rig: Rig, places: ArrayLike, heading: float) -> Ground:
    """Ground to plan on: a terrain and what lies about places (k, 2) [m], or a map. Raises InputError."""
    if isinstance(entry, TerrainEntry):
        return Ground.of_terrain(entry.make(0), rig, places, heading=heading)
    start = np.atleast_2d(np.asarray(places, np.float64))[0]
    return Ground.of(entry.heights(), entry.origin, rig, cell=entry.cell_size, heading=heading, start=start)


def heights_of(entry: TerrainEntry | HeightMapFile) -> Heights:
    """What `check_plan` asks for heights: of a terrain, or of a map, with nan outside of it. Raises InputError."""
    if isinstance(entry, TerrainEntry):
        return entry.make(0).height_at
    values, (x, y), cell = entry.heights(), entry.origin, entry.cell_size

    def height(places: Array) -> Array:
        c, r = (np.floor((places[..., k] - low) / cell).astype(np.int64) for k, low in ((0, x), (1, y)))
        inside = (r >= 0) & (c >= 0) & (r < values.shape[0]) & (c < values.shape[1])
        out: Array = np.full(inside.shape, np.nan)
        out[inside] = values[r[inside], c[inside]]
        return out

    return height
