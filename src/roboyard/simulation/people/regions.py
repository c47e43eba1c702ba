"""How hard the regions of the body are, and what an impact on them meets.

Stiffness is that of the recommendations of the German accident insurers' institute (BG/BGIA, "Recommendations for the
design of workplaces with collaborative robots", U 001/2009e, 2011: compression constants); the masses are those which
impact models of people use (head 4.4 kg, trunk 40 kg, arm 3 kg, forearm 2 kg, hand 0.6 kg; a leg that stands bears the
body).
"""

from __future__ import annotations

from dataclasses import dataclass

WHOLE = 75.0
"""Mass of the body that the masses belong to [kg]."""


@dataclass(frozen=True, slots=True)
class Region:
    """A region of the body.

    Attributes:
        name: Of it.
        stiffness: How hard it is [N/m].
    """

    name: str
    stiffness: float


SKULL, FACE = Region("skull", 150e3), Region("face", 75e3)
NECK = Region("neck", 50e3)
BACK, CHEST, BELLY = Region("back", 35e3), Region("chest", 25e3), Region("belly", 10e3)
PELVIS, BUTTOCKS = Region("pelvis", 25e3), Region("buttocks", 15e3)
UPPER_ARM, FOREARM, HAND = Region("upper arm", 30e3), Region("forearm", 40e3), Region("hand", 75e3)
THIGH, SHANK, FOOT = Region("thigh", 50e3), Region("shank", 60e3), Region("foot", 75e3)

REGIONS: dict[str, tuple[Region, Region]] = {
    "pelvis": (PELVIS, BUTTOCKS),
    "abdomen": (BELLY, BACK),
    "chest": (CHEST, BACK),
    "neck": (NECK, NECK),
    "head": (FACE, SKULL),
    "upper_arm": (UPPER_ARM, UPPER_ARM),
    "forearm": (FOREARM, FOREARM),
    "hand": (HAND, HAND),
    "thigh": (THIGH, THIGH),
    "shank": (SHANK, SHANK),
    "foot": (FOOT, FOOT),
}
"""Of each segment, where it is touched from the front and from elsewhere."""

EFFECTIVE_MASSES = {
    "pelvis": 40.0,
    "abdomen": 40.0,
    "chest": 40.0,
    "neck": 1.2,
    "head": 4.4,
    "upper_arm": 3.0,
    "forearm": 2.0,
    "hand": 0.6,
    "thigh": 75.0,
    "shank": 75.0,
    "foot": 75.0,
}
"""That an impact on each segment meets [kg], of a person of 75 kg."""
