"""What stands between a command and the drive: who may command, and when it must stop.

The nodes that connect these to topics are in ``roboyard.safety.nodes``.
"""

from roboyard.safety.arbitration import Arbiter, ArbitrationConfig, Decision, Source

__all__ = ["Arbiter", "ArbitrationConfig", "Decision", "Source"]
