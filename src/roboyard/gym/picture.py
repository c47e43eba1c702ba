"""Pictures of an episode, for people to look at."""

from __future__ import annotations

from typing import Literal

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.errors import ConfigError
from roboyard.rendering import RenderCamera, Renderer, open_renderer, overview, top_view, world_bounds
from roboyard.simulation import Simulation
from roboyard.simulation.video.render_video import ChaseView
from roboyard.simulation.video.states import root_body

View = Literal["chase", "overview", "top"] | RenderCamera
_VIEWS = ("chase", "overview", "top")


class Onlooker:
    """Takes pictures of a simulation; opens its renderer at the first one.

    Args:
        width: Of the pictures [px].
        height: [px].
        view: "chase" follows the robot, "overview" sees the whole world from a corner, "top" from above; or a
            ``Camera``.

    Raises:
        ConfigError: there is no such view.
    """

    def __init__(self, width: int, height: int, view: View) -> None:
        if not isinstance(view, RenderCamera) and view not in _VIEWS:
            raise ConfigError(f"view {view!r}", valid=f"{', '.join(_VIEWS)}, or a Camera")
        self._size, self._view = (width, height), view
        self._engine: mujoco.MjModel | None = None
        self._renderer: Renderer | None = None

    def look(self, simulation: Simulation, robot: str) -> NDArray[np.uint8]:
        """A picture (height, width, 3) of the present."""
        scene = simulation.visual_scene()
        if self._renderer is None or self._engine is not simulation.world.model:
            self.close()
            self._engine = simulation.world.model
            self._renderer = open_renderer(scene.model, *self._size)
            self._chase = ChaseView(robot)
        return self._renderer.render(
            scene.data, self._camera(scene.model, scene.data, simulation.time_ns * 1e-9, robot)
        )

    def _camera(self, model: mujoco.MjModel, data: mujoco.MjData, time: float, robot: str) -> RenderCamera:
        if isinstance(self._view, RenderCamera):
            return self._view
        if self._view == "chase":
            return self._chase.follow(model, data, root_body(model, robot), time)
        low, high = world_bounds(model, data)
        aspect = self._size[0] / self._size[1]
        return (top_view if self._view == "top" else overview)(low, high, aspect=aspect)

    def close(self) -> None:
        """Let go of the renderer."""
        if self._renderer is not None:
            self._renderer.close()
        self._renderer = self._engine = None
