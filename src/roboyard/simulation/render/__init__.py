"""Pictures of a simulated world, by MuJoCo's OpenGL renderer or by casting rays on the CPU.

``open_renderer`` gives whichever the machine can do; both are used alike and close with ``close()`` or ``with``.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.simulation.render.camera import Camera, ChaseCamera, look_at, overview, top_view
    from roboyard.simulation.render.opening import Renderer, available_backend, open_renderer
    from roboyard.simulation.render.sight import reach_of, sight_through, world_bounds

__all__ = [
    "Camera",
    "ChaseCamera",
    "Renderer",
    "available_backend",
    "look_at",
    "open_renderer",
    "overview",
    "reach_of",
    "sight_through",
    "top_view",
    "world_bounds",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "camera": ("Camera", "ChaseCamera", "look_at", "overview", "top_view"),
    "opening": ("Renderer", "available_backend", "open_renderer"),
    "sight": ("reach_of", "sight_through", "world_bounds"),
})  # fmt: skip
