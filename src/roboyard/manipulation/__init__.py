"""Arms: chains of joints, what is known about a robot's groups of them, and the ways between poses and joints.

Everything here works on arrays; a description gives chains by `build_chain`, or by its `Groups`.
"""

from roboyard.manipulation.building import build_chain
from roboyard.manipulation.chain import Chain
from roboyard.manipulation.groups import Gripper, Group, Groups, Tool, guess_groups, load_groups

__all__ = ["Chain", "Gripper", "Group", "Groups", "Tool", "build_chain", "guess_groups", "load_groups"]
