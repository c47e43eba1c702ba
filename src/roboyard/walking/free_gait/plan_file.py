"""Files of step plans: everything that is needed to check a plan again independently of its planner.

The format is YAML, or JSON, which is YAML.  A swing foot, from ``source`` at ``lift_off_time`` to ``target`` at
``touch_down_time``, is at fraction u of that time at

    f = min(1, vertical_time / (touch_down_time - lift_off_time)),  c(v) = (1 - cos(pi v)) / 2 of v clipped to 0 … 1
    e = c((u - 0.15 f) / (1 - 0.3 f)),  r = c(min(u, 1 - u) / (0.3 f)),  l = c(min(u, 1 - u) / (0.1 f))
    x, y: source + e (target - source) + l (b(u) - b(0) - e (b(1) - b(0))),  b being the body's position
    z:    r of the difference from source (or, from the middle on, target) up to ``apex_height``.
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
from roboyard.grids.terrain import TerrainConfig
from roboyard.walking.free_gait.foothold_map import MAX_CELLS, FootholdMap
from roboyard.walking.free_gait.plan_checker import HeightFunction
from roboyard.walking.free_gait.robot_model import FreeGaitModel
from roboyard.walking.free_gait.step_plan import StepPlan, Swing
from roboyard.walking.legged_robot import LeggedRobot

_IMAGE_FORMATS: Final = ("PNG", "JPEG", "TIFF", "BMP", "PPM", "GIF", "WEBP")
"""Image formats that are read as heights; some readers of Pillow for other formats start external programs."""


@dataclass(frozen=True)
class HeightMapFile:
    """Height map in a file."""

    file: Path = parameter(doc="File of heights: .npy with rows from the smallest y [m], or a gray image.")
    cell_size: float = parameter(0.02, unit="m", low=0.002, high=1.0, doc="Edge of a cell.")
    origin: tuple[float, float] = parameter((0.0, 0.0), unit="m", doc="Smallest x and y.")
    height_range: float = parameter(0.3, unit="m", low=0.0, high=10.0, doc="Height of white in an image; black is 0.")

    def heights(self) -> Array:
        """Return (rows, columns) heights [m]; NaN is a hole.

        Raises:
            InputError: The file cannot be read as heights.
        """
        return load_heights(self.file, self.height_range)


@dataclass(frozen=True)
class SwingEntry:
    """One swing of a foot."""

    leg: str = parameter(doc="Name of the leg.")
    lift_off_time: float = parameter(unit="s", low=0.0, doc="Time of lift-off.")
    touch_down_time: float = parameter(unit="s", low=0.0, doc="Time of touch-down.")
    source: tuple[float, float, float] = parameter(unit="m", doc="Position before lift-off.")
    target: tuple[float, float, float] = parameter(unit="m", doc="Position after touch-down.")
    apex_height: float = parameter(unit="m", doc="Height of the apex.")
    vertical_time: float = parameter(
        unit="s",
        low=1e-6,
        doc="Duration of a swing whose lift-off and touch-down are as fast; longer swings keep these.",
    )
    sampled_foothold: tuple[float, float] | None = parameter(
        None, unit="m", doc="Position around which the foothold was searched, nearest first."
    )


@dataclass(frozen=True)
class StepPlanFile:
    """Step plan with its robot and terrain."""

    format: Literal["roboyard steps 1"] = parameter(doc="Format of this file.")
    robot: str = parameter(doc="Name of the robot.")
    goal: tuple[float, float] = parameter(unit="m", doc="Last position of the body.")
    feet: dict[str, tuple[float, float, float]] = parameter(doc="Positions of the feet at the start [m], by leg.")
    track: list[tuple[float, float, float, float]] = parameter(
        unit=("s", "m", "m", "m"), doc="Times and positions of the body frame; it moves evenly in between."
    )
    swings: list[SwingEntry] = parameter(doc="Swings in the order of their lift-offs.")
    heading: float = parameter(0.0, unit="rad", doc="Heading of the body, which is constant.")
    terrain: TerrainConfig | None = parameter(None, doc="Terrain, by type and seed.")
    map: HeightMapFile | None = parameter(None, doc="Height map, instead of a terrain.")
    failed_leg: str | None = parameter(None, doc="Leg that is not used; it stays in its rest pose.")
    provenance: dict[str, str] = parameter(factory=dict, doc="Planner, seed and cost of the plan.")

    def __post_init__(self) -> None:
        if (self.terrain is None) == (self.map is None):
            raise ConfigError("neither or both of terrain and map are given", valid="either terrain or map")
        times = [row[0] for row in self.track]
        if not times or times[0] != 0.0 or any(b <= a for a, b in pairwise(times)):
            raise ConfigError(
                "times do not increase from 0", location="track", valid="rows with increasing times, the first 0"
            )
        for number, one in enumerate(self.swings):
            if one.leg not in self.feet:
                raise ConfigError(f"no leg {one.leg!r}", location=f"swings[{number}]", valid=", ".join(self.feet))
            if not one.lift_off_time < one.touch_down_time <= times[-1] + 1e-9:
                raise ConfigError(
                    f"from {one.lift_off_time:g} to {one.touch_down_time:g} s",
                    location=f"swings[{number}]",
                    valid=f"within 0 to {times[-1]:g} s",
                )

    @property
    def ground(self) -> TerrainConfig | HeightMapFile:
        """Terrain or height map of the plan."""
        ground = self.terrain or self.map
        if ground is None:
            raise ConfigError("no terrain or map is given", valid="either terrain or map")
        return ground

    def to_plan(self, legged_robot: LeggedRobot) -> StepPlan:
        """Return the plan for a robot. Raises ConfigError if the robot has other legs."""
        names = [leg.name for leg in legged_robot.legs]
        if sorted(names) != sorted(self.feet):
            leg_names = ", ".join(self.feet)
            raise ConfigError(
                f"legs {leg_names}", location="feet", valid=f"those of {legged_robot.name}: {', '.join(names)}"
            )
        swings = tuple(
            Swing(
                names.index(one.leg),
                one.lift_off_time,
                one.touch_down_time,
                one.source,
                one.target,
                one.apex_height,
                one.vertical_time,
                one.sampled_foothold,
            )
            for one in self.swings
        )
        return StepPlan(self.heading, np.array([self.feet[name] for name in names]), np.array(self.track), swings)


def load_step_plan(path: Path) -> StepPlanFile:
    """Load a plan from its file. Raises ConfigError with the line of a wrong value."""
    return load(StepPlanFile, path)


def format_step_plan(
    plan: StepPlan,
    legged_robot: LeggedRobot,
    robot: str,
    goal: tuple[float, float],
    ground: TerrainConfig | HeightMapFile,
    failed_leg: str | None = None,
) -> str:
    """Return the text of a plan's file; numbers are written exactly, so that loading returns an equal plan."""
    names = [leg.name for leg in legged_robot.legs]
    document: dict[str, Any] = {
        "format": "roboyard steps 1",
        "robot": robot,
        "goal": list(goal),
        "heading": plan.heading,
    }
    if failed_leg is not None:
        document["failed_leg"] = failed_leg
    ground_data = {key: value for key, value in asdict(ground).items() if value is not None}
    if isinstance(ground, HeightMapFile):
        document["map"] = ground_data | {"file": str(ground.file)}
    else:
        document["terrain"] = ground_data
    document["provenance"] = {
        "planner": plan.statistics.planner, "seed": str(plan.statistics.seed), "events": str(plan.statistics.events),
        "cost": f"{plan.cost:.6g}",
    }  # fmt: skip
    document["feet"] = dict(zip(names, plan.start_feet.tolist(), strict=True))
    document_head = json.dumps(document, indent=1)[:-2]
    track = ",\n".join(f"  {json.dumps(row)}" for row in plan.body_track.tolist())
    swings = ",\n".join(f"  {json.dumps(asdict(one) | {'leg': names[one.leg]})}" for one in plan.swings)
    return f'{document_head},\n "track": [\n{track}\n ],\n "swings": [\n{swings}\n ]\n}}\n'


