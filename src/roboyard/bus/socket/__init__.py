"""Local socket of a run: the command line, the view and nodes in other processes connect to a live run through it."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.bus.socket.client import RunConnection, connect
    from roboyard.bus.socket.registry import LiveRun, live_runs
    from roboyard.bus.socket.remote_bus import RemoteBus
    from roboyard.bus.socket.server import SocketServer

__all__ = ["LiveRun", "RemoteBus", "RunConnection", "SocketServer", "connect", "live_runs"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "client": ("RunConnection", "connect"),
    "registry": ("LiveRun", "live_runs"),
    "remote_bus": ("RemoteBus",),
    "server": ("SocketServer",),
})  # fmt: skip
