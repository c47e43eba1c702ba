"""Files of plans of steps: all that is needed to look at one again without whoever made it.

YAML, or JSON, which is YAML.  A foot in the air, from ``source`` at ``lifts`` to ``target`` at ``lands``, is at share u
of that time where

    e = (1 - cos(pi clip((u - 0.15) / 0.7))) / 2,  r = (1 - cos(pi clip(min(u, 1 - u) / 0.3))) / 2  (clipped to 0 … 1)
    l = (1 - cos(pi clip(min(u, 1 - u) / 0.1))) / 2
    x, y: source + e (target - source) + l (b(u) - b(0) - e (b(1) - b(0))),  b being the body's place
    z:    r of the way from source (or, from the middle on, target) up to ``top``.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from roboyard.config import field, load
from roboyard.errors import ConfigError, InputError
from roboyard.grids.terrain import Terrain
from roboyard.scenarios.ground import TerrainEntry
from roboyard.walking.steps.plan import StepPlan, Swing
from roboyard.walking.walker import Walker

Array = NDArray[np.float64]


@dataclass(frozen=True)
class HeightMap:
    """Ground from a file."""

    file: Path = field(doc=".npy of heights [m], rows from the least y on; or a grey picture")
    cell: float = field(0.02, unit="m", low=0.002, high=1.0, doc="edge of a cell")
    corner: tuple[float, float] = field((0.0, 0.0), unit="m", doc="least x and y")
    relief: float = field(0.3, unit="m", low=0.0, high=10.0, doc="height of white, of a picture")

    def heights(self) -> Array:
        """(rows, columns) [m], nan where there is none. Raises InputError."""
        return read_heights(self.file, self.relief)


@dataclass(frozen=True)
class SwingEntry:
    """One foot's way through the air."""

    leg: str = field(doc="whose")
    lifts: float = field(unit="s", low=0.0, doc="when it leaves the ground")
    lands: float = field(unit="s", low=0.0, doc="when it is down again")
    source: tuple[float, float, float] = field(unit="m", doc="where it was")
    target: tuple[float, float, float] = field(unit="m", doc="where it is set down")
    top: float = field(unit="m", doc="height that it rises to")


@dataclass(frozen=True)
class StepsFile:
    """A plan of steps."""

    format: Literal["roboyard steps 1"] = field(doc="of this file")
    robot: str = field(doc="whose legs")
    goal: tuple[float, float] = field(unit="m", doc="where its body ends")
    feet: dict[str, tuple[float, float, float]] = field(doc="where feet stand at the start [m], by leg")
    track: list[tuple[float, float, float, float]] = field(
        unit=("s", "m", "m", "m"), doc="time and place of the body's frame, even in between"
    )
    swings: list[SwingEntry] = field(doc="in the order in which feet are lifted")
    heading: float = field(0.0, unit="rad", doc="of the body, all the time")
    terrain: TerrainEntry | None = field(None, doc="ground by kind and seed")
    map: HeightMap | None = field(None, doc="or from a file")
    about: dict[str, str] = field(factory=dict, doc="who made it, and with what")

    def __post_init__(self) -> None:
        if (self.terrain is None) == (self.map is None):
            raise ConfigError("names no ground, or two", valid="either terrain or map")
        times = [row[0] for row in self.track]
        if len(times) < 2 or times[0] != 0.0 or any(b <= a for a, b in pairwise(times)):
            raise ConfigError("times that do not grow from 0", where="track", valid="two or more rows, later and later")
        for number, one in enumerate(self.swings):
            if one.leg not in self.feet:
                raise ConfigError(f"no leg {one.leg!r}", where=f"swings[{number}]", valid=", ".join(self.feet))
            if not one.lifts < one.lands <= times[-1] + 1e-9:
                raise ConfigError(
                    f"from {one.lifts:g} to {one.lands:g} s",
                    where=f"swings[{number}]",
                    valid=f"within 0 to {times[-1]:g} s",
                )

    def plan(self, walker: Walker) -> StepPlan:
        """The plan for a robot. Raises ConfigError where its legs are others."""
        names = [leg.name for leg in walker.legs]
        if sorted(names) != sorted(self.feet):
            said = ", ".join(self.feet)
            raise ConfigError(f"legs {said}", where="feet", valid=f"those of {walker.robot}: {', '.join(names)}")
        swings = tuple(
            Swing(names.index(one.leg), one.lifts, one.lands, one.source, one.target, one.top) for one in self.swings
        )
        return StepPlan(self.heading, np.array([self.feet[name] for name in names]), np.array(self.track), swings)


def load_steps(path: Path) -> StepsFile:
    """A plan from its file. Raises ConfigError with line, what is wrong, and what would be right."""
    return load(StepsFile, path)


def steps_text(
    plan: StepPlan, walker: Walker, robot: str, goal: tuple[float, float], ground: TerrainEntry | HeightMap
) -> str:
    """A plan as its file's text; numbers as they are, so that reading gives the same."""
    names = [leg.name for leg in walker.legs]
    said: dict[str, Any] = {"format": "roboyard steps 1", "robot": robot, "goal": list(goal), "heading": plan.heading}
    plain = {key: value for key, value in asdict(ground).items() if value is not None}
    if isinstance(ground, HeightMap):
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


def read_heights(file: Path, relief: float) -> Array:
    """(rows, columns) heights [m] of a .npy, or of a grey picture whose white is ``relief`` high.

    Raises:
        InputError: it is no such file.
    """
    if not file.is_file():
        raise InputError("there is no such file", where=str(file), valid=".npy or .png")
    try:
        if file.suffix.lower() == ".npy":
            found = np.load(file, allow_pickle=False)
        else:
            from PIL import Image

            with Image.open(file) as picture:
                grey = np.asarray(picture.convert("I") if picture.mode.startswith("I") else picture.convert("L"))
            found = grey[::-1] * (relief / (65535.0 if grey.max() > 255 else 255.0))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", where=str(file), valid=".npy of numbers, or a picture") from None
    if found.ndim != 2 or found.dtype.kind not in "fiu":
        what = f"holds {found.dtype} of shape {found.shape}"
        raise InputError(what, where=str(file), valid="numbers, rows x columns")
    return np.asarray(found, np.float64)


def heights_of(terrain: Terrain | None, table: HeightMap | None) -> Any:
    """What `check_plan` asks for heights: of a terrain, or of a map, with nan outside of it."""
    if terrain is not None:
        return terrain.height
    if table is None:
        raise InputError("no ground", valid="a terrain or a map")
    values, (x, y), cell = table.heights(), table.corner, table.cell

    def height(places: Array) -> Array:
        c, r = (np.floor((places[..., k] - low) / cell).astype(np.int64) for k, low in ((0, x), (1, y)))
        inside = (r >= 0) & (c >= 0) & (r < values.shape[0]) & (c < values.shape[1])
        out: Array = np.full(inside.shape, np.nan)
        out[inside] = values[r[inside], c[inside]]
        return out

    return height
