"""MJCF to `Model` and `World`, with MuJoCo's own compilation as the truth for poses, masses and inertia."""

from roboyard.description.mjcf.document import read_model_document, read_world_document

__all__ = ["read_model_document", "read_world_document"]
