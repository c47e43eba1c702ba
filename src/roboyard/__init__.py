"""Roboyard: robots described, simulated, given their software and judged against ground truth, in one package.

    import roboyard as ry

Everything below is loaded on first use, so importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from roboyard import (
        behavior,
        bus,
        compute,
        control,
        description,
        geometry,
        grids,
        hardware,
        kinematics,
        localization,
        manipulation,
        mapping,
        messages,
        navigation,
        record,
        safety,
        scenarios,
        simulation,
        task_planning,
        vision,
        walking,
    )
    from roboyard.bus import Bus, Node, resource
    from roboyard.config import Config, parameter
    from roboyard.description import load_model, load_world
    from roboyard.errors import RoboyardError
    from roboyard.geometry import SE2, SE3
    from roboyard.messages import action, msg, srv
    from roboyard.scenarios import Run
    from roboyard.simulation import Simulation

_NAMES = {
    "Bus": "bus",
    "Node": "bus",
    "Config": "config",
    "parameter": "config",
    "resource": "bus",
    "load_model": "description",
    "load_world": "description",
    "RoboyardError": "errors",
    "SE2": "geometry",
    "SE3": "geometry",
    "msg": "messages",
    "srv": "messages",
    "action": "messages",
    "Run": "scenarios",
    "Simulation": "simulation",
}
_ROOMS = (
    "behavior", "bus", "compute", "control", "description", "geometry", "grids", "hardware", "kinematics",
    "localization", "manipulation", "mapping", "messages", "navigation", "record", "safety", "scenarios",
    "simulation", "task_planning", "vision", "walking",
)  # fmt: skip

__all__ = ["SE2", "SE3", "Bus", "Config", "Node", "RoboyardError", "Run", "Simulation", "action", "behavior", "bus",
           "compute", "control", "description", "geometry", "grids", "hardware", "kinematics", "load_model",
           "load_world", "localization", "manipulation", "mapping", "messages", "msg", "navigation", "parameter",
           "record", "resource", "safety", "scenarios", "simulation", "srv", "task_planning", "vision",
           "walking"]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        found = getattr(import_module(f"roboyard.{_NAMES[name]}"), name)
    elif name in _ROOMS:
        found = import_module(f"roboyard.{name}")
    else:
        raise AttributeError(f"module 'roboyard' has no attribute '{name}'")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*_NAMES, *_ROOMS, "__version__"])
