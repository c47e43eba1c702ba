"""Rewrites a model for a less expressive format.

Covers joints of one axis, joint frames at links, masses for links without mass, and valid names.
"""

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
    Frame,
    Heightmap,
    Inertial,
    Joint,
    JointType,
    Link,
    Mesh,
    Mimic,
    Model,
    Visual,
)
from roboyard.description.names import make_unique_name, rename_parts
from roboyard.description.write.result import ConversionLosses
from roboyard.geometry import SE3


def remove_scopes(model: Model, losses: ConversionLosses) -> Model:
    """Return the model with ``__`` for ``::`` in names, which only nested models of SDF may have."""
    parts = (model.links, model.joints, model.loop_joints, model.sensors, model.frames)
    if not any("::" in name for part in parts for name in (one.name for one in part)):
        return model
    losses.add("nested models are merged into one: names of nested parts have '__' for '::'")

    def replace_scope(name: str) -> str:
        return name.replace("::", "__")

    frames = tuple(frame for frame in model.frames if not frame.name.endswith("__"))
    return rename_parts(replace(model, frames=frames), links=replace_scope, joints=replace_scope, others=replace_scope)


def make_names_distinct(model: Model, losses: ConversionLosses) -> Model:
    """Return the model with renamed joints and frames whose names equal link names, which SDF forbids."""
    used_names = {link.name: 0 for link in model.links}
    joints: dict[str, str] = {}
    for joint in (*model.joints, *model.loop_joints):
        joints[joint.name] = name = make_unique_name(
            f"{joint.name}_joint" if joint.name in used_names else joint.name, used_names
        )
        if name != joint.name:
            losses.add(f"the joint '{joint.name}' has the name of a link and becomes '{name}'")
    frames: list[Frame] = []
    for frame in model.frames:
        name = make_unique_name(f"{frame.name}_frame" if frame.name in used_names else frame.name, used_names)
        if name != frame.name:
            losses.add(f"the frame '{frame.name}' has the name of a link or joint and becomes '{name}'")
        frames.append(replace(frame, name=name))
    model = replace(model, frames=tuple(frames))
    if all(old == new for old, new in joints.items()):
        return model
    return rename_parts(model, links=_unchanged, joints=lambda name: joints.get(name, name), others=_unchanged)


def _unchanged(name: str) -> str:
    return name


_TOLERANCE = 1e-12
Shape = TypeVar("Shape", Collision, Visual)


def replace_inline_meshes(model: Model, losses: ConversionLosses) -> Model:
    """Return the model with meshes defined in the description replaced by their boxes, and without such terrains."""

    def replace_geometry(one: Shape, label: str) -> Shape | None:
        shape = one.geometry
        if isinstance(shape, Heightmap) and shape.inline is not None:
            losses.add(f"{label}: a terrain defined in the original itself is not written")
            return None
        if not isinstance(shape, Mesh) or shape.inline is None:
            return one
        losses.add(f"{label}: a mesh defined in the original itself is written as its box")
        points = np.frombuffer(shape.inline.values, np.float32).reshape(-1, 3) * np.asarray(shape.scale)
        lower, upper = points.min(axis=0), points.max(axis=0)
        x, y, z = (max(float(edge), 1e-6) for edge in upper - lower)
        T_geom_box = SE3(translation=(lower + upper) / 2.0)
        return replace(one, geometry=Box((x, y, z)), T_link_geom=one.T_link_geom @ T_geom_box)

    links = []
    for link in model.links:
        collisions = [replace_geometry(one, f"collision '{one.name}' of link '{link.name}'") for one in link.collisions]
        visuals = [replace_geometry(one, f"visual '{one.name}' of link '{link.name}'") for one in link.visuals]
        links.append(
            replace(
                link,
                collisions=tuple(one for one in collisions if one is not None),
                visuals=tuple(one for one in visuals if one is not None),
            )
        )
    return replace(model, links=tuple(links))


