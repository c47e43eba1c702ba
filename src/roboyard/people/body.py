"""A person's body as a model: capsules for contacts and range sensors, a skin mesh for cameras, and compliant parts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import Collision, Inertial, Link, Material, Mesh, Model, Rgba, Surface, Visual
from roboyard.description.shapes import Capsule, InlineArray
from roboyard.geometry import SE3, quaternions
from roboyard.geometry.arrays import Array
from roboyard.people.anthropometry import (
    ANKLE_HEIGHT,
    BODY_MASS_INDEX,
    BODY_REGIONS,
    EFFECTIVE_MASSES,
    FOOT_LENGTH,
    FOREARM_LENGTH,
    HALF_SHOULDER_WIDTH,
    HAND_LENGTH,
    HEAD_HEIGHT,
    HEEL_LENGTH,
    HIP_HEIGHT,
    KNEE_HEIGHT,
    REFERENCE_BODY_MASS,
    UPPER_ARM_LENGTH,
    BodyDimensions,
    compute_capsule_length,
    compute_capsule_radius,
)
from roboyard.people.skeleton import PARTS, REST_POSE_ROTATIONS, Skeleton, segment_name
from roboyard.physics.compiled_world import LinkCompliance

SKIN_COLOR: Rgba = (0.80, 0.60, 0.48, 1.0)
SHIRT_COLOR: Rgba = (0.20, 0.36, 0.56, 1.0)
TROUSERS_COLOR: Rgba = (0.22, 0.22, 0.26, 1.0)
SHOES_COLOR: Rgba = (0.10, 0.09, 0.08, 1.0)

TRUNK_DIMENSIONS = {"pelvis": (0.015, 0.060), "abdomen": (0.050, 0.062), "chest": (0.055, 0.066)}
"""Height of the center of a trunk part in its frame, and half its depth, as fractions of the stature."""
RETURN_FREQUENCY = 3.0
"""Natural frequency with which a body part that was pushed returns [rad/s]: within a second, so that an impact, which
takes hundredths, meets the free mass."""

_Z_TO_RIGHT = (
    math.cos(math.pi / 4.0),
    math.sin(math.pi / 4.0),
    0.0,
    0.0,
)  # z to the right: the capsules of the trunk are transverse
_Z_FORWARD = (math.cos(math.pi / 4.0), 0.0, math.sin(math.pi / 4.0), 0.0)  # z forward: the capsules of the feet


@dataclass(frozen=True, slots=True)
class PersonModel:
    """Model of a person's body.

    Attributes:
        skeleton: Skeleton of the person.
        capsules: Capsule of each part, and its pose in the part's frame.
        model: Model with a link for each part of the skeleton, in the rest pose, without joints.
        compliant_parts: Compliance of each link.
    """

    skeleton: Skeleton
    capsules: dict[str, tuple[Capsule, SE3]]
    model: Model
    compliant_parts: dict[str, LinkCompliance]


def make_person_model(dimensions: BodyDimensions, name: str = "person", shirt_color: Rgba = SHIRT_COLOR) -> PersonModel:
    """Return the body of a person with these dimensions; the ground under the feet is at height 0."""
    skeleton = Skeleton.from_dimensions(dimensions)
    positions, _ = skeleton.compute_part_poses(skeleton.offsets[0], REST_POSE_ROTATIONS)
    capsules = {part: make_segment_capsule(segment_name(part), dimensions) for part in PARTS}
    links = []
    for part, position in zip(PARTS, positions.tolist(), strict=True):
        capsule, T_part_capsule = capsules[part]
        surface = Surface(friction=0.0)  # objects slide along people
        links.append(
            Link(
                part,
                SE3(translation=tuple(position)),
                inertial=_make_inertial(segment_name(part), dimensions, T_part_capsule),
                collisions=(Collision(part, capsule, T_part_capsule, surface),),
                visuals=(_make_visual(segment_name(part), dimensions, shirt_color),),
            )
        )
    return PersonModel(
        skeleton, capsules, Model(name, tuple(links), canonical_link="pelvis"), make_compliant_parts(dimensions)
    )


def make_segment_capsule(segment: str, dimensions: BodyDimensions) -> tuple[Capsule, SE3]:
    """Return the capsule of a segment and its pose in the segment's frame; most have the segment's volume."""
    height = dimensions.height
    volume = dimensions.segment_volume(segment)
    if segment in TRUNK_DIMENSIONS:
        center_height, half_depth = (fraction * height for fraction in TRUNK_DIMENSIONS[segment])
        radius = half_depth * math.sqrt(dimensions.mass / (BODY_MASS_INDEX * height**2))
        max_length = 2.0 * (
            HALF_SHOULDER_WIDTH * height - make_segment_capsule("upper_arm", dimensions)[0].radius - radius
        )  # the arms
        return Capsule(radius, max(min(compute_capsule_length(volume, radius), max_length), 0.1 * radius)), SE3(
            _Z_TO_RIGHT, (0.0, 0.0, center_height)
        )
    if segment == "head":
        radius = 0.044 * height
        return Capsule(radius, HEAD_HEIGHT * height - 2.0 * radius), SE3(
            translation=(0.006 * height, 0.0, 0.050 * height)
        )
    if segment == "neck":
        return Capsule(0.033 * height, 0.045 * height), SE3(translation=(0.006 * height, 0.0, 0.030 * height))
    if segment == "foot":
        length = FOOT_LENGTH * height
        radius = 0.5 * ANKLE_HEIGHT * height
        center = 0.5 * length - HEEL_LENGTH * height
        return Capsule(radius, length - 2.0 * radius), SE3(_Z_FORWARD, (center, 0.0, radius - ANKLE_HEIGHT * height))
    length = {
        "upper_arm": UPPER_ARM_LENGTH,
        "forearm": FOREARM_LENGTH,
        "hand": HAND_LENGTH,
        "thigh": HIP_HEIGHT - KNEE_HEIGHT,
        "shank": KNEE_HEIGHT - ANKLE_HEIGHT,
    }[segment] * height
    if segment in ("upper_arm", "forearm", "thigh"):
        return Capsule(compute_capsule_radius(volume, length), length), SE3(translation=(0.0, 0.0, -0.5 * length))
    if segment == "hand":
        radius = compute_capsule_radius(volume, 0.7 * length)
        cylinder_length = length - 2.0 * radius
        return Capsule(radius, cylinder_length), SE3(translation=(0.0, 0.0, -radius - 0.5 * cylinder_length))
    radius = min(compute_capsule_radius(volume, length), ANKLE_HEIGHT * height)  # the shank does not touch the ground
    return Capsule(radius, length), SE3(translation=(0.0, 0.0, -0.5 * length))


def make_compliant_parts(dimensions: BodyDimensions) -> dict[str, LinkCompliance]:
    """Return the compliance of each part."""
    compliant_parts = {}
    for part in PARTS:
        front, rear = BODY_REGIONS[segment_name(part)]
        mass = EFFECTIVE_MASSES[segment_name(part)] * dimensions.mass / REFERENCE_BODY_MASS
        compliant_parts[part] = LinkCompliance(mass, front.stiffness, rear.stiffness, RETURN_FREQUENCY)
    return compliant_parts


def region_name(part: str, forward_component: float) -> str:
    """Return the name of the touched region; ``forward_component`` is that of the outward normal."""
    front, rear = BODY_REGIONS[segment_name(part)]
    return front.name if forward_component > 0.0 else rear.name


def contact_region(part: str, force: Array, orientation: Array) -> str:
    """Return the name of the region of a part on which a force acts, with its side.

    Args:
        part: One of `PARTS`.
        force: Force (3,) on the part, in the world [N].
        orientation: Orientation (4,) of the part in the world.
    """
    forward_component = float(np.dot(quaternions.rotate(orientation, np.array([1.0, 0.0, 0.0])), force))
    name = region_name(part, -forward_component)  # a force to the back acts on the front
    return f"{part.partition('_')[0]} {name}" if part.startswith(("left_", "right_")) else name


def _make_inertial(segment: str, dimensions: BodyDimensions, T_part_capsule: SE3) -> Inertial:
    """Return the inertia of a ball with the part's mass; only the mass matters, as the pose is prescribed."""
    mass = dimensions.segment_mass(segment)
    moment = 0.4 * mass * (0.05 * dimensions.height) ** 2
    return Inertial(mass, SE3(translation=T_part_capsule.translation), (moment, moment, moment, 0.0, 0.0, 0.0))


