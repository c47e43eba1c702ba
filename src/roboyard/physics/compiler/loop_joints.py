"""Joints that close a loop of other joints.

The tree of bodies already carries both ends of such a joint.  A ball joint becomes MuJoCo's connect constraint, a fixed
joint a weld.  Every other joint becomes a joint of the tree: the child's body is split into halves, one keeps its
place in the tree, the other hangs on the closing joint, and a weld holds the two halves together.  Limits, damping,
friction, springs and servos act on the closing joint as on any other, and only its own directions are free.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import Joint
from roboyard.description.sdf.joint_graph import reverse_joint
from roboyard.geometry import SE3
from roboyard.physics.compiled_world import CompiledWorld
from roboyard.physics.compiler.bodies import HARD_SOLIMP, LinkNode, ScalarJoint, add_joint, add_joint_coupling

PARALLEL_COSINE = 0.99
"""Cosine above which two axes count as parallel."""

BodyLookup = Callable[[str], tuple[str, SE3]]
"""Finds the body of a link ("world" if it is static) and the link's pose in it, ``T_body_link``."""


COUPLING_TYPES, CONNECT_TYPES = ("screw", "gearbox"), ("fixed", "ball")
"""Joint types that can couple two joints of the tree, and joint types that become constraints between two bodies."""


@dataclass(frozen=True, slots=True)
class PathJoint:
    """A scalar joint on the path from one link to another; ``sign`` is +1 if it moves the second link, -1 if the first.

    ``axis`` is its direction in the model with all joints at zero.
    """

    joint: ScalarJoint
    sign: float
    axis: NDArray[np.float64]


def connect_ends(spec: mujoco.MjSpec, joint: Joint, name: str, find_body: BodyLookup) -> str:
    """Add the constraint of a fixed or ball joint between two bodies.

    Args:
        spec: Receives the constraint.
        joint: The joint.
        name: Name of the constraint.
        find_body: Function that finds the body of a link.

    Returns:
        Why the joint cannot be such a constraint, else an empty text.
    """
    if joint.ball_axis is not None:
        return "a ball joint with a limit or friction needs a joint of its own"
    (child, T_child), (parent, T_parent) = find_body(joint.child), find_body(joint.parent)
    if child == parent:
        return ""
    first = child, T_child @ joint.T_child_joint
    second = parent, T_parent @ joint.T_parent_child @ joint.T_child_joint
    if child == "world":
        first, second = second, first
    if joint.type == "fixed":
        add_connect_or_weld(
            spec, mujoco.mjtEq.mjEQ_WELD, name, first[0], second[0], second[1].xyz, first[1] @ second[1].inverse()
        )
    else:
        add_connect_or_weld(spec, mujoco.mjtEq.mjEQ_CONNECT, name, first[0], second[0], first[1].xyz)
    return ""


def add_connect_or_weld(
    spec: mujoco.MjSpec,
    constraint_type: int,
    name: str,
    body1: str,
    body2: str,
    anchor: NDArray[np.float64],
    T_body1_body2: SE3 | None = None,
) -> None:
    """Connect two bodies at a point, or weld them at ``T_body1_body2``; without it, at their initial poses.

    The gains remove an error within one step, without overshoot.  With softer gains a loop that rotates fast opens: its
    bodies leave their curved paths within the time constant.
    """
    equality = spec.add_equality(name=name, type=constraint_type)
    equality.objtype = mujoco.mjtObj.mjOBJ_BODY
    equality.name1, equality.name2 = body1, body2
    data = np.zeros(mujoco.mjNEQDATA)
    data[:3] = anchor  # in body1 for a connect constraint, in body2 for a weld
    if constraint_type == mujoco.mjtEq.mjEQ_WELD:
        data[10] = 1.0  # the same stiffness for rotation and translation
        if T_body1_body2 is not None:
            data[3:6], data[6:10] = T_body1_body2 @ anchor, T_body1_body2.quaternion
    equality.data = data
    equality.solref = (2.0 * spec.option.timestep, 0.5)
    equality.solimp = HARD_SOLIMP


