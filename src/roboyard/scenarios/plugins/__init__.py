"""Simulator plugins of descriptions, mapped onto our nodes."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.scenarios.plugins.mapping import map_plugins
    from roboyard.scenarios.plugins.names import canonical
    from roboyard.scenarios.plugins.part import Part

__all__ = ["Part", "canonical", "map_plugins"]

__getattr__, __dir__ = lazy_exports(__name__, {"mapping": ("map_plugins",), "names": ("canonical",), "part": ("Part",)})
