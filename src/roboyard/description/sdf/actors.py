"""``<actor>``: a standing figure where the animated one begins, until people come."""

from __future__ import annotations

from dataclasses import dataclass

from roboyard.description.fields import boolean_of, pose
from roboyard.description.model import Capsule, Collision, Link, Material, Model, Visual
from roboyard.description.reading import Reading
from roboyard.description.sensing import read_plugin
from roboyard.description.values import fault
from roboyard.description.xml import Node
from roboyard.geometry import SE2, SE3

HEIGHT, RADIUS = 1.75, 0.25
HIP = 1.0
"""Where an actor's frame usually sits: skeletons have their root at the hip, a metre above the ground [m]."""
FIGURE = "figure"
_MARK = Material("actor", (1.0, 0.0, 1.0, 0.5))
_KNOWN = {"pose", "script", "static", "plugin"}
_LATER = {"skin", "animation", "link", "joint"}


@dataclass(frozen=True, slots=True)
class Actor:
    """A figure, and where it stands in the actor's frame or, if it has a trajectory, in the world."""

    model: Model
    start: SE3 | None


def read_actor(reading: Reading, node: Node) -> Actor:
    """The figure that stands for the actor at ``node``, marked by its colour.

    It touches, is seen, and stays where the actor's trajectory begins; what moves it comes later.

    Raises:
        DescriptionError: it has no name, or its first way point is none.
    """
    name = node.get("name").strip()
    if not name:
        raise fault("an actor has no name", node, '<actor name="…">')
    reading.unknown(node, _KNOWN, _LATER)
    script = node.child("script")
    points = [point for one in script.all("trajectory") for point in one.all("waypoint")] if script is not None else []
    start = pose(points[0].child("pose")) if points else None
    boolean_of(node, "static", False)
    reading.note(
        node, f"actor '{name}' is a figure {HEIGHT:g} m high that stands: its skin and motion have no effect yet"
    )
    shape = Capsule(RADIUS, HEIGHT - 2.0 * RADIUS)
    place = SE3.from_xyz_rpy((0.0, 0.0, HEIGHT / 2.0))
    link = Link(
        FIGURE,
        SE3.identity(),
        collisions=(Collision(FIGURE, shape, place),),
        visuals=(Visual(FIGURE, shape, place, _MARK),),
    )
    plugins = tuple(read_plugin(one) for one in node.all("plugin"))
    return Actor(Model(name, (link,), static=True, canonical_link=FIGURE, plugins=plugins), start)


def standing(T_world_actor: SE3) -> SE3:
    """Where the figure's feet are: upright, and below the hip where the actor's frame is as high as one."""
    x, y, z = (float(value) for value in T_world_actor.xyz)
    yaw = SE2.from_se3(T_world_actor).theta
    return SE3.from_xyz_rpy((x, y, z - HIP if z >= 0.5 * HIP else z), (0.0, 0.0, yaw))
