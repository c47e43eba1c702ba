"""Images of a MuJoCo model: by MuJoCo's OpenGL renderer, or by ray casting on the CPU.

``open_renderer`` opens the renderer that works on this machine. Both renderers have the same interface and close
with ``close()`` or ``with``. The room knows compiled models and their state, and nothing else of Roboyard.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.rendering.backends import Renderer, available_backend, open_renderer
    from roboyard.rendering.cameras import (
        ChaseCamera,
        RenderCamera,
        body_extent,
        look_at,
        make_visibility_function,
        overview,
        top_view,
        world_bounds,
    )

__all__ = [
    "ChaseCamera",
    "RenderCamera",
    "Renderer",
    "available_backend",
    "body_extent",
    "look_at",
    "make_visibility_function",
    "open_renderer",
    "overview",
    "top_view",
    "world_bounds",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "backends": ("Renderer", "available_backend", "open_renderer"),
    "cameras": (
        "ChaseCamera", "RenderCamera", "body_extent", "look_at", "make_visibility_function", "overview", "top_view",
        "world_bounds",
    ),
})  # fmt: skip
