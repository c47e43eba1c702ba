"""Geometry of the arm for skills: its named poses, the plane of its first joint, and clearance for the fingers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.geometry.constants import GRAVITY
from roboyard.kinematics.chain import Chain
from roboyard.kinematics.ik import solve_ik, solve_ik_batch
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.planning.timed_tool_path import MAX_JOINT_JUMP
from roboyard.manipulation.semantics.planning_groups import SemanticDescription
from roboyard.manipulation.skills.config import SkillConfig
from roboyard.manipulation.skills.requests import Point, ToolTarget

_PATH_STEP: Final = 0.01
"""Distance between the poses of a straight path at which joint positions are computed [m]."""
_MAX_TRACKING_JUMP: Final = 0.7
"""Maximum change of a joint between two checked poses of a tracking motion [rad]."""


@dataclass(frozen=True, eq=False)
class ArmGeometry:
    """An arm whose first joint rotates the plane in which the others move.

    Attributes:
        chain: Kinematic chain from its base to the tool.
        T_root_base: Pose of the chain's base in the frame of the robot's root link.
        poses: Named joint positions.
        bay_positions: Floor positions of the bays on the robot.
    """

    chain: Chain
    T_root_base: SE3
    poses: Mapping[str, tuple[float, ...]]
    bay_positions: tuple[Point, ...] = ()

    @classmethod
    def create(
        cls, semantics: SemanticDescription, group: str | None = None, bay_frames: Sequence[str] = ()
    ) -> ArmGeometry:
        """Create it from the semantics of a robot, for a group or the first one, and the frames of the bays.

        Raises:
            UnknownNameError: there is no such group or link.
        """
        scene = PlanningScene.create(semantics, group)
        T_model_root = semantics.model.link(semantics.root_link).T_model_link
        T_root_base, chain = T_model_root.inverse() @ scene.T_world_base, scene.chain
        zero_joints = np.clip(np.zeros(chain.dof), chain.lower, chain.upper)
        floors = [(T_root_base @ scene.link_pose(name, zero_joints)[:3, 3]).tolist() for name in bay_frames]
        return cls(chain, T_root_base, scene.group.poses, tuple((x, y, z) for x, y, z in floors))

    def bay_position(self, bay: int) -> Point:
        """Return the floor position of a bay, from 1 on."""
        return self.bay_positions[bay - 1]

    def joint1_angle_to(self, q: ArrayLike, point: Point) -> float:
        """Return the rotation of the first joint from ``q`` (n,) that brings a point into the arm's plane [rad].

        The plane contains the first joint's axis, and the second joint's axis is its normal; the nearer half is used,
        so that
        the rotation is at most a quarter turn.
        """
        first, second = self.chain.frames(q)[1:3]
        offset = (self.T_root_base.inverse() @ np.array(point)) - first[:3, 3]
        normal = second[:3, 2]
        plane_direction = np.cross(first[:3, 2], normal)
        lateral_offset, forward_offset = float(normal @ offset), float(plane_direction @ offset)
        return (
            math.atan(-lateral_offset / forward_offset)
            if abs(forward_offset) > 1e-9
            else math.copysign(math.pi / 2.0, -lateral_offset)
        )

    def solve_tool_path(self, targets: Sequence[ToolTarget], seed: ArrayLike | None = None) -> tuple[float, ...] | None:
        """Return joint positions (n,) at the first target from which the tool reaches the others in turn without a
        jump.

        Args:
            targets: Targets so near to each other that no joint changes by more than `_MAX_TRACKING_JUMP` between them.
            seed: Joint positions near which the solution is searched.

        Returns:
            None if there are none.
        """
        poses = [
            self.T_root_base.inverse() @ SE3.from_xyz_rpy(target.position, (math.pi, 0.0, target.yaw))
            for target in targets
        ]
        for start_joints in solve_ik(self.chain, poses[0], seed).solutions:
            joints = start_joints
            for pose in poses[1:]:
                solution = solve_ik(self.chain, pose, joints)
                if not solution.is_solved or float(np.abs(solution.best - joints).max()) > _MAX_TRACKING_JUMP:
                    break
                joints = solution.best
            else:
                return tuple(start_joints.tolist())
        return None

    def tool_position(self, q: ArrayLike) -> Point:
        """Return the position of the tool for joint positions (n,)."""
        x, y, z = (self.T_root_base @ self.chain.forward(q)[:3, 3]).tolist()
        return x, y, z

    def tool_yaw(self, q: ArrayLike) -> float:
        """Return the direction of the tool's x axis about the vertical [rad]."""
        x, y, _ = (self.T_root_base.rotation_matrix() @ self.chain.forward(q)[:3, 0]).tolist()
        return math.atan2(y, x)

    def solve_vertical_path(
        self, end_point: Point, height: float, yaws: Sequence[float], seed: ArrayLike = ()
    ) -> list[tuple[float, ...]]:
        """Return joint positions (n,) with the tool pointing down above a position, from which it can move straight
        down to it.

        Some joint configurations above a position end during the descent, at the elbow's limit.

        Args:
            end_point: End of the vertical path.
            height: Height of its start above the end [m].
            yaws: Directions of the tool's x axis about the vertical; the solutions are in their order.
            seed: (n,) joint positions near which full turns are chosen; empty: the centers of the joint ranges.
        """
        n_points = max(2, math.ceil(height / _PATH_STEP) + 1)
        end_poses = np.array([SE3.from_xyz_rpy(end_point, (math.pi, 0.0, yaw)).matrix() for yaw in yaws])
        path_poses = np.repeat(end_poses[:, None], n_points, axis=1)
        path_poses[..., 2, 3] += np.linspace(0.0, height, n_points)
        goals = self.T_root_base.inverse().matrix() @ path_poses
        ik_seed = seed if np.size(seed) else None
        solutions = solve_ik_batch(self.chain, goals.reshape(-1, 4, 4), ik_seed).solutions
        branches = solutions.reshape(len(end_poses), n_points, *solutions.shape[1:])
        start_states = []
        for path_solutions in branches:
            for q in path_solutions[0][np.isfinite(path_solutions[0, :, 0])]:
                for pose_solutions in path_solutions[1:]:
                    joint_change = np.abs(pose_solutions - q).max(axis=1)
                    best = int(np.argmin(np.where(np.isnan(joint_change), np.inf, joint_change)))
                    if not joint_change[best] <= MAX_JOINT_JUMP:
                        break
                    q = pose_solutions[best]
                else:
                    start_states.append(tuple(q.tolist()))
        return start_states

    def estimate_mass(self, q: ArrayLike, efforts_before: ArrayLike, efforts_after: ArrayLike) -> float:
        """Estimate the mass [kg] at the tool from joint efforts (n,) without and with it [N m].

        Least squares over the joints.  The efforts include dry friction in either direction: on the youBot, with a
        twentieth
        of the efforts, this is 0.2 kg.
        """
        vertical_jacobian = (self.T_root_base.rotation_matrix() @ self.chain.jacobian(q)[:3])[2]
        change = np.asarray(efforts_after, dtype=np.float64) - np.asarray(efforts_before, dtype=np.float64)
        return float(change @ vertical_jacobian) / (GRAVITY * max(float(vertical_jacobian @ vertical_jacobian), 1e-6))

    def horizontal_distance(self, point: Point) -> float:
        """Return the horizontal distance of a point from the first joint's axis [m]."""
        return float(np.hypot(*self._horizontal_offset(point)))

    def azimuth(self, point: Point) -> float:
        """Return the direction of a point from the first joint's axis, in the root frame [rad]."""
        x, y = self._horizontal_offset(point)
        return math.atan2(y, x)

    def _horizontal_offset(self, point: Point) -> Array:
        axis_position = self.T_root_base @ self.base_axis_position
        offset: Array = np.array(point)[:2] - axis_position[:2]
        return offset

    @cached_property
    def base_axis_position(self) -> Array:
        """(3,) point on the first joint's axis, in the chain's base."""
        lower = np.where(np.isfinite(self.chain.lower), self.chain.lower, 0.0)
        position: Array = self.chain.frames(lower)[1][:3, 3]
        return position