def couple_by_screw_or_gearbox(
    spec: mujoco.MjSpec, joint: Joint, path: Sequence[PathJoint], axes: Sequence[NDArray[np.float64]]
) -> str:
    """Couple two scalar joints of the tree by a screw or a gearbox; returns why it cannot, else an empty text.

    Args:
        spec: Receives the coupling.
        joint: The screw or gearbox.
        path: Scalar joints of the tree from the parent of ``joint`` to its child.
        axes: Axes of ``joint`` in the model or world, all joints at zero.
    """
    if joint.type == "screw":
        alignments = [(path_joint, path_joint.sign * float(path_joint.axis @ axes[0])) for path_joint in path]
        rotating = [
            (path_joint, cosine)
            for path_joint, cosine in alignments
            if not path_joint.joint.is_prismatic and abs(cosine) > PARALLEL_COSINE
        ]
        sliding = [
            (path_joint, cosine)
            for path_joint, cosine in alignments
            if path_joint.joint.is_prismatic and abs(cosine) > PARALLEL_COSINE
        ]
        if len(rotating) == len(sliding) == 1:  # slide = pitch / 2π · rotation, both of the child in the parent
            ratio = joint.thread_pitch / (2.0 * math.pi) * rotating[0][1] / sliding[0][1]
            add_joint_coupling(spec, sliding[0][0].joint.mujoco_name, rotating[0][0].joint.mujoco_name, 0.0, ratio)
            return ""
        return "a screw that does not join a joint that turns with one that slides along its axis is not simulated"
    # SDF: theta_2 = -ratio theta_1; theta_1 is the parent's about the first axis, theta_2 the child's about the second.
    hinges = [path_joint for path_joint in path if not path_joint.joint.is_prismatic]
    driving = [
        path_joint
        for path_joint in hinges
        if path_joint.sign < 0.0 and abs(path_joint.axis @ axes[0]) > PARALLEL_COSINE
    ]
    driven = [
        path_joint
        for path_joint in hinges
        if path_joint.sign > 0.0 and abs(path_joint.axis @ axes[-1]) > PARALLEL_COSINE
    ]
    if len(driving) == len(driven) == 1:
        ratio = -joint.gear_ratio * float(driving[0].axis @ axes[0]) / float(driven[0].axis @ axes[-1])
        add_joint_coupling(spec, driven[0].joint.mujoco_name, driving[0].joint.mujoco_name, 0.0, ratio)
        return ""
    return "a gearbox that does not join two joints that turn about its axes is not simulated"


def find_root_link(joints: Sequence[Joint], link: str) -> str:
    """Find the root link of the tree of ``link``; "world" if the tree is attached to the world."""
    parent_links = {joint.child: joint.parent for joint in joints}
    while link in parent_links:
        link = parent_links[link]
    return link


def find_joint_path(joints: Sequence[Joint], parent: str, child: str) -> list[tuple[Joint, float]] | None:
    """Find the joints from ``parent`` to ``child``, with -1 for a joint passed against its direction and +1 along it.

    Returns None if the two links are in different trees.
    """
    parent_joints: Mapping[str, Joint] = {joint.child: joint for joint in joints}

    def joints_to_root(name: str) -> list[Joint]:
        chain = []
        while name in parent_joints:
            chain.append(parent_joints[name])
            name = parent_joints[name].parent
        return chain

    upward, downward = joints_to_root(parent), joints_to_root(child)
    while upward and downward and upward[-1] is downward[-1]:
        upward.pop()
        downward.pop()
    ends = {(upward[-1].parent if upward else parent), (downward[-1].parent if downward else child)}
    if len(ends) != 1:
        return None
    return [(joint, -1.0) for joint in upward] + [(joint, 1.0) for joint in reversed(downward)]


LoopEnd = tuple[mujoco.MjsBody | None, SE3, Mapping[str, tuple[mujoco.MjsBody, SE3]]]
"""One end of a joint: its body (None if it is static), the link's pose in that body (in the world if it is static), and
the bodies that move rigidly with the link, with their poses in the link."""
SPLIT_BODY_SUFFIX = "#half"
"""Suffix of the name of a body that is one half of another body."""


def find_rigid_group(link: str, nodes: Sequence[LinkNode]) -> dict[str, SE3]:
    """Find the links that move rigidly with ``link``, including itself, and their poses in it."""
    neighbors: dict[str, list[tuple[str, SE3]]] = {}
    for node in nodes:
        if node.joint is None and not node.is_free and node.parent is not None:
            neighbors.setdefault(node.parent, []).append((node.link.name, node.T_parent_link))
            neighbors.setdefault(node.link.name, []).append((node.parent, node.T_parent_link.inverse()))
    poses, queue = {link: SE3.identity()}, [link]
    for current in queue:
        for other, T in neighbors.get(current, ()):
            if other not in poses:
                poses[other] = poses[current] @ T
                queue.append(other)
    return poses