def _make_visual(segment: str, dimensions: BodyDimensions, shirt_color: Rgba) -> Visual:
    color = {
        "abdomen": shirt_color,
        "chest": shirt_color,
        "upper_arm": shirt_color,
        "pelvis": TROUSERS_COLOR,
        "thigh": TROUSERS_COLOR,
        "shank": TROUSERS_COLOR,
        "foot": SHOES_COLOR,
    }.get(segment, SKIN_COLOR)
    girth_factor = (
        math.sqrt(dimensions.mass / (BODY_MASS_INDEX * dimensions.height**2))
        if segment not in ("head", "foot")
        else 1.0
    )
    return Visual(
        segment, make_skin_mesh(segment, dimensions.height, girth_factor), SE3.identity(), Material("clothes", color)
    )


VERTICES_PER_RING = 20
"""Number of vertices of a cross-section."""
RINGS_PER_STATION = 4
"""Number of rings between two stations of an outline."""

# Outlines from top to bottom: height along the bone, half depth, half width, and forward offset of the center, as
# fractions of the stature, in the frame of the part.
OUTLINES: dict[str, tuple[tuple[float, float, float, float], ...]] = {
    "pelvis": (
        (0.070, 0.056, 0.080, 0.004), (0.040, 0.061, 0.090, 0.000), (0.005, 0.066, 0.098, -0.006),
        (-0.030, 0.062, 0.093, -0.006), (-0.058, 0.040, 0.062, 0.000),
    ),
    "abdomen": (
        (0.135, 0.058, 0.086, 0.002), (0.090, 0.058, 0.083, 0.005), (0.045, 0.057, 0.079, 0.006),
        (0.000, 0.057, 0.082, 0.004), (-0.025, 0.050, 0.076, 0.002),
    ),
    "chest": (
        (0.150, 0.030, 0.036, -0.006), (0.137, 0.038, 0.075, -0.004), (0.122, 0.046, 0.119, -0.002),
        (0.085, 0.064, 0.107, 0.003), (0.045, 0.067, 0.098, 0.004), (0.000, 0.060, 0.089, 0.003),
        (-0.030, 0.054, 0.082, 0.003),
    ),
    "neck": ((0.085, 0.032, 0.032, 0.010), (0.045, 0.032, 0.032, 0.006), (0.010, 0.035, 0.036, 0.000),
             (-0.020, 0.038, 0.044, -0.004)),
    "head": (
        (0.115, 0.016, 0.014, -0.008), (0.105, 0.042, 0.033, -0.006), (0.085, 0.056, 0.043, -0.002),
        (0.055, 0.058, 0.045, 0.002), (0.030, 0.054, 0.043, 0.006), (0.005, 0.042, 0.037, 0.014),
        (-0.012, 0.024, 0.024, 0.024),
    ),
    "upper_arm": (
        (0.026, 0.017, 0.016, 0.0), (0.010, 0.034, 0.031, 0.0), (-0.030, 0.033, 0.030, 0.0),
        (-0.090, 0.029, 0.026, 0.002), (-0.150, 0.025, 0.023, 0.0), (-0.198, 0.022, 0.021, 0.0),
    ),
    "forearm": (
        (0.014, 0.019, 0.019, 0.0), (-0.030, 0.025, 0.024, 0.0), (-0.070, 0.023, 0.021, 0.0),
        (-0.115, 0.018, 0.016, 0.0), (-0.150, 0.016, 0.014, 0.0),
    ),
    "hand": (
        (0.008, 0.014, 0.012, 0.0), (-0.020, 0.022, 0.012, 0.002), (-0.055, 0.024, 0.012, 0.002),
        (-0.085, 0.019, 0.009, 0.001), (-0.108, 0.008, 0.006, 0.0),
    ),
    "thigh": (
        (0.030, 0.044, 0.040, 0.0), (-0.010, 0.055, 0.051, 0.0), (-0.070, 0.053, 0.049, 0.003),
        (-0.150, 0.044, 0.040, 0.004), (-0.225, 0.034, 0.033, 0.002), (-0.258, 0.030, 0.031, 0.0),
    ),
    "shank": (
        (0.014, 0.030, 0.030, 0.002), (-0.030, 0.033, 0.030, -0.002), (-0.080, 0.036, 0.032, -0.008),
        (-0.140, 0.029, 0.026, -0.005), (-0.210, 0.020, 0.019, 0.0), (-0.250, 0.020, 0.019, 0.0),
    ),
}  # fmt: skip
# Outline of a foot from heel to toe: distance in front of the ankle, half height, half width, height of the center.
FOOT_OUTLINE = (
    (-0.034, 0.014, 0.018, -0.021), (-0.018, 0.025, 0.023, -0.012), (0.010, 0.027, 0.025, -0.011),
    (0.050, 0.020, 0.028, -0.019), (0.085, 0.014, 0.029, -0.025), (0.112, 0.008, 0.020, -0.031),
)  # fmt: skip


