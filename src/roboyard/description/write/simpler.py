"""Models put so that a poorer format can say them: joints of one axis each, and joint frames at links."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from roboyard.description.model import (
    Axis,
    Box,
    Collision,
    Heightmap,
    Joint,
    JointType,
    Link,
    Mesh,
    Mimic,
    Model,
    Visual,
)
from roboyard.description.write.written import Losses
from roboyard.geometry import SE3

_NEAR = 1e-12
Shape = TypeVar("Shape", Collision, Visual)


def without_points(model: Model, losses: Losses) -> Model:
    """The model with meshes whose points stand in the description as their boxes, and such terrains left out."""

    def plain(one: Shape, label: str) -> Shape | None:
        shape = one.geometry
        if isinstance(shape, Heightmap) and shape.inline is not None:
            losses.say(f"{label}: a terrain whose heights stand in the original is left out")
            return None
        if not isinstance(shape, Mesh) or shape.inline is None:
            return one
        losses.say(f"{label}: a mesh whose points stand in the original is written as its box")
        points = np.frombuffer(shape.inline.values, np.float32).reshape(-1, 3) * np.asarray(shape.scale)
        low, high = points.min(axis=0), points.max(axis=0)
        x, y, z = (max(float(edge), 1e-6) for edge in high - low)
        middle = SE3(translation=(low + high) / 2.0)
        return replace(one, geometry=Box((x, y, z)), T_link_geom=one.T_link_geom @ middle)

    links = []
    for link in model.links:
        collisions = [plain(one, f"collision '{one.name}' of link '{link.name}'") for one in link.collisions]
        visuals = [plain(one, f"visual '{one.name}' of link '{link.name}'") for one in link.visuals]
        links.append(
            replace(
                link,
                collisions=tuple(one for one in collisions if one is not None),
                visuals=tuple(one for one in visuals if one is not None),
            )
        )
    return replace(model, links=tuple(links))


def split(model: Model, kinds: Collection[JointType], losses: Losses) -> Model:
    """The model with each joint of ``kinds`` made of joints of one axis, massless links between them.

    The second and third are called ``name_2`` and ``name_3``, as in simulation.  A screw's second joint slides and
    mimics the first.
    """
    links = {link.name: link for link in model.links}
    names = {joint.name for joint in model.joints}
    joints: list[Joint] = []
    for joint in model.joints:
        if joint.type not in kinds:
            joints.append(joint)
            continue
        parts = _parts(joint)
        if joint.type == "gearbox":
            losses.say(f"joint '{joint.name}': the gearbox turns freely, its ratio is lost")
        else:
            losses.say(f"joint '{joint.name}' of type {joint.type} is written as {len(parts)} joints of one axis")
        if joint.swing is not None:
            losses.say("limits, springs, damping and friction of balls are lost")
        T_parent_joint = joint.T_parent_child @ joint.T_child_joint
        T_model_joint = links[joint.child].T_model_link @ joint.T_child_joint
        parent = joint.parent
        for index, (kind, axis, mimic) in enumerate(parts):
            last = index == len(parts) - 1
            name = joint.name if index == 0 else f"{joint.name}_{index + 1}"
            while index and name in names:
                name += "_"
            child = joint.child if last else f"{joint.child}_{name}"
            T_parent_child = T_parent_joint if not last else T_parent_joint @ joint.T_child_joint.inverse()
            T_child_joint = joint.T_child_joint if last else SE3.identity()
            joints.append(Joint(name, kind, parent, child, T_parent_child, T_child_joint, (axis,), mimic))
            if not last:
                links[child] = Link(child, T_model_joint)
            parent, T_parent_joint = child, SE3.identity()
    return replace(model, links=tuple(links.values()), joints=tuple(joints))


_UNIT = (Axis((1.0, 0.0, 0.0)), Axis((0.0, 1.0, 0.0)), Axis((0.0, 0.0, 1.0)))


def _parts(joint: Joint) -> Sequence[tuple[JointType, Axis, Mimic | None]]:
    def turning(axis: Axis) -> JointType:
        return "continuous" if math.isinf(axis.limits.lower) and math.isinf(axis.limits.upper) else "revolute"

    axes = joint.axes or (Axis(),)
    match joint.type:
        case "universal" | "revolute2":
            return [(turning(axes[0]), axes[0], joint.mimic), (turning(axes[-1]), axes[-1], None)]
        case "gearbox":
            return [(turning(axes[-1]), axes[-1], joint.mimic)]
        case "screw":
            follows = Mimic(joint.name, joint.thread_pitch / (2.0 * math.pi))
            return [(turning(axes[0]), axes[0], joint.mimic), ("prismatic", Axis(axes[0].xyz), follows)]
        case "planar":
            normal = np.asarray(axes[0].xyz, float)
            u = np.cross(normal, np.eye(3)[int(np.argmin(np.abs(normal)))])
            u /= np.linalg.norm(u)
            v = np.cross(normal, u)
            slides = [Axis((float(w[0]), float(w[1]), float(w[2]))) for w in (u, v)]
            return [("prismatic", slides[0], None), ("prismatic", slides[1], None), ("continuous", axes[0], None)]
        case "floating":
            return [("prismatic", axis, None) for axis in _UNIT] + [("continuous", axis, None) for axis in _UNIT]
        case _:  # ball
            return [("continuous", axis, None) for axis in _UNIT]


def joints_at_links(model: Model, losses: Losses) -> Model:
    """The model with every joint frame equal to its child link's frame, as URDF has it.

    Axes are turned into the link's frame.  Where a hinge does not pass through the link's origin, the link's frame
    moves onto it, and what sits on the link is given anew.
    """
    moved: dict[str, SE3] = {}  # T_old_new by link
    joints = []
    for joint in model.joints:
        place = joint.T_child_joint
        R = place.rotation_matrix()
        axes = tuple(replace(axis, xyz=_turned(R, axis.xyz)) for axis in joint.axes)
        offset = np.asarray(place.translation)
        if joint.type in ("revolute", "continuous") and axes:
            along = np.asarray(axes[0].xyz)
            offset = offset - (offset @ along) * along
        elif joint.type in ("prismatic", "fixed"):
            offset = np.zeros(3)
        if np.abs(offset).max() > _NEAR:
            moved[joint.child] = SE3(translation=offset)
            losses.say(f"the frame of link '{joint.child}' moves to the joint '{joint.name}'")
        joints.append(replace(joint, axes=axes, T_child_joint=SE3.identity()))
    if not moved:
        return replace(model, joints=tuple(joints))

    def shift(link: str) -> SE3:
        return moved.get(link, SE3.identity())

    return replace(
        model,
        links=tuple(_shifted(link, shift(link.name)) for link in model.links),
        joints=tuple(
            replace(one, T_parent_child=shift(one.parent).inverse() @ one.T_parent_child @ shift(one.child))
            for one in joints
        ),
        sensors=tuple(
            replace(one, T_link_sensor=shift(one.link).inverse() @ one.T_link_sensor) for one in model.sensors
        ),
        frames=tuple(replace(one, T_link_frame=shift(one.link).inverse() @ one.T_link_frame) for one in model.frames),
    )


def _turned(R: np.ndarray, xyz: tuple[float, float, float]) -> tuple[float, float, float]:
    if np.abs(R - np.eye(3)).max() < _NEAR:
        return xyz
    x, y, z = (float(value) for value in R @ np.asarray(xyz))
    return x, y, z


def _shifted(link: Link, T_old_new: SE3) -> Link:
    if T_old_new == SE3.identity():
        return link
    back = T_old_new.inverse()
    inertial = link.inertial
    return replace(
        link,
        T_model_link=link.T_model_link @ T_old_new,
        inertial=replace(inertial, T_link_com=back @ inertial.T_link_com) if inertial else None,
        collisions=tuple(replace(one, T_link_geom=back @ one.T_link_geom) for one in link.collisions),
        visuals=tuple(replace(one, T_link_geom=back @ one.T_link_geom) for one in link.visuals),
    )
