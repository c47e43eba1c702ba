"""The simulation on the bus."""

from roboyard.simulation.nodes.furniture import FurnitureNode
from roboyard.simulation.nodes.simulation import SimulationNode

__all__ = ["FurnitureNode", "SimulationNode"]
