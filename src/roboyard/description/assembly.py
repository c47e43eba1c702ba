"""Last touches that every reader's model gets: distinct sensor names, sensor frames that are where they claim to be."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from roboyard.description.model import Joint
from roboyard.description.naming import make_unique_name
from roboyard.description.reading import ReaderContext
from roboyard.description.sensors import EncoderSpec, Sensor
from roboyard.description.values import error_at, quote
from roboyard.description.xml import XmlNode
from roboyard.geometry import SE3


def resolve_sensor_names(
    context: ReaderContext, root: XmlNode, sensors: Iterable[Sensor], joints: Iterable[Joint]
) -> tuple[Sensor, ...]:
    """Sensors with names unique in the model, and frames that agree with where they sit.

    A frame id equal to the sensor's own link promises that both coincide.  Where they do not (the pose is not the
    identity), data would be misplaced by that pose, so the frame takes the sensor's name.

    Raises:
        DescriptionError: an encoder names a joint that is not there or cannot move.
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
            context.warn(root, f"two sensors are called '{sensor.name}': the one on '{sensor.link}' becomes '{name}'")
        else:
            used_names[name] = 0
        is_at_link = sensor.T_link_sensor.almost_equal(SE3.identity(), 1e-9)
        frame = sensor.frame or (sensor.link if is_at_link else name)
        if frame == sensor.link and not is_at_link:
            context.warn(root, f"sensor '{name}' claims the frame '{frame}' but sits elsewhere: its frame is '{name}'")
            frame = name
        requested_topic = name if sensor.topic == sensor.name else sensor.topic
        topic = to_topic_name(requested_topic)
        if topic != requested_topic and not isinstance(sensor.spec, EncoderSpec) and "::" not in requested_topic:
            context.warn(root, f"sensor '{name}' publishes on '{topic}': {quote(requested_topic)} is no topic's name")
        resolved.append(replace(sensor, name=name, frame=frame, topic=topic))
    return tuple(resolved)


def to_topic_name(text: str) -> str:
    """The nearest name that ROS allows: letters, digits and ``_`` between ``/``, no part beginning with a digit."""
    parts = [re.sub(r"[^A-Za-z0-9_]+", "_", part) for part in text.replace("::", "/").removeprefix("~").split("/")]
    return "/".join(f"_{part}" if part[0].isdigit() else part for part in parts if part) or "sensor"


def _check_encoder_joints(root: XmlNode, name: str, spec: EncoderSpec, movable_joints: dict[str, Joint]) -> None:
    for joint in spec.joints:
        if joint not in movable_joints:
            joints = ", ".join(list(movable_joints)[:12]) or "there is none"
            raise error_at(f"encoder '{name}' names '{joint}', which is no joint that turns or slides", root, joints)
