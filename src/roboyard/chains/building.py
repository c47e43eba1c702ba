"""From a robot's description to the chains in it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.chains.chain import Chain
from roboyard.chains.rows import Rows
from roboyard.config.describe import near
from roboyard.description import Joint, Model
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE3

Array = NDArray[np.float64]
MOVING = ("revolute", "continuous", "prismatic", "screw")
_TURNING = ("revolute", "continuous", "screw")


def build_chain(
    model: Model,
    base: str,
    tip: str,
    *,
    joints: Sequence[str] | None = None,
    held: Mapping[str, float] | None = None,
) -> Chain:
    """The chain from a link down to another one.

    Args:
        model: The robot.
        base: Link in whose frame poses shall be; ``"world"`` where the robot is fixed to the world.
        tip: Link or named frame below it.
        joints: Those on the way that are free to move; all unless given.
        held: Positions of other joints [rad or m], on the way or on branches; else they are at zero, or as near to it
            as their limits allow.

    Raises:
        UnknownNameError: there is no such link or joint.
        InputError: the tip is not below the base, nothing moves between them, or a joint is of a kind that no serial
            chain has.
    """
    tree = Tree(model)
    way = tree.way(base, tip)
    free = _free_joints(tree, way, joints)
    moving = [joint for joint in way if tree.master(joint)[0] in free]
    stand = tree.positions(held or {}, {joint.name for joint in moving})
    placed = tree.placed(stand)
    T_model_base = placed.get(base, SE3.identity())
    frames = [T_model_base, *(placed[joint.child] @ joint.T_child_joint @ _along_z(joint) for joint in moving)]
    inverses = [frame.inverse() for frame in frames]
    link, T_link_tip = tree.place(tip)
    T_tip = inverses[-1] @ placed.get(link, SE3.identity()) @ T_link_tip
    carriers = tree.carriers([joint.child for joint in moving])
    links = {name: (carriers[name], _matrix(inverses[carriers[name]] @ placed[name])) for name in placed}
    return _assembled(
        tree, (base, tip), free, moving, [a @ b for a, b in zip(inverses, frames[1:], strict=False)], T_tip, links
    )


def _free_joints(tree: Tree, way: Sequence[Joint], joints: Sequence[str] | None) -> list[str]:
    """Names of those that move by themselves, base to tip."""
    movable = [joint for joint in way if joint.type in MOVING]
    names = [joint.name for joint in movable if joint.mimic is None]
    for name in joints or ():
        if name not in names:
            tree.joint(name)
            raise InputError(
                f"joint {name!r} is not free to move on the way", where=tree.model.name, valid=f"{', '.join(names)}"
            )
    free = [name for name in names if joints is None or name in joints]
    for joint in movable:
        master = tree.master(joint)[0]
        if joint.mimic is not None and joints is None and master not in free:
            raise InputError(
                f"joint {joint.name!r} follows {master!r}, which is not on the way",
                where=tree.model.name,
                valid="a chain with both, or the joints that are free",
            )
    if not free:
        raise InputError(
            f"nothing moves between {way[0].parent if way else 'a link'} and {way[-1].child if way else 'itself'}",
            where=tree.model.name,
            valid="a base and a tip with joints between them",
        )
    return free


def _assembled(
    tree: Tree,
    ends: tuple[str, str],
    free: list[str],
    moving: list[Joint],
    origins: list[SE3],
    T_tip: SE3,
    links: Mapping[str, tuple[int, Array]],
) -> Chain:
    masters = [tree.master(joint) for joint in moving]
    lower, upper = np.full(len(free), -math.inf), np.full(len(free), math.inf)
    velocity, effort = np.full(len(free), math.inf), np.full(len(free), math.inf)
    for joint, (name, multiplier, offset) in zip(moving, masters, strict=True):
        i, limits = free.index(name), joint.axes[0].limits
        if multiplier == 0.0:
            continue
        ends_at = sorted(((limits.lower - offset) / multiplier, (limits.upper - offset) / multiplier))
        if joint.type != "continuous":
            lower[i], upper[i] = max(lower[i], ends_at[0]), min(upper[i], ends_at[1])
        velocity[i] = min(velocity[i], limits.velocity / abs(multiplier))
        if joint.mimic is None:
            effort[i] = limits.effort
    for i, name in enumerate(free):
        if lower[i] > upper[i]:
            raise InputError(f"joint {name!r} has no position that its mimics can take", where=tree.model.name)
    for array in (lower, upper, velocity, effort):
        array.flags.writeable = False
    rows = Rows(
        np.stack([_matrix(T) for T in origins]),
        np.array([float(joint.type in _TURNING) for joint in moving]),
        np.array([_slide(joint) for joint in moving]),
        np.array([free.index(name) for name, _, _ in masters], dtype=np.int64),
        np.array([multiplier for _, multiplier, _ in masters]),
        np.array([offset for _, _, offset in masters]),
        _matrix(T_tip),
        lower,
        upper,
    )
    kinds = {joint.name: joint.type in _TURNING for joint in moving}
    nowhere = np.full(len(free), math.inf)
    return Chain(
        tree.model.name, *ends, tuple(free), tuple(joint.name for joint in moving), links, rows,
        np.array([kinds[name] for name in free]), velocity, effort, nowhere, nowhere.copy(),
    )  # fmt: skip


def _slide(joint: Joint) -> float:
    if joint.type == "prismatic":
        return 1.0
    return joint.thread_pitch / (2.0 * math.pi) if joint.type == "screw" else 0.0


def _along_z(joint: Joint) -> SE3:
    """The least turn that takes z to the joint's axis."""
    x, y, z = joint.axes[0].xyz
    if z < -1.0 + 1e-12:
        return SE3((0.0, 1.0, 0.0, 0.0))
    return SE3((1.0 + z, -y, x, 0.0))


