"""Writer of MJCF: bodies, joints, actuators, sensors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree as ET

import numpy as np

from roboyard.description.inertia import inertia_matrix
from roboyard.description.joint_interfaces import LOCKED_RANGE, OPEN_LIMIT, POSITION_BANDWIDTH, VELOCITY_TIME
from roboyard.description.model import Axis, Inertial, Joint, JointDynamics, JointInterface, Light, Link, Model, World
from roboyard.description.sensors import EncoderSpec, ImuSpec, LidarSpec, Noise, Sensor
from roboyard.description.write.mjcf_geoms import AssetSection, add_geoms, set_pose
from roboyard.description.write.result import (
    ConversionLosses,
    FileNamer,
    WrittenDescription,
    add_child,
    format_number,
    format_numbers,
)
from roboyard.description.write.simplify import lend_masses
from roboyard.geometry import SE3


def add_joints(body: ET.Element, joint: Joint, T_body_joint: SE3, prefix: str, losses: ConversionLosses) -> None:
    """Add the joints that move `body`: one joint of MJCF per axis, named ``name``, ``name_2``, … as in simulation."""
    position = format_numbers(T_body_joint.translation)
    rotation = T_body_joint.rotation_matrix()
    if joint.type == "ball":
        ball_joint = add_child(body, "joint", name=prefix + joint.name, type="ball", pos=position)
        if joint.ball_axis is not None:
            if math.isfinite(joint.ball_axis.limits.upper):
                ball_joint.set("limited", "true")
                ball_joint.set("range", format_numbers((0.0, joint.ball_axis.limits.upper)))
            _set_dynamics(ball_joint, joint.ball_axis.dynamics)
        return
    for index, (kind, axis) in enumerate(_mjcf_axes(joint)):
        name = joint.name if index == 0 else f"{joint.name}_{index + 1}"
        xyz = format_numbers(rotation @ np.asarray(axis.xyz))
        node = add_child(body, "joint", name=prefix + name, type=kind, pos=position, axis=xyz)
        limits = axis.limits
        if math.isfinite(limits.lower) or math.isfinite(limits.upper):
            node.set("limited", "true")
            lower, upper = max(limits.lower, -OPEN_LIMIT), min(limits.upper, OPEN_LIMIT)
            node.set("range", format_numbers((lower, upper if upper > lower else lower + LOCKED_RANGE)))
            if lower == upper:
                losses.add(f"joint '{name}' has equal limits: it gets a range of {LOCKED_RANGE:g}")
        if math.isfinite(limits.effort) and limits.effort > 0.0:
            node.set("actuatorfrclimited", "true")
            node.set("actuatorfrcrange", format_numbers((-limits.effort, limits.effort)))
        if math.isfinite(limits.velocity):
            losses.add("velocity limits of joints are lost")
        _set_dynamics(node, axis.dynamics)
    if joint.type == "floating":
        add_child(body, "joint", name=f"{prefix}{joint.name}_4", type="ball", pos=position)
    if joint.type == "gearbox":
        losses.add(f"joint '{joint.name}': the gearbox moves freely, its ratio is lost")
    if joint.safety is not None:
        losses.add("safety controllers of joints are lost")


def _set_dynamics(node: ET.Element, dynamics: JointDynamics) -> None:
    for key, value in (
        ("damping", dynamics.damping),
        ("frictionloss", dynamics.friction),
        ("stiffness", dynamics.stiffness),
        ("springref", dynamics.reference),
        ("armature", dynamics.armature),
    ):
        if value:
            node.set(key, format_number(value))


def _mjcf_axes(joint: Joint) -> list[tuple[str, Axis]]:
    axes = joint.axes or (Axis(),)
    match joint.type:
        case "revolute" | "continuous":
            return [("hinge", axes[0])]
        case "prismatic":
            return [("slide", axes[0])]
        case "universal" | "revolute2":
            return [("hinge", axes[0]), ("hinge", axes[-1])]
        case "gearbox":
            return [("hinge", axes[-1])]
        case "screw":
            return [("hinge", axes[0]), ("slide", Axis(axes[0].xyz))]
        case "planar":
            normal = np.asarray(axes[0].xyz, float)
            u = np.cross(normal, np.eye(3)[int(np.argmin(np.abs(normal)))])
            u /= np.linalg.norm(u)
            v = np.cross(normal, u)
            planar_axes = [Axis((float(w[0]), float(w[1]), float(w[2]))) for w in (u, v)]
            return [("slide", planar_axes[0]), ("slide", planar_axes[1]), ("hinge", Axis(axes[0].xyz))]
        case "floating":
            return [
                ("slide", Axis((1.0, 0.0, 0.0))),
                ("slide", Axis((0.0, 1.0, 0.0))),
                ("slide", Axis((0.0, 0.0, 1.0))),
            ]
    return []


def _initial_coordinates(model: Model, joint: Joint) -> list[float]:
    """Return the joint's part of the keyframe's ``qpos``: the initial position in the description, else zeros.

    Unlike `joint_interfaces.initial_positions` this does not move a position into the joint's limits or along a mimic:
    the document has the values of the description, and its simulator adapts them.
    """
    if joint.type == "ball":
        return [1.0, 0.0, 0.0, 0.0]
    count = len(_mjcf_axes(joint))
    interface = next((one for one in model.interfaces if one.joint == joint.name), None)
    position = dict(interface.initial).get("position", 0.0) if interface else 0.0
    values = [position, *([0.0] * (count - 1))] if count else []
    return [*values, 1.0, 0.0, 0.0, 0.0] if joint.type == "floating" else values


def add_couplings(section: ET.Element, joint: Joint, prefix: str) -> None:
    """Add the couplings of a mimic joint, or of rotation and translation of a screw joint."""
    if joint.mimic is not None and joint.axes:
        factors = format_numbers((joint.mimic.offset, joint.mimic.multiplier, 0.0, 0.0, 0.0))
        add_child(section, "joint", joint1=prefix + joint.name, joint2=prefix + joint.mimic.joint, polycoef=factors)
    if joint.type == "screw":
        factors = format_numbers((0.0, joint.thread_pitch / (2.0 * math.pi), 0.0, 0.0, 0.0))
        add_child(section, "joint", joint1=f"{prefix}{joint.name}_2", joint2=prefix + joint.name, polycoef=factors)


_COMMAND_MODES = ("position", "velocity", "effort")


def add_actuator(
    section: ET.Element, model: Model, interface: JointInterface, prefix: str, losses: ConversionLosses
) -> None:
    """Add the actuator of a joint: one kind only, because two would counteract each other."""
    commands = {mode: (lower, upper) for mode, lower, upper in interface.commands if mode in _COMMAND_MODES}
    joint = next((one for one in model.joints if one.name == interface.joint), None)
    if not commands or joint is None or not joint.axes or joint.mimic is not None:
        return
    preference = ("velocity", "position", "effort") if joint.type == "continuous" else _COMMAND_MODES
    if dict(interface.parameters).get("vel_kp") is None and "effort" in commands and "velocity" in commands:
        preference = ("effort", "velocity", "position") if commands["velocity"] == (-math.inf, math.inf) else preference
    mode = next(one for one in preference if one in commands)
    other_modes = [one for one in commands if one != mode]
    if other_modes:
        losses.add(f"joint '{joint.name}' also has {' and '.join(other_modes)} commands: lost, one actuator is written")
    gains = dict(interface.parameters)
    lower, upper = commands[mode]
    name = prefix + joint.name
    attributes = {"name": name, "joint": name}
    if mode == "position":
        inertia = _joint_inertia(model, joint)
        kp = _gain_or_default(gains, "pos_kp", inertia * POSITION_BANDWIDTH**2, joint, losses)
        kd = float(gains.get("pos_kd", 2.0 * inertia * POSITION_BANDWIDTH))
        node = add_child(section, "position", **attributes, kp=format_number(kp), kv=format_number(kd))
    elif mode == "velocity":
        kv = _gain_or_default(gains, "vel_kp", _joint_inertia(model, joint) / VELOCITY_TIME, joint, losses)
        node = add_child(section, "velocity", **attributes, kv=format_number(kv))
    else:
        node = add_child(section, "motor", **attributes)
        effort = joint.axes[0].limits.effort
        lower, upper = max(lower, -effort), min(upper, effort)
    if math.isfinite(lower) and math.isfinite(upper) and lower < upper:
        node.set("ctrllimited", "true")
        node.set("ctrlrange", format_numbers((lower, upper)))
    if any(float(gains.get(key, 0.0)) for key in ("pos_ki", "vel_ki")):
        losses.add("integral gains of servos are lost")
    if interface.reduction != 1.0:
        losses.add("reductions of transmissions are lost")


def _gain_or_default(gains: dict[str, str], key: str, default: float, joint: Joint, losses: ConversionLosses) -> float:
    if key in gains:
        return float(gains[key])
    losses.add(f"joint '{joint.name}' has no gain: {default:.3g} is written, which suits its inertia")
    return default


def _joint_inertia(model: Model, joint: Joint) -> float:
    """Compute the inertia that the joint moves about its axis, with all further joints rigid [kg m², or kg for a
    slide].
    """
    links = {link.name: link for link in model.links}
    links_behind = [joint.child]
    for name in links_behind:
        links_behind += [one.child for one in model.joints if one.parent == name]
    T_model_joint = links[joint.child].T_model_link @ joint.T_child_joint
    origin = np.asarray(T_model_joint.translation)
    axis = T_model_joint.rotation_matrix() @ np.asarray(joint.axes[0].xyz)
    total = 0.0
    for name in links_behind:
        inertial = links[name].inertial
        if inertial is None:
            continue
        if joint.type == "prismatic":
            total += inertial.mass
            continue
        T = links[name].T_model_link @ inertial.T_link_com
        R, arm = T.rotation_matrix(), np.asarray(T.translation) - origin
        tensor = R @ inertia_matrix(inertial.inertia) @ R.T
        across = arm - (arm @ axis) * axis
        total += float(axis @ tensor @ axis) + inertial.mass * float(across @ across)
    return max(total, 1e-9)


_SITE_SENSOR_KINDS = ("imu", "contact", "magnetometer")


def add_sites(body: ET.Element, model: Model, link: Link, prefix: str) -> None:
    """Add a site for each named frame, and for each sensor that needs one."""
    for frame in model.frames:
        if frame.link == link.name:
            set_pose(add_child(body, "site", name=prefix + frame.name, group="5"), frame.T_link_frame)
    for sensor in model.sensors:
        if sensor.link != link.name:
            continue
        if sensor.kind in _SITE_SENSOR_KINDS:
            set_pose(add_child(body, "site", name=prefix + sensor.name, group="5"), sensor.T_link_sensor)
        elif isinstance(sensor.spec, LidarSpec):
            _add_ray_sites(body, sensor, sensor.spec, prefix)


def _add_ray_sites(body: ET.Element, sensor: Sensor, spec: LidarSpec, prefix: str) -> None:
    """Add a site per ray, with a range finder along its z; MuJoCo's ``<replicate>`` takes seconds for hundreds."""
    frame = add_child(body, "frame")
    set_pose(frame, sensor.T_link_sensor)
    for name, angle in _ray_angles(sensor, spec):
        ray = format_numbers((math.cos(angle), math.sin(angle), 0.0))
        add_child(frame, "site", name=prefix + name, zaxis=ray, group="5")


