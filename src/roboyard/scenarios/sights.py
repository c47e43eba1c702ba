"""What of a run is worth showing besides its messages: frames that are the world's own, robots, people."""

from __future__ import annotations

from dataclasses import dataclass

from roboyard.geometry import SE3
from roboyard.scenarios.map_node import WorldMapNode
from roboyard.scenarios.run import Run


@dataclass(frozen=True, slots=True)
class Sights:
    """What a viewer asks for.

    Attributes:
        robots: Names of the models that are robots, the main one first.
        people: Names of the models that are people.
        frames: Where frames lie in the world that are put there on purpose, as that of the true floor plan.
    """

    robots: tuple[str, ...]
    people: tuple[str, ...]
    frames: dict[str, SE3]


def sights_of(run: Run) -> Sights:
    """Of a run as it stands now."""
    maps = [node for node in run.bus.nodes.values() if isinstance(node, WorldMapNode)]
    frames = {node.frame(node.config.map_frame): SE3.identity() for node in maps}
    return Sights(tuple(run.robots), tuple(person.config.model for person in run.people.values()), frames)
