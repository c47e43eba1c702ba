"""The simulation on the bus."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.simulation.nodes.actor import ActorNode
    from roboyard.simulation.nodes.crowd import CrowdNode
    from roboyard.simulation.nodes.furniture import FurnitureNode
    from roboyard.simulation.nodes.person import PersonNode
    from roboyard.simulation.nodes.simulation import SimulationNode

__all__ = ["ActorNode", "CrowdNode", "FurnitureNode", "PersonNode", "SimulationNode"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "actor": ("ActorNode",),
    "crowd": ("CrowdNode",),
    "furniture": ("FurnitureNode",),
    "person": ("PersonNode",),
    "simulation": ("SimulationNode",),
})  # fmt: skip
