"""A person's body as a description: capsules that touch and are scanned, a skin that is seen, and how it gives way."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from roboyard.description.model import Collision, Inertial, Link, Material, Model, Rgba, Surface, Visual
from roboyard.description.shapes import Capsule
from roboyard.geometry import SE3, quaternions
from roboyard.geometry.arrays import Array
from roboyard.simulation.assembly import Flesh
from roboyard.simulation.people import anthropometry as a
from roboyard.simulation.people.anthropometry import Physique, capsule_length, capsule_radius
from roboyard.simulation.people.regions import EFFECTIVE_MASSES, REGIONS, WHOLE
from roboyard.simulation.people.skeleton import PARTS, REST, Skeleton, segment
from roboyard.simulation.people.skin import skin

SKIN: Rgba = (0.80, 0.60, 0.48, 1.0)
SHIRT: Rgba = (0.20, 0.36, 0.56, 1.0)
TROUSERS: Rgba = (0.22, 0.22, 0.26, 1.0)
SHOES: Rgba = (0.10, 0.09, 0.08, 1.0)

TRUNK = {"pelvis": (0.015, 0.060), "abdomen": (0.050, 0.062), "chest": (0.055, 0.066)}
"""Height of a trunk part's middle in its frame, and half its depth, as shares of the stature."""
HOLD = 3.0
"""Natural frequency with which somebody who is pushed comes back [rad/s]: within a second, so that an impact, which
takes hundredths, meets the free mass."""

_FLAT = (math.cos(math.pi / 4.0), math.sin(math.pi / 4.0), 0.0, 0.0)  # z to the right: the trunk's capsules lie across
_AHEAD = (math.cos(math.pi / 4.0), 0.0, math.sin(math.pi / 4.0), 0.0)  # z ahead: so do the feet's


@dataclass(frozen=True, slots=True)
class Body:
    """Somebody's body.

    Attributes:
        skeleton: Its joints.
        capsules: Of each part, and where it lies in the part's frame.
        model: Its links, named as the skeleton's parts, in the pose of rest; no joints.
        flesh: How each link gives way.
    """

    skeleton: Skeleton
    capsules: dict[str, tuple[Capsule, SE3]]
    model: Model
    flesh: dict[str, Flesh]


def make_body(physique: Physique, name: str = "person", shirt: Rgba = SHIRT) -> Body:
    """The body of somebody so large, with the ground under the feet at height 0."""
    skeleton = Skeleton.of(physique)
    places, _ = skeleton.forward(skeleton.offsets[0], REST)
    capsules = {part: capsule_of(segment(part), physique) for part in PARTS}
    links = []
    for part, place in zip(PARTS, places.tolist(), strict=True):
        capsule, T_part_capsule = capsules[part]
        surface = Surface(friction=0.0)  # what presses on people slides off
        links.append(
            Link(
                part,
                SE3(translation=tuple(place)),
                inertial=_inertial(segment(part), physique, T_part_capsule),
                collisions=(Collision(part, capsule, T_part_capsule, surface),),
                visuals=(_look(segment(part), physique, shirt),),
            )
        )
    return Body(skeleton, capsules, Model(name, tuple(links), canonical_link="pelvis"), flesh_of(physique))


def capsule_of(part: str, physique: Physique) -> tuple[Capsule, SE3]:
    """The capsule of a segment, in its frame: as thick as the segment's volume asks, on the line of its bone."""
    h = physique.height
    volume = physique.part_volume(part)
    if part in TRUNK:
        up, depth = (share * h for share in TRUNK[part])
        radius = depth * math.sqrt(physique.mass / (a.BODY_MASS_INDEX * h**2))
        between = 2.0 * (a.SHOULDER_ASIDE * h - capsule_of("upper_arm", physique)[0].radius - radius)  # the arms
        return Capsule(radius, max(min(capsule_length(volume, radius), between), 0.1 * radius)), SE3(
            _FLAT, (0.0, 0.0, up)
        )
    if part == "head":
        radius = 0.044 * h
        return Capsule(radius, a.HEAD * h - 2.0 * radius), SE3(translation=(0.006 * h, 0.0, 0.050 * h))
    if part == "neck":
        return Capsule(0.033 * h, 0.045 * h), SE3(translation=(0.006 * h, 0.0, 0.030 * h))
    if part == "foot":
        length = a.FOOT_LENGTH * h
        radius = 0.5 * a.ANKLE * h
        middle = 0.5 * length - a.HEEL * h
        return Capsule(radius, length - 2.0 * radius), SE3(_AHEAD, (middle, 0.0, radius - a.ANKLE * h))
    length = {"upper_arm": a.UPPER_ARM, "forearm": a.FOREARM, "hand": a.HAND,
              "thigh": a.HIP - a.KNEE, "shank": a.KNEE - a.ANKLE}[part] * h  # fmt: skip
    if part in ("upper_arm", "forearm", "thigh"):
        return Capsule(capsule_radius(volume, length), length), SE3(translation=(0.0, 0.0, -0.5 * length))
    if part == "hand":
        radius = capsule_radius(volume, 0.7 * length)
        straight = length - 2.0 * radius
        return Capsule(radius, straight), SE3(translation=(0.0, 0.0, -radius - 0.5 * straight))
    radius = min(capsule_radius(volume, length), a.ANKLE * h)  # no calf reaches the ground
    return Capsule(radius, length), SE3(translation=(0.0, 0.0, -0.5 * length))


def flesh_of(physique: Physique) -> dict[str, Flesh]:
    """How each part gives way."""
    flesh = {}
    for part in PARTS:
        front, behind = REGIONS[segment(part)]
        mass = EFFECTIVE_MASSES[segment(part)] * physique.mass / WHOLE
        flesh[part] = Flesh(mass, front.stiffness, behind.stiffness, HOLD)
    return flesh


def region_of(part: str, ahead: float) -> str:
    """Name of the region of a part that is touched where the outward normal's share along the part's x is ``ahead``."""
    front, behind = REGIONS[segment(part)]
    return front.name if ahead > 0.0 else behind.name


def pressed_region(part: str, force: Array, turn: Array) -> str:
    """Name of the region of a part that a force presses on, with its side.

    Args:
        part: One of `PARTS`.
        force: (3,) on the part, in the world.
        turn: (4,) how the part is turned.
    """
    ahead = float(np.dot(quaternions.rotate(turn, np.array([1.0, 0.0, 0.0])), force))
    name = region_of(part, -ahead)  # who is pushed back is touched in front
    return f"{part.partition('_')[0]} {name}" if part.startswith(("left_", "right_")) else name


def _inertial(part: str, physique: Physique, T_part_capsule: SE3) -> Inertial:
    """Of a ball of the part's mass, which only its total weight is for: what is led has no motion of its own."""
    mass = physique.part_mass(part)
    moment = 0.4 * mass * (0.05 * physique.height) ** 2
    return Inertial(mass, SE3(translation=T_part_capsule.translation), (moment, moment, moment, 0.0, 0.0, 0.0))


def _look(part: str, physique: Physique, shirt: Rgba) -> Visual:
    colour = {"abdomen": shirt, "chest": shirt, "upper_arm": shirt, "pelvis": TROUSERS, "thigh": TROUSERS,
              "shank": TROUSERS, "foot": SHOES}.get(part, SKIN)  # fmt: skip
    breadth = (
        math.sqrt(physique.mass / (a.BODY_MASS_INDEX * physique.height**2)) if part not in ("head", "foot") else 1.0
    )
    return Visual(part, skin(part, physique.height, breadth), SE3.identity(), Material("clothes", colour))