def _ray_angles(sensor: Sensor, spec: LidarSpec) -> Iterator[tuple[str, float]]:
    """Iterate over name and angle of each ray."""
    if spec.samples == 1:
        yield sensor.name, spec.angle_min
        return
    step = (spec.angle_max - spec.angle_min) / (spec.samples - 1)
    for index in range(spec.samples):
        yield f"{sensor.name}-{index}", spec.angle_min + index * step


def add_sensors(section: ET.Element, model: Model, prefix: str, losses: ConversionLosses) -> None:
    """Add the sensors that MJCF supports; others are lost."""
    for sensor in model.sensors:
        name = prefix + sensor.name
        rate = {"interval": format_number(1.0 / sensor.update_rate)}
        match sensor.spec:
            case ImuSpec():
                for tag, noise in (
                    ("gyro", sensor.spec.angular_velocity[0]),
                    ("accelerometer", sensor.spec.linear_acceleration[0]),
                ):
                    add_child(section, tag, site=name, **rate, **_noise_attribute(noise, sensor, losses))
                if sensor.spec.orientation:
                    add_child(section, "framequat", objtype="site", objname=name, **rate)
                if len(set(sensor.spec.angular_velocity)) > 1 or len(set(sensor.spec.linear_acceleration)) > 1:
                    losses.add(f"sensor '{sensor.name}': the noise of its first axis is written for all")
            case LidarSpec():
                attributes = {**_noise_attribute(sensor.spec.noise, sensor, losses), **rate}
                cutoff = format_number(min(sensor.spec.range_max, 1e9))
                for ray_name, _ in _ray_angles(sensor, sensor.spec):
                    add_child(
                        section,
                        "rangefinder",
                        name=prefix + ray_name,
                        site=prefix + ray_name,
                        cutoff=cutoff,
                        **attributes,
                    )
                if sensor.spec.vertical_samples > 1:
                    losses.add(
                        f"sensor '{sensor.name}': only one of its {sensor.spec.vertical_samples} rows is written"
                    )
                if sensor.spec.range_min or sensor.spec.resolution:
                    losses.add("the minimum range and the resolution of lidars are lost")
            case EncoderSpec():
                joints = sensor.spec.joints or tuple(one.name for one in model.joints if one.axes)
                for joint in joints:
                    for tag in ("jointpos", "jointvel"):
                        add_child(section, tag, joint=prefix + joint, **rate)
                if sensor.spec.resolution or sensor.spec.noise != Noise():
                    losses.add("resolution and noise of encoders are lost")
            case _ if sensor.kind == "contact":
                add_child(section, "touch", name=name, site=name, **rate)
            case _ if sensor.kind == "magnetometer":
                add_child(section, "magnetometer", name=name, site=name, **rate)
            case _ if sensor.kind == "ground_truth":
                add_child(section, "framepos", name=name, objtype="body", objname=prefix + sensor.link, **rate)
            case _:
                losses.add(f"sensor '{sensor.name}' of kind {sensor.kind} is lost")
        if sensor.latency or sensor.outage.mean_interval:
            losses.add("latencies and outages of sensors are lost")


