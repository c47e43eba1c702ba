"""From a robot's description to the chains in it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.chains.chain import Chain
from roboyard.chains.rows import ChainArrays
from roboyard.config.describe import did_you_mean
from roboyard.description import Joint, Model
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE3

Array = NDArray[np.float64]
ONE_AXIS_TYPES = ("revolute", "continuous", "prismatic", "screw")
_REVOLUTE_TYPES = ("revolute", "continuous", "screw")


def build_chain(
    model: Model,
    base: str,
    tip: str,
    *,
    joints: Sequence[str] | None = None,
    fixed_positions: Mapping[str, float] | None = None,
) -> Chain:
    """The chain from a link down to another one.

    Args:
        model: The robot.
        base: Link in whose frame poses shall be; ``"world"`` where the robot is fixed to the world.
        tip: Link or named frame below it.
        joints: Those on the way that are free to move; all unless given.
        fixed_positions: Positions of other joints [rad or m], on the chain or on branches.  By default they are at
            zero, or as near to it as their limits allow.

    Raises:
        UnknownNameError: there is no such link or joint.
        InputError: the tip is not below the base, nothing moves between them, or a joint is of a kind that no serial
            chain has.
    """
    tree = JointTree(model)
    path = tree.path(base, tip)
    free = _free_joints(tree, path, joints)
    moving = [joint for joint in path if tree.find_driving_joint(joint)[0] in free]
    positions = tree.default_positions(fixed_positions or {}, {joint.name for joint in moving})
    poses = tree.link_poses(positions)
    T_model_base = poses.get(base, SE3.identity())
    frames = [
        T_model_base,
        *(poses[joint.child] @ joint.T_child_joint @ _rotation_z_to_axis(joint) for joint in moving),
    ]
    inverses = [frame.inverse() for frame in frames]
    link, T_link_tip = tree.locate_frame(tip)
    T_tip = inverses[-1] @ poses.get(link, SE3.identity()) @ T_link_tip
    link_frames = tree.frame_of_each_link([joint.child for joint in moving])
    links = {name: (link_frames[name], _clean_matrix(inverses[link_frames[name]] @ poses[name])) for name in poses}
    return _make_chain(
        tree, (base, tip), free, moving, [a @ b for a, b in zip(inverses, frames[1:], strict=False)], T_tip, links
    )


def _free_joints(tree: JointTree, path: Sequence[Joint], joints: Sequence[str] | None) -> list[str]:
    """Names of those that move by themselves, base to tip."""
    movable = [joint for joint in path if joint.type in ONE_AXIS_TYPES]
    names = [joint.name for joint in movable if joint.mimic is None]
    for name in joints or ():
        if name not in names:
            tree.joint(name)
            raise InputError(
                f"joint {name!r} is not free to move on the way", location=tree.model.name, valid=f"{', '.join(names)}"
            )
    free = [name for name in names if joints is None or name in joints]
    for joint in movable:
        driving_joint = tree.find_driving_joint(joint)[0]
        if joint.mimic is not None and joints is None and driving_joint not in free:
            raise InputError(
                f"joint {joint.name!r} follows {driving_joint!r}, which is not on the way",
                location=tree.model.name,
                valid="a chain with both, or the joints that are free",
            )
    if not free:
        raise InputError(
            f"nothing moves between {path[0].parent if path else 'a link'} and {path[-1].child if path else 'itself'}",
            location=tree.model.name,
            valid="a base and a tip with joints between them",
        )
    return free


def _make_chain(
    tree: JointTree,
    ends: tuple[str, str],
    free: list[str],
    moving: list[Joint],
    origins: list[SE3],
    T_tip: SE3,
    links: Mapping[str, tuple[int, Array]],
) -> Chain:
    driving_joints = [tree.find_driving_joint(joint) for joint in moving]
    lower, upper = np.full(len(free), -math.inf), np.full(len(free), math.inf)
    velocity, effort = np.full(len(free), math.inf), np.full(len(free), math.inf)
    for joint, (name, multiplier, offset) in zip(moving, driving_joints, strict=True):
        i, limits = free.index(name), joint.axes[0].limits
        if multiplier == 0.0:
            continue
        bounds = sorted(((limits.lower - offset) / multiplier, (limits.upper - offset) / multiplier))
        if joint.type != "continuous":
            lower[i], upper[i] = max(lower[i], bounds[0]), min(upper[i], bounds[1])
        velocity[i] = min(velocity[i], limits.velocity / abs(multiplier))
        if joint.mimic is None:
            effort[i] = limits.effort
    for i, name in enumerate(free):
        if lower[i] > upper[i]:
            raise InputError(f"joint {name!r} has no position that its mimics can take", location=tree.model.name)
    for array in (lower, upper, velocity, effort):
        array.flags.writeable = False
    arrays = ChainArrays(
        np.stack([_clean_matrix(T) for T in origins]),
        np.array([float(joint.type in _REVOLUTE_TYPES) for joint in moving]),
        np.array([_translation_per_unit(joint) for joint in moving]),
        np.array([free.index(name) for name, _, _ in driving_joints], dtype=np.int64),
        np.array([multiplier for _, multiplier, _ in driving_joints]),
        np.array([offset for _, _, offset in driving_joints]),
        _clean_matrix(T_tip),
        lower,
        upper,
    )
    is_revolute = {joint.name: joint.type in _REVOLUTE_TYPES for joint in moving}
    unlimited = np.full(len(free), math.inf)
    return Chain(
        tree.model.name, *ends, tuple(free), tuple(joint.name for joint in moving), links, arrays,
        np.array([is_revolute[name] for name in free]), velocity, effort, unlimited, unlimited.copy(),
    )  # fmt: skip


def _translation_per_unit(joint: Joint) -> float:
    if joint.type == "prismatic":
        return 1.0
    return joint.thread_pitch / (2.0 * math.pi) if joint.type == "screw" else 0.0


def _rotation_z_to_axis(joint: Joint) -> SE3:
    """The least turn that takes z to the joint's axis."""
    x, y, z = joint.axes[0].xyz
    if z < -1.0 + 1e-12:
        return SE3((0.0, 1.0, 0.0, 0.0))
    return SE3((1.0 + z, -y, x, 0.0))