def close_loop_with_split_body(
    spec: mujoco.MjSpec,
    joint: Joint,
    scope: str,
    ends: Mapping[str, LoopEnd],
    warnings: list[str],
) -> list[ScalarJoint]:
    """Close a loop by a joint between a body and a split half of another body.

    Args:
        spec: Receives the half body, the joint and the weld.
        joint: The joint that closes the loop.
        scope: Prefix of their names.
        ends: Body, pose of the link in it, and rigid group of the parent and of the child.
        warnings: Warnings are appended.

    Returns:
        The scalar degrees of freedom of the joint.
    """
    if ends[joint.child][0] is None:
        joint = reverse_joint(joint)
    (parent_body, T_body_parent, _), (child_body, _, group) = ends[joint.parent], ends[joint.child]
    if child_body is None:
        return []
    split_body, T_child_split = max(group.values(), key=lambda one: float(one[0].mass))
    if split_body.mass <= 0.0:
        warnings.append(f"{scope}::{joint.name}: it closes a loop on a link without mass: not simulated")
        return []
    T = T_body_parent @ joint.T_parent_child
    half_body = (parent_body or spec.worldbody).add_body(
        name=f"{scope}::{joint.name}{SPLIT_BODY_SUFFIX}", pos=T.translation, quat=T.rotation
    )
    if parent_body is None:
        half_body.sleep = mujoco.mjtSleepPolicy.mjSLEEP_NEVER
    scalars = add_joint(half_body, joint, scope, warnings)
    split_body.mass, split_body.inertia = 0.5 * split_body.mass, 0.5 * np.asarray(split_body.inertia)
    T_child_com = T_child_split @ SE3(split_body.iquat, split_body.ipos)
    half_body.mass, half_body.inertia = split_body.mass, split_body.inertia
    half_body.ipos, half_body.iquat = T_child_com.translation, T_child_com.rotation
    half_body.explicitinertial, half_body.gravcomp = True, split_body.gravcomp
    add_connect_or_weld(
        spec, mujoco.mjtEq.mjEQ_WELD, f"{scope}::{joint.name}", half_body.name, child_body.name, np.zeros(3)
    )
    return scalars


CLOSURE_TOLERANCE = 1e-9
"""Error below which a loop counts as closed [m or rad]."""
MAX_ITERATIONS = 60
MAX_POSITION_CHANGE = 0.3
"""Largest change of a position in one iteration [rad or m]."""


def close_loops(compiled: CompiledWorld, data: mujoco.MjData) -> None:
    """Move joints until all loops are closed, by the Gauss-Newton method; joints with a stated initial position stay.

    First the joints that close the loops move, because the others determine them; if that is not enough, all joints
    without a stated initial position move.  Without stated initial positions most loops are closed already.
    """
    model = compiled.model
    if not np.isin(model.eq_type, (mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD)).any():
        return
    split_body_dofs = [
        dof for dof in range(model.nv) if model.body(int(model.dof_bodyid[dof])).name.endswith(SPLIT_BODY_SUFFIX)
    ]
    stated_dofs = set()
    for addresses in compiled.addresses.values():
        names = {one.joint for one in addresses.entry.model.interfaces if "position" in dict(one.initial)}
        stated_dofs |= {joint_address.dof for joint_address in addresses.joints if joint_address.name in names}
    is_scalar = np.isin(model.jnt_type, (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE))
    model_dofs = {joint_address.dof for addresses in compiled.addresses.values() for joint_address in addresses.joints}
    unstated_dofs = [
        int(dof)
        for dof in model.jnt_dofadr[is_scalar]
        if dof not in stated_dofs and int(dof) in model_dofs | set(split_body_dofs)
    ]
    ball_dofs = model.jnt_dofadr[model.jnt_type == mujoco.mjtJoint.mjJNT_BALL]
    unstated_dofs += [int(dof) + axis for dof in ball_dofs for axis in range(3)]
    for dofs in (split_body_dofs, unstated_dofs):
        if _reduce_loop_errors(model, data, np.array(dofs, int)) < CLOSURE_TOLERANCE:
            return


def _reduce_loop_errors(model: mujoco.MjModel, data: mujoco.MjData, dofs: NDArray[np.intp]) -> float:
    """Reduce the loop errors with these degrees of freedom; returns the largest remaining error [m or rad]."""
    errors, jacobian = _loop_errors(model, data)
    for _ in range(MAX_ITERATIONS):
        largest_error = float(np.abs(errors).max(initial=0.0))
        if largest_error < CLOSURE_TOLERANCE or not len(dofs):
            break
        position_change = np.zeros(model.nv)
        step = -np.linalg.lstsq(jacobian[:, dofs], errors, rcond=1e-9)[0]
        position_change[dofs] = step * min(1.0, MAX_POSITION_CHANGE / max(float(np.abs(step).max()), 1e-12))
        previous_positions = data.qpos.copy()
        mujoco.mj_integratePos(model, data.qpos, position_change, 1.0)
        errors, jacobian = _loop_errors(model, data)
        if (
            float(np.abs(errors).max()) > 2.0 * largest_error + MAX_POSITION_CHANGE
        ):  # diverges: these joints cannot close the loop
            data.qpos[:] = previous_positions
            return largest_error
    return float(np.abs(errors).max(initial=0.0))


def _loop_errors(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute the errors (n,) of the equality constraints and their Jacobian (n, nv)."""
    mujoco.mj_fwdPosition(model, data)
    n = int(data.ne)
    if not mujoco.mj_isSparse(model):
        return data.efc_pos[:n].copy(), data.efc_J.reshape(-1, model.nv)[:n].copy()
    jacobian = np.zeros((n, model.nv))
    for row in range(n):
        start, count = int(data.efc_J_rowadr[row]), int(data.efc_J_rownnz[row])
        jacobian[row, data.efc_J_colind[start : start + count]] = data.efc_J[start : start + count]
    return data.efc_pos[:n].copy(), jacobian
