"""Skills by name, made from a goal."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from roboyard.config.wording import did_you_mean
from roboyard.errors import InputError
from roboyard.manipulation.skills.bays import InspectBaysSkill, StowSkill, UnstowSkill
from roboyard.manipulation.skills.config import SkillConfig
from roboyard.manipulation.skills.loop import PickPlaceLoop
from roboyard.manipulation.skills.pick_place import AlignSkill, DetectSkill, PickSkill, PlaceSkill
from roboyard.manipulation.skills.requests import DiscMode, DiscPolarity, Point
from roboyard.manipulation.skills.skill import Skill


@dataclass(frozen=True, slots=True)
class SkillGoal:
    """Goal of a skill; each skill uses what it needs.

    Attributes:
        polarity: white, black; empty: white.
        mode: single, pair; empty: single.
        num_images: Number of images; 0: as configured.
        work_area: Work area; empty: where the robot is.
        bay: From 1 on; 0: the first suitable one.
        position: Where an object is to be placed; None: on a free place.
        n_objects: Number of objects after which a loop ends; 0: never.
    """

    polarity: str = ""
    mode: str = ""
    num_images: int = 0
    work_area: str = ""
    bay: int = 0
    position: Point | None = None
    n_objects: int = 0


SkillFactory = Callable[[SkillGoal, SkillConfig], Skill]

_FACTORIES: Final[dict[str, SkillFactory]] = {
    "look": lambda goal, config: DetectSkill(*_disc_kind(goal), goal.num_images or config.num_images, goal.work_area),
    "align": lambda goal, config: AlignSkill(*_disc_kind(goal)),
    "check_load": lambda goal, config: InspectBaysSkill(),
    "pick": lambda goal, config: PickSkill(goal.work_area),
    "place": lambda goal, config: PlaceSkill(goal.work_area, goal.position),
    "stow": lambda goal, config: StowSkill(goal.bay),
    "unstow": lambda goal, config: UnstowSkill(goal.bay),
    "loop": lambda goal, config: PickPlaceLoop(goal.n_objects),
}
SKILL_NAMES: Final = tuple(_FACTORIES)
"""Names of the skills that can be requested."""


def make_skill(name: str, goal: SkillGoal, config: SkillConfig, n_bays: int) -> Skill:
    """Return a skill that is ready to start.

    Args:
        name: One of `SKILL_NAMES`.
        goal: Goal of the skill.
        config: Configuration of the cell.
        n_bays: Number of bays.

    Raises:
        InputError: there is no such skill, work area or bay, or a number is not finite.
    """
    if name not in _FACTORIES:
        raise InputError(f"no skill {name!r}{did_you_mean(name, SKILL_NAMES)}", valid=", ".join(SKILL_NAMES))
    if goal.work_area and goal.work_area not in config.work_areas:
        raise InputError(
            f"no work area {goal.work_area!r}{did_you_mean(goal.work_area, config.work_areas)}",
            valid=", ".join(config.work_areas),
        )
    if not 0 <= goal.bay <= n_bays:
        raise InputError(f"bay {goal.bay}", valid=f"1 to {n_bays}, or 0 for the first suitable one")
    if goal.position is not None and not all(math.isfinite(value) for value in goal.position):
        raise InputError(f"a position {goal.position}", valid="three finite numbers")
    return _FACTORIES[name](goal, config)


def _disc_kind(goal: SkillGoal) -> tuple[DiscPolarity, DiscMode]:
    polarities: dict[str, DiscPolarity] = {"": "white", "white": "white", "black": "black"}
    modes: dict[str, DiscMode] = {"": "single", "single": "single", "pair": "pair"}
    if goal.polarity not in polarities:
        raise InputError(f"{goal.polarity} discs", valid="white, black")
    if goal.mode not in modes:
        raise InputError(f"mode {goal.mode!r}", valid="single, pair")
    return polarities[goal.polarity], modes[goal.mode]
