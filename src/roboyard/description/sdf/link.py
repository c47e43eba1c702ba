"""``<link>``: inertial, shapes, sensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from roboyard.description import checks
from roboyard.description.fields import boolean_of, number_of, pose
from roboyard.description.inertia import is_finite, of_collisions
from roboyard.description.model import Collision, Inertial, Link, Plugin, Visual
from roboyard.description.plausibility import sensible
from roboyard.description.reading import Reading
from roboyard.description.remedies import with_shapes
from roboyard.description.sdf.shapes import read_geometry, read_material, read_surface
from roboyard.description.sensing import read_plugin, read_sensor
from roboyard.description.sensors import Sensor
from roboyard.description.values import fault
from roboyard.description.xml import Node
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3

_KNOWN = {"pose", "inertial", "collision", "visual", "sensor", "gravity", "self_collide", "plugin"}
_UNUSED = {
    "velocity_decay", "kinematic", "must_be_base_link", "enable_wind", "light", "projector", "audio_source",
    "audio_sink", "battery", "particle_emitter",
}  # fmt: skip
_MOMENTS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
_UNIT = (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)  # libsdformat's inertia where the file gives none [kg m²]
_WATER = 1000.0  # SDF's default density [kg/m³]

Place = Callable[[Node, str], SE3]
"""Pose in the link of an element with a ``<pose>``, whose ``relative_to`` may name anything in the model."""


@dataclass(frozen=True, slots=True)
class LinkParts:
    """A link with what sits on it."""

    link: Link
    sensors: tuple[Sensor, ...]
    plugins: tuple[Plugin, ...]


def read_link(reading: Reading, node: Node, T_model_link: SE3, place: Place, *, static: bool) -> LinkParts:
    """The link at ``node``.

    Args:
        reading: Takes findings, resolves files.
        node: The ``<link>``.
        T_model_link: Its pose.
        place: Resolves the poses of its parts.
        static: Whether the model never moves, so that a wrong inertia is noted instead of refused.

    Raises:
        DescriptionError: a shape, mass, inertia or number is wrong, or a name occurs twice.
    """
    name = node.get("name").strip()
    reading.unknown(node, _KNOWN, _UNUSED)
    for decay in node.all("velocity_decay"):  # without effect, but a number it must be
        number_of(decay, "linear", 0.0)
        number_of(decay, "angular", 0.0)
    owner = f"link '{name}'"
    checks.unique("collision", ((one.get("name").strip(), one) for one in node.all("collision")), owner)
    checks.unique("visual", ((one.get("name").strip(), one) for one in node.all("visual")), owner)
    checks.unique("sensor", ((one.get("name").strip(), one) for one in node.all("sensor")), owner)
    shapes = [reading.attempt(partial(_collision, reading, one, name, place), None) for one in node.all("collision")]
    collisions = [shape for shape in shapes if shape is not None]
    looks = [reading.attempt(partial(_visual, reading, one, name, place), None) for one in node.all("visual")]
    visuals = [look for look in looks if look is not None]
    try:
        with reading.strictly(static):
            inertial = _inertial(reading, node, name, collisions)
    except DescriptionError as error:
        if not static:
            raise
        reading.note(node.child("inertial") or node, f"{error.what}; of no matter, the model is static")
        inertial = None
    link = Link(
        name=name,
        T_model_link=T_model_link,
        inertial=inertial,
        collisions=tuple(collision for collision, _ in collisions),
        visuals=tuple(visuals),
        gravity=boolean_of(node, "gravity", True),
        self_collide=boolean_of(node, "self_collide", False),
    )
    if not static:
        stated = node.child("inertial")
        link = sensible(reading, stated, link) if stated is not None else link
        link = with_shapes(reading, node, link)
    sensors = tuple(read_sensor(reading, one, name, place(one, f"sensor of {owner}")) for one in node.all("sensor"))
    inside = (plugin for sensor in node.all("sensor") for plugin in sensor.all("plugin"))
    plugins = tuple(read_plugin(one, name) for one in (*node.all("plugin"), *inside))
    return LinkParts(link, sensors, plugins)


def _collision(reading: Reading, node: Node, link: str, place: Place) -> tuple[Collision, float] | None:
    """The collision and its density."""
    reading.unknown(
        node,
        {"pose", "geometry", "surface", "density"},
        {"max_contacts", "laser_retro", "auto_inertia_params", "material"},
    )
    name = node.get("name").strip()
    shape = read_geometry(reading, node, f"collision '{name}' of link '{link}'")
    if shape is None:
        return None
    T_link_geom = place(node, f"collision '{name}' of link '{link}'")
    surface = read_surface(reading, node.child("surface"))
    return Collision(name, shape, T_link_geom, surface), number_of(node, "density", 0.0, low=0.0)


def _visual(reading: Reading, node: Node, link: str, place: Place) -> Visual | None:
    reading.unknown(
        node,
        {"pose", "geometry", "material", "transparency", "cast_shadows"},
        {"meta", "laser_retro", "visibility_flags", "plugin"},
    )
    name = node.get("name").strip()
    shape = read_geometry(reading, node, f"visual '{name}' of link '{link}'")
    if shape is None:
        return None
    material = read_material(reading, node.child("material"), number_of(node, "transparency", 0.0))
    T_link_geom = place(node, f"visual '{name}' of link '{link}'")
    return Visual(name, shape, T_link_geom, material, boolean_of(node, "cast_shadows", True))


def _inertial(reading: Reading, node: Node, link: str, collisions: list[tuple[Collision, float]]) -> Inertial | None:
    given = node.child("inertial")
    if given is None:
        return Inertial(1.0, SE3.identity(), _UNIT)
    reading.unknown(given, {"mass", "inertia", "pose", "density"}, {"auto_inertia_params", "fluid_added_mass", "frame"})
    if given.get("auto") in ("true", "1"):
        return _automatic(reading, given, link, collisions)
    mass = number_of(given, "mass", 1.0)
    inertia = given.child("inertia")
    ixx, iyy, izz, ixy, ixz, iyz = (
        number_of(inertia, key, default) for key, default in zip(_MOMENTS, _UNIT, strict=True)
    )
    moments = (ixx, iyy, izz, ixy, ixz, iyz)
    shapes = [collision for collision, _ in collisions]
    return checks.inertial(reading, given, link, mass, pose(given.child("pose")), moments, shapes)


def _automatic(reading: Reading, node: Node, link: str, collisions: list[tuple[Collision, float]]) -> Inertial | None:
    """Inertia from the shapes; a given mass scales it, as in SDF 1.11."""
    common = number_of(node, "density", _WATER, low=0.0, above=True)
    found = of_collisions([(collision, density or common) for collision, density in collisions])
    if found is None:
        reading.note(node, f"link '{link}': no inertia can be computed from its collisions; 1 kg, 1 kg m² taken")
        return Inertial(1.0, SE3.identity(), _UNIT)
    if not is_finite(found):
        raise fault(
            f"link '{link}': mass or inertia of its collision shapes is too large for floating-point numbers",
            node,
            "smaller shapes or densities, nearer to the link's frame",
        )
    mass, com, inertia = found
    total = number_of(node, "mass", mass, low=0.0, above=True)
    scale = total / mass
    if not math.isfinite(scale):
        raise fault(
            f"link '{link}': its collision shapes are too small for a mass of {total:g} kg", node, "larger shapes"
        )
    inertia = inertia * scale
    moments = (inertia[0, 0], inertia[1, 1], inertia[2, 2], inertia[0, 1], inertia[0, 2], inertia[1, 2])
    ixx, iyy, izz, ixy, ixz, iyz = (float(value) for value in moments)
    T_link_com = SE3((1.0, 0.0, 0.0, 0.0), com)
    return checks.inertial(reading, node, link, mass * scale, T_link_com, (ixx, iyy, izz, ixy, ixz, iyz))
