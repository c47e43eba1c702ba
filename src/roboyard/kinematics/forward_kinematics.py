"""Forward kinematics of a model's complete joint tree: transforms of joints and poses of links at given joint
positions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.description.model import Joint, Model
from roboyard.description.sensors import CameraSpec, optical_poses
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array, Vec3
from roboyard.kinematics.chain import ONE_AXIS_TYPES

_MOVING_TYPES = (*ONE_AXIS_TYPES, "gearbox", "universal", "revolute2")


def is_moving(joint: Joint) -> bool:
    """Return whether positions move the joint; other types (fixed, ball, planar, floating) stay at zero here."""
    return joint.type in _MOVING_TYPES and bool(joint.axes)


def position_names(joint: Joint) -> tuple[str, ...]:
    """Return the names of a moving joint's positions in joint states: the joint's own, and ``NAME_2`` for a second
    axis.
    """
    return (joint.name, f"{joint.name}_2") if joint.type in ("universal", "revolute2") else (joint.name,)


class JointMotion:
    """``T_parent_child`` of a moving joint as a function of its positions.

    The joint frame J is fixed in the child.  A motion rotates or translates the child about J's axes, one after the
    other: T_parent_child(q) = T_parent_child(0) · T_child_J · motion(q₁) · … · T_child_J⁻¹.  A screw joint travels
    ``thread_pitch`` along its axis per revolution.

    Attributes:
        T_parent_joint: ``T_parent_child(0) · T_child_J``.
        T_joint_child: ``T_child_J⁻¹``; None if J is the child's own frame.
        axes: One or two unit vectors, in J.
        is_prismatic: Whether positions translate along the axis.
        lead: Translation along the axis per rotation [m/rad].
    """

    def __init__(self, joint: Joint) -> None:
        has_child_frame = joint.T_child_joint == SE3.identity()
        self.T_parent_joint = joint.T_parent_child if has_child_frame else joint.T_parent_child @ joint.T_child_joint
        self.T_joint_child = None if has_child_frame else joint.T_child_joint.inverse()
        self.is_prismatic = joint.type == "prismatic"
        self.lead = joint.thread_pitch / math.tau if joint.type == "screw" else 0.0
        axes = joint.axes if len(position_names(joint)) > 1 else joint.axes[-1:]
        self.axes: tuple[Vec3, ...] = tuple(axis.xyz for axis in axes)

    def transform(self, positions: tuple[float, ...]) -> SE3:
        """Return ``T_parent_child`` for one position per axis [rad; m if prismatic]."""
        T = self.T_parent_joint
        for (x, y, z), position in zip(self.axes, positions, strict=False):
            angle, shift = (0.0, position) if self.is_prismatic else (position, position * self.lead)
            c, s = math.cos(0.5 * angle), math.sin(0.5 * angle)
            T = T @ SE3((c, s * x, s * y, s * z), (shift * x, shift * y, shift * z))
        return T if self.T_joint_child is None else T @ self.T_joint_child


class ForwardKinematics:
    """Forward kinematics of a model's links.

    Args:
        model: The robot; its joints form a forest.

    Attributes:
        moving_joints: Joints that positions move, in file order, including mimic joints.
        independent_positions: Names of the independent positions: those of moving joints that are not mimic joints.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.moving_joints = tuple(joint for joint in model.joints if is_moving(joint))
        self.independent_positions = tuple(
            name for joint in self.moving_joints if joint.mimic is None for name in position_names(joint)
        )
        self._by_name = {joint.name: joint for joint in self.moving_joints}
        self._motions = {joint.name: JointMotion(joint) for joint in self.moving_joints}
        self._order = _sort_parents_first(model)
        self._names = [
            (*position_names(joint), "")[:2] for joint in self.moving_joints
        ]  # "": no second axis, its position is 0
        self._ends = [(joint.parent, joint.child) for joint in self.moving_joints]
        self._arrays = _joint_arrays([self._motions[joint.name] for joint in self.moving_joints])

    def position(self, name: str, positions: Mapping[str, float]) -> float:
        """Return the position of a joint, for mimic joints from the driving joint; missing positions are zero."""
        joint = self._by_name.get(name)
        if joint is None or joint.mimic is None:
            return positions.get(name, 0.0)
        return joint.mimic.multiplier * self.position(joint.mimic.joint, positions) + joint.mimic.offset

    def joint_transform(self, joint: Joint, positions: Mapping[str, float]) -> SE3:
        """Return ``T_parent_child`` of any joint."""
        motion = self._motions.get(joint.name)
        if motion is None:
            return joint.T_parent_child
        return motion.transform(tuple(self.position(name, positions) for name in position_names(joint)))

    def joint_transforms(self, positions: Mapping[str, float]) -> list[tuple[SE3, str, str]]:
        """Return (T_parent_child, parent, child) of every moving joint.

        Args:
            positions: Positions by joint name [rad or m].
        """
        q = np.array([[self.position(name, positions) for name in names] for names in self._names]).reshape(-1, 2)
        poses = SE3.from_rows(compute_child_poses(self._arrays, q))
        return [(T_parent_child, *ends) for T_parent_child, ends in zip(poses, self._ends, strict=True)]

    def link_poses(self, positions: Mapping[str, float]) -> dict[str, SE3]:
        """Compute ``T_model_link`` of every link; root links have the pose that the model states.

        Args:
            positions: Positions by joint name [rad or m].
        """
        poses = {link.name: link.T_model_link for link in self.model.roots}
        for joint in self._order:
            T_parent_child = self.joint_transform(joint, positions)
            T_model_parent = poses.get(joint.parent)  # None: "world", which is the model frame
            poses[joint.child] = T_parent_child if T_model_parent is None else T_model_parent @ T_parent_child
        return poses


