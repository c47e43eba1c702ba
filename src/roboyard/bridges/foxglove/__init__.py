"""Foxglove's WebSocket protocol."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.bridges.foxglove.bridge import PORT, FoxgloveBridge

__all__ = ["PORT", "FoxgloveBridge"]

__getattr__, __dir__ = lazy_exports(__name__, {"bridge": ("PORT", "FoxgloveBridge")})
