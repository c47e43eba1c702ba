"""Simulations of robots: `Simulation` joins the physics of a world with simulated sensors, hardware, people and faults.

`Simulation` is used alone or driven by `roboyard.simulation.nodes`; only the nodes know the bus.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.simulation.simulation import ModelHandle, ModelOptions, Simulation

__all__ = ["ModelHandle", "ModelOptions", "Simulation"]

__getattr__, __dir__ = lazy_exports(__name__, {"simulation": ("ModelHandle", "ModelOptions", "Simulation")})