def _noise_attribute(noise: Noise, sensor: Sensor, losses: ConversionLosses) -> dict[str, str]:
    if Noise(stddev=noise.stddev) != noise:
        losses.add(f"sensor '{sensor.name}': only white noise is written")
    return {"noise": format_number(noise.stddev)} if noise.stddev else {}


JointChain = list[tuple[Joint, SE3]]
"""Joints that move one body, from the parent outwards, each with its frame's pose in the body."""


def write_mjcf(description: Model | World, file_namer: FileNamer | None = None) -> WrittenDescription:
    """Write a model or world as an MJCF document.

    In a world every name begins with the name of its model: ``crate::lid``.

    Args:
        description: The model or world.
        file_namer: Function that names meshes, terrains and textures in the document; None: names of the original.
    """
    losses = ConversionLosses()
    root = ET.Element("mujoco", model=description.name)
    add_child(root, "compiler", angle="radian", autolimits="false", inertiafromgeom="false")
    # Servos as stiff as those of descriptions require implicit integration of velocities.
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
    """Return the model with sensors named by their topics: MJCF has names only, and nodes use the topics."""
    topics = [sensor.topic for sensor in model.sensors]
    if len(set(topics)) < len(topics):
        losses.add("topics of sensors are lost: several share one")
        return model
    for sensor in model.sensors:
        if sensor.name != sensor.topic and not isinstance(sensor.spec, EncoderSpec):
            losses.add(f"the sensor '{sensor.name}' is renamed to '{sensor.topic}', its topic")
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
    """MJCF document that is being written."""

    def __init__(self, root: ET.Element, body: ET.Element, assets: AssetSection, losses: ConversionLosses) -> None:
        self._root, self._body, self._assets, self._losses = root, body, assets, losses
        tags = ("contact", "equality", "actuator", "sensor")
        self._sections = {tag: ET.Element(tag) for tag in tags}
        self._initial_qpos: list[float] = []
        self._has_initial_positions = False

    def add_model(self, model: Model, prefix: str, T_world_model: SE3) -> None:
        """Add a model's bodies to the world."""
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
        """Append the sections that are not empty."""
        for section in self._sections.values():
            if len(section):
                self._root.append(section)
        if self._has_initial_positions:
            keys = add_child(self._root, "keyframe")
            add_child(keys, "key", name="home", qpos=format_numbers(self._initial_qpos))

    def _add_body(
        self, tree: _BodyTree, parent: ET.Element, link: Link, T: SE3, chain: JointChain, *, free: bool = False
    ) -> None:
        """Add the link's body at `T` in its parent, moved by `chain`, and all bodies below."""
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
            values = _initial_coordinates(tree.model, joint)
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
        """Exclude pairs whose contacts are disabled here, but not in MuJoCo."""
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
            self._losses.add(f"loop joint '{loop.name}' of type {loop.type} is lost")


