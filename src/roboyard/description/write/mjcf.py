"""`Model` and `World` as MJCF that plain MuJoCo and this project read alike."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree as ET

from roboyard.description.model import Inertial, Joint, Light, Link, Model, World
from roboyard.description.sensors import EncoderSpec
from roboyard.description.write.mjcf_actuators import add_actuator
from roboyard.description.write.mjcf_geoms import AssetSection, add_geoms, set_pose
from roboyard.description.write.mjcf_joints import add_couplings, add_joints, initial_positions
from roboyard.description.write.mjcf_sensors import add_sensors, add_sites
from roboyard.description.write.weights import lend_masses
from roboyard.description.write.written import (
    ConversionLosses,
    FileNamer,
    WrittenDescription,
    add_child,
    format_number,
    format_numbers,
)
from roboyard.geometry import SE3

JointChain = list[tuple[Joint, SE3]]
"""Joints that move one body, from the parent outwards, each with its frame's pose in the body."""


def write_mjcf(description: Model | World, file_namer: FileNamer | None = None) -> WrittenDescription:
    """The model or world as an MJCF document.

    Of a world every name begins with that of its model: ``crate::lid``.

    Args:
        description: What is written.
        file_namer: Names of meshes, terrains and textures in the document; None: as the original named them.
    """
    losses = ConversionLosses()
    root = ET.Element("mujoco", model=description.name)
    add_child(root, "compiler", angle="radian", autolimits="false", inertiafromgeom="false")
    # Servos as stiff as those of descriptions want velocities integrated implicitly.
    option = add_child(root, "option", integrator="implicitfast")
    asset = ET.Element("asset")
    body = ET.Element("worldbody")
    document = _MjcfDocument(root, body, AssetSection(asset, file_namer, losses), losses)
    if isinstance(description, Model):
        document.add_model(description, "", SE3.identity())
    else:
        option.set("gravity", format_numbers(description.gravity))
        if description.physics.max_step_size is not None:
            option.set("timestep", format_number(description.physics.max_step_size))
        for light in description.lights:
            _add_light(body, light)
        for placed in description.models:
            document.add_model(placed.model, f"{placed.name}::", placed.T_world_model)
        if description.plugins:
            losses.add("the world's plugins are lost")
    if len(asset):
        root.append(asset)
    root.append(body)
    document.finish()
    return losses.finish(root)


def _name_sensors_by_topic(model: Model, losses: ConversionLosses) -> Model:
    """The model with sensors called like their topics: MJCF knows names only, and the topic is what nodes ask for."""
    topics = [sensor.topic for sensor in model.sensors]
    if len(set(topics)) < len(topics):
        losses.add("topics of sensors are lost: several share one")
        return model
    for sensor in model.sensors:
        if sensor.name != sensor.topic and not isinstance(sensor.spec, EncoderSpec):
            losses.add(f"the sensor '{sensor.name}' is called '{sensor.topic}', as its topic")
    return replace(model, sensors=tuple(replace(sensor, name=sensor.topic) for sensor in model.sensors))


def _add_light(parent: ET.Element, light: Light) -> None:
    node = add_child(
        parent,
        "light",
        name=light.name,
        type=light.type,
        pos=format_numbers(light.T_world_light.translation),
        dir=format_numbers(light.T_world_light.rotation_matrix() @ light.direction),
        diffuse=format_numbers(light.diffuse[:3]),
        specular=format_numbers(light.specular[:3]),
    )
    node.set("castshadow", "true" if light.cast_shadows else "false")


