"""Links that are mere frames: no inertia stated, nothing to touch or see, fixed to a link that has them.

SDF gives any link without ``<inertial>`` 1 kg and 1 kg m².  For a ``base_footprint`` or an ``imu_link`` nobody means
that: a TurtleBot3 of 1.1 kg would weigh 3.1 kg and turn as if it were made of lead a metre wide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from roboyard.description.model import Joint, Link
from roboyard.description.reading import Reading
from roboyard.description.xml import Node


def weightless(
    reading: Reading, links: Iterable[Link], joints: Iterable[Joint], nodes: Mapping[str, Node]
) -> list[Link]:
    """The links, with mere frames freed of the mass that SDF's default would give them, each noted.

    Args:
        reading: Takes the findings.
        links: Of one model.
        joints: Between them.
        nodes: The elements of the links that this file states itself, by name.
    """
    links = list(links)
    cluster = {link.name: link.name for link in links}

    def head(name: str) -> str:
        while cluster[name] != name:
            name = cluster[name]
        return name

    for joint in joints:
        if joint.type == "fixed" and joint.parent in cluster and joint.child in cluster:
            cluster[head(joint.child)] = head(joint.parent)
    bare = {
        link.name
        for link in links
        if link.name in nodes
        and nodes[link.name].child("inertial") is None
        and not link.collisions
        and not link.visuals
    }
    carried = {head(link.name) for link in links if link.name not in bare and link.inertial is not None}
    result = []
    for link in links:
        if link.name in bare and head(link.name) in carried:
            reading.note(
                nodes[link.name], f"link '{link.name}' is a mere frame: not given the 1 kg that SDF would give it"
            )
            link = replace(link, inertial=None)
        result.append(link)
    return result
