"""Reader of MJCF, to `Model` and `World`; MuJoCo's own compiler determines poses, masses and inertia."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.description.mjcf.document import read_model_document, read_world_document

__all__ = ["read_model_document", "read_world_document"]

__getattr__, __dir__ = lazy_exports(__name__, {"document": ("read_model_document", "read_world_document")})
