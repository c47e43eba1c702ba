"""Serial chains of joints, from descriptions: where the joints put the links, and how the tip moves with them."""

from roboyard.chains.building import build_chain
from roboyard.chains.chain import Chain
from roboyard.chains.rows import Rows

__all__ = ["Chain", "Rows", "build_chain"]
