"""Which link becomes which body: order, parents, and what is done about links without mass."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from roboyard.description.model import Inertial, Joint, Link, Model
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3
from roboyard.simulation.naming import scoped

LENT = 1e-6
"""Share of a child's mass lent to a massless link between two joints (the engine refuses moving massless bodies)."""

LED = 0.5
"""Share of a follower's inertia lent to a massless link that leads it."""

LEAST = 1e-14
"""Mass [kg] and moment [kg m²] that are lent at least."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One link's place in the tree.

    Attributes:
        link: The link.
        parent: Name of the parent link; None for a root.
        T_parent_link: Pose in the parent at zero; for a root its pose in the model.
        joint: The joint that moves it; None when it is held fast or free.
        free: A root that flies.
        inertial: Its mass after lending; None = none.
    """

    link: Link
    parent: str | None
    T_parent_link: SE3
    joint: Joint | None
    free: bool
    inertial: Inertial | None


def plan(model: Model, notes: list[str]) -> list[Branch]:
    """All links of ``model``, parents before children, in an order that depends on the file alone.

    A link that moves but has no mass, with nothing heavy behind it, is held to its parent; one *between* two joints
    borrows a millionth of its child's mass, one whose joint others mimic borrows of these, and half of one's inertia:
    its servo, made for what it turns, turns them through it.  The total stays what the description says.

    Raises:
        DescriptionError: the joints form a ring or a link has two parents.
    """
    branches = _order(model)
    children: dict[str, list[str]] = {}
    for branch in branches.values():
        if branch.parent is not None:
            children.setdefault(branch.parent, []).append(branch.link.name)

    moved_by = {joint.name: joint.child for joint in model.joints}
    following: dict[str, list[str]] = {}
    for joint in model.joints:
        if joint.mimic is not None and joint.mimic.joint in moved_by:
            following.setdefault(moved_by[joint.mimic.joint], []).append(joint.child)

    # Leaves first, so that a whole massless finger is held joint by joint.
    for name in reversed(list(branches)):
        branch = branches[name]
        moves = branch.free or branch.joint is not None
        if not moves or _mass(_rigid_group(name, branches, children), branches) > 0.0:
            continue
        lender, share = _first_heavy(name, branches, children), LENT
        if lender is None:
            lender, share = _first_heavy(name, branches, following), LED
        if lender is None:
            branches[name] = replace(branch, joint=None, free=False)
            notes.append(f"{scoped(model.name, name)}: moves but has no mass; it is held to what it hangs on")
        else:
            lent, kept = _split(branches[lender].inertial, branch, branches[lender], share)
            branches[name] = replace(branch, inertial=lent)
            branches[lender] = replace(branches[lender], inertial=kept)
    return list(branches.values())


def _order(model: Model) -> dict[str, Branch]:
    by_child: dict[str, Joint] = {}
    below: dict[str, list[Joint]] = {}
    for joint in model.joints:
        if joint.child in by_child:
            raise DescriptionError(f"link {joint.child} is the child of two joints", location=f"model {model.name}")
        by_child[joint.child] = joint
        below.setdefault(joint.parent, []).append(joint)

    links = {link.name: link for link in model.links}
    branches: dict[str, Branch] = {}
    for root in model.links:
        hook = by_child.get(root.name)
        if hook is not None and hook.parent != "world":
            continue
        stack = [_branch(root, hook, model)]
        while stack:
            branch = stack.pop()
            branches[branch.link.name] = branch
            stack.extend(_branch(links[j.child], j, model) for j in reversed(below.get(branch.link.name, [])))
    if len(branches) != len(model.links):
        missing = [link.name for link in model.links if link.name not in branches]
        raise DescriptionError(f"links in a ring of joints: {', '.join(missing)}", location=f"model {model.name}")
    return branches


def _branch(link: Link, joint: Joint | None, model: Model) -> Branch:
    still = model.static
    if joint is None:
        return Branch(link, None, link.T_model_link, None, not still, link.inertial)
    parent = None if joint.parent == "world" else joint.parent
    moving = None if still or joint.type == "fixed" else joint
    return Branch(link, parent, joint.T_parent_child, moving, False, link.inertial)


def _rigid_group(name: str, branches: dict[str, Branch], children: dict[str, list[str]]) -> list[str]:
    group = [name]
    for member in group:
        group.extend(child for child in children.get(member, []) if branches[child].joint is None)
    return group


def _mass(names: list[str], branches: dict[str, Branch]) -> float:
    return sum(inertial.mass for name in names if (inertial := branches[name].inertial) is not None)


def _first_heavy(name: str, branches: dict[str, Branch], children: dict[str, list[str]]) -> str | None:
    queue = [name]
    for member in queue:
        if member != name and _mass([member], branches) > 0.0:
            return member
        queue.extend(children.get(member, []))
    return None


def _split(inertial: Inertial | None, borrower: Branch, lender: Branch, part: float) -> tuple[Inertial, Inertial]:
    """What is lent, ``part`` of the inertia, and what is kept."""
    if inertial is None:
        raise DescriptionError(f"link {lender.link.name} has no mass to lend to {borrower.link.name}")
    # The engine takes no mass or moment below 1e-15; a light child lends a larger share.
    mass = min(max(LENT, LEAST / inertial.mass), 0.5)
    share = min(max(part, mass, LEAST / max(inertial.inertia[:3])), 0.5)
    xx, yy, zz, *_ = (float(value) for value in np.asarray(inertial.inertia) * share)
    round_inertia = max(xx, yy, zz)
    lent = Inertial(inertial.mass * mass, SE3.identity(), (round_inertia, round_inertia, round_inertia, 0.0, 0.0, 0.0))
    ixx, iyy, izz, ixy, ixz, iyz = (value * (1.0 - share) for value in inertial.inertia)
    return lent, Inertial(inertial.mass * (1.0 - mass), inertial.T_link_com, (ixx, iyy, izz, ixy, ixz, iyz))
