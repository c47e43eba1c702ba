"""``<actor>``: a figure that stands where it begins, and what it is to do; in a run people take its place."""

from __future__ import annotations

from dataclasses import dataclass

from roboyard.description.acting import Acting, Animation, Trajectory
from roboyard.description.fields import boolean_of, number_of, pose, text_of
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
_KNOWN = {"pose", "script", "static", "plugin", "animation"}
_LATER = {"skin", "link", "joint"}


@dataclass(frozen=True, slots=True)
class Actor:
    """A figure, and where it stands in the actor's frame or, if it has a trajectory, in the world."""

    model: Model
    start: SE3 | None


def read_actor(reading: Reading, node: Node) -> Actor:
    """The figure that stands for the actor at ``node``, marked by its colour, with what it is to do.

    Raises:
        DescriptionError: it has no name, a way point or time is none, or times do not rise.
    """
    name = node.get("name").strip()
    if not name:
        raise fault("an actor has no name", node, '<actor name="…">')
    reading.unknown(node, _KNOWN, _LATER)
    acting = _acting(reading, node)
    start = next((T for one in acting.trajectories for _, T in one.waypoints), None)
    boolean_of(node, "static", False)
    reading.note(node, f"actor '{name}' looks like our people do: its skin has no effect")
    shape = Capsule(RADIUS, HEIGHT - 2.0 * RADIUS)
    place = SE3.from_xyz_rpy((0.0, 0.0, HEIGHT / 2.0))
    link = Link(
        FIGURE,
        SE3.identity(),
        collisions=(Collision(FIGURE, shape, place),),
        visuals=(Visual(FIGURE, shape, place, _MARK),),
    )
    plugins = tuple(read_plugin(one) for one in node.all("plugin"))
    return Actor(Model(name, (link,), static=True, canonical_link=FIGURE, plugins=plugins, acting=acting), start)


def _acting(reading: Reading, node: Node) -> Acting:
    animations = []
    for one in node.all("animation"):
        reading.unknown(one, {"filename", "scale", "interpolate_x"})
        uri = text_of(one, "filename")
        if uri:
            file = reading.file(uri, one.child("filename") or one, "animation")
            animations.append(Animation(one.get("name").strip(), uri, file, boolean_of(one, "interpolate_x", False)))
    script = node.child("script")
    if script is None:
        return Acting(tuple(animations))
    reading.unknown(script, {"loop", "delay_start", "auto_start", "trajectory"})
    return Acting(
        tuple(animations),
        tuple(_trajectory(reading, one) for one in script.all("trajectory")),
        boolean_of(script, "loop", True),
        number_of(script, "delay_start", 0.0, low=0.0),
        boolean_of(script, "auto_start", True),
    )


def _trajectory(reading: Reading, node: Node) -> Trajectory:
    reading.unknown(node, {"waypoint"})
    points: list[tuple[float, SE3]] = []
    for one in node.all("waypoint"):
        reading.unknown(one, {"time", "pose"})
        time = number_of(one, "time", 0.0, low=0.0)
        if points and time <= points[-1][0]:
            raise fault(f"a way point at {time:g} s after one at {points[-1][0]:g} s", one, "rising times")
        points.append((time, pose(one.child("pose"))))
    return Trajectory(node.get("type").strip(), tuple(points))


def standing(T_world_actor: SE3) -> SE3:
    """Where the figure's feet are: upright, and below the hip where the actor's frame is as high as one."""
    x, y, z = (float(value) for value in T_world_actor.xyz)
    yaw = SE2.from_se3(T_world_actor).theta
    return SE3.from_xyz_rpy((x, y, z - HIP if z >= 0.5 * HIP else z), (0.0, 0.0, yaw))
