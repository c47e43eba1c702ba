"""The view: see runs and recordings in a browser, and steer what is live.

A server of our own on this machine, which checks origin and token of whoever looks, and a page of plain modules.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.view.access import Access
    from roboyard.view.live import LiveShow
    from roboyard.view.player import Player
    from roboyard.view.server import Server
    from roboyard.view.session import View

__all__ = ["Access", "LiveShow", "Player", "Server", "View"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "access": ("Access",),
    "live": ("LiveShow",),
    "player": ("Player",),
    "server": ("Server",),
    "session": ("View",),
})  # fmt: skip
