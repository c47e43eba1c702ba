"""The simulated world: descriptions assembled into one physics model, stepped exactly, with sensors and servos.

`Simulation` is used alone or driven by `roboyard.simulation.nodes`; nothing but the nodes knows the bus.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roboyard.simulation.contacts import Episode
    from roboyard.simulation.engine import Simulation
    from roboyard.simulation.handle import Handle
    from roboyard.simulation.settings import PhysicsSettings
    from roboyard.simulation.touch import Touch
    from roboyard.simulation.truth import Truth

__all__ = ["Episode", "Handle", "PhysicsSettings", "Simulation", "Touch", "Truth"]

_HOMES = {
    "Episode": "contacts",
    "Handle": "handle",
    "Simulation": "engine",
    "PhysicsSettings": "settings",
    "Touch": "touch",
    "Truth": "truth",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
