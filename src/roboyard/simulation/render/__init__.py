"""Pictures of a simulated world, by MuJoCo's OpenGL renderer or by casting rays on the CPU.

``open_renderer`` gives whichever the machine can do; both are used alike and close with ``close()`` or ``with``.
"""

from typing import TYPE_CHECKING, Any

from roboyard.simulation.render.camera import Camera, ChaseCamera, look_at, overview, top_view

if TYPE_CHECKING:
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

_HOMES = {
    "Renderer": "opening",
    "available_backend": "opening",
    "open_renderer": "opening",
    "reach_of": "sight",
    "sight_through": "sight",
    "world_bounds": "sight",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
