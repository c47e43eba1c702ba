"""Rendered moments of a run, and depth images beside the ground truth."""

from __future__ import annotations

import base64
import io
from bisect import bisect_left
from typing import Any

import numpy as np

from roboyard.messages.convert import pose_to_se3
from roboyard.record import Recording
from roboyard.rendering.cameras import look_at
from roboyard.rendering.ray_renderer import RayRenderer
from roboyard.scenarios.ground_truth import DepthComparison
from roboyard.scenarios.scene_replay import SceneReplay
from roboyard.simulation import Simulation

_IMAGE_SIZE = (420, 300)
_CAMERA_DISTANCE, _CAMERA_HEIGHT = 1.9, 0.7
"""Distance of the camera from its target along the ground, and its height above it [m]."""


class SceneImageRenderer:
    """Renders moments of a run.

    Args:
        simulation: Of the run; its models are rendered, its state stays as it is.
        recording: Has the poses of joints, bodies and objects.
        robot: Name of the robot whose joints move.
        namespace: Of the robot's topics.
        people: Names of the people.
    """

    def __init__(
        self, simulation: Simulation, recording: Recording, robot: str, namespace: str, people: tuple[str, ...]
    ) -> None:
        self._replay = SceneReplay(simulation, {robot: namespace}, people)
        self._renderer: RayRenderer | None = None
        self._messages: dict[str, tuple[list[float], list[Any]]] = {}
        for item in recording.messages([topic for topic in self._replay.topics if topic in recording.topics]):
            times, messages = self._messages.setdefault(item.topic, ([], []))
            times.append(item.time_ns * 1e-9)
            messages.append(item.message)

    def close(self) -> None:
        """Release the renderer."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def render_moment(self, time: float, person: str, body_part: str) -> str:
        """Return the scene at a time [s], seen from beside a person's body part, as the source of an ``<img>``."""
        from PIL import Image

        target = self._pose_scene(time, person, body_part)
        sideways = np.array([-target[1], target[0], 0.0])
        sideways = sideways / max(float(np.linalg.norm(sideways)), 1e-6)
        camera = look_at(target + _CAMERA_DISTANCE * sideways + np.array([0.0, 0.0, _CAMERA_HEIGHT]), target, fov_y=0.9)
        if self._renderer is None:
            self._renderer = RayRenderer(self._replay.model, *_IMAGE_SIZE)
        pixels = self._renderer.render(self._replay.data, camera)
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, "JPEG", quality=80)
        return "data:image/jpeg;base64," + base64.b64encode(out.getvalue()).decode()

    def _pose_scene(self, time: float, person: str, part: str) -> np.ndarray:
        """Pose everything as it was, and return the position (3,) of the body part [m]."""
        for topic in self._replay.topics:
            message = self._message_at(topic, time)
            if message is not None:
                self._replay.apply_message(topic, message)
        self._replay.update_kinematics()
        body = self._message_at(f"/truth/{person}/body", time)
        if body is None or part not in body.parts:
            return np.array([0.5, 0.0, 1.0])
        return np.array(pose_to_se3(body.poses[list(body.parts).index(part)]).translation)

    def _message_at(self, topic: str, time: float) -> Any:
        times, messages = self._messages.get(topic, ([], []))
        return messages[min(bisect_left(times, time - 1e-6), len(times) - 1)] if times else None


_DEPTH_COLORMAP = "turbo"


def depth_comparison_image(comparisons: list[DepthComparison]) -> str:
    """Return depth comparisons in rows, as the source of an ``<img>``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 1.75 * len(comparisons)), layout="constrained")
    grid = figure.subplots(len(comparisons), 4, squeeze=False)
    for row, comparison in zip(grid, comparisons, strict=True):
        row[0].set_title(f"{comparison.robot}: {comparison.camera}", fontsize=8)
        if comparison.color is not None:
            row[0].imshow(comparison.color, cmap="gray")
        depth_images = (("truth", comparison.truth), ("ideal", comparison.ideal), ("measured", comparison.measured))
        for axes, (name, depth) in zip(row[1:], depth_images, strict=True):
            axes.imshow(depth, cmap=_DEPTH_COLORMAP, vmin=0.0, vmax=comparison.max_range, interpolation="nearest")
            axes.set_title(name, fontsize=8)
        for axes in row:
            axes.set_axis_off()
    data = io.BytesIO()
    figure.savefig(data, format="jpeg", dpi=120, facecolor="white", pil_kwargs={"quality": 88})
    return "data:image/jpeg;base64," + base64.b64encode(data.getvalue()).decode()
