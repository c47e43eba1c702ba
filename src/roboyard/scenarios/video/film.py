"""What a film is made of: takes, each of one compiled model and its positions at rising times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import UnknownNameError
from roboyard.simulation.naming import SEPARATOR, scoped

if TYPE_CHECKING:
    from roboyard.simulation import Simulation

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Take:
    """States of one model.

    Attributes:
        model: Compiled model with everything that is drawn, as ``Simulation.scene()`` gives it.
        times: (n,) rising [s].
        states: (n, nq) positions ``qpos``.
    """

    model: mujoco.MjModel
    times: Array
    states: Array

    def at(self, time: float) -> Array:
        """Positions (nq,) at a time: between two states along the straight way, outside them the nearest."""
        after = int(np.searchsorted(self.times, time))
        if after == 0 or after == len(self.times):
            return np.array(self.states[min(after, len(self.times) - 1)])
        before = after - 1
        span = float(self.times[after] - self.times[before])
        step, between = np.zeros(self.model.nv), np.array(self.states[before])
        mujoco.mj_differentiatePos(self.model, step, span, self.states[before], self.states[after])
        mujoco.mj_integratePos(self.model, between, step, time - float(self.times[before]))
        return between


class Film:
    """Gathers takes from a running simulation: call ``snap`` as often as the film shall have pictures.

    Models that join or leave begin a new take by themselves.
    """

    def __init__(self) -> None:
        self._engine: mujoco.MjModel | None = None  # what physics runs on; the takes hold what is drawn
        self._models: list[mujoco.MjModel] = []
        self._times: list[list[float]] = []
        self._states: list[list[Array]] = []

    def snap(self, simulation: Simulation) -> None:
        """Keep the present state; a second snap of the same moment is left out."""
        if self._engine is not simulation.model:
            self._engine = simulation.model
            self._models.append(simulation.scene().model)
            self._times.append([])
            self._states.append([])
        time = simulation.time_ns * 1e-9
        if not self._times[-1] or time > self._times[-1][-1]:
            self._times[-1].append(time)
            self._states[-1].append(np.array(simulation.data.qpos))

    @property
    def takes(self) -> tuple[Take, ...]:
        """All takes so far, in order."""
        parts = zip(self._models, self._times, self._states, strict=True)
        return tuple(Take(m, np.array(t), np.array(s).reshape(len(t), m.nq)) for m, t, s in parts)


def root_body(model: mujoco.MjModel, name: str) -> int:
    """Body of the compiled model in which the model ``name`` has its root.

    Raises:
        UnknownNameError: No model of this name moves there.
    """
    owners = [model.body(body).name.split(SEPARATOR)[0] for body in range(model.nbody)]
    if name not in owners[1:]:
        known = sorted({o for o in owners[1:] if o})
        raise UnknownNameError(f"no model {name!r} that moves", valid=", ".join(known) or "there is none")
    return owners.index(name, 1)


def states_from_poses(
    model: mujoco.MjModel,
    times: ArrayLike,
    poses: Mapping[str, tuple[ArrayLike, ArrayLike]],
    joints: Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]] | None = None,
) -> Take:
    """A take from what a recording holds: poses of models, positions of joints.

    Args:
        model: Compiled model of the world with its robots, as ``Simulation.scene()`` gives it.
        times: (n,) for which states are wanted [s].
        poses: By model: times (m,) [s] and poses (m, 7) as x, y, z [m], w, x, y, z of its root link in the world.
        joints: By model and joint: times (m,) [s] and positions (m,) [rad or m].

    Raises:
        UnknownNameError: No such model, or no such joint of it.
    """
    moments = np.asarray(times, dtype=np.float64)
    states = np.repeat(np.array(model.qpos0)[None], len(moments), axis=0)
    for name, (when, where) in poses.items():
        joint = int(model.body_jntadr[root_body(model, name)])
        if joint < 0 or model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_FREE:
            continue  # bolted down: its joints say all
        first = int(model.jnt_qposadr[joint])
        track = np.asarray(where, dtype=np.float64)
        flips = np.cumprod(np.where((track[1:, 3:] * track[:-1, 3:]).sum(1) < 0, -1.0, 1.0))
        track = np.concatenate([track[:1], np.concatenate([track[1:, :3], track[1:, 3:] * flips[:, None]], axis=1)])
        columns = [np.interp(moments, np.asarray(when, dtype=np.float64), column) for column in track.T]
        pose = np.stack(columns, axis=1)
        pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)
        states[:, first : first + 7] = pose
    for name, tracks in (joints or {}).items():
        for joint_name, (when, positions) in tracks.items():
            number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT.value, scoped(name, joint_name))
            if number < 0:
                raise UnknownNameError(f"model {name!r} has no joint {joint_name!r}", valid=_joints_of(model, name))
            column = np.interp(moments, np.asarray(when, dtype=np.float64), np.asarray(positions, dtype=np.float64))
            states[:, int(model.jnt_qposadr[number])] = column
    return Take(model, moments, states)


def _joints_of(model: mujoco.MjModel, name: str) -> str:
    names = (model.joint(j).name for j in range(model.njnt))
    return ", ".join(n.split(SEPARATOR, 1)[1] for n in names if n.startswith(name + SEPARATOR))
