"""Reader of SDF 1.4 to 1.12, to `Model` and `World`."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.description.sdf.document import read_model_document, read_world_document

__all__ = ["read_model_document", "read_world_document"]

__getattr__, __dir__ = lazy_exports(__name__, {"document": ("read_model_document", "read_world_document")})