def _joint_transform(joint: Joint, value: float) -> SE3:
    """``T_parent_child`` with the joint at a position."""
    if not joint.axes or value == 0.0:
        return joint.T_parent_child
    axis = np.array(joint.axes[0].xyz)
    rotation_vector = axis * value if joint.type in _REVOLUTE_TYPES else np.zeros(3)
    T_joint_rotated = SE3.exp(np.concatenate([np.zeros(3), rotation_vector]))
    translation = SE3(translation=axis * _translation_per_unit(joint) * value)
    return joint.T_parent_child @ joint.T_child_joint @ T_joint_rotated @ translation @ joint.T_child_joint.inverse()


def _clean_matrix(T: SE3) -> Array:
    """(4, 4), read-only, without the rounding that quarter turns leave where there shall be zeros and ones."""
    matrix = T.matrix()
    R = matrix[:3, :3]
    rounded = np.round(R)
    if np.abs(R - rounded).max() < 1e-15:
        R[:] = rounded
    matrix.flags.writeable = False
    return matrix


@dataclass(frozen=True, slots=True)
class JointTree:
    """A model's links and joints, seen from the leaves."""

    model: Model

    def parent_joints(self) -> dict[str, Joint]:
        """The joint that carries each link."""
        return {joint.child: joint for joint in self.model.joints}

    def joint(self, name: str) -> Joint:
        """Raises UnknownNameError."""
        names = [joint.name for joint in self.model.joints]
        if name not in names:
            raise UnknownNameError(
                f"no joint {name!r}{did_you_mean(name, names)}",
                location=self.model.name,
                valid=f"joints: {_join_names(names)}",
            )
        return self.model.joint(name)

    def locate_frame(self, name: str) -> tuple[str, SE3]:
        """The link that a link or frame is on, and where on it. Raises UnknownNameError."""
        links = [link.name for link in self.model.links]
        if name in links or (name == "world" and any(joint.parent == "world" for joint in self.model.joints)):
            return name, SE3.identity()
        for frame in self.model.frames:
            if frame.name == name:
                return frame.link, frame.T_link_frame
        frame_names = [*links, *(frame.name for frame in self.model.frames)]
        raise UnknownNameError(
            f"no link {name!r}{did_you_mean(name, frame_names)}",
            location=self.model.name,
            valid=f"links: {_join_names(frame_names)}",
        )

    def path(self, base: str, tip: str) -> list[Joint]:
        """The joints from a link down to another one. Raises InputError, UnknownNameError."""
        start, _ = self.locate_frame(base)
        if start != base:
            raise InputError(f"the base {base!r} is a frame", location=self.model.name, valid=f"its link, {start!r}")
        link, _ = self.locate_frame(tip)
        parent_joints, path, visited = self.parent_joints(), [], [link]
        while link != base:
            joint = parent_joints.get(link)
            if joint is None:
                raise InputError(
                    f"{tip!r} is not below {base!r}",
                    location=self.model.name,
                    valid=f"a base above it: {_join_names(visited)}",
                )
            if joint.type not in ONE_AXIS_TYPES and joint.type != "fixed":
                raise InputError(
                    f"joint {joint.name!r} on the way is a {joint.type} joint",
                    location=f"{self.model.name}, {base} to {tip}",
                    valid=f"fixed or one of: {', '.join(ONE_AXIS_TYPES)}",
                )
            path.append(joint)
            link = joint.parent
            visited.append(link)
        return path[::-1]

    def find_driving_joint(self, joint: Joint) -> tuple[str, float, float]:
        """The joint that moves this one, at last, with multiplier and offset. Raises InputError."""
        name, multiplier, offset, visited = joint.name, 1.0, 0.0, {joint.name}
        while joint.mimic is not None:
            name = joint.mimic.joint
            offset += multiplier * joint.mimic.offset
            multiplier *= joint.mimic.multiplier
            joint = self.joint(name)
            if name in visited:
                raise InputError(f"joint {name!r} follows itself", location=self.model.name)
            visited.add(name)
        return name, multiplier, offset

    def default_positions(self, fixed_positions: Mapping[str, float], moving: set[str]) -> dict[str, float]:
        """Where every joint of one axis stands while the chain is at zero. Raises InputError, UnknownNameError."""
        positions: dict[str, float] = {}
        for name, value in fixed_positions.items():
            joint = self.joint(name)
            if joint.type not in ONE_AXIS_TYPES or name in moving or not math.isfinite(value):
                raise InputError(
                    f"joint {name!r} cannot be held at {value}", location=self.model.name, valid="a joint off the chain"
                )
        for joint in self.model.joints:
            if joint.type not in ONE_AXIS_TYPES:
                continue
            name, multiplier, offset = self.find_driving_joint(joint)
            if joint.name in moving:
                positions[joint.name] = 0.0
            elif name in moving:
                raise InputError(
                    f"joint {joint.name!r}, beside the chain, follows {name!r} of it",
                    location=self.model.name,
                    valid="joints that follow a chain's must be in it",
                )
            else:
                limits = self.joint(name).axes[0].limits
                positions[joint.name] = (
                    multiplier * fixed_positions.get(name, min(max(0.0, limits.lower), limits.upper)) + offset
                )
        return positions

    def link_poses(self, positions: Mapping[str, float]) -> dict[str, SE3]:
        """Every link's pose in the model's frame."""
        parent_joints, links = self.parent_joints(), {link.name: link for link in self.model.links}
        poses: dict[str, SE3] = {}
        for name in links:
            ancestors = []
            while name in links and name not in poses:
                ancestors.append(name)
                name = parent_joints[name].parent if name in parent_joints else ""
            for link in reversed(ancestors):
                joint = parent_joints.get(link)
                if joint is None or joint.parent not in poses:
                    poses[link] = links[link].T_model_link
                else:
                    poses[link] = poses[joint.parent] @ _joint_transform(joint, positions.get(joint.name, 0.0))
        return poses

    def frame_of_each_link(self, moving_links: Sequence[str]) -> dict[str, int]:
        """For each link the number of the frame it rides on, where ``moving_links`` are the links of frames 1, 2, …."""
        parent_joints, numbers = self.parent_joints(), {name: k + 1 for k, name in enumerate(moving_links)}
        frames = {}
        for link in self.model.links:
            name = link.name
            while name not in numbers and name in parent_joints:
                name = parent_joints[name].parent
            frames[link.name] = numbers.get(name, 0)
        return frames


def _join_names(names: Iterable[str]) -> str:
    all_names = list(names)
    return ", ".join(all_names[:40]) + (f" and {len(all_names) - 40} more" if len(all_names) > 40 else "")
