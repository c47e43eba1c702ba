"""``<actor>``: a figure that stands where it begins, and what it is to do; in a run people take its place."""

from __future__ import annotations

from dataclasses import dataclass

from roboyard.description.acting import ActorClip, ActorScript, ActorTrajectory
from roboyard.description.fields import child_boolean, child_number, child_text, read_pose
from roboyard.description.model import Capsule, Collision, Link, Material, Model, Visual
from roboyard.description.reading import ReaderContext
from roboyard.description.sensing import read_plugin
from roboyard.description.values import error_at
from roboyard.description.xml import XmlNode
from roboyard.geometry import SE2, SE3

ACTOR_HEIGHT, ACTOR_RADIUS = 1.75, 0.25
HIP_HEIGHT = 1.0
"""Where an actor's frame usually sits: skeletons have their root at the hip, a metre above the ground [m]."""
ACTOR_LINK = "figure"
_ACTOR_MATERIAL = Material("actor", (1.0, 0.0, 1.0, 0.5))
_ACTOR_TAGS = {"pose", "script", "static", "plugin", "animation"}
_UNUSED_ACTOR_TAGS = {"skin", "link", "joint"}


@dataclass(frozen=True, slots=True)
class Actor:
    """A figure, and where it stands in the actor's frame or, if it has a trajectory, in the world."""

    model: Model
    initial_pose: SE3 | None


def read_actor(context: ReaderContext, node: XmlNode) -> Actor:
    """The figure that stands for the actor at ``node``, marked by its colour, with what it is to do.

    Raises:
        DescriptionError: it has no name, a way point or time is none, or times do not rise.
    """
    name = node.get("name").strip()
    if not name:
        raise error_at("an actor has no name", node, '<actor name="…">')
    context.warn_unknown_children(node, _ACTOR_TAGS, _UNUSED_ACTOR_TAGS)
    actor_script = _read_actor_script(context, node)
    initial_pose = next((T for one in actor_script.trajectories for _, T in one.waypoints), None)
    child_boolean(node, "static", False)
    context.warn(node, f"actor '{name}' looks like our people do: its skin has no effect")
    shape = Capsule(ACTOR_RADIUS, ACTOR_HEIGHT - 2.0 * ACTOR_RADIUS)
    T_link_geom = SE3.from_xyz_rpy((0.0, 0.0, ACTOR_HEIGHT / 2.0))
    link = Link(
        ACTOR_LINK,
        SE3.identity(),
        collisions=(Collision(ACTOR_LINK, shape, T_link_geom),),
        visuals=(Visual(ACTOR_LINK, shape, T_link_geom, _ACTOR_MATERIAL),),
    )
    plugins = tuple(read_plugin(one) for one in node.children_with_tag("plugin"))
    return Actor(
        Model(name, (link,), static=True, canonical_link=ACTOR_LINK, plugins=plugins, actor_script=actor_script),
        initial_pose,
    )


def _read_actor_script(context: ReaderContext, node: XmlNode) -> ActorScript:
    clips = []
    for one in node.children_with_tag("animation"):
        context.warn_unknown_children(one, {"filename", "scale", "interpolate_x"})
        uri = child_text(one, "filename")
        if uri:
            file = context.find_file(uri, one.child("filename") or one, "animation")
            clips.append(ActorClip(one.get("name").strip(), uri, file, child_boolean(one, "interpolate_x", False)))
    script = node.child("script")
    if script is None:
        return ActorScript(tuple(clips))
    context.warn_unknown_children(script, {"loop", "delay_start", "auto_start", "trajectory"})
    return ActorScript(
        tuple(clips),
        tuple(_read_trajectory(context, one) for one in script.children_with_tag("trajectory")),
        child_boolean(script, "loop", True),
        child_number(script, "delay_start", 0.0, minimum=0.0),
        child_boolean(script, "auto_start", True),
    )


def _read_trajectory(context: ReaderContext, node: XmlNode) -> ActorTrajectory:
    context.warn_unknown_children(node, {"waypoint"})
    waypoints: list[tuple[float, SE3]] = []
    for one in node.children_with_tag("waypoint"):
        context.warn_unknown_children(one, {"time", "pose"})
        time = child_number(one, "time", 0.0, minimum=0.0)
        if waypoints and time <= waypoints[-1][0]:
            raise error_at(f"a way point at {time:g} s after one at {waypoints[-1][0]:g} s", one, "rising times")
        waypoints.append((time, read_pose(one.child("pose"))))
    return ActorTrajectory(node.get("type").strip(), tuple(waypoints))


def feet_pose(T_world_actor: SE3) -> SE3:
    """Where the figure's feet are: upright, and below the hip where the actor's frame is as high as one."""
    x, y, z = (float(value) for value in T_world_actor.xyz)
    yaw = SE2.from_se3(T_world_actor).theta
    return SE3.from_xyz_rpy((x, y, z - HIP_HEIGHT if z >= 0.5 * HIP_HEIGHT else z), (0.0, 0.0, yaw))
