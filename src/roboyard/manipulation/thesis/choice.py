"""The thesis's skills by name."""

from __future__ import annotations

from typing import Final

from roboyard.config.wording import did_you_mean
from roboyard.errors import InputError
from roboyard.manipulation.skills import Skill, Wish
from roboyard.manipulation.thesis.handling import Pick, Place, Stow, Unstow
from roboyard.manipulation.thesis.looking import Align, CheckLoad
from roboyard.manipulation.thesis.loop import ThesisLoop

THESIS_SKILLS: Final = ("align", "check_load", "pick", "place", "stow", "unstow", "loop")
"""Names of skills that can be asked for."""


def make_thesis_skill(name: str, wish: Wish, fields: tuple[str, ...], bays: int) -> Skill:
    """A skill that is ready to begin.

    Raises:
        InputError: there is no such skill, field or bay.
    """
    if name not in THESIS_SKILLS:
        raise InputError(f"no skill {name!r}{did_you_mean(name, THESIS_SKILLS)}", valid=", ".join(THESIS_SKILLS))
    if wish.field and wish.field not in fields:
        raise InputError(f"no field {wish.field!r}{did_you_mean(wish.field, fields)}", valid=", ".join(fields))
    if name in ("stow", "unstow"):
        if not 1 <= wish.bay <= bays:
            raise InputError(f"bay {wish.bay}", valid=f"1 to {bays}")
        return Stow(bay=wish.bay) if name == "stow" else Unstow(bay=wish.bay)
    if name == "align":
        return Align("pair" if wish.mode == "pair" else "single")
    if name == "check_load":
        return CheckLoad()
    if name == "loop":
        return ThesisLoop(wish.objects)
    return Pick(where=wish.field) if name == "pick" else Place(where=wish.field)