def _moved(joint: Joint, value: float) -> SE3:
    """``T_parent_child`` with the joint at a position."""
    if not joint.axes or value == 0.0:
        return joint.T_parent_child
    axis = np.array(joint.axes[0].xyz)
    turn = axis * value if joint.type in _TURNING else np.zeros(3)
    T_joint_moved = SE3.exp(np.concatenate([np.zeros(3), turn]))
    slid = SE3(translation=axis * _slide(joint) * value)
    return joint.T_parent_child @ joint.T_child_joint @ T_joint_moved @ slid @ joint.T_child_joint.inverse()


def _matrix(T: SE3) -> Array:
    """(4, 4), read-only, without the rounding that quarter turns leave where there shall be zeros and ones."""
    matrix = T.matrix()
    R = matrix[:3, :3]
    whole = np.round(R)
    if np.abs(R - whole).max() < 1e-15:
        R[:] = whole
    matrix.flags.writeable = False
    return matrix


@dataclass(frozen=True, slots=True)
class Tree:
    """A model's links and joints, seen from the leaves."""

    model: Model

    def joint_above(self) -> dict[str, Joint]:
        """The joint that carries each link."""
        return {joint.child: joint for joint in self.model.joints}

    def joint(self, name: str) -> Joint:
        """Raises UnknownNameError."""
        names = [joint.name for joint in self.model.joints]
        if name not in names:
            raise UnknownNameError(
                f"no joint {name!r}{near(name, names)}", where=self.model.name, valid=f"joints: {_listed(names)}"
            )
        return self.model.joint(name)

    def place(self, name: str) -> tuple[str, SE3]:
        """The link that a link or frame is on, and where on it. Raises UnknownNameError."""
        links = [link.name for link in self.model.links]
        if name in links or (name == "world" and any(joint.parent == "world" for joint in self.model.joints)):
            return name, SE3.identity()
        for frame in self.model.frames:
            if frame.name == name:
                return frame.link, frame.T_link_frame
        known = [*links, *(frame.name for frame in self.model.frames)]
        raise UnknownNameError(
            f"no link {name!r}{near(name, known)}", where=self.model.name, valid=f"links: {_listed(known)}"
        )

    def way(self, base: str, tip: str) -> list[Joint]:
        """The joints from a link down to another one. Raises InputError, UnknownNameError."""
        start, _ = self.place(base)
        if start != base:
            raise InputError(f"the base {base!r} is a frame", where=self.model.name, valid=f"its link, {start!r}")
        link, _ = self.place(tip)
        above, way, passed = self.joint_above(), [], [link]
        while link != base:
            joint = above.get(link)
            if joint is None:
                raise InputError(
                    f"{tip!r} is not below {base!r}", where=self.model.name, valid=f"a base above it: {_listed(passed)}"
                )
            if joint.type not in MOVING and joint.type != "fixed":
                raise InputError(
                    f"joint {joint.name!r} on the way is a {joint.type} joint",
                    where=f"{self.model.name}, {base} to {tip}",
                    valid=f"fixed or one of: {', '.join(MOVING)}",
                )
            way.append(joint)
            link = joint.parent
            passed.append(link)
        return way[::-1]

    def master(self, joint: Joint) -> tuple[str, float, float]:
        """The joint that moves this one, at last, with multiplier and offset. Raises InputError."""
        name, multiplier, offset, seen = joint.name, 1.0, 0.0, {joint.name}
        while joint.mimic is not None:
            name = joint.mimic.joint
            offset += multiplier * joint.mimic.offset
            multiplier *= joint.mimic.multiplier
            joint = self.joint(name)
            if name in seen:
                raise InputError(f"joint {name!r} follows itself", where=self.model.name)
            seen.add(name)
        return name, multiplier, offset

    def positions(self, held: Mapping[str, float], moving: set[str]) -> dict[str, float]:
        """Where every joint of one axis stands while the chain is at zero. Raises InputError, UnknownNameError."""
        found: dict[str, float] = {}
        for name, value in held.items():
            joint = self.joint(name)
            if joint.type not in MOVING or name in moving or not math.isfinite(value):
                raise InputError(
                    f"joint {name!r} cannot be held at {value}", where=self.model.name, valid="a joint off the chain"
                )
        for joint in self.model.joints:
            if joint.type not in MOVING:
                continue
            name, multiplier, offset = self.master(joint)
            if joint.name in moving:
                found[joint.name] = 0.0
            elif name in moving:
                raise InputError(
                    f"joint {joint.name!r}, beside the chain, follows {name!r} of it",
                    where=self.model.name,
                    valid="joints that follow a chain's must be in it",
                )
            else:
                limits = self.joint(name).axes[0].limits
                found[joint.name] = multiplier * held.get(name, min(max(0.0, limits.lower), limits.upper)) + offset
        return found

    def placed(self, positions: Mapping[str, float]) -> dict[str, SE3]:
        """Every link's pose in the model's frame."""
        above, links = self.joint_above(), {link.name: link for link in self.model.links}
        found: dict[str, SE3] = {}
        for name in links:
            way = []
            while name in links and name not in found:
                way.append(name)
                name = above[name].parent if name in above else ""
            for link in reversed(way):
                joint = above.get(link)
                if joint is None or joint.parent not in found:
                    found[link] = links[link].T_model_link
                else:
                    found[link] = found[joint.parent] @ _moved(joint, positions.get(joint.name, 0.0))
        return found

    def carriers(self, moved: Sequence[str]) -> dict[str, int]:
        """For each link the number of the frame it rides on, where ``moved`` are the links of frames 1, 2, …."""
        above, numbers = self.joint_above(), {name: k + 1 for k, name in enumerate(moved)}
        found = {}
        for link in self.model.links:
            name = link.name
            while name not in numbers and name in above:
                name = above[name].parent
            found[link.name] = numbers.get(name, 0)
        return found


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(every[:40]) + (f" and {len(every) - 40} more" if len(every) > 40 else "")
