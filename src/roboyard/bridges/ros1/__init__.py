"""ROS 1, spoken without ROS: XML-RPC with the master and nodes, TCPROS between nodes."""

from roboyard.bridges.ros1.bridge import MASTER, Ros1Bridge

__all__ = ["MASTER", "Ros1Bridge"]