@lru_cache(maxsize=256)
def make_skin_mesh(segment: str, height: float, girth_factor: float = 1.0) -> Mesh:
    """Return the surface of a body part, in the part's frame.

    Args:
        segment: Name of the part without its side.
        height: Stature of the person [m].
        girth_factor: Factor on depth and width.
    """
    if segment == "foot":
        outline = np.array(FOOT_OUTLINE)
        rings = _make_rings(outline) * [1.0, girth_factor, 1.0]
        ring_points = np.stack([rings[..., 2], rings[..., 1], rings[..., 0]], axis=-1)
        faces = _make_faces(len(rings))  # mirrored, and from the other end
    else:
        outline = np.array(OUTLINES[segment])
        ring_points = _make_rings(outline) * [girth_factor, girth_factor, 1.0]
        faces = _make_faces(len(ring_points))
    vertices = (
        np.concatenate([ring_points.reshape(-1, 3), ring_points[:1].mean(axis=1), ring_points[-1:].mean(axis=1)])
        * height
    )
    values = np.ascontiguousarray(vertices, np.float32).tobytes()
    return Mesh(f"skin of {segment}", None, inline=InlineArray(values, np.ascontiguousarray(faces, np.int32).tobytes()))


def _make_rings(outline: Array) -> Array:
    """Return cross-sections (rings, `VERTICES_PER_RING`, 3) of an outline, which is rounded at its ends."""
    first, last = outline[0].copy(), outline[-1].copy()
    direction = np.sign(outline[0, 0] - outline[-1, 0])
    first[0] += direction * 0.4 * min(first[1], first[2])
    last[0] -= direction * 0.4 * min(last[1], last[2])
    first[1:3] *= 0.25
    last[1:3] *= 0.25
    stations = np.concatenate([[first], outline, [last]])
    sections = _interpolate_stations(stations)
    angles = np.arange(VERTICES_PER_RING) * (2.0 * math.pi / VERTICES_PER_RING)
    x = sections[:, 3, None] + sections[:, 1, None] * np.cos(angles)
    y = sections[:, 2, None] * np.sin(angles)
    return np.stack([x, y, np.broadcast_to(sections[:, :1], x.shape)], axis=-1)


