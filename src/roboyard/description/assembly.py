"""Last touches that every reader's model gets: distinct sensor names, sensor frames that are where they claim to be."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from roboyard.description.model import Joint
from roboyard.description.naming import free_name
from roboyard.description.reading import Reading
from roboyard.description.sensors import EncoderSpec, Sensor
from roboyard.description.values import fault, shown
from roboyard.description.xml import Node
from roboyard.geometry import SE3


def settle_sensors(
    reading: Reading, root: Node, sensors: Iterable[Sensor], joints: Iterable[Joint]
) -> tuple[Sensor, ...]:
    """Sensors with names unique in the model, and frames that agree with where they sit.

    A frame id equal to the sensor's own link promises that both coincide.  Where they do not (the pose is not the
    identity), data would be misplaced by that pose, so the frame takes the sensor's name.

    Raises:
        DescriptionError: an encoder names a joint that is not there or cannot move.
    """
    moving = {joint.name: joint for joint in joints if joint.axes and joint.type != "fixed"}
    settled: list[Sensor] = []
    names: dict[str, int] = {}
    for sensor in sensors:
        if isinstance(sensor.spec, EncoderSpec):
            _counted(root, sensor.name, sensor.spec, moving)
        name = sensor.name
        if name in names:
            name = free_name(f"{sensor.link}_{sensor.name}", names)
            reading.note(root, f"two sensors are called '{sensor.name}': the one on '{sensor.link}' becomes '{name}'")
        else:
            names[name] = 0
        at_link = sensor.T_link_sensor.almost_equal(SE3.identity(), 1e-9)
        frame = sensor.frame or (sensor.link if at_link else name)
        if frame == sensor.link and not at_link:
            reading.note(root, f"sensor '{name}' claims the frame '{frame}' but sits elsewhere: its frame is '{name}'")
            frame = name
        asked = name if sensor.topic == sensor.name else sensor.topic
        topic = topic_name(asked)
        if topic != asked and not isinstance(sensor.spec, EncoderSpec) and "::" not in asked:
            reading.note(root, f"sensor '{name}' publishes on '{topic}': {shown(asked)} is no topic's name")
        settled.append(replace(sensor, name=name, frame=frame, topic=topic))
    return tuple(settled)


def topic_name(text: str) -> str:
    """The nearest name that ROS allows: letters, digits and ``_`` between ``/``, no part beginning with a digit."""
    parts = [re.sub(r"[^A-Za-z0-9_]+", "_", part) for part in text.replace("::", "/").removeprefix("~").split("/")]
    return "/".join(f"_{part}" if part[0].isdigit() else part for part in parts if part) or "sensor"


def _counted(root: Node, name: str, spec: EncoderSpec, moving: dict[str, Joint]) -> None:
    for joint in spec.joints:
        if joint not in moving:
            joints = ", ".join(list(moving)[:12]) or "there is none"
            raise fault(f"encoder '{name}' names '{joint}', which is no joint that turns or slides", root, joints)
