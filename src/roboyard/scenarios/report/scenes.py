"""Pictures of moments of a run, drawn again from its recording: robot, people and things where they truly were."""

from __future__ import annotations

import base64
import io
from bisect import bisect_left
from typing import Any

import numpy as np

from roboyard.messages.convert import pose_to_se3
from roboyard.record import Recording
from roboyard.scenarios.restaging import Restaging
from roboyard.simulation import Simulation
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
        self._stage = Restaging(simulation, {robot: namespace}, people)
        self._renderer: RayRenderer | None = None
        self._told: dict[str, tuple[list[float], list[Any]]] = {}
        for item in recording.messages([topic for topic in self._stage.topics if topic in recording.topics]):
            times, messages = self._told.setdefault(item.topic, ([], []))
            times.append(item.time_ns * 1e-9)
            messages.append(item.message)

    def close(self) -> None:
        """Draw no more."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def picture(self, time: float, person: str, part: str) -> str:
        """A moment [s], seen from beside somebody's part of the body, as a source of ``<img>``."""
        from PIL import Image

        target = self._set(time, person, part)
        beside = np.array([-target[1], target[0], 0.0])
        beside = beside / max(float(np.linalg.norm(beside)), 1e-6)
        camera = look_at(target + _AWAY * beside + np.array([0.0, 0.0, _UP]), target, fov_y=0.9)
        if self._renderer is None:
            self._renderer = RayRenderer(self._stage.model, *_SIZE)
        pixels = self._renderer.render(self._stage.data, camera)
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, "JPEG", quality=80)
        return "data:image/jpeg;base64," + base64.b64encode(out.getvalue()).decode()

    def _set(self, time: float, person: str, part: str) -> np.ndarray:
        """Everything as it was; (3,) where the part was."""
        for topic in self._stage.topics:
            message = self._at(topic, time)
            if message is not None:
                self._stage.take(topic, message)
        self._stage.settle()
        body = self._at(f"/truth/{person}/body", time)
        if body is None or part not in body.parts:
            return np.array([0.5, 0.0, 1.0])
        return np.array(pose_to_se3(body.poses[list(body.parts).index(part)]).translation)

    def _at(self, topic: str, time: float) -> Any:
        times, messages = self._told.get(topic, ([], []))
        return messages[min(bisect_left(times, time - 1e-6), len(times) - 1)] if times else None
