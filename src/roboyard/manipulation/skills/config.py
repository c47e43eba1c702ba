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
    thing_radius: float = parameter(0.010, unit="m", low=0.001, high=0.1, doc="of the cylinders")
    thing_height: float = parameter(0.045, unit="m", low=0.01, high=0.5, doc="from the ground to the disc on top")
    # views
    fields: tuple[str, ...] = parameter(("left", "right"), doc="names of fields, in the order of the loop")
    views: tuple[str, ...] = parameter(("view", "view"), doc="named pose of the arm for each")
    bearings: tuple[float, ...] = parameter((), unit="rad", doc="of the first joint for each; none: as the pose has it")
    drives: bool = parameter(False, doc="the robot drives between fields, with the arm at rest")
    retreat: float = parameter(0.25, unit="m", low=0.0, high=5.0, doc="it comes to a field from so far before it")
    load_view: str = parameter("load_check", doc="named pose that looks at the bays")
    rest: str = parameter("rest", doc="named pose at the end")
    settle: float = parameter(0.1, unit="s", low=0.0, high=10.0, doc="between a motion and a look")
    glances: int = parameter(4, low=1, high=50, doc="pictures of a first look")
    looks: int = parameter(5, low=1, high=50, doc="pictures before a grasp and at a place")
    empty_looks: int = parameter(10, low=1, high=100, doc="looks without anything, while aligning, before it gives up")
    align_tolerance: float = parameter(0.003, unit="rad", low=1e-5, high=1.0, doc="off the arm's plane")
    align_turns: int = parameter(6, low=1, high=100, doc="of the first joint, at most")
    match: float = parameter(0.015, unit="m", low=0.001, high=0.1, doc="seen again so near, it is the same thing")
    # fields whose floor moves
    moving: tuple[str, ...] = parameter((), doc="names of fields whose floor is a belt")
    belts: tuple[float, ...] = parameter(
        (), unit="m", doc="x and y of begin and end, and width, of each of those belts"
    )
    moving_looks: int = parameter(20, low=3, high=200, doc="pictures of a look at what may move")
    moving_settle: float = parameter(0.3, unit="s", low=0.0, high=10.0, doc="between a motion and such a look")
    still: float = parameter(0.002, unit="m/s", low=1e-5, high=1.0, doc="what is slower stands")
    unsteady: float = parameter(
        0.003, unit="m/s", low=1e-5, high=1.0, doc="a belt's speed that changes by more is another"
    )
    ahead: float = parameter(3.0, unit="s", low=0.1, high=100.0, doc="until the hand is over the way of a thing")
    join: float = parameter(0.8, unit="s", low=0.1, high=10.0, doc="until the tool moves along with it")
    down: float = parameter(1.1, unit="s", low=0.1, high=10.0, doc="straight down to it, while both move")
    close: float = parameter(0.7, unit="s", low=0.05, high=10.0, doc="until the fingers hold it, or let go of it")
    up: float = parameter(1.1, unit="s", low=0.1, high=10.0, doc="straight up again")
    leave: float = parameter(0.6, unit="s", low=0.1, high=10.0, doc="until the tool stands again")
    # the hand
    opening: float = parameter(0.024, unit="m", low=0.001, high=0.5, doc="of the fingers before a grasp")
    closed: float = parameter(0.001, unit="m", low=0.0, high=0.5, doc="goal when they close")
    force: float = parameter(0.0, unit="N", low=0.0, high=1e4, doc="of each finger; 0: all it can")
    finger: tuple[float, ...] = parameter((0.012, 0.014), unit="m", doc="thickness and width of one")
    room: float = parameter(0.006, unit="m", low=0.0, high=0.1, doc="round fingers and thing; more than planning wants")
    turns: int = parameter(12, low=1, high=180, doc="of the hand that are tried, over half a turn")
    depth: float = parameter(0.025, unit="m", low=0.0, high=0.5, doc="of the tip below the disc in the grasp")
    payload: float = parameter(
        0.75, unit="kg", low=0.0, high=1e4, doc="what seems heavier, by the efforts, is put down"
    )
    approach: float = parameter(0.050, unit="m", low=0.0, high=0.5, doc="straight down to it, and up again")
    release_gap: float = parameter(0.001, unit="m", low=0.0, high=0.05, doc="between thing and ground when it lets go")
    line_speed: float = parameter(0.5, low=0.01, high=1.0, doc="share of the joints' speeds on straight lines")
    touch_speed: float = parameter(
        0.15, low=0.01, high=1.0, doc="the same where the hand goes down beside what it grasps"
    )
    speed: float = parameter(1.0, low=0.01, high=1.0, doc="share of the joints' speeds on the way")
    # places
    covered: float = parameter(
        0.03, unit="m", low=0.0, high=0.5, doc="a thing so near to a place's middle stands on it"
    )
    only_on_places: float = parameter(
        0.0, unit="m", low=0.0, high=0.1, doc="take only what stands so near to one; 0: all"
    )
    reach: tuple[float, ...] = parameter((0.10, 0.27), unit="m", doc="from the first joint's axis, least and greatest")
    bays: tuple[str, ...] = parameter((), doc="links whose frames lie on the floor of each bay, on an empty bay's disc")
    bay_window: float = parameter(0.02, unit="m", low=0.001, high=0.2, doc="discs so near in x and y are a bay's")
    # patience
    tries: int = parameter(3, low=1, high=100, doc="of a grasp, a look at the bays, a place")
    patience: float = parameter(10.0, unit="s", low=0.0, high=1e4, doc="the loop waits for a free place, or a camera")
    idle: float = parameter(20.0, unit="s", low=0.1, high=1e5, doc="the loop rests when nothing can be moved anywhere")
    pick_at: str = parameter("", doc="field that the loop picks from; empty: wherever it is")
    place_at: str = parameter("", doc="field that the loop places on; empty: wherever it is")

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
