"""Masses for links that have none, where a format or an engine insists on one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from roboyard.description.model import Inertial, Link, Model
from roboyard.description.write.written import Losses
from roboyard.geometry import SE3

SHARE = 1e-6
"""Of the mass behind a massless link between two joints: what is written for it, and taken from that."""
LEAST = 1e-9
"""For those with nothing behind them [kg]."""
_ARM = 0.01
"""Radius of gyration of that [m]."""


def lent(
    model: Model, losses: Losses, *, moving_only: bool = False, spared: Collection[str] = ()
) -> dict[str, Inertial]:
    """What is written for massless links that cannot be mere frames, each said, and what is left of those that lend.

    A link that has nothing to touch or see, and is fixed to one with mass, stays a mere frame.

    Args:
        model: Its links and joints.
        losses: Takes what is said.
        moving_only: Whether links fixed to others may be massless whatever they hold.
        spared: Links that are not written.
    """
    by_child = {joint.child: joint for joint in model.joints}
    found: dict[str, Inertial] = {}
    for link in model.links:
        joint = by_child.get(link.name)
        fixed = joint is not None and joint.type == "fixed"
        if link.name in spared or link.inertial is not None or (fixed and (moving_only or _bare(model, link))):
            continue
        if not fixed and (moving_only or not (link.collisions or link.visuals)) and _carries(model, link.name):
            continue
        lender = "" if fixed else _behind(model, link.name)
        mass, moment = LEAST, LEAST * _ARM**2
        if lender:
            heavy = found.get(lender) or model.link(lender).inertial
            if heavy is not None:
                mass, moment = heavy.mass * SHARE, max(heavy.inertia[:3]) * SHARE
                ixx, iyy, izz, ixy, ixz, iyz = (value * (1.0 - SHARE) for value in heavy.inertia)
                found[lender] = replace(heavy, mass=heavy.mass - mass, inertia=(ixx, iyy, izz, ixy, ixz, iyz))
        found[link.name] = Inertial(mass, SE3.identity(), (moment, moment, moment, 0.0, 0.0, 0.0))
        losses.say(f"link '{link.name}' has no mass: {mass:.3g} kg written")
    return found


def _bare(model: Model, link: Link) -> bool:
    """Whether it is a mere frame on a link with mass."""
    if link.collisions or link.visuals:
        return False
    return _carries(model, link.name)


def _carries(model: Model, name: str) -> bool:
    """Whether any link of the group that is fixed together with ``name`` has mass."""
    group, waiting = {name}, [name]
    while waiting:
        here = waiting.pop()
        for joint in model.joints:
            if joint.type == "fixed" and here in (joint.parent, joint.child):
                other = joint.child if here == joint.parent else joint.parent
                if other not in group and other != "world":
                    group.add(other)
                    waiting.append(other)
    return any(one.inertial is not None for one in model.links if one.name in group)


def _behind(model: Model, name: str) -> str:
    """The first link with mass, going outwards; empty if there is none."""
    heavy = {link.name for link in model.links if link.inertial is not None}
    queue = [name]
    for here in queue:
        if here in heavy:
            return here
        queue += [joint.child for joint in model.joints if joint.parent == here]
    return ""