def compute_finger_clearance(target: Point, yaw: float, others: Sequence[Point], config: SkillConfig) -> float:
    """Return the smallest distance between the open fingers and cylinders around them [m]; negative if they overlap.

    Args:
        target: Position to which the gripper descends.
        yaw: Direction of the gripper's x axis; the fingers are along its y axis.
        others: Axes of the cylinders.
        config: Sizes of fingers and cylinders.
    """
    if not others:
        return math.inf
    offsets = np.array(others)[:, :2] - np.array(target)[:2]
    c, s = math.cos(yaw), math.sin(yaw)
    local = np.abs(offsets @ np.array([[c, -s], [s, c]]))
    thickness, width = config.finger_size
    finger_distance = 0.5 * (config.open_width + thickness)
    gap = np.hypot(
        np.maximum(local[:, 0] - 0.5 * width, 0.0),
        np.maximum(np.abs(local[:, 1] - finger_distance) - 0.5 * thickness, 0.0),
    )
    return float(gap.min()) - config.object_radius


def feasible_yaws(target: Point, azimuth: float, others: Sequence[Point], config: SkillConfig) -> list[float]:
    """Return the gripper yaws at which the fingers have clearance, those near the arm's plane first [rad].

    There is none if another object touches the target, because it would be moved, too.  Half a rotation is equal for
    the
    fingers, but not for their joint: both are returned.
    """
    min_distance = 2.0 * config.object_radius + config.finger_clearance
    if any(math.dist(target[:2], other[:2]) < min_distance for other in others):
        return []
    yaw_offsets = [0.0]
    for k in range(1, config.yaw_samples // 2 + 1):
        yaw_offsets += [k * math.pi / config.yaw_samples, -k * math.pi / config.yaw_samples]
    feasible_offsets = [
        yaw_offset
        for yaw_offset in yaw_offsets[: config.yaw_samples]
        if compute_finger_clearance(target, azimuth + yaw_offset, others, config) >= config.finger_clearance
    ]
    return [azimuth + yaw_offset + half_rotation for half_rotation in (0.0, math.pi) for yaw_offset in feasible_offsets]


def is_too_close(position: Point, others: Sequence[Point], config: SkillConfig) -> bool:
    """Whether fingers do not fit between a cylinder and another one."""
    gap = 2.0 * config.object_radius + config.finger_size[0]
    return any(math.dist(position[:2], other[:2]) < gap for other in others)
