"""Links that are mere frames: no inertia stated, nothing to touch or see, fixed to a link that has them.

SDF gives any link without ``<inertial>`` 1 kg and 1 kg m².  For a ``base_footprint`` or an ``imu_link`` nobody means
that: a TurtleBot3 of 1.1 kg would weigh 3.1 kg and turn as if it were made of lead a metre wide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from roboyard.description.model import Joint, Link
from roboyard.description.reading import ReaderContext
from roboyard.description.xml import XmlNode


def drop_default_inertia(
    context: ReaderContext, links: Iterable[Link], joints: Iterable[Joint], nodes: Mapping[str, XmlNode]
) -> list[Link]:
    """The links, with mere frames freed of the mass that SDF's default would give them, each noted.

    Args:
        context: Takes the findings.
        links: Of one model.
        joints: Between them.
        nodes: The elements of the links that this file states itself, by name.
    """
    links = list(links)
    group = {link.name: link.name for link in links}

    def find_root(name: str) -> str:
        while group[name] != name:
            name = group[name]
        return name

    for joint in joints:
        if joint.type == "fixed" and joint.parent in group and joint.child in group:
            group[find_root(joint.child)] = find_root(joint.parent)
    frame_links = {
        link.name
        for link in links
        if link.name in nodes
        and nodes[link.name].child("inertial") is None
        and not link.collisions
        and not link.visuals
    }
    groups_with_mass = {
        find_root(link.name) for link in links if link.name not in frame_links and link.inertial is not None
    }
    result = []
    for link in links:
        if link.name in frame_links and find_root(link.name) in groups_with_mass:
            context.warn(
                nodes[link.name], f"link '{link.name}' is a mere frame: not given the 1 kg that SDF would give it"
            )
            link = replace(link, inertial=None)
        result.append(link)
    return result