class _BodyTree:
    """Model with the tree of its links."""

    def __init__(self, model: Model, prefix: str, child_joints: dict[str, list[Joint]]) -> None:
        self.model, self.prefix, self.child_joints = model, prefix, child_joints
        self._referenced_links = {sensor.link for sensor in model.sensors} | {frame.link for frame in model.frames}
        self._referenced_links |= {name for loop in model.loop_joints for name in (loop.parent, loop.child)}
        self.inertials: dict[str, Inertial] = {}

    def is_passed_through(self, link: Link) -> bool:
        """Return whether the link only connects two joints, so that both can move one body."""
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
        tensor = R @ inertia_matrix(inertial.inertia) @ R.T
        full = (tensor[0, 0], tensor[1, 1], tensor[2, 2], tensor[0, 1], tensor[0, 2], tensor[1, 2])
        node.set("fullinertia", format_numbers(full))
        return
    moments = [ixx, iyy, izz]
    largest = moments.index(max(moments))
    # MuJoCo checks A + B >= C exactly; a flat body may violate it by rounding.
    moments[largest] = min(moments[largest], (sum(moments) - moments[largest]) * (1.0 - 1e-12))
    node.set("diaginertia", format_numbers(moments))
    if inertial.T_link_com.quaternion != (1.0, 0.0, 0.0, 0.0):
        node.set("quat", format_numbers(inertial.T_link_com.quaternion))