def split_multi_axis_joints(model: Model, joint_types: Collection[JointType], losses: ConversionLosses) -> Model:
    """Return the model with each joint of `joint_types` replaced by joints of one axis, with massless links between
    them.

    The second and third are named ``name_2`` and ``name_3``, as in simulation.  A screw's second joint is prismatic and
    mimics the first.
    """
    links = {link.name: link for link in model.links}
    names = {joint.name for joint in model.joints}
    joints: list[Joint] = []
    for joint in model.joints:
        if joint.type not in joint_types:
            joints.append(joint)
            continue
        single_axis_joints = _single_axis_joints(joint)
        if joint.type == "gearbox":
            losses.add(f"joint '{joint.name}': the gearbox moves freely, its ratio is lost")
        else:
            losses.add(
                f"joint '{joint.name}' of type {joint.type} is written as {len(single_axis_joints)} joints of one axis"
            )
        if joint.ball_axis is not None:
            losses.add("limits, springs, damping and friction of ball joints are lost")
        T_parent_joint = joint.T_parent_child @ joint.T_child_joint
        T_model_joint = links[joint.child].T_model_link @ joint.T_child_joint
        parent = joint.parent
        for index, (kind, axis, mimic) in enumerate(single_axis_joints):
            is_last = index == len(single_axis_joints) - 1
            name = joint.name if index == 0 else f"{joint.name}_{index + 1}"
            while index and name in names:
                name += "_"
            child = joint.child if is_last else f"{joint.child}_{name}"
            T_parent_child = T_parent_joint if not is_last else T_parent_joint @ joint.T_child_joint.inverse()
            T_child_joint = joint.T_child_joint if is_last else SE3.identity()
            joints.append(Joint(name, kind, parent, child, T_parent_child, T_child_joint, (axis,), mimic))
            if not is_last:
                links[child] = Link(child, T_model_joint)
            parent, T_parent_joint = child, SE3.identity()
    return replace(model, links=tuple(links.values()), joints=tuple(joints))


_UNIT_AXES = (Axis((1.0, 0.0, 0.0)), Axis((0.0, 1.0, 0.0)), Axis((0.0, 0.0, 1.0)))


def _single_axis_joints(joint: Joint) -> Sequence[tuple[JointType, Axis, Mimic | None]]:
    def hinge_type(axis: Axis) -> JointType:
        return "continuous" if math.isinf(axis.limits.lower) and math.isinf(axis.limits.upper) else "revolute"

    axes = joint.axes or (Axis(),)
    match joint.type:
        case "universal" | "revolute2":
            return [(hinge_type(axes[0]), axes[0], joint.mimic), (hinge_type(axes[-1]), axes[-1], None)]
        case "gearbox":
            return [(hinge_type(axes[-1]), axes[-1], joint.mimic)]
        case "screw":
            screw_mimic = Mimic(joint.name, joint.thread_pitch / (2.0 * math.pi))
            return [(hinge_type(axes[0]), axes[0], joint.mimic), ("prismatic", Axis(axes[0].xyz), screw_mimic)]
        case "planar":
            normal = np.asarray(axes[0].xyz, float)
            u = np.cross(normal, np.eye(3)[int(np.argmin(np.abs(normal)))])
            u /= np.linalg.norm(u)
            v = np.cross(normal, u)
            slides = [Axis((float(w[0]), float(w[1]), float(w[2]))) for w in (u, v)]
            return [("prismatic", slides[0], None), ("prismatic", slides[1], None), ("continuous", axes[0], None)]
        case "floating":
            return [("prismatic", axis, None) for axis in _UNIT_AXES] + [
                ("continuous", axis, None) for axis in _UNIT_AXES
            ]
        case _:  # ball
            return [("continuous", axis, None) for axis in _UNIT_AXES]


def move_joints_to_links(model: Model, losses: ConversionLosses) -> Model:
    """Return the model with every joint frame equal to its child link's frame, as in URDF.

    Axes are rotated into the link's frame.  If a hinge does not pass through the link's origin, the link's frame moves
    onto the hinge, and the poses of its parts are transformed.
    """
    shifts: dict[str, SE3] = {}  # T_old_new by link
    joints = []
    for joint in model.joints:
        T_link_joint = joint.T_child_joint
        R = T_link_joint.rotation_matrix()
        axes = tuple(replace(axis, xyz=_rotate_vector(R, axis.xyz)) for axis in joint.axes)
        offset = np.asarray(T_link_joint.translation)
        if joint.type in ("revolute", "continuous") and axes:
            direction = np.asarray(axes[0].xyz)
            offset = offset - (offset @ direction) * direction
        elif joint.type in ("prismatic", "fixed"):
            offset = np.zeros(3)
        if np.abs(offset).max() > _TOLERANCE:
            shifts[joint.child] = SE3(translation=offset)
            losses.add(f"the frame of link '{joint.child}' moves to the joint '{joint.name}'")
        joints.append(replace(joint, axes=axes, T_child_joint=SE3.identity()))
    if not shifts:
        return replace(model, joints=tuple(joints))

    def shift_of(link: str) -> SE3:
        return shifts.get(link, SE3.identity())

    return replace(
        model,
        links=tuple(_shift_link_frame(link, shift_of(link.name)) for link in model.links),
        joints=tuple(
            replace(one, T_parent_child=shift_of(one.parent).inverse() @ one.T_parent_child @ shift_of(one.child))
            for one in joints
        ),
        sensors=tuple(
            replace(one, T_link_sensor=shift_of(one.link).inverse() @ one.T_link_sensor) for one in model.sensors
        ),
        frames=tuple(
            replace(one, T_link_frame=shift_of(one.link).inverse() @ one.T_link_frame) for one in model.frames
        ),
    )


