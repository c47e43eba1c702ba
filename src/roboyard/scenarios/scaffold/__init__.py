"""New robots, worlds, scenarios and nodes to start from: small, whole, and right as they stand."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.scenarios.scaffold.make import NODE, ROBOT, SCENARIO, WORLD, Made, make

__all__ = ["NODE", "ROBOT", "SCENARIO", "WORLD", "Made", "make"]

__getattr__, __dir__ = lazy_exports(__name__, {"make": ("NODE", "ROBOT", "SCENARIO", "WORLD", "Made", "make")})
