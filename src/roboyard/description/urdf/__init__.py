"""URDF to `Model`: links and joints, ``<gazebo>`` blocks, ``<ros2_control>`` and transmissions."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.description.urdf.robot import read_model_document, read_world_document

__all__ = ["read_model_document", "read_world_document"]

__getattr__, __dir__ = lazy_exports(__name__, {"robot": ("read_model_document", "read_world_document")})
