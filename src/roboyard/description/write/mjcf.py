"""`Model` and `World` as MJCF that plain MuJoCo and this project read alike."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree as ET

from roboyard.description.model import Inertial, Joint, Light, Link, Model, World
from roboyard.description.sensors import EncoderSpec
from roboyard.description.write.mjcf_actuators import add_actuator
from roboyard.description.write.mjcf_geoms import Shelf, add_geoms, place
from roboyard.description.write.mjcf_joints import add_joints, add_loops, starts
from roboyard.description.write.mjcf_sensors import add_frames, add_sensors
from roboyard.description.write.weights import lent
from roboyard.description.write.written import Files, Losses, Written, add, number, numbers
from roboyard.geometry import SE3

Chain = list[tuple[Joint, SE3]]
"""Joints that move one body, from the parent outwards, each with its frame's pose in the body."""


def write_mjcf(thing: Model | World, files: Files | None = None) -> Written:
    """The model or world as an MJCF document.

    Of a world every name begins with that of its model: ``crate::lid``.

    Args:
        thing: What is written.
        files: Names of meshes, terrains and textures in the document; None: as the original named them.
    """
    losses = Losses()
    root = ET.Element("mujoco", model=thing.name)
    add(root, "compiler", angle="radian", autolimits="false", inertiafromgeom="false")
    # Servos as stiff as those of descriptions want velocities integrated implicitly.
    option = add(root, "option", integrator="implicitfast")
    asset = ET.Element("asset")
    body = ET.Element("worldbody")
    document = _Document(root, body, Shelf(asset, files, losses), losses)
    if isinstance(thing, Model):
        document.add_model(thing, "", SE3.identity())
    else:
        option.set("gravity", numbers(thing.gravity))
        if thing.physics.max_step_size is not None:
            option.set("timestep", number(thing.physics.max_step_size))
        for light in thing.lights:
            _light(body, light)
        for placed in thing.models:
            document.add_model(placed.model, f"{placed.name}::", placed.T_world_model)
        if thing.plugins:
            losses.say("the world's plugins are lost")
    if len(asset):
        root.append(asset)
    root.append(body)
    document.finish()
    return losses.finish(root)


def _called_by_topic(model: Model, losses: Losses) -> Model:
    """The model with sensors called like their topics: MJCF knows names only, and the topic is what nodes ask for."""
    topics = [sensor.topic for sensor in model.sensors]
    if len(set(topics)) < len(topics):
        losses.say("topics of sensors are lost: several share one")
        return model
    for sensor in model.sensors:
        if sensor.name != sensor.topic and not isinstance(sensor.spec, EncoderSpec):
            losses.say(f"the sensor '{sensor.name}' is called '{sensor.topic}', as its topic")
    return replace(model, sensors=tuple(replace(sensor, name=sensor.topic) for sensor in model.sensors))


def _light(parent: ET.Element, light: Light) -> None:
    node = add(
        parent,
        "light",
        name=light.name,
        type=light.type,
        pos=numbers(light.T_world_light.translation),
        dir=numbers(light.T_world_light.rotation_matrix() @ light.direction),
        diffuse=numbers(light.diffuse[:3]),
        specular=numbers(light.specular[:3]),
    )
    node.set("castshadow", "true" if light.cast_shadows else "false")


