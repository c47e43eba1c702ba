"""The simulation on the bus."""

from roboyard.simulation.nodes.simulation import SimulationNode

__all__ = ["SimulationNode"]
