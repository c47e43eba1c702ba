"""The simulation on the bus."""

from roboyard.simulation.nodes.actor import ActorNode
from roboyard.simulation.nodes.crowd import CrowdNode
from roboyard.simulation.nodes.furniture import FurnitureNode
from roboyard.simulation.nodes.person import PersonNode
from roboyard.simulation.nodes.simulation import SimulationNode

__all__ = ["ActorNode", "CrowdNode", "FurnitureNode", "PersonNode", "SimulationNode"]