def fixed_transforms(model: Model) -> list[tuple[SE3, str, str]]:
    """Return (T_parent_child, parent, child) of all static frames: fixed joints, and sensors in their links.

    Sensors whose frame is their link, or another link of the model, are omitted.
    """
    frames = [
        (joint.T_parent_child, joint.parent, joint.child)
        for joint in model.joints
        if not is_moving(joint) and joint.parent != "world"
    ]
    used_names = {link.name for link in model.links}
    for sensor in model.sensors:
        if sensor.frame and sensor.frame not in used_names:
            used_names.add(sensor.frame)
            frames.append((sensor.T_link_sensor, sensor.link, sensor.frame))
        if isinstance(sensor.spec, CameraSpec):
            for T_link_frame, frame in optical_poses(sensor, sensor.spec):
                if frame not in used_names:
                    used_names.add(frame)
                    frames.append((T_link_frame, sensor.link, frame))
    return frames


def _joint_arrays(motions: Sequence[JointMotion]) -> JointArrays:
    axes = np.zeros((len(motions), 2, 3))
    for row, motion in zip(axes, motions, strict=True):
        row[: len(motion.axes)] = motion.axes
    return JointArrays(
        _pose_array([motion.T_parent_joint for motion in motions]),
        _pose_array([motion.T_joint_child or SE3.identity() for motion in motions]),
        axes,
        np.array([motion.is_prismatic for motion in motions], bool),
        np.array([motion.lead for motion in motions], float),
    )


def _pose_array(poses: Sequence[SE3]) -> NDArray[np.float64]:
    return np.array([(*pose.quaternion, pose.x, pose.y, pose.z) for pose in poses]).reshape(-1, 7)


def _sort_parents_first(model: Model) -> tuple[Joint, ...]:
    """Return the joints sorted so that every parent link comes before its children."""
    known_links = {link.name for link in model.roots} | {"world"}
    remaining, ordered = list(model.joints), list[Joint]()
    while remaining:
        ready = [joint for joint in remaining if joint.parent in known_links]
        if not ready:  # a cycle, which readers reject
            break
        ordered.extend(ready)
        known_links.update(joint.child for joint in ready)
        remaining = [joint for joint in remaining if joint.child not in known_links]
    return tuple(ordered)


class JointArrays(NamedTuple):
    """Moving joints in the form that kernels use; see `JointMotion`.

    Attributes:
        parent_joint_poses: (n, 7) ``T_parent_joint`` as quaternion w, x, y, z and position [m].
        joint_child_poses: (n, 7) ``T_joint_child`` in the same form.
        axes: (n, 2, 3) unit vectors; 0 without a second axis.
        is_prismatic: (n,) whether positions translate along the axes.
        leads: (n,) translation per rotation [m/rad].
    """

    parent_joint_poses: Array
    joint_child_poses: Array
    axes: Array
    is_prismatic: NDArray[np.bool_]
    leads: Array


@kernel(inline="always")
def _compose_in_place(pose: Array, w: float, x: float, y: float, z: float, px: float, py: float, pz: float) -> None:
    """Compute ``pose @ other`` in place."""
    aw, ax, ay, az = pose[0], pose[1], pose[2], pose[3]
    tx, ty, tz = 2.0 * (ay * pz - az * py), 2.0 * (az * px - ax * pz), 2.0 * (ax * py - ay * px)
    pose[4] += px + aw * tx + ay * tz - az * ty
    pose[5] += py + aw * ty + az * tx - ax * tz
    pose[6] += pz + aw * tz + ax * ty - ay * tx
    pose[0] = aw * w - ax * x - ay * y - az * z
    pose[1] = aw * x + ax * w + ay * z - az * y
    pose[2] = aw * y - ax * z + ay * w + az * x
    pose[3] = aw * z + ax * y - ay * x + az * w


def _example() -> list[tuple[object, ...]]:
    one = np.array([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    return [(JointArrays(one, one.copy(), np.zeros((1, 2, 3)), np.zeros(1, np.bool_), np.zeros(1)), np.zeros((1, 2)))]


@kernel(examples=_example)
def compute_child_poses(joints: JointArrays, q: Array) -> Array:
    """Compute the poses (n, 7) of the children in their parents at positions (n, 2) of the joints' axes [rad or m]."""
    out = joints.parent_joint_poses.copy()
    for i in range(len(out)):
        for k in range(2):
            angle = 0.0 if joints.is_prismatic[i] else q[i, k]
            shift = q[i, k] if joints.is_prismatic[i] else q[i, k] * joints.leads[i]
            x, y, z = joints.axes[i, k]
            if x != 0.0 or y != 0.0 or z != 0.0:
                c, s = math.cos(0.5 * angle), math.sin(0.5 * angle)
                _compose_in_place(out[i], c, s * x, s * y, s * z, shift * x, shift * y, shift * z)
        after = joints.joint_child_poses[i]
        _compose_in_place(out[i], after[0], after[1], after[2], after[3], after[4], after[5], after[6])
    return out
