"""Masses for links that have none, where a format or an engine insists on one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from roboyard.description.model import Inertial, Link, Model
from roboyard.description.write.written import ConversionLosses
from roboyard.geometry import SE3

LENT_MASS_FRACTION = 1e-6
"""Of the mass behind a massless link between two joints: what is written for it, and taken from that."""
MIN_MASS = 1e-9
"""For those with nothing behind them [kg]."""
_RADIUS_OF_GYRATION = 0.01
"""Radius of gyration of that [m]."""


def lend_masses(
    model: Model, losses: ConversionLosses, *, moving_only: bool = False, excluded: Collection[str] = ()
) -> dict[str, Inertial]:
    """What is written for massless links that cannot be mere frames, each said, and what is left of those that lend.

    A link that has nothing to touch or see, and is fixed to one with mass, stays a mere frame.

    Args:
        model: Its links and joints.
        losses: Takes what is said.
        moving_only: Whether links fixed to others may be massless whatever they hold.
        excluded: Links that are not written.
    """
    by_child = {joint.child: joint for joint in model.joints}
    inertials: dict[str, Inertial] = {}
    for link in model.links:
        joint = by_child.get(link.name)
        fixed = joint is not None and joint.type == "fixed"
        if (
            link.name in excluded
            or link.inertial is not None
            or (fixed and (moving_only or _is_frame_on_mass(model, link)))
        ):
            continue
        if not fixed and (moving_only or not (link.collisions or link.visuals)) and _group_has_mass(model, link.name):
            continue
        lender = "" if fixed else _first_link_with_mass(model, link.name)
        mass, moment = MIN_MASS, MIN_MASS * _RADIUS_OF_GYRATION**2
        if lender:
            lender_inertial = inertials.get(lender) or model.link(lender).inertial
            if lender_inertial is not None:
                mass, moment = (
                    lender_inertial.mass * LENT_MASS_FRACTION,
                    max(lender_inertial.inertia[:3]) * LENT_MASS_FRACTION,
                )
                ixx, iyy, izz, ixy, ixz, iyz = (value * (1.0 - LENT_MASS_FRACTION) for value in lender_inertial.inertia)
                inertials[lender] = replace(
                    lender_inertial, mass=lender_inertial.mass - mass, inertia=(ixx, iyy, izz, ixy, ixz, iyz)
                )
        inertials[link.name] = Inertial(mass, SE3.identity(), (moment, moment, moment, 0.0, 0.0, 0.0))
        losses.add(f"link '{link.name}' has no mass: {mass:.3g} kg written")
    return inertials


def _is_frame_on_mass(model: Model, link: Link) -> bool:
    """Whether it is a mere frame on a link with mass."""
    if link.collisions or link.visuals:
        return False
    return _group_has_mass(model, link.name)


def _group_has_mass(model: Model, name: str) -> bool:
    """Whether any link of the group that is fixed together with ``name`` has mass."""
    group, stack = {name}, [name]
    while stack:
        current = stack.pop()
        for joint in model.joints:
            if joint.type == "fixed" and current in (joint.parent, joint.child):
                other = joint.child if current == joint.parent else joint.parent
                if other not in group and other != "world":
                    group.add(other)
                    stack.append(other)
    return any(one.inertial is not None for one in model.links if one.name in group)


def _first_link_with_mass(model: Model, name: str) -> str:
    """The first link with mass, going outwards; empty if there is none."""
    links_with_mass = {link.name for link in model.links if link.inertial is not None}
    queue = [name]
    for current in queue:
        if current in links_with_mass:
            return current
        queue += [joint.child for joint in model.joints if joint.parent == current]
    return ""
