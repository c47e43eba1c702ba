"""The view: see runs and recordings in a browser, and steer what is live.

A server of our own on this machine, which checks origin and token of whoever looks, and a page of plain modules.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roboyard.view.access import Access
    from roboyard.view.live import LiveShow
    from roboyard.view.player import Player
    from roboyard.view.server import Server
    from roboyard.view.session import View

__all__ = ["Access", "LiveShow", "Player", "Server", "View"]

_HOMES = {"Access": "access", "LiveShow": "live", "Player": "player", "Server": "server", "View": "session"}


def __getattr__(name: str) -> Any:
    # browsers' protocol, physics and message types are imported with the first use
    if name not in _HOMES:
        raise AttributeError(f"module 'roboyard.view' has no attribute '{name}'")
    return getattr(import_module(f"roboyard.view.{_HOMES[name]}"), name)
