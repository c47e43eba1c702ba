"""SDF 1.4 to 1.12 to `Model` and `World`."""

from roboyard.description.sdf.document import read_model_document, read_world_document

__all__ = ["read_model_document", "read_world_document"]