def load_heights(file: Path, height_range: float) -> Array:
    """Return (rows, columns) heights [m] of a .npy file, or of a gray image whose white is ``height_range`` high.

    Raises:
        InputError: There is no file, or it does not contain such heights.
    """
    if not file.is_file():
        raise InputError("there is no such file", location=str(file), valid=".npy or .png")
    try:
        heights = (
            open_memmap(file, mode="r") if file.suffix.lower() == ".npy" else _load_height_image(file, height_range)
        )
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - image readers raise exceptions of any class
        problem = f"{type(error).__name__}, {' '.join(str(error).split())[:100]}"
        raise InputError(
            f"cannot be read: {problem}", location=str(file), valid=".npy of numbers, or an image"
        ) from None
    if heights.ndim != 2 or heights.dtype.kind not in "fiu" or heights.size > MAX_CELLS:
        problem = f"holds {heights.dtype} of shape {heights.shape}"
        raise InputError(problem, location=str(file), valid=f"numbers, rows x columns, {MAX_CELLS} or fewer")
    return np.array(heights, np.float64)


def _load_height_image(file: Path, height_range: float) -> Array:
    """Return (rows, columns) heights [m] of an image, the bottom row first."""
    import warnings

    from PIL import Image

    ignored_warnings = warnings.catch_warnings(action="ignore", category=Image.DecompressionBombWarning)
    with ignored_warnings, Image.open(file, formats=_IMAGE_FORMATS) as image:
        if image.width * image.height > MAX_CELLS:  # the size is known before the image is decoded
            problem = f"an image of {image.width} x {image.height} pixels"
            raise InputError(problem, location=str(file), valid=f"{MAX_CELLS} or fewer pixels")
        if image.mode == "F":
            raise InputError(
                "an image of floating-point numbers", location=str(file), valid="8 or 16 bits per pixel, or .npy"
            )
        is_16_bit = image.mode.startswith("I")
        gray = np.asarray(image.convert("I" if is_16_bit else "L"), np.float64)
    heights: Array = gray[::-1] * (height_range / (65535.0 if is_16_bit else 255.0))
    return heights