def _rotate_vector(R: np.ndarray, xyz: tuple[float, float, float]) -> tuple[float, float, float]:
    if np.abs(R - np.eye(3)).max() < _TOLERANCE:
        return xyz
    x, y, z = (float(value) for value in R @ np.asarray(xyz))
    return x, y, z


def _shift_link_frame(link: Link, T_old_new: SE3) -> Link:
    if T_old_new == SE3.identity():
        return link
    T_new_old = T_old_new.inverse()
    inertial = link.inertial
    return replace(
        link,
        T_model_link=link.T_model_link @ T_old_new,
        inertial=replace(inertial, T_link_com=T_new_old @ inertial.T_link_com) if inertial else None,
        collisions=tuple(replace(one, T_link_geom=T_new_old @ one.T_link_geom) for one in link.collisions),
        visuals=tuple(replace(one, T_link_geom=T_new_old @ one.T_link_geom) for one in link.visuals),
    )


LENT_MASS_FRACTION = 1e-6
"""Fraction of the mass behind a massless link between two joints that is written for it, and subtracted from the
lender.
"""
MIN_MASS = 1e-9
"""Mass written for massless links without mass behind them [kg]."""
_RADIUS_OF_GYRATION = 0.01
"""Radius of gyration of that mass [m]."""


def lend_masses(
    model: Model, losses: ConversionLosses, *, moving_only: bool = False, excluded: Collection[str] = ()
) -> dict[str, Inertial]:
    """Return the inertials written for massless links that cannot be frames, and the reduced inertials of the lenders.

    A link without shapes that is fixed to a link with mass remains a massless frame.

    Args:
        model: The model.
        losses: Receives a sentence per changed link.
        moving_only: Whether links fixed to others may be massless even with shapes.
        excluded: Links that are not written.
    """
    by_child = {joint.child: joint for joint in model.joints}
    inertials: dict[str, Inertial] = {}
    for link in model.links:
        joint = by_child.get(link.name)
        fixed = joint is not None and joint.type == "fixed"
        if (
            link.name in excluded
            or link.inertial is not None
            or (fixed and (moving_only or _is_frame_on_mass(model, link)))
        ):
            continue
        if not fixed and (moving_only or not (link.collisions or link.visuals)) and _group_has_mass(model, link.name):
            continue
        lender = "" if fixed else _first_link_with_mass(model, link.name)
        mass, moment = MIN_MASS, MIN_MASS * _RADIUS_OF_GYRATION**2
        if lender:
            lender_inertial = inertials.get(lender) or model.link(lender).inertial
            if lender_inertial is not None:
                mass, moment = (
                    lender_inertial.mass * LENT_MASS_FRACTION,
                    max(lender_inertial.inertia[:3]) * LENT_MASS_FRACTION,
                )
                ixx, iyy, izz, ixy, ixz, iyz = (value * (1.0 - LENT_MASS_FRACTION) for value in lender_inertial.inertia)
                inertials[lender] = replace(
                    lender_inertial, mass=lender_inertial.mass - mass, inertia=(ixx, iyy, izz, ixy, ixz, iyz)
                )
        inertials[link.name] = Inertial(mass, SE3.identity(), (moment, moment, moment, 0.0, 0.0, 0.0))
        losses.add(f"link '{link.name}' has no mass: {mass:.3g} kg is written")
    return inertials


def _is_frame_on_mass(model: Model, link: Link) -> bool:
    """Return whether the link is a massless frame on a link with mass."""
    if link.collisions or link.visuals:
        return False
    return _group_has_mass(model, link.name)


def _group_has_mass(model: Model, name: str) -> bool:
    """Return whether any link that is fixed together with `name` has mass."""
    group, stack = {name}, [name]
    while stack:
        current = stack.pop()
        for joint in model.joints:
            if joint.type == "fixed" and current in (joint.parent, joint.child):
                other = joint.child if current == joint.parent else joint.parent
                if other not in group and other != "world":
                    group.add(other)
                    stack.append(other)
    return any(one.inertial is not None for one in model.links if one.name in group)


def _first_link_with_mass(model: Model, name: str) -> str:
    """Return the first link with mass towards the leaves; empty if there is none."""
    links_with_mass = {link.name for link in model.links if link.inertial is not None}
    queue = [name]
    for current in queue:
        if current in links_with_mass:
            return current
        queue += [joint.child for joint in model.joints if joint.parent == current]
    return ""
