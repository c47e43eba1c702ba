"""What connects vision to topics."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roboyard.vision.nodes.disc_finder import DiscFinderNode
    from roboyard.vision.nodes.fiducial_finder import FiducialFinderNode

_HOMES = {"DiscFinderNode": "disc_finder", "FiducialFinderNode": "fiducial_finder"}

__all__ = ["DiscFinderNode", "FiducialFinderNode"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'roboyard.vision.nodes' has no attribute '{name}'")
    value = getattr(import_module(f"roboyard.vision.nodes.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
