"""Serial chains of joints, from descriptions: where the joints put the links, how the tip moves, what that takes."""

from roboyard.chains.building import build_chain
from roboyard.chains.chain import Chain
from roboyard.chains.dynamics import Dynamics, Load
from roboyard.chains.rows import Rows

__all__ = ["Chain", "Dynamics", "Load", "Rows", "build_chain"]
