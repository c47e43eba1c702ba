"""Skills by name, made from a goal: those of this package and of installed packages."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from roboyard.config.registry import Registry
from roboyard.config.wording import did_you_mean
from roboyard.errors import InputError
from roboyard.manipulation.skills.bays import InspectBaysSkill, StowSkill, UnstowSkill
from roboyard.manipulation.skills.config import SkillConfig
from roboyard.manipulation.skills.loop import PickPlaceLoop
from roboyard.manipulation.skills.pick_place import AlignSkill, DetectSkill, PickSkill, PlaceSkill
from roboyard.manipulation.skills.requests import Point
from roboyard.manipulation.skills.skill import Skill
from roboyard.vision.discs.disc_detector import MODES, POLARITIES, DiscMode, DiscPolarity


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
"""Function that makes a skill from its goal and the configuration of the cell; an entry point of the group
``roboyard.skills`` names one.  It raises InputError if the goal is invalid."""

SKILLS: Registry[SkillFactory] = Registry("skill", group="roboyard.skills")
"""Factories of the skills by the name that clients request."""

_STANDARD_SKILLS: Final = ("look", "align", "check_load", "pick", "place", "stow", "unstow", "loop")


def skill_names() -> tuple[str, ...]:
    """Return the names of all registered skills: those of this package in their usual order, then the others."""
    return (*_STANDARD_SKILLS, *(name for name in SKILLS.names() if name not in _STANDARD_SKILLS))


def make_detect(goal: SkillGoal, config: SkillConfig) -> Skill:
    """Move to the view of a work area and detect discs, or centers of pairs of discs, in several images."""
    polarity, mode = disc_kind(goal)
    return DetectSkill(polarity, mode, goal.num_images or config.num_images, goal.work_area)


def make_align(goal: SkillGoal, config: SkillConfig) -> Skill:
    """Rotate the first joint until the nearest disc is in the arm's plane."""
    return AlignSkill(*disc_kind(goal))


def make_inspect_bays(goal: SkillGoal, config: SkillConfig) -> Skill:
    """Detect which bays are full and which are empty."""
    return InspectBaysSkill()


def make_pick(goal: SkillGoal, config: SkillConfig) -> Skill:
    """Pick the nearest object of a work area that the gripper can grasp."""
    return PickSkill(goal.work_area)


def make_place(goal: SkillGoal, config: SkillConfig) -> Skill:
    """Place the held object on a free place of a work area, or at a position."""
    return PlaceSkill(goal.work_area, goal.position)


def make_stow(goal: SkillGoal, config: SkillConfig) -> Skill:
    """Put the held object into a bay."""
    return StowSkill(goal.bay)


def make_unstow(goal: SkillGoal, config: SkillConfig) -> Skill:
    """Take an object out of a bay."""
    return UnstowSkill(goal.bay)


def make_pick_place_loop(goal: SkillGoal, config: SkillConfig) -> Skill:
    """Pick until the bays are full, place until they are empty, and change the work area, again and again."""
    return PickPlaceLoop(goal.n_objects)


def make_skill(name: str, goal: SkillGoal, config: SkillConfig, n_bays: int) -> Skill:
    """Return a skill that is ready to start.

    Args:
        name: One of `skill_names`.
        goal: Goal of the skill.
        config: Configuration of the cell.
        n_bays: Number of bays.

    Raises:
        InputError: there is no such skill, work area or bay, or a number is not finite.
    """
    check_goal(name, goal, skill_names(), config, n_bays)
    return SKILLS[name](goal, config)


def check_goal(name: str, goal: SkillGoal, names: Sequence[str], config: SkillConfig, n_bays: int) -> None:
    """Check the name and the goal of a requested skill.

    Raises:
        InputError: there is no such skill, work area or bay, or a number is not finite.
    """
    if name not in names:
        raise InputError(f"no skill {name!r}{did_you_mean(name, names)}", valid=", ".join(names))
    if goal.work_area and goal.work_area not in config.work_areas:
        raise InputError(
            f"no work area {goal.work_area!r}{did_you_mean(goal.work_area, config.work_areas)}",
            valid=", ".join(config.work_areas),
        )
    if not 0 <= goal.bay <= n_bays:
        raise InputError(f"bay {goal.bay}", valid=f"1 to {n_bays}, or 0 for the first suitable one")
    if goal.position is not None and not all(math.isfinite(value) for value in goal.position):
        raise InputError(f"a position {goal.position}", valid="three finite numbers")


def disc_kind(goal: SkillGoal) -> tuple[DiscPolarity, DiscMode]:
    """Return the discs that a goal names; the defaults are white and single. Raises InputError."""
    polarity, mode = goal.polarity or "white", goal.mode or "single"
    if polarity not in POLARITIES:
        raise InputError(f"{polarity} discs", valid=", ".join(POLARITIES))
    if mode not in MODES:
        raise InputError(f"mode {mode!r}", valid=", ".join(MODES))
    return polarity, mode
