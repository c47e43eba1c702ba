"""Which fields of MoveIt's requests are served: the others are refused or reported, none is ignored in silence."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import numpy as np

from roboyard.manipulation.nodes.moveit_errors import ArmMotionError


class FieldUse(StrEnum):
    """What the move_group node does with a field of a request."""

    READ = "read"
    MET = "met"
    """The field permits something that is never used, such as a tolerance or a time limit."""
    WARNED = "warned"
    """The field has no effect, and a value in it is reported in the log."""
    REJECTED = "rejected"
    """A value in the field refuses the request."""


@dataclasses.dataclass(frozen=True, slots=True)
class FieldSupport:
    """How a field is served.

    Attributes:
        use: What is done with the field.
        note: Reason, or what to use instead; for a refused field what would be right.
    """

    use: FieldUse
    note: str = ""


def _read(*names: str) -> dict[str, FieldSupport]:
    return dict.fromkeys(names, FieldSupport(FieldUse.READ))


def _met(note: str, *names: str) -> dict[str, FieldSupport]:
    return dict.fromkeys(names, FieldSupport(FieldUse.MET, note))


def _warned(note: str, *names: str) -> dict[str, FieldSupport]:
    return dict.fromkeys(names, FieldSupport(FieldUse.WARNED, note))


def _rejected(valid: str, *names: str) -> dict[str, FieldSupport]:
    return dict.fromkeys(names, FieldSupport(FieldUse.REJECTED, valid))


_SPEED_LIMIT: Final = ("cartesian_speed_limited_link", "max_cartesian_speed")
_WEIGHT: Final = _met("every constraint is met, whatever its weight", "weight")

FIELD_SUPPORT: Final[Mapping[str, Mapping[str, FieldSupport]]] = {
    "MotionPlanRequest": {
        **_warned("it limits planar and floating joints only, which a planning group of an arm does not have",
                  "workspace_parameters"),
        **_read("start_state", "goal_constraints", "path_constraints", "reference_trajectories", "planner_id",
                "group_name", "num_planning_attempts", "allowed_planning_time", "max_velocity_scaling_factor",
                "max_acceleration_scaling_factor"),
        **_rejected("goal_constraints and path_constraints", "trajectory_constraints"),
        **_warned("planner_id alone names the planner", "pipeline_id"),
        **_rejected("max_velocity_scaling_factor", *_SPEED_LIMIT),
    },
    "PlanningOptions": {
        **_rejected("apply_planning_scene before the goal", "planning_scene_diff"),  # is_diff alone is no change
        **_read("plan_only", "replan", "replan_attempts", "replan_delay"),
        **_rejected("octomaps on octomap_topic, which are used whenever they arrive", "look_around"),
        **_met("no sensor is pointed, see look_around", "look_around_attempts"),
        **_warned("a motion is executed only if it is free of collisions", "max_safe_execution_cost"),
    },
    "RobotState": {
        **_read("joint_state"),
        **_rejected("joint_state", "multi_dof_joint_state"),
        **_rejected("attached_collision_object, or apply_planning_scene", "attached_collision_objects"),
        **_met("joints without a value are those measured, in any case", "is_diff"),
    },
    "JointState": {
        **_met("joints have no frame and no time", "header"),
        **_read("name", "position"),
        **_warned("motions start at rest", "velocity"),
        **_met("efforts follow from the motion", "effort"),
    },
    "Constraints": {
        **_read("name", "joint_constraints", "position_constraints", "orientation_constraints"),
        **_rejected("joint constraints, or a position and an orientation", "visibility_constraints"),
    },
    "JointConstraint": {
        **_read("joint_name", "position"),
        **_met("the goal state is exact", "tolerance_above", "tolerance_below"),
        **_WEIGHT,
    },
    "PositionConstraint": {**_read("header", "link_name", "target_point_offset", "constraint_region"), **_WEIGHT},
    "OrientationConstraint": {
        **_read("header", "orientation", "link_name", "absolute_x_axis_tolerance", "absolute_y_axis_tolerance",
                "absolute_z_axis_tolerance"),
        **_met("the smallest tolerance bounds the angle of the rotation", "parameterization"),
        **_WEIGHT,
    },
    "CartesianTrajectory": _read("header", "tracked_frame", "points"),
    "CartesianPoint": {
        **_read("pose", "velocity"),
        **_warned("the motion between two points follows from their poses and velocities", "acceleration"),
    },
    "GetCartesianPath": {
        **_read("header", "start_state", "group_name", "link_name", "waypoints", "avoid_collisions",
                "max_velocity_scaling_factor", "max_acceleration_scaling_factor"),
        **_met("the tool moves straight between the computed states", "max_step"),
        **_warned("a threshold of the planner refuses jumps of joints", "jump_threshold", "prismatic_jump_threshold",
                  "revolute_jump_threshold"),
        **_rejected("waypoints that satisfy them", "path_constraints"),
        **_rejected("max_velocity_scaling_factor", *_SPEED_LIMIT),
    },
    "PositionIKRequest": {
        **_read("group_name", "robot_state", "avoid_collisions", "ik_link_name", "pose_stamped"),
        **_rejected("avoid_collisions and pose_stamped alone", "constraints"),
        **_rejected("ik_link_name and pose_stamped: one tool", "ik_link_names", "pose_stamped_vector"),
        **_met("the search has a fixed number of starts", "timeout"),
    },
    "GetPositionFK": _read("header", "fk_link_names", "robot_state"),
    "GetStateValidity": {
        **_read("robot_state", "group_name"),
        **_rejected("a state alone: limits and collisions are checked", "constraints"),
    },
    "ExecuteTrajectory": _read("trajectory", "controller_names"),
    "PlanningScene": {
        **_met("scenes have no name here", "name"),
        **_read("robot_state", "robot_model_name", "allowed_collision_matrix", "link_padding", "link_scale", "world",
                "is_diff"),
        **_warned("frames come from /tf", "fixed_frame_transforms"),
        **_met("colors are for displays", "object_colors"),
    },
    "PlanningScene.robot_state": {
        **_warned("joints are measured", "joint_state", "multi_dof_joint_state"),
        **_read("attached_collision_objects"),
        **_met("joints are measured, in any case", "is_diff"),
    },
    "PlanningSceneWorld": {**_read("collision_objects"), **_rejected("octomaps on octomap_topic", "octomap")},
    "AllowedCollisionMatrix": {
        **_read("entry_names", "entry_values"),
        **_rejected("entry_names and entry_values", "default_entry_names", "default_entry_values"),
    },
    "CollisionObject": {
        **_read("header", "pose", "id", "primitives", "primitive_poses", "meshes", "mesh_poses", "planes",
                "plane_poses", "operation"),
        **_met("the shapes alone are used", "type"),
        **_warned("goals are poses of the tool, not of frames of objects", "subframe_names", "subframe_poses"),
    },
    "AttachedCollisionObject": {
        **_read("link_name", "object", "touch_links", "weight"),
        **_warned("the gripper's own node opens it", "detach_posture"),
    },
}  # fmt: skip
"""Every field of the messages of the move_group node's interfaces, by the name of the message or service."""


