"""New robots, worlds, scenarios and nodes to start from: small, whole, and right as they stand."""

from roboyard.scenarios.scaffold.make import NODE, ROBOT, SCENARIO, WORLD, Made, make

__all__ = ["NODE", "ROBOT", "SCENARIO", "WORLD", "Made", "make"]
