"""Sequences of states of compiled models, which videos show."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import UnknownNameError
from roboyard.geometry import quaternions
from roboyard.geometry.arrays import Array
from roboyard.physics.compiled_world import SCOPE_SEPARATOR, scoped_name
from roboyard.physics.visual_scene import SceneState

if TYPE_CHECKING:
    from roboyard.simulation import Simulation


@dataclass(frozen=True, slots=True)
class StateSequence:
    """States of one model.

    Attributes:
        model: Compiled model with visuals, that of ``Simulation.visual_scene()``.
        times: (n,) increasing [s].
        states: (n, nq) positions ``qpos``.
        mocap_positions: (n, m, 3) positions of kinematic bodies, such as people's parts, in the world [m].
        mocap_rotations: (n, m, 4) their orientations, w x y z.
    """

    model: mujoco.MjModel
    times: Array
    states: Array
    mocap_positions: Array
    mocap_rotations: Array

    def interpolate(self, time: float) -> SceneState:
        """Return the state at a time: interpolated linearly between two states, outside them the nearest state."""
        return _interpolate_state(self.model, self.times, self.states, self.mocap_positions, self.mocap_rotations, time)


@dataclass(slots=True)
class GrowingStateSequence:
    """A sequence to which states are added while it is rendered; attributes of `StateSequence` as lists of rows."""

    model: mujoco.MjModel
    times: list[float] = field(default_factory=list)
    states: list[Array] = field(default_factory=list)
    mocap_positions: list[Array] = field(default_factory=list)
    mocap_rotations: list[Array] = field(default_factory=list)

    def add(self, time: float, scene_state: SceneState) -> None:
        """Append the state at a time [s], which must be later than all before."""
        self.times.append(time)
        self.states.append(scene_state.joint_positions)
        self.mocap_positions.append(scene_state.mocap_positions)
        self.mocap_rotations.append(scene_state.mocap_orientations)

    def interpolate(self, time: float) -> SceneState:
        """Return the state at a time as `StateSequence.interpolate` does, from the states so far."""
        return _interpolate_state(self.model, self.times, self.states, self.mocap_positions, self.mocap_rotations, time)


def _interpolate_state(
    model: mujoco.MjModel,
    times: Sequence[float] | Array,
    states: Sequence[Array] | Array,
    positions: Sequence[Array] | Array,
    rotations: Sequence[Array] | Array,
    time: float,
) -> SceneState:
    after = bisect_left(times, time)
    if after == 0 or after == len(times):
        row = min(after, len(times) - 1)
        return SceneState(states[row], positions[row], rotations[row])
    before = after - 1
    span, elapsed = float(times[after] - times[before]), time - float(times[before])
    step, joints = np.zeros(model.nv), np.array(states[before])
    mujoco.mj_differentiatePos(model, step, span, states[before], states[after])
    mujoco.mj_integratePos(model, joints, step, elapsed)
    fraction = elapsed / span
    position = (1.0 - fraction) * positions[before] + fraction * positions[after]
    return SceneState(joints, position, quaternions.slerp(rotations[before], rotations[after], fraction))


class StateRecorder:
    """Records sequences of states of a running simulation: call ``capture`` once per frame of the video.

    A model that is added or removed starts a new sequence.

    Attributes:
        growing_sequences: The sequences so far; the last one receives the next states.
    """

    def __init__(self) -> None:
        self._physics_model: mujoco.MjModel | None = None  # what physics runs on; the takes hold what is drawn
        self.growing_sequences: list[GrowingStateSequence] = []

    def capture(self, simulation: Simulation) -> None:
        """Record the present state; a second one of the same time is left out."""
        if self._physics_model is not simulation.world.model:
            self._physics_model = simulation.world.model
            self.growing_sequences.append(GrowingStateSequence(simulation.visual_scene().model))
        time, sequence = simulation.time_ns * 1e-9, self.growing_sequences[-1]
        if not sequence.times or time > sequence.times[-1]:
            sequence.add(time, SceneState.from_data(simulation.world.data))

    @property
    def sequences(self) -> tuple[StateSequence, ...]:
        """All sequences so far, in order."""
        return tuple(
            StateSequence(
                sequence.model,
                np.array(sequence.times),
                np.stack(sequence.states),
                np.stack(sequence.mocap_positions),
                np.stack(sequence.mocap_rotations),
            )
            for sequence in self.growing_sequences
        )


def root_body(model: mujoco.MjModel, name: str) -> int:
    """Return the root body of the model ``name`` in the compiled model.

    Raises:
        UnknownNameError: The compiled model has no moving model of this name.
    """
    model_names = [model.body(body).name.split(SCOPE_SEPARATOR)[0] for body in range(model.nbody)]
    if name not in model_names[1:]:
        movable = sorted({o for o in model_names[1:] if o})
        raise UnknownNameError(f"no model {name!r} that moves", valid=", ".join(movable) or "there is none")
    return model_names.index(name, 1)


def states_from_poses(
    model: mujoco.MjModel,
    times: ArrayLike,
    poses: Mapping[str, tuple[ArrayLike, ArrayLike]],
    joints: Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]] | None = None,
    mocap_poses: Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]] | None = None,
) -> StateSequence:
    """Return a sequence of states from poses of models, positions of joints and poses of people's parts.

    Args:
        model: Compiled model of the world with its robots, that of ``Simulation.visual_scene()``.
        times: (n,) times of the states [s].
        poses: By model: times (m,) [s] and poses (m, 7) as x, y, z [m], w, x, y, z of its root link in the world.
        joints: By model and joint: times (m,) [s] and positions (m,) [rad or m].
        mocap_poses: By model and kinematic link: times (m,) [s] and poses (m, 7) of the link in the world, as above.

    Raises:
        UnknownNameError: There is no such model, or it has no such joint or kinematic link.
    """
    sample_times = np.asarray(times, dtype=np.float64)
    states = np.repeat(np.array(model.qpos0)[None], len(sample_times), axis=0)
    for name, (pose_times, pose_samples) in poses.items():
        joint = int(model.body_jntadr[root_body(model, name)])
        if joint < 0 or model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_FREE:
            continue  # bolted down: its joints say all
        address = int(model.jnt_qposadr[joint])
        states[:, address : address + 7] = _interpolate_poses(sample_times, pose_times, pose_samples)
    for name, joint_samples in (joints or {}).items():
        for joint_name, (pose_times, positions) in joint_samples.items():
            joint_id = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT.value, scoped_name(name, joint_name))
            if joint_id < 0:
                raise UnknownNameError(f"model {name!r} has no joint {joint_name!r}", valid=_joint_names(model, name))
            column = np.interp(
                sample_times, np.asarray(pose_times, dtype=np.float64), np.asarray(positions, dtype=np.float64)
            )
            states[:, int(model.jnt_qposadr[joint_id])] = column
    data = mujoco.MjData(model)
    mocap_positions, mocap_rotations = (
        np.repeat(initial[None], len(sample_times), axis=0) for initial in (data.mocap_pos, data.mocap_quat)
    )
    for name, links in (mocap_poses or {}).items():
        for link, (pose_times, pose_samples) in links.items():
            body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY.value, scoped_name(name, link))
            row = -1 if body < 0 else int(model.body_mocapid[body])
            if row < 0:
                raise UnknownNameError(f"no link {link!r} of {name!r} is led", valid="parts of people")
            pose = _interpolate_poses(sample_times, pose_times, pose_samples)
            mocap_positions[:, row], mocap_rotations[:, row] = pose[:, :3], pose[:, 3:]
    return StateSequence(model, sample_times, states, mocap_positions, mocap_rotations)


def _interpolate_poses(sample_times: Array, pose_times: ArrayLike, pose_samples: ArrayLike) -> Array:
    """Return poses (n, 7) at times (n,), interpolated linearly between poses (m, 7) at times (m,)."""
    poses = np.array(pose_samples, dtype=np.float64)
    flips = np.cumprod(np.where((poses[1:, 3:] * poses[:-1, 3:]).sum(1) < 0, -1.0, 1.0))
    poses[1:, 3:] *= flips[:, None]
    times = np.asarray(pose_times, dtype=np.float64)
    pose = np.stack([np.interp(sample_times, times, column) for column in poses.T], axis=1)
    pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)
    return pose


def _joint_names(model: mujoco.MjModel, name: str) -> str:
    names = (model.joint(j).name for j in range(model.njnt))
    return ", ".join(n.split(SCOPE_SEPARATOR, 1)[1] for n in names if n.startswith(name + SCOPE_SEPARATOR))
