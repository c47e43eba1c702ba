"""Nodes that connect safety to topics."""

from roboyard.safety.nodes.arbiter import ArbiterNode

__all__ = ["ArbiterNode"]
