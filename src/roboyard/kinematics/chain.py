"""Serial chains: construction from a robot description, joint limits, forward kinematics and Jacobians."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.config.wording import did_you_mean
from roboyard.description import Joint, Model
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain_kernels import ChainArrays, compute_all_frames, compute_jacobians, compute_tip_poses


@dataclass(frozen=True, eq=False)
class Chain:
    """Serial chain with n free joints and m moving ones (the free joints and their mimic joints); arrays are read-only.

    `build_chain` makes a chain from a robot description.  Frame 0 is the base; frame k + 1 is attached to moving joint
    k and has the joint's axis along its z.

    Attributes:
        robot: Name of the robot model.
        base: Link in whose frame poses are expressed.
        tip: Link or frame whose poses are computed.
        joints: (n,) names of the free joints, base to tip.
        moving_joints: (m,) names of all moving joints of the chain.
        link_mounts: Every link that the joints move or that is fixed to the base, with the index of its frame and its
            pose (4, 4) in that frame; includes branches, with their joints at the positions given to `build_chain`.
        arrays: The chain in the form that kernels use.
        is_revolute: (n,) whether a joint is revolute (positions in radians) instead of prismatic (meters).
        max_velocity: (n,) maximum velocities [rad/s or m/s]; infinite if not specified.
        max_effort: (n,) maximum torques or forces [N m or N].
        max_acceleration: (n,) maximum accelerations [rad/s² or m/s²].
        max_jerk: (n,) maximum jerks [rad/s³ or m/s³].
    """

    robot: str
    base: str
    tip: str
    joints: tuple[str, ...]
    moving_joints: tuple[str, ...]
    link_mounts: Mapping[str, tuple[int, Array]] = field(repr=False)
    arrays: ChainArrays = field(repr=False)
    is_revolute: NDArray[np.bool_]
    max_velocity: Array
    max_effort: Array
    max_acceleration: Array
    max_jerk: Array

    @property
    def dof(self) -> int:
        """Number of free joints."""
        return len(self.joints)

    @property
    def lower(self) -> Array:
        """(n,) lower position limits [rad or m]; minus infinity without a limit."""
        return self.arrays.lower

    @property
    def upper(self) -> Array:
        """(n,) upper position limits [rad or m]; infinity without a limit."""
        return self.arrays.upper

    def forward(self, q: ArrayLike) -> Array:
        """Compute the pose of the tip in the base: (4, 4) for joint positions (n,), (k, 4, 4) for (k, n). Raises
        InputError.
        """
        values = self.as_positions(q)
        out = np.empty((math.prod(values.shape[:-1]), 4, 4))
        compute_tip_poses(self.arrays, values.reshape(-1, self.dof), out)
        return out.reshape(*values.shape[:-1], 4, 4)

    def frames(self, q: ArrayLike) -> Array:
        """Compute the poses of all frames in the base: (m + 1, 4, 4) for joint positions (n,), (k, m + 1, 4, 4) for (k,
        n). Raises InputError.
        """
        values = self.as_positions(q)
        count = len(self.moving_joints) + 1
        out = np.empty((math.prod(values.shape[:-1]), count, 4, 4))
        compute_all_frames(self.arrays, values.reshape(-1, self.dof), out)
        return out.reshape(*values.shape[:-1], count, 4, 4)

    def link_poses(self, q: ArrayLike) -> dict[str, Array]:
        """Compute the poses (4, 4), or (k, 4, 4), of all links in the base. Raises InputError."""
        frames = self.frames(q)
        return {name: frames[..., number, :, :] @ T for name, (number, T) in self.link_mounts.items()}

    def jacobian(self, q: ArrayLike) -> Array:
        """Compute the geometric Jacobian of the tip in base axes: (6, n) for joint positions (n,), (k, 6, n) for (k,
        n).

        Each column is the linear velocity [m/s] and then the angular velocity [rad/s] per unit of joint velocity.

        Raises:
            InputError: As `as_positions`.
        """
        values = self.as_positions(q)
        out = np.empty((math.prod(values.shape[:-1]), 6, self.dof))
        compute_jacobians(self.arrays, values.reshape(-1, self.dof), out)
        return out.reshape(*values.shape[:-1], 6, self.dof)

    def manipulability(self, q: ArrayLike) -> float | Array:
        """Compute Yoshikawa's manipulability: the product of the Jacobian's singular values, 0 at a singularity.

        A number for joint positions (n,), (k,) for (k, n). Yoshikawa 1985, Int. J. Robotics Research 4(2). Raises
        InputError.
        """
        measure = np.prod(np.linalg.svd(self.jacobian(q), compute_uv=False), axis=-1)
        return float(measure) if measure.ndim == 0 else measure

    def is_within_limits(self, q: ArrayLike, tolerance: float = 1e-9) -> bool | NDArray[np.bool_]:
        """Return whether joint positions (n,), or each row of (k, n), are within the limits. Raises InputError."""
        values = self.as_positions(q)
        is_inside = ((values >= self.lower - tolerance) & (values <= self.upper + tolerance)).all(axis=-1)
        return is_inside if isinstance(is_inside, np.ndarray) else bool(is_inside)

    def sample_positions(self, rng: np.random.Generator, count: int) -> Array:
        """Sample positions (count, n) uniformly within the limits; one revolution for joints without limits. Raises
        InputError.
        """
        low = np.where(np.isfinite(self.lower), self.lower, -math.pi)
        high = np.where(np.isfinite(self.upper), self.upper, math.pi)
        unbounded = ~self.is_revolute & ~(np.isfinite(self.lower) & np.isfinite(self.upper))
        if unbounded.any():
            names = ", ".join(name for name, is_unbounded in zip(self.joints, unbounded, strict=True) if is_unbounded)
            raise InputError(
                f"cannot sample positions: prismatic joint {names} has no limits",
                location=self.robot,
                valid="a joint with position limits",
            )
        return rng.uniform(low, high, (count, self.dof))

    def as_positions(self, q: ArrayLike) -> Array:
        """Check joint positions and convert them to an array (n,) or (k, n).

        Raises:
            InputError: They are not numbers, not finite, or have the wrong shape.
        """
        try:
            values = np.ascontiguousarray(q, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                "joint positions must be numbers", location=self.robot, valid=self._expected_shape()
            ) from None
        if values.ndim not in (1, 2) or values.shape[-1] != self.dof:
            raise InputError(
                f"joint positions have the shape {values.shape}",
                location=f"{self.robot}, {self.base} to {self.tip}",
                valid=self._expected_shape(),
            )
        if not np.isfinite(values).all():
            name = self.joints[int(np.argwhere(~np.isfinite(values))[0][-1])]
            raise InputError(f"the position of {name} is not finite", location=self.robot, valid=self._expected_shape())
        return values

    def with_tool(self, T_tip_tool: SE3, name: str = "tool") -> Chain:
        """Return the chain to a tool that is fixed to the tip."""
        arrays = self.arrays._replace(T_tip=_make_read_only(self.arrays.T_tip @ T_tip_tool.matrix()))
        return replace(self, tip=name, arrays=arrays)

    def with_acceleration_limits(self, acceleration: ArrayLike, jerk: ArrayLike) -> Chain:
        """Return the chain with limits of acceleration and jerk (n,), which robot descriptions do not contain."""
        return replace(
            self,
            max_acceleration=_make_read_only(np.array(acceleration, dtype=np.float64)),
            max_jerk=_make_read_only(np.array(jerk, dtype=np.float64)),
        )

    def _expected_shape(self) -> str:
        return f"({self.dof},) or (k, {self.dof}): {', '.join(self.joints)}"


def _make_read_only(values: Array) -> Array:
    values.flags.writeable = False
    return values


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
    """Build the chain from a link down to another link or frame.

    Args:
        model: The robot.
        base: Link in whose frame poses are expressed; ``"world"`` if the robot is fixed to the world.
        tip: Link or named frame below the base.
        joints: Joints of the chain that are free to move; all by default.
        fixed_positions: Positions of other joints [rad or m], on the chain or on branches.  By default they are zero,
            or the limit closest to zero.

    Raises:
        UnknownNameError: A link or joint does not exist.
        InputError: The tip is not below the base, the chain has no moving joint, or a joint type is not supported in a
            serial chain.
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
    """Return the names of the joints that move independently, base to tip."""
    movable = [joint for joint in path if joint.type in ONE_AXIS_TYPES]
    names = [joint.name for joint in movable if joint.mimic is None]
    for name in joints or ():
        if name not in names:
            tree.joint(name)
            raise InputError(
                f"joint {name!r} is not a free joint of the chain",
                location=tree.model.name,
                valid=f"{', '.join(names)}",
            )
    free = [name for name in names if joints is None or name in joints]
    for joint in movable:
        driving_joint = tree.find_driving_joint(joint)[0]
        if joint.mimic is not None and joints is None and driving_joint not in free:
            raise InputError(
                f"joint {joint.name!r} mimics {driving_joint!r}, which is not part of the chain",
                location=tree.model.name,
                valid="a chain with both, or the free joints",
            )
    if not free:
        raise InputError(
            f"no moving joint between {path[0].parent if path else 'base'} and {path[-1].child if path else 'tip'}",
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
            raise InputError(
                f"no position of joint {name!r} keeps its mimic joints within their limits", location=tree.model.name
            )
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
    """Return the smallest rotation that maps z to the joint's axis."""
    x, y, z = joint.axes[0].xyz
    if z < -1.0 + 1e-12:
        return SE3((0.0, 1.0, 0.0, 0.0))
    return SE3((1.0 + z, -y, x, 0.0))


def _joint_transform(joint: Joint, value: float) -> SE3:
    """Return ``T_parent_child`` for a joint position."""
    if not joint.axes or value == 0.0:
        return joint.T_parent_child
    axis = np.array(joint.axes[0].xyz)
    rotation_vector = axis * value if joint.type in _REVOLUTE_TYPES else np.zeros(3)
    T_joint_rotated = SE3.exp(np.concatenate([np.zeros(3), rotation_vector]))
    translation = SE3(translation=axis * _translation_per_unit(joint) * value)
    return joint.T_parent_child @ joint.T_child_joint @ T_joint_rotated @ translation @ joint.T_child_joint.inverse()


def _clean_matrix(T: SE3) -> Array:
    """Convert to a read-only matrix (4, 4) without the rounding errors of quarter turns, where zeros and ones are
    exact.
    """
    matrix = T.matrix()
    R = matrix[:3, :3]
    rounded = np.round(R)
    if np.abs(R - rounded).max() < 1e-15:
        R[:] = rounded
    matrix.flags.writeable = False
    return matrix


@dataclass(frozen=True, slots=True)
class JointTree:
    """Look-up of a model's joints by child link: paths, driving joints and poses."""

    model: Model

    def parent_joints(self) -> dict[str, Joint]:
        """Joint above each link, by link name."""
        return {joint.child: joint for joint in self.model.joints}

    def joint(self, name: str) -> Joint:
        """Return a joint by name. Raises UnknownNameError."""
        names = [joint.name for joint in self.model.joints]
        if name not in names:
            raise UnknownNameError(
                f"unknown joint {name!r}{did_you_mean(name, names)}",
                location=self.model.name,
                valid=f"joints: {_join_names(names)}",
            )
        return self.model.joint(name)

    def locate_frame(self, name: str) -> tuple[str, SE3]:
        """Return the link that a link or frame is fixed to, and its pose in that link. Raises UnknownNameError."""
        links = [link.name for link in self.model.links]
        if name in links or (name == "world" and any(joint.parent == "world" for joint in self.model.joints)):
            return name, SE3.identity()
        for frame in self.model.frames:
            if frame.name == name:
                return frame.link, frame.T_link_frame
        frame_names = [*links, *(frame.name for frame in self.model.frames)]
        raise UnknownNameError(
            f"unknown link {name!r}{did_you_mean(name, frame_names)}",
            location=self.model.name,
            valid=f"links: {_join_names(frame_names)}",
        )

    def path(self, base: str, tip: str) -> list[Joint]:
        """Return the joints from a link down to another link. Raises InputError, UnknownNameError."""
        start, _ = self.locate_frame(base)
        if start != base:
            raise InputError(
                f"the base {base!r} is a frame, not a link", location=self.model.name, valid=f"its link, {start!r}"
            )
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
                    f"joint {joint.name!r} between base and tip has the type {joint.type}, which is not supported",
                    location=f"{self.model.name}, {base} to {tip}",
                    valid=f"fixed or one of: {', '.join(ONE_AXIS_TYPES)}",
                )
            path.append(joint)
            link = joint.parent
            visited.append(link)
        return path[::-1]

    def find_driving_joint(self, joint: Joint) -> tuple[str, float, float]:
        """Return the independent joint that drives a joint, with multiplier and offset. Raises InputError."""
        name, multiplier, offset, visited = joint.name, 1.0, 0.0, {joint.name}
        while joint.mimic is not None:
            name = joint.mimic.joint
            offset += multiplier * joint.mimic.offset
            multiplier *= joint.mimic.multiplier
            joint = self.joint(name)
            if name in visited:
                raise InputError(f"joint {name!r} mimics itself", location=self.model.name)
            visited.add(name)
        return name, multiplier, offset

    def default_positions(self, fixed_positions: Mapping[str, float], moving: set[str]) -> dict[str, float]:
        """Return the positions of one-axis joints while the chain is at zero. Raises InputError, UnknownNameError."""
        positions: dict[str, float] = {}
        for name, value in fixed_positions.items():
            joint = self.joint(name)
            if joint.type not in ONE_AXIS_TYPES or name in moving or not math.isfinite(value):
                raise InputError(
                    f"cannot fix joint {name!r} at {value}: it is part of the chain",
                    location=self.model.name,
                    valid="a joint outside the chain",
                )
        for joint in self.model.joints:
            if joint.type not in ONE_AXIS_TYPES:
                continue
            name, multiplier, offset = self.find_driving_joint(joint)
            if joint.name in moving:
                positions[joint.name] = 0.0
            elif name in moving:
                raise InputError(
                    f"joint {joint.name!r} outside the chain mimics {name!r} of the chain",
                    location=self.model.name,
                    valid="mimic joints of a chain's joints must be part of the chain",
                )
            else:
                limits = self.joint(name).axes[0].limits
                positions[joint.name] = (
                    multiplier * fixed_positions.get(name, min(max(0.0, limits.lower), limits.upper)) + offset
                )
        return positions

    def link_poses(self, positions: Mapping[str, float]) -> dict[str, SE3]:
        """Compute the poses of all links in the model frame."""
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
        """Return for each link the index of the chain frame it is attached to; `moving_links` are the links of frames
        1, 2, ….
        """
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