def is_set(value: Any) -> bool:
    """Return whether a value of a message differs from zero, empty and the identity, in any field but headers."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if field.name != "header"]
        if names == ["x", "y", "z", "w"]:
            x, y, z, w = (float(getattr(value, name)) for name in names)
            return (x, y, z, abs(w)) not in ((0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
        return any(is_set(getattr(value, name)) for name in names)
    if isinstance(value, np.ndarray):
        return bool(np.any(value != 0))
    if isinstance(value, Sequence):
        return len(value) > 0
    return bool(value) or (isinstance(value, float) and math.isnan(value))


def check_fields(message: Any, kind: str, warn: Callable[[str], None], *, cause: str = "bad_goal") -> None:
    """Refuse a message with values in fields that are not served, and report values that have no effect.

    Args:
        message: A message or a request of a service.
        kind: Its key in ``FIELD_SUPPORT``.
        warn: Takes the report of a field without effect.
        cause: Cause of a refusal.

    Raises:
        ArmMotionError: A refused field has a value.
    """
    for name, support in FIELD_SUPPORT[kind].items():
        value = getattr(message, name)
        if name == "planning_scene_diff":  # clients say that it is a difference, also of one without changes
            value = dataclasses.replace(
                value, is_diff=False, robot_state=dataclasses.replace(value.robot_state, is_diff=False)
            )
        if support.use in (FieldUse.READ, FieldUse.MET) or not is_set(value):
            continue
        if support.use is FieldUse.REJECTED:
            raise ArmMotionError(f"{name} of {kind} is not supported", cause, valid=support.note)
        warn(f"{name} of {kind} has no effect: {support.note}")


def field_table() -> list[tuple[str, ...]]:
    """Return the rows of a table of all fields that are not simply read: message, field, use, note."""
    rows: list[tuple[str, ...]] = [("message", "field", "use", "reason, or what to use instead")]
    for kind, fields in FIELD_SUPPORT.items():
        rows += [
            (kind, f"`{name}`", support.use.value, support.note)
            for name, support in fields.items()
            if support.use is not FieldUse.READ
        ]
    return rows
