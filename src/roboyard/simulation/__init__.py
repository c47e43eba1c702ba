"""The simulated world: descriptions assembled into one physics model, stepped exactly, with sensors and servos.

`Simulation` is used alone or driven by `roboyard.simulation.nodes`; nothing but the nodes knows the bus.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.simulation.contacts import Episode
    from roboyard.simulation.engine import Simulation
    from roboyard.simulation.handle import Handle
    from roboyard.simulation.settings import PhysicsSettings
    from roboyard.simulation.touch import Touch
    from roboyard.simulation.truth import Truth

__all__ = ["Episode", "Handle", "PhysicsSettings", "Simulation", "Touch", "Truth"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "contacts": ("Episode",),
    "engine": ("Simulation",),
    "handle": ("Handle",),
    "settings": ("PhysicsSettings",),
    "touch": ("Touch",),
    "truth": ("Truth",),
})  # fmt: skip