class _MjcfDocument:
    """A document in the making."""

    def __init__(self, root: ET.Element, body: ET.Element, assets: AssetSection, losses: ConversionLosses) -> None:
        self._root, self._body, self._assets, self._losses = root, body, assets, losses
        tags = ("contact", "equality", "actuator", "sensor")
        self._sections = {tag: ET.Element(tag) for tag in tags}
        self._initial_qpos: list[float] = []
        self._has_initial_positions = False

    def add_model(self, model: Model, prefix: str, T_world_model: SE3) -> None:
        """Put a model's bodies into the world."""
        model = _name_sensors_by_topic(model, self._losses)
        child_joints: dict[str, list[Joint]] = {}
        for joint in model.joints:
            child_joints.setdefault(joint.parent, []).append(joint)
        tree = _BodyTree(model, prefix, child_joints)
        if not model.static:
            moving_links = {joint.child for joint in model.joints if joint.type != "fixed"}
            passed_links = {
                link.name for link in model.links if link.name in moving_links and tree.is_passed_through(link)
            }
            tree.inertials = lend_masses(model, self._losses, moving_only=True, excluded=passed_links)
        for link in model.roots:
            self._add_body(tree, self._body, link, T_world_model @ link.T_model_link, [], free=not model.static)
        for joint in child_joints.get("world", []):
            link = model.link(joint.child)
            chain = [] if model.static else [(joint, joint.T_child_joint)]
            self._add_body(tree, self._body, link, T_world_model @ joint.T_parent_child, chain)
        self._add_exclusions(model, prefix)
        for joint in model.joints:
            add_couplings(self._sections["equality"], joint, prefix)
        for loop in model.loop_joints:
            self._add_loop_joint(loop, prefix)
        for interface in model.interfaces:
            add_actuator(self._sections["actuator"], model, interface, prefix, self._losses)
        add_sensors(self._sections["sensor"], model, prefix, self._losses)
        if any(plugin.element.tag != "ros2_control" for plugin in model.plugins):
            self._losses.add("plugins are lost")
        if any(joint.type == "fixed" for joint in model.joints):
            self._losses.add("names of fixed joints are lost")

    def finish(self) -> None:
        """Append the sections that hold something."""
        for section in self._sections.values():
            if len(section):
                self._root.append(section)
        if self._has_initial_positions:
            keys = add_child(self._root, "keyframe")
            add_child(keys, "key", name="home", qpos=format_numbers(self._initial_qpos))

    def _add_body(
        self, tree: _BodyTree, parent: ET.Element, link: Link, T: SE3, chain: JointChain, *, free: bool = False
    ) -> None:
        """The link's body at ``T`` in its parent's, moved by ``chain``, and all that hangs on it."""
        children = tree.child_joints.get(link.name, [])
        if chain and not free and tree.is_passed_through(link) and not tree.model.static:
            (joint,) = children
            T_child_link = joint.T_parent_child.inverse()
            shifted_chain = [(one, T_child_link @ T_link_joint) for one, T_link_joint in chain]
            child_link = tree.model.link(joint.child)
            self._add_body(
                tree, parent, child_link, T @ joint.T_parent_child, [*shifted_chain, (joint, joint.T_child_joint)]
            )
            return
        node = add_child(parent, "body", name=tree.prefix + link.name)
        set_pose(node, T)
        if not link.gravity:
            node.set("gravcomp", "1")
        inertial = tree.inertials.get(link.name, link.inertial)
        if inertial is not None:
            _add_inertial(node, inertial)
        if free:
            add_child(node, "freejoint")
            self._initial_qpos += [*T.translation, *T.quaternion]
        for joint, T_link_joint in chain:
            add_joints(node, joint, T_link_joint, tree.prefix, self._losses)
            values = initial_positions(tree.model, joint)
            self._initial_qpos += values
            self._has_initial_positions = self._has_initial_positions or any(
                value not in (0.0, 1.0) for value in values
            )
        add_geoms(node, link, tree.prefix, self._assets, self._losses, static=tree.model.static)
        add_sites(node, tree.model, link, tree.prefix)
        for joint in children:
            child_link = tree.model.link(joint.child)
            is_movable = joint.type != "fixed" and not tree.model.static
            child_chain: JointChain = [(joint, joint.T_child_joint)] if is_movable else []
            self._add_body(tree, node, child_link, joint.T_parent_child, child_chain)

    def _add_exclusions(self, model: Model, prefix: str) -> None:
        """Pairs that this project never lets touch, and MuJoCo would."""
        collidable = [link for link in model.links if any(one.surface.collide for one in link.collisions)]
        disabled_pairs = {frozenset(pair) for pair in model.disabled_collisions}
        if model.static:
            return
        for one, other in combinations(collidable, 2):
            if one.self_collide and other.self_collide and frozenset((one.name, other.name)) not in disabled_pairs:
                continue
            add_child(self._sections["contact"], "exclude", body1=prefix + one.name, body2=prefix + other.name)

    def _add_loop_joint(self, loop: Joint, prefix: str) -> None:
        section, name = self._sections["equality"], prefix + loop.name
        bodies = {"body1": prefix + loop.child}
        if loop.parent != "world":
            bodies["body2"] = prefix + loop.parent
        if loop.type == "ball":
            add_child(section, "connect", name=name, **bodies, anchor=format_numbers(loop.T_child_joint.translation))
        elif loop.type == "fixed":
            T = loop.T_parent_child.inverse()
            add_child(section, "weld", name=name, **bodies, relpose=format_numbers((*T.translation, *T.quaternion)))
        else:
            self._losses.add(f"joint '{loop.name}' of type {loop.type}, which closes a loop, is lost")


class _BodyTree:
    """A model, and what hangs on what."""

    def __init__(self, model: Model, prefix: str, child_joints: dict[str, list[Joint]]) -> None:
        self.model, self.prefix, self.child_joints = model, prefix, child_joints
        self._referenced_links = {sensor.link for sensor in model.sensors} | {frame.link for frame in model.frames}
        self._referenced_links |= {name for loop in model.loop_joints for name in (loop.parent, loop.child)}
        self.inertials: dict[str, Inertial] = {}

    def is_passed_through(self, link: Link) -> bool:
        """Whether it only stands between two joints, so that both may move one body."""
        children = self.child_joints.get(link.name, [])
        is_empty = (
            link.inertial is None
            and not link.collisions
            and not link.visuals
            and link.name not in self._referenced_links
        )
        return is_empty and len(children) == 1 and children[0].type not in ("fixed", "floating")


def _add_inertial(parent: ET.Element, inertial: Inertial) -> None:
    ixx, iyy, izz, ixy, ixz, iyz = inertial.inertia
    node = add_child(
        parent, "inertial", pos=format_numbers(inertial.T_link_com.translation), mass=format_number(inertial.mass)
    )
    if ixy or ixz or iyz:
        R = inertial.T_link_com.rotation_matrix()
        tensor = R @ ((ixx, ixy, ixz), (ixy, iyy, iyz), (ixz, iyz, izz)) @ R.T
        full = (tensor[0, 0], tensor[1, 1], tensor[2, 2], tensor[0, 1], tensor[0, 2], tensor[1, 2])
        node.set("fullinertia", format_numbers(full))
        return
    moments = [ixx, iyy, izz]
    largest = moments.index(max(moments))
    # MuJoCo checks A + B >= C exactly, and a flat body's may miss it by rounding.
    moments[largest] = min(moments[largest], (sum(moments) - moments[largest]) * (1.0 - 1e-12))
    node.set("diaginertia", format_numbers(moments))
    if inertial.T_link_com.quaternion != (1.0, 0.0, 0.0, 0.0):
        node.set("quat", format_numbers(inertial.T_link_com.quaternion))
