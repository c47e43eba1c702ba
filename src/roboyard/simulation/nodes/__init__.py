"""Nodes of the simulation: physics and sensors, simulated people, crowds, actors and moving devices."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.simulation.nodes.crowd import CrowdNode
    from roboyard.simulation.nodes.device import DeviceNode
    from roboyard.simulation.nodes.person import ActorNode, PersonNode
    from roboyard.simulation.nodes.simulation import SimulationNode

__all__ = ["ActorNode", "CrowdNode", "DeviceNode", "PersonNode", "SimulationNode"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "crowd": ("CrowdNode",),
    "device": ("DeviceNode",),
    "person": ("ActorNode", "PersonNode"),
    "simulation": ("SimulationNode",),
})  # fmt: skip
