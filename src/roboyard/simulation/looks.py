"""What a simulation looks like, and where its cameras have their pictures made; both only once somebody asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import mujoco

from roboyard.description.model import World
from roboyard.simulation.assembly import Entry
from roboyard.simulation.scene import Scene
from roboyard.simulation.settings import PhysicsSettings

if TYPE_CHECKING:
    from roboyard.simulation.render.opening import Backend
    from roboyard.simulation.sensors.cameras.studio import Studio


class Looks:
    """The scene of a simulation and its studio.

    Args:
        renderer: Of the studio, as it was wished.
    """

    def __init__(self, renderer: Backend) -> None:
        self._renderer = renderer
        self._scene: Scene | None = None
        self._studio: Studio | None = None
        self.used = False
        """Whether a picture was ever asked for, also before a saved state that the run continues from."""

    def scene(self, world: World, entries: Sequence[Entry], settings: PhysicsSettings, data: mujoco.MjData) -> Scene:
        """The world as it looks, posed like ``data``; made anew after `forget`."""
        if self._scene is None:
            self._scene = Scene(world, entries, settings)
        self._scene.pose_like(data)
        return self._scene

    def forget(self) -> None:
        """Models came or went."""
        self._scene = None

    @property
    def studio(self) -> Studio:
        """Where pictures are made."""
        if self._studio is None:
            from roboyard.simulation.sensors.cameras.studio import Studio

            self._studio = Studio(self._renderer)
            self.used = True
        return self._studio

    @property
    def renderer(self) -> str:
        """Of the studio: "gl" or "rays". Raises ConfigError where "gl" was wished and does not work."""
        from roboyard.simulation.render.opening import chosen_backend

        return chosen_backend(self._renderer)

    def close(self) -> None:
        """Free both."""
        self._scene = None
        if self._studio is not None:
            self._studio.close()
            self._studio = None