def _interpolate_stations(stations: Array) -> Array:
    """Interpolate the stations by a Catmull-Rom spline, `RINGS_PER_STATION` times as many."""
    padded = np.concatenate([2.0 * stations[:1] - stations[1:2], stations, 2.0 * stations[-1:] - stations[-2:-1]])
    s = (np.arange(RINGS_PER_STATION) / RINGS_PER_STATION)[:, None]
    curves = []
    for k in range(len(stations) - 1):
        a, b, c, d = padded[k : k + 4]
        curves.append(0.5 * (2.0 * b + (c - a) * s + (2.0 * a - 5.0 * b + 4.0 * c - d) * s**2
                             + (3.0 * (b - c) + d - a) * s**3))  # fmt: skip
    sections: Array = np.concatenate([*curves, stations[-1:]])
    sections[:, 1:3] = np.maximum(sections[:, 1:3], 1e-3)
    return sections


def _make_faces(num_rings: int) -> NDArray[np.int64]:
    """Return the triangles of a stack of rings, closed above and below; counterclockwise from outside."""
    vertex = np.arange(VERTICES_PER_RING)
    next_vertex = (vertex + 1) % VERTICES_PER_RING
    top, bottom = num_rings * VERTICES_PER_RING, num_rings * VERTICES_PER_RING + 1
    faces = []
    for k in range(num_rings - 1):
        upper, lower = k * VERTICES_PER_RING, (k + 1) * VERTICES_PER_RING
        faces += [
            np.stack([upper + vertex, lower + vertex, lower + next_vertex], 1),
            np.stack([upper + vertex, lower + next_vertex, upper + next_vertex], 1),
        ]
    faces.append(np.stack([np.full(VERTICES_PER_RING, top), vertex, next_vertex], 1))
    last = (num_rings - 1) * VERTICES_PER_RING
    faces.append(np.stack([np.full(VERTICES_PER_RING, bottom), last + next_vertex, last + vertex], 1))
    return np.concatenate(faces)