class _Document:
    """A document in the making."""

    def __init__(self, root: ET.Element, body: ET.Element, shelf: Shelf, losses: Losses) -> None:
        self._root, self._body, self._shelf, self._losses = root, body, shelf, losses
        tags = ("contact", "equality", "actuator", "sensor")
        self._sections = {tag: ET.Element(tag) for tag in tags}
        self._start: list[float] = []
        self._held = False

    def add_model(self, model: Model, prefix: str, T_world_model: SE3) -> None:
        """Put a model's bodies into the world."""
        model = _called_by_topic(model, self._losses)
        below: dict[str, list[Joint]] = {}
        for joint in model.joints:
            below.setdefault(joint.parent, []).append(joint)
        tree = _Tree(model, prefix, below)
        if not model.static:
            hung = {joint.child for joint in model.joints if joint.type != "fixed"}
            passing = {link.name for link in model.links if link.name in hung and tree.passes(link)}
            tree.weights = lent(model, self._losses, moving_only=True, spared=passing)
        for link in model.roots:
            self._add(tree, self._body, link, T_world_model @ link.T_model_link, [], free=not model.static)
        for joint in below.get("world", []):
            link = model.link(joint.child)
            chain = [] if model.static else [(joint, joint.T_child_joint)]
            self._add(tree, self._body, link, T_world_model @ joint.T_parent_child, chain)
        self._contacts(model, prefix)
        for joint in model.joints:
            add_loops(self._sections["equality"], joint, prefix)
        for loop in model.closures:
            self._closure(loop, prefix)
        for interface in model.interfaces:
            add_actuator(self._sections["actuator"], model, interface, prefix, self._losses)
        add_sensors(self._sections["sensor"], model, prefix, self._losses)
        if any(plugin.element.tag != "ros2_control" for plugin in model.plugins):
            self._losses.say("plugins are lost")
        if any(joint.type == "fixed" for joint in model.joints):
            self._losses.say("names of fixed joints are lost")

    def finish(self) -> None:
        """Append the sections that hold something."""
        for section in self._sections.values():
            if len(section):
                self._root.append(section)
        if self._held:
            keys = add(self._root, "keyframe")
            add(keys, "key", name="home", qpos=numbers(self._start))

    def _add(self, tree: _Tree, parent: ET.Element, link: Link, T: SE3, chain: Chain, *, free: bool = False) -> None:
        """The link's body at ``T`` in its parent's, moved by ``chain``, and all that hangs on it."""
        children = tree.below.get(link.name, [])
        if chain and not free and tree.passes(link) and not tree.model.static:
            (joint,) = children
            back = joint.T_parent_child.inverse()
            moved = [(one, back @ T_link_joint) for one, T_link_joint in chain]
            below = tree.model.link(joint.child)
            self._add(tree, parent, below, T @ joint.T_parent_child, [*moved, (joint, joint.T_child_joint)])
            return
        node = add(parent, "body", name=tree.prefix + link.name)
        place(node, T)
        if not link.gravity:
            node.set("gravcomp", "1")
        inertial = tree.weights.get(link.name, link.inertial)
        if inertial is not None:
            _inertial(node, inertial)
        if free:
            add(node, "freejoint")
            self._start += [*T.translation, *T.quaternion]
        for joint, T_link_joint in chain:
            add_joints(node, joint, T_link_joint, tree.prefix, self._losses)
            values = starts(tree.model, joint)
            self._start += values
            self._held = self._held or any(value not in (0.0, 1.0) for value in values)
        add_geoms(node, link, tree.prefix, self._shelf, self._losses, still=tree.model.static)
        add_frames(node, tree.model, link, tree.prefix)
        for joint in children:
            below = tree.model.link(joint.child)
            moves = joint.type != "fixed" and not tree.model.static
            inner: Chain = [(joint, joint.T_child_joint)] if moves else []
            self._add(tree, node, below, joint.T_parent_child, inner)

    def _contacts(self, model: Model, prefix: str) -> None:
        """Pairs that this project never lets touch, and MuJoCo would."""
        solid = [link for link in model.links if any(one.surface.collide for one in link.collisions)]
        apart = {frozenset(pair) for pair in model.excludes}
        if model.static:
            return
        for one, other in combinations(solid, 2):
            if one.self_collide and other.self_collide and frozenset((one.name, other.name)) not in apart:
                continue
            add(self._sections["contact"], "exclude", body1=prefix + one.name, body2=prefix + other.name)

    def _closure(self, loop: Joint, prefix: str) -> None:
        section, name = self._sections["equality"], prefix + loop.name
        ends = {"body1": prefix + loop.child}
        if loop.parent != "world":
            ends["body2"] = prefix + loop.parent
        if loop.type == "ball":
            add(section, "connect", name=name, **ends, anchor=numbers(loop.T_child_joint.translation))
        elif loop.type == "fixed":
            T = loop.T_parent_child.inverse()
            add(section, "weld", name=name, **ends, relpose=numbers((*T.translation, *T.quaternion)))
        else:
            self._losses.say(f"joint '{loop.name}' of type {loop.type}, which closes a loop, is lost")


class _Tree:
    """A model, and what hangs on what."""

    def __init__(self, model: Model, prefix: str, below: dict[str, list[Joint]]) -> None:
        self.model, self.prefix, self.below = model, prefix, below
        self._used = {sensor.link for sensor in model.sensors} | {frame.link for frame in model.frames}
        self._used |= {name for loop in model.closures for name in (loop.parent, loop.child)}
        self.weights: dict[str, Inertial] = {}

    def passes(self, link: Link) -> bool:
        """Whether it only stands between two joints, so that both may move one body."""
        children = self.below.get(link.name, [])
        bare = link.inertial is None and not link.collisions and not link.visuals and link.name not in self._used
        return bare and len(children) == 1 and children[0].type not in ("fixed", "floating")


def _inertial(parent: ET.Element, inertial: Inertial) -> None:
    ixx, iyy, izz, ixy, ixz, iyz = inertial.inertia
    node = add(parent, "inertial", pos=numbers(inertial.T_link_com.translation), mass=number(inertial.mass))
    if ixy or ixz or iyz:
        R = inertial.T_link_com.rotation_matrix()
        tensor = R @ ((ixx, ixy, ixz), (ixy, iyy, iyz), (ixz, iyz, izz)) @ R.T
        full = (tensor[0, 0], tensor[1, 1], tensor[2, 2], tensor[0, 1], tensor[0, 2], tensor[1, 2])
        node.set("fullinertia", numbers(full))
        return
    moments = [ixx, iyy, izz]
    largest = moments.index(max(moments))
    # MuJoCo checks A + B >= C exactly, and a flat body's may miss it by rounding.
    moments[largest] = min(moments[largest], (sum(moments) - moments[largest]) * (1.0 - 1e-12))
    node.set("diaginertia", numbers(moments))
    if inertial.T_link_com.quaternion != (1.0, 0.0, 0.0, 0.0):
        node.set("quat", numbers(inertial.T_link_com.quaternion))
