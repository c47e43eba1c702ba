"""What skills know of the cell, and how carefully they go about it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from roboyard.config import parameter
from roboyard.errors import ConfigError


@dataclass(frozen=True)
class SkillConfig:
    """Places are in the frame of the robot's root link.

    Heights are those of Westfälische Hochschule's thesis (2017): tip 25 mm above a symbol before a grasp and 25 mm
    below it in the grasp; 20 mm above a place's symbol when it lets go.
    """

    # the things
    thing_radius: float = parameter(0.010, unit="m", low=0.001, high=0.1, doc="Radius of the cylinders.")
    thing_height: float = parameter(
        0.045, unit="m", low=0.01, high=0.5, doc="Height of the disc on top above the ground."
    )
    # views
    fields: tuple[str, ...] = parameter(("left", "right"), doc="Names of the fields, in the order of the loop.")
    views: tuple[str, ...] = parameter(("view", "view"), doc="Named pose of the arm for each field.")
    bearings: tuple[float, ...] = parameter(
        (), unit="rad", doc="Position of the first joint for each field; empty: that of the named pose."
    )
    drives: bool = parameter(False, doc="Drive between fields, with the arm at rest.")
    retreat: float = parameter(
        0.25, unit="m", low=0.0, high=5.0, doc="Distance before a field at which the robot comes to it."
    )
    load_view: str = parameter("load_check", doc="Named pose from which the bays are seen.")
    rest: str = parameter("rest", doc="Named pose at the end.")
    settle: float = parameter(0.1, unit="s", low=0.0, high=10.0, doc="Time between a motion and a look.")
    glances: int = parameter(4, low=1, high=50, doc="Number of images of a first look.")
    looks: int = parameter(5, low=1, high=50, doc="Number of images before a grasp and at a place.")
    empty_looks: int = parameter(
        10, low=1, high=100, doc="Number of looks without anything, during the alignment, after which it is given up."
    )
    align_tolerance: float = parameter(
        0.003, unit="rad", low=1e-5, high=1.0, doc="Tolerance of the alignment to the arm's plane."
    )
    align_turns: int = parameter(6, low=1, high=100, doc="Largest number of turns of the first joint.")
    match: float = parameter(
        0.015, unit="m", low=0.001, high=0.1, doc="Distance within which sightings are the same thing."
    )
    # fields whose floor moves
    moving: tuple[str, ...] = parameter((), doc="Names of the fields whose floor is a belt.")
    belts: tuple[float, ...] = parameter((), unit="m", doc="Beginning x, y, end x, y and width of each of those belts.")
    moving_looks: int = parameter(20, low=3, high=200, doc="Number of images of a look at what may move.")
    moving_settle: float = parameter(0.3, unit="s", low=0.0, high=10.0, doc="Time between a motion and such a look.")
    still: float = parameter(0.002, unit="m/s", low=1e-5, high=1.0, doc="Speed below which a thing stands.")
    unsteady: float = parameter(
        0.003, unit="m/s", low=1e-5, high=1.0, doc="Change of a belt's speed from which it counts as another one."
    )
    ahead: float = parameter(
        3.0, unit="s", low=0.1, high=100.0, doc="Time until the hand is above the path of a thing."
    )
    join: float = parameter(0.8, unit="s", low=0.1, high=10.0, doc="Time until the tool moves along with the thing.")
    down: float = parameter(
        1.1, unit="s", low=0.1, high=10.0, doc="Duration of the motion straight down to the thing, while both move."
    )
    close: float = parameter(
        0.7, unit="s", low=0.05, high=10.0, doc="Time until the fingers hold the thing, or let go of it."
    )
    up: float = parameter(1.1, unit="s", low=0.1, high=10.0, doc="Duration of the motion straight up again.")
    leave: float = parameter(0.6, unit="s", low=0.1, high=10.0, doc="Time until the tool stands again.")
    # the hand
    opening: float = parameter(0.024, unit="m", low=0.001, high=0.5, doc="Opening of the fingers before a grasp.")
    closed: float = parameter(0.001, unit="m", low=0.0, high=0.5, doc="Goal of the fingers when they close.")
    force: float = parameter(0.0, unit="N", low=0.0, high=1e4, doc="Force of each finger; 0: the largest possible.")
    finger: tuple[float, ...] = parameter((0.012, 0.014), unit="m", doc="Thickness and width of a finger.")
    room: float = parameter(
        0.006, unit="m", low=0.0, high=0.1, doc="Clearance around fingers and thing; more than planning requires."
    )
    turns: int = parameter(12, low=1, high=180, doc="Number of turns of the hand that are tried, over half a turn.")
    depth: float = parameter(
        0.025, unit="m", low=0.0, high=0.5, doc="Depth of the fingertips below the disc in the grasp."
    )
    payload: float = parameter(
        0.75, unit="kg", low=0.0, high=1e4, doc="Mass from which a thing, judged by the efforts, is put down."
    )
    approach: float = parameter(
        0.050, unit="m", low=0.0, high=0.5, doc="Height of the motion straight down to the thing, and up again."
    )
    release_gap: float = parameter(
        0.001, unit="m", low=0.0, high=0.05, doc="Gap between thing and ground at the release."
    )
    line_speed: float = parameter(0.5, low=0.01, high=1.0, doc="Share of the joints' speeds on straight lines.")
    touch_speed: float = parameter(
        0.15, low=0.01, high=1.0, doc="Share of the joints' speeds where the hand moves down beside what it grasps."
    )
    speed: float = parameter(1.0, low=0.01, high=1.0, doc="Share of the joints' speeds on other motions.")
    # places
    covered: float = parameter(
        0.03,
        unit="m",
        low=0.0,
        high=0.5,
        doc="Distance from a place's middle within which a thing stands on the place.",
    )
    only_on_places: float = parameter(
        0.0, unit="m", low=0.0, high=0.1, doc="Distance from a place within which things are taken; 0: all things."
    )
    reach: tuple[float, ...] = parameter(
        (0.10, 0.27), unit="m", doc="Smallest and largest distance from the axis of the first joint."
    )
    bays: tuple[str, ...] = parameter(
        (), doc="Links whose frames lie on the floor of each bay, on the disc of an empty bay."
    )
    bay_window: float = parameter(
        0.02, unit="m", low=0.001, high=0.2, doc="Distance in x and y within which discs are those of a bay."
    )
    # patience
    tries: int = parameter(3, low=1, high=100, doc="Number of attempts at a grasp, a look at the bays, a place.")
    patience: float = parameter(
        10.0, unit="s", low=0.0, high=1e4, doc="Time for which the loop waits for a free place, or a camera."
    )
    idle: float = parameter(
        20.0, unit="s", low=0.1, high=1e5, doc="Time for which the loop rests when nothing can be moved anywhere."
    )
    pick_at: str = parameter("", doc="Field from which the loop picks; empty: all fields.")
    place_at: str = parameter("", doc="Field on which the loop places; empty: all fields.")

    def __post_init__(self) -> None:
        count = len(self.fields)
        if not count or len(self.views) != count or len(self.bearings) not in (0, count):
            raise ConfigError(
                f"{count} fields, {len(self.views)} views, {len(self.bearings)} bearings", location="skills",
                valid="a view for each field, and a bearing for each or none",
            )  # fmt: skip
        for name in (self.pick_at, self.place_at):
            if name and name not in self.fields:
                raise ConfigError(f"no field {name!r}", location="skills", valid=", ".join(self.fields))
        for name in self.moving:
            if name not in self.fields:
                raise ConfigError(f"no field {name!r}", location="skills.moving", valid=", ".join(self.fields))
        if len(self.belts) != 5 * len(self.moving):
            raise ConfigError(
                f"{len(self.belts)} numbers for {len(self.moving)} belts", location="skills.belts",
                valid="x, y of begin and end, and width, of each field in 'moving'",
            )  # fmt: skip
        for k, name in enumerate(self.moving):
            x, y, u, v, width = self.belts[5 * k : 5 * k + 5]
            if not (math.isfinite(x + y + u + v + width) and math.hypot(u - x, v - y) > width > 0.0):
                raise ConfigError(
                    f"the belt of {name} from {x:g}, {y:g} to {u:g}, {v:g}, {width:g} wide", location="skills.belts",
                    valid="finite numbers, longer than wide",
                )  # fmt: skip
        for key, size in (("finger", 2), ("reach", 2)):
            if len(getattr(self, key)) != size:
                raise ConfigError(f"{key} of {len(getattr(self, key))} numbers", location="skills", valid=f"{size}")
