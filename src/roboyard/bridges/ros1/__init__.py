"""ROS 1, spoken without ROS: XML-RPC with the master and nodes, TCPROS between nodes."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.bridges.ros1.bridge import MASTER, Ros1Bridge

__all__ = ["MASTER", "Ros1Bridge"]

__getattr__, __dir__ = lazy_exports(__name__, {"bridge": ("MASTER", "Ros1Bridge")})
