"""Skills by name, from what somebody asks for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from roboyard.config.wording import did_you_mean
from roboyard.errors import InputError
from roboyard.manipulation.skills.asking import Mode, Point, Polarity
from roboyard.manipulation.skills.config import SkillConfig
from roboyard.manipulation.skills.loading import CheckLoad, Stow, Unstow
from roboyard.manipulation.skills.loop import Loop
from roboyard.manipulation.skills.picking import Pick
from roboyard.manipulation.skills.placing import Place
from roboyard.manipulation.skills.seeing import Align, LookAround
from roboyard.manipulation.skills.skill import Skill


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody asks for; each skill takes what it needs.

    Attributes:
        polarity: white, black; empty: white.
        mode: single, pair; empty: single.
        looks: Pictures; 0: as configured.
        field: Which; empty: where the robot is.
        bay: From 1 on; 0: the first that will do.
        at: Where a thing shall stand; None: on a free place.
        objects: After so many a loop is over; 0: never.
    """

    polarity: str = ""
    mode: str = ""
    looks: int = 0
    field: str = ""
    bay: int = 0
    at: Point | None = None
    objects: int = 0


Make = Callable[[Wish, SkillConfig], Skill]

_MAKERS: Final[dict[str, Make]] = {
    "look": lambda wish, config: LookAround(*_kind(wish), wish.looks or config.looks, wish.field),
    "align": lambda wish, config: Align(*_kind(wish)),
    "check_load": lambda wish, config: CheckLoad(),
    "pick": lambda wish, config: Pick(wish.field),
    "place": lambda wish, config: Place(wish.field, wish.at),
    "stow": lambda wish, config: Stow(wish.bay),
    "unstow": lambda wish, config: Unstow(wish.bay),
    "loop": lambda wish, config: Loop(wish.objects),
}
SKILLS: Final = tuple(_MAKERS)
"""Names of skills that can be asked for."""


def make_skill(name: str, wish: Wish, config: SkillConfig, bays: int) -> Skill:
    """A skill that is ready to begin.

    Args:
        name: One of `SKILLS`.
        wish: What is asked for.
        config: Of the cell.
        bays: How many there are.

    Raises:
        InputError: there is no such skill, field or bay, or a number is none.
    """
    if name not in _MAKERS:
        raise InputError(f"no skill {name!r}{did_you_mean(name, SKILLS)}", valid=", ".join(SKILLS))
    if wish.field and wish.field not in config.fields:
        raise InputError(
            f"no field {wish.field!r}{did_you_mean(wish.field, config.fields)}", valid=", ".join(config.fields)
        )
    if not 0 <= wish.bay <= bays:
        raise InputError(f"bay {wish.bay}", valid=f"1 to {bays}, or 0 for the first that will do")
    if wish.at is not None and not all(math.isfinite(value) for value in wish.at):
        raise InputError(f"a place at {wish.at}", valid="three finite numbers")
    return _MAKERS[name](wish, config)


def _kind(wish: Wish) -> tuple[Polarity, Mode]:
    polarities: dict[str, Polarity] = {"": "white", "white": "white", "black": "black"}
    modes: dict[str, Mode] = {"": "single", "single": "single", "pair": "pair"}
    if wish.polarity not in polarities:
        raise InputError(f"{wish.polarity} discs", valid="white, black")
    if wish.mode not in modes:
        raise InputError(f"mode {wish.mode!r}", valid="single, pair")
    return polarities[wish.polarity], modes[wish.mode]