def create_foothold_map(
    ground_config: TerrainConfig | HeightMapFile, robot_model: FreeGaitModel, positions: ArrayLike, heading: float
) -> FootholdMap:
    """Return the foothold map of a terrain and the level ground around positions (k, 2) [m], or of a height map.

    Raises:
        InputError: The height map cannot be read, or is no valid map.
    """
    if isinstance(ground_config, TerrainConfig):
        return FootholdMap.from_terrain(ground_config.generate(0), robot_model, positions, heading=heading)
    start = np.atleast_2d(np.asarray(positions, np.float64))[0]
    return FootholdMap.from_heights(
        ground_config.heights(),
        ground_config.origin,
        robot_model,
        cell_size=ground_config.cell_size,
        heading=heading,
        start=start,
    )


def height_function(ground_config: TerrainConfig | HeightMapFile) -> HeightFunction:
    """Return the heights function of `check_plan` for a terrain or a height map; outside of a map it returns NaN.

    Raises:
        InputError: The height map cannot be read.
    """
    if isinstance(ground_config, TerrainConfig):
        return ground_config.generate(0).height_at
    values, (x, y), cell = ground_config.heights(), ground_config.origin, ground_config.cell_size

    def height(positions: Array) -> Array:
        columns, rows = (np.floor((positions[..., k] - low) / cell).astype(np.int64) for k, low in ((0, x), (1, y)))
        inside = (rows >= 0) & (columns >= 0) & (rows < values.shape[0]) & (columns < values.shape[1])
        sampled: Array = np.full(inside.shape, np.nan)
        sampled[inside] = values[rows[inside], columns[inside]]
        return sampled

    return height
