"""Unique names, renaming of a model's parts, and topic names of sensors.

The last step of every reader makes sensor names unique.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from roboyard.description.model import Collision, Joint, Model
from roboyard.description.reader_context import ReaderContext
from roboyard.description.sensors import ContactSpec, EncoderSpec, ForceTorqueSpec, Sensor
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import error_at, quote
from roboyard.geometry import SE3


def make_unique_name(name: str, used_names: dict[str, int]) -> str:
    """Return `name`, or `name` with the next free number if it is used; `used_names` makes this fast."""
    if name not in used_names:
        used_names[name] = 0
        return name
    while True:
        used_names[name] += 1
        candidate = f"{name}_{used_names[name]}"
        if candidate not in used_names:
            used_names[candidate] = 0
            return candidate


Rename = Callable[[str], str]


def rename_friction_frame(collision: Collision, links: Rename) -> Collision:
    """Return the collision with a renamed link for its friction direction."""
    surface = collision.surface
    if surface.friction_direction_frame is None:
        return collision
    return replace(
        collision, surface=replace(surface, friction_direction_frame=links(surface.friction_direction_frame))
    )


def rename_parts(model: Model, *, links: Rename, joints: Rename, others: Rename) -> Model:
    """Return the model with renamed links, joints, sensors and frames, in all references to them."""

    def rename_joint(one: Joint) -> Joint:
        mimic = replace(one.mimic, joint=joints(one.mimic.joint)) if one.mimic else None
        return replace(one, name=joints(one.name), parent=links(one.parent), child=links(one.child), mimic=mimic)

    def rename_sensor(one: Sensor) -> Sensor:
        spec = one.spec
        if isinstance(spec, EncoderSpec):
            spec = replace(spec, joints=tuple(map(joints, spec.joints)))
        elif isinstance(spec, ForceTorqueSpec):
            spec = replace(spec, joint=joints(spec.joint))
        elif isinstance(spec, ContactSpec):
            spec = replace(spec, collisions=tuple(map(others, spec.collisions)))
        frame = links(one.frame) if one.frame == one.link else others(one.frame)
        topic = others(one.topic) if one.topic == one.name else one.topic
        return replace(one, name=others(one.name), link=links(one.link), topic=topic, frame=frame, spec=spec)

    return replace(
        model,
        links=tuple(
            replace(
                link,
                name=links(link.name),
                collisions=tuple(
                    replace(rename_friction_frame(one, links), name=others(one.name)) for one in link.collisions
                ),
                visuals=tuple(replace(one, name=others(one.name)) for one in link.visuals),
            )
            for link in model.links
        ),
        joints=tuple(map(rename_joint, model.joints)),
        loop_joints=tuple(map(rename_joint, model.loop_joints)),
        sensors=tuple(map(rename_sensor, model.sensors)),
        interfaces=tuple(replace(one, joint=joints(one.joint)) for one in model.interfaces),
        frames=tuple(replace(one, name=others(one.name), link=links(one.link)) for one in model.frames),
        disabled_collisions=tuple((links(one), links(other)) for one, other in model.disabled_collisions),
        canonical_link=links(model.canonical_link) if model.canonical_link else None,
    )


def resolve_sensor_names(
    context: ReaderContext, root: XmlNode, sensors: Iterable[Sensor], joints: Iterable[Joint]
) -> tuple[Sensor, ...]:
    """Return sensors with names unique in the model, and with frames that agree with their poses.

    A frame id equal to the sensor's own link implies that both coincide.  If they do not (the pose is not the
    identity), data would be misplaced by that pose, so the frame gets the sensor's name.

    Raises:
        DescriptionError: An encoder names a joint that does not exist or cannot move.
    """
    movable_joints = {joint.name: joint for joint in joints if joint.axes and joint.type != "fixed"}
    resolved: list[Sensor] = []
    used_names: dict[str, int] = {}
    for sensor in sensors:
        if isinstance(sensor.spec, EncoderSpec):
            _check_encoder_joints(root, sensor.name, sensor.spec, movable_joints)
        name = sensor.name
        if name in used_names:
            name = make_unique_name(f"{sensor.link}_{sensor.name}", used_names)
            context.warn(root, f"two sensors are named '{sensor.name}': the one on '{sensor.link}' becomes '{name}'")
        else:
            used_names[name] = 0
        is_at_link = sensor.T_link_sensor.almost_equal(SE3.identity(), 1e-9)
        frame = sensor.frame or (sensor.link if is_at_link else name)
        if frame == sensor.link and not is_at_link:
            context.warn(root, f"sensor '{name}' has the frame '{frame}' but another pose: its frame becomes '{name}'")
            frame = name
        requested_topic = name if sensor.topic == sensor.name else sensor.topic
        topic = to_topic_name(requested_topic)
        if topic != requested_topic and not isinstance(sensor.spec, EncoderSpec) and "::" not in requested_topic:
            context.warn(
                root, f"sensor '{name}' publishes on '{topic}': {quote(requested_topic)} is not a valid topic name"
            )
        resolved.append(replace(sensor, name=name, frame=frame, topic=topic))
    return tuple(resolved)


def to_topic_name(text: str) -> str:
    """Convert a text to the nearest valid ROS name: letters, digits and ``_`` between ``/``, no part starting with a
    digit.
    """
    parts = [re.sub(r"[^A-Za-z0-9_]+", "_", part) for part in text.replace("::", "/").removeprefix("~").split("/")]
    return "/".join(f"_{part}" if part[0].isdigit() else part for part in parts if part) or "sensor"


def _check_encoder_joints(root: XmlNode, name: str, spec: EncoderSpec, movable_joints: dict[str, Joint]) -> None:
    for joint in spec.joints:
        if joint not in movable_joints:
            joints = ", ".join(list(movable_joints)[:12]) or "none"
            raise error_at(f"encoder '{name}': '{joint}' is not a revolute or prismatic joint", root, joints)
