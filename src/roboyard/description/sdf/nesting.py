"""A finished model inside another: its names get the nested model's name and ``::`` in front."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from roboyard.description.assembly import to_topic_name
from roboyard.description.model import Frame, Joint, JointInterface, Link, Mimic, Model, Plugin
from roboyard.description.renaming import rename_friction_frame
from roboyard.description.sdf.scope import MODEL, WORLD
from roboyard.description.sensors import ContactSpec, EncoderSpec, ForceTorqueSpec, Sensor
from roboyard.geometry import SE3


@dataclass(slots=True)
class ModelBuilder:
    """What a model is made of, while it is put together."""

    links: list[Link] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    sensors: list[Sensor] = field(default_factory=list)
    plugins: list[Plugin] = field(default_factory=list)
    interfaces: list[JointInterface] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    loop_joints: list[Joint] = field(default_factory=list)

    def add_nested_model(self, name: str, model: Model, T_model_nested: SE3) -> None:
        """Add all of ``model`` under ``name``."""

        def add_scope(inner: str) -> str:
            return inner if inner == WORLD else f"{name}::{inner}"

        for link in model.links:
            collisions = tuple(rename_friction_frame(one, add_scope) for one in link.collisions)
            T_model_link = T_model_nested @ link.T_model_link
            self.links.append(
                replace(link, name=add_scope(link.name), T_model_link=T_model_link, collisions=collisions)
            )
        for joint in model.joints:
            self.joints.append(_scope_joint(joint, add_scope, T_model_nested))
        for joint in model.loop_joints:
            self.loop_joints.append(_scope_joint(joint, add_scope, T_model_nested))
        link_names = {link.name for link in model.links}
        moving_joints = tuple(joint.name for joint in model.joints if joint.axes)
        self.sensors += [
            _scope_sensor(sensor, name, sensor.frame in link_names, moving_joints) for sensor in model.sensors
        ]
        self.plugins += [
            replace(plugin, link=add_scope(plugin.link)) if plugin.link else plugin for plugin in model.plugins
        ]
        self.interfaces += [replace(one, joint=add_scope(one.joint)) for one in model.interfaces]
        self.frames += [replace(one, name=add_scope(one.name), link=add_scope(one.link)) for one in model.frames]
        canonical_link = next((link for link in model.links if link.name == model.canonical_link), None)
        if canonical_link is not None:
            self.frames.append(
                Frame(add_scope(MODEL), add_scope(canonical_link.name), canonical_link.T_model_link.inverse())
            )

    def fix_to_world(self, links: list[str]) -> None:
        """Hang those of ``links`` that no joint moves on the world: a static model inside a moving one."""
        child_links = {joint.child for joint in self.joints}
        for link in self.links:
            if link.name in links and link.name not in child_links:
                self.joints.append(
                    Joint(f"{link.name}_static", "fixed", WORLD, link.name, link.T_model_link, SE3.identity())
                )


def _scope_joint(joint: Joint, add_scope: Callable[[str], str], T_model_nested: SE3) -> Joint:
    mimic = joint.mimic and Mimic(add_scope(joint.mimic.joint), joint.mimic.multiplier, joint.mimic.offset)
    T_parent_child = joint.T_parent_child
    return replace(
        joint,
        name=add_scope(joint.name),
        parent=add_scope(joint.parent),
        child=add_scope(joint.child),
        T_parent_child=T_model_nested @ T_parent_child if joint.parent == WORLD else T_parent_child,
        mimic=mimic,
        gear_reference=joint.gear_reference and add_scope(joint.gear_reference),
    )


def _scope_sensor(sensor: Sensor, name: str, on_link: bool, moving_joints: tuple[str, ...]) -> Sensor:
    """Names that were the sensor's own become scoped; topics and frames that the file gave stay.

    ``moving_joints`` are the joints of the sensor's model: an encoder of them all stays one of these.
    """
    scoped_name = f"{name}::{sensor.name}"
    spec = sensor.spec
    if isinstance(spec, ContactSpec):
        spec = ContactSpec(tuple(one.removeprefix(f"{name}::") for one in spec.collisions))
    elif isinstance(spec, ForceTorqueSpec) and spec.joint:
        spec = replace(spec, joint=f"{name}::{spec.joint}")
    elif isinstance(spec, EncoderSpec):
        spec = replace(spec, joints=tuple(f"{name}::{one}" for one in spec.joints or moving_joints))
    return replace(
        sensor,
        name=scoped_name,
        link=f"{name}::{sensor.link}",
        topic=f"{name}/{sensor.topic}" if sensor.topic == to_topic_name(sensor.name) else sensor.topic,
        frame=f"{name}::{sensor.frame}" if on_link else (scoped_name if sensor.frame == sensor.name else sensor.frame),
        spec=spec,
    )
