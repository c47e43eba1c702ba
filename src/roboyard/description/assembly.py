"""Last touches that every reader's model gets: distinct sensor names, sensor frames that are where they claim to be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from roboyard.description.naming import free_name
from roboyard.description.reading import Reading
from roboyard.description.sensors import Sensor
from roboyard.description.xml import Node
from roboyard.geometry import SE3


def settle_sensors(reading: Reading, root: Node, sensors: Iterable[Sensor]) -> tuple[Sensor, ...]:
    """Sensors with names unique in the model, and frames that agree with where they sit.

    A frame id equal to the sensor's own link promises that both coincide.  Where they do not (the pose is not the
    identity), data would be misplaced by that pose, so the frame takes the sensor's name.
    """
    settled: list[Sensor] = []
    names: dict[str, int] = {}
    for sensor in sensors:
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
        topic = name if sensor.topic == sensor.name else sensor.topic
        settled.append(replace(sensor, name=name, frame=frame, topic=topic))
    return tuple(settled)
