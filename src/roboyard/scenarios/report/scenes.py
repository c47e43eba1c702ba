"""Pictures of moments of a run, drawn again from its recording: robot, people and things where they truly were."""

from __future__ import annotations

import base64
import io
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np

from roboyard.geometry import SE3
from roboyard.messages.convert import pose_to_se3
from roboyard.record import Recording
from roboyard.scenarios.thing_truth import MOVING
from roboyard.scenarios.video.film import root_body
from roboyard.simulation import Simulation
from roboyard.simulation.naming import scoped
from roboyard.simulation.render.camera import look_at
from roboyard.simulation.render.rays import RayRenderer

_SIZE = (420, 300)
_AWAY, _UP = 1.9, 0.7
"""How far from what is looked at the camera stands, and how high above it [m]."""


class Scenes:
    """Draws moments of a run.

    Args:
        simulation: Of the run; its models are those that are drawn, its state is left alone.
        recording: Where joints, bodies and things were.
        robot: Whose joints move.
        namespace: Of its topics.
        people: Names.
    """

    def __init__(
        self, simulation: Simulation, recording: Recording, robot: str, namespace: str, people: tuple[str, ...]
    ) -> None:
        self._model = simulation.scene().model
        self._data = mujoco.MjData(self._model)
        self._robot = robot
        self._shapes = _capsules(simulation, people)
        self._joints = f"{namespace}/joint_states"
        wanted = [self._joints, MOVING, *(f"/truth/{name}/body" for name in people)]
        self._told: dict[str, tuple[list[float], list[Any]]] = {}
        for item in recording.messages([topic for topic in wanted if topic in recording.topics]):
            times, messages = self._told.setdefault(item.topic, ([], []))
            times.append(item.time_ns * 1e-9)
            messages.append(item.message)

    def picture(self, time: float, person: str, part: str) -> str:
        """A moment [s], seen from beside somebody's part of the body, as a source of ``<img>``."""
        from PIL import Image

        target = self._set(time, person, part)
        beside = np.array([-target[1], target[0], 0.0])
        beside = beside / max(float(np.linalg.norm(beside)), 1e-6)
        camera = look_at(target + _AWAY * beside + np.array([0.0, 0.0, _UP]), target, fov_y=0.9)
        with RayRenderer(self._model, *_SIZE) as renderer:
            pixels = renderer.render(self._data, camera)
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, "JPEG", quality=80)
        return "data:image/jpeg;base64," + base64.b64encode(out.getvalue()).decode()

    def _set(self, time: float, person: str, part: str) -> np.ndarray:
        """Everything as it was; (3,) where the part was."""
        model, data = self._model, self._data
        data.qpos[:] = model.qpos0
        joints = self._at(self._joints, time)
        if joints is not None:
            for name, position in zip(joints.name, joints.position, strict=True):
                number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT.value, scoped(self._robot, name))
                if number >= 0:
                    data.qpos[model.jnt_qposadr[number]] = position
        things = self._at(MOVING, time)
        for one in things.transforms if things is not None else ():
            joint = int(model.body_jntadr[root_body(model, str(one.child_frame_id))])
            first = int(model.jnt_qposadr[joint])
            at, turn = one.transform.translation, one.transform.rotation
            data.qpos[first : first + 7] = at.x, at.y, at.z, turn.w, turn.x, turn.y, turn.z
        target = np.array([0.5, 0.0, 1.0])
        for (who, which), (body, T_capsule_part) in self._shapes.items():
            message = self._at(f"/truth/{who}/body", time)
            if message is None:
                continue
            T_world_capsule = pose_to_se3(message.poses[list(message.parts).index(which)])
            T = T_world_capsule @ T_capsule_part
            mocap = int(model.body_mocapid[model.body(body).id])
            data.mocap_pos[mocap], data.mocap_quat[mocap] = T.translation, T.rotation
            if (who, which) == (person, part):
                target = np.array(T_world_capsule.translation)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_camlight(model, data)
        return target

    def _at(self, topic: str, time: float) -> Any:
        times, messages = self._told.get(topic, ([], []))
        return messages[min(bisect_left(times, time - 1e-6), len(times) - 1)] if times else None


def _capsules(simulation: Simulation, people: tuple[str, ...]) -> Mapping[tuple[str, str], tuple[str, SE3]]:
    """By person and part: the body's name in the engine, and where the part's frame is in its capsule's."""
    model, found = simulation.model, {}
    for name in people:
        for part, place in simulation.placement(name).links.items():
            geoms = range(
                model.body_geomadr[place.body], model.body_geomadr[place.body] + model.body_geomnum[place.body]
            )
            geom = next(k for k in geoms if model.geom_type[k] == mujoco.mjtGeom.mjGEOM_CAPSULE)
            T_part_capsule = SE3(np.array(model.geom_quat[geom]), np.array(model.geom_pos[geom]))
            found[name, part] = (scoped(name, part), T_part_capsule.inverse())
    return found
