"""Where the frames of messages truly are in the world.

A frame that is a link of a robot, or hangs under one, is where that link truly is.  Any other, as ``odom`` or ``map``,
is put so that it agrees with the truth when it is first seen: from then on what is drawn in it shows by how much the
robot is wrong about itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from roboyard.bus.names import frame_prefix
from roboyard.bus.transforms import TransformBuffer, TransformError
from roboyard.geometry import SE3
from roboyard.simulation import Simulation

WORLD = "world"
Link = tuple[int, SE3]
"""A link's body in the engine, and where it is in it."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """What a frame hangs on: a body of the engine (-1: the root frame ``root``), and where it is in that."""

    body: int
    root: str
    T_anchor_frame: SE3


def links_of(simulation: Simulation) -> dict[str, Link]:
    """Links of all robots by the names of their frames."""
    found: dict[str, Link] = {}
    for name, handle in simulation.models.items():
        if not handle.is_robot:
            continue
        prefix = frame_prefix(handle.namespace)
        for link, place in simulation.world.addresses(name).links.items():
            found.setdefault(prefix + link, (place.body, place.T_body_link))
    return found


class Places:
    """Answers where frames are.

    Args:
        links: See `links_of`.
        transforms: What the robots say.
        known: Frames whose place in the world is known.

    Attributes:
        roots: Places of root frames that are known by now.
    """

    def __init__(self, links: Mapping[str, Link], transforms: TransformBuffer, known: Mapping[str, SE3]) -> None:
        self.links = links
        self._transforms = transforms
        self.roots: dict[str, SE3] = {WORLD: SE3.identity(), **known}
        self._parents: dict[str, str | None] = {}
        self._fixed: dict[str, Anchor] = {}

    def look(self) -> None:
        """Frames may have come or moved over to others."""
        self._parents = self._transforms.parents()

    def anchor(self, frame: str) -> Anchor:
        """What a frame hangs on; one that nobody knows hangs on the world."""
        if frame in self.links:
            body, T_body_link = self.links[frame]
            return Anchor(body, "", T_body_link)
        if frame in self._fixed:
            return self._fixed[frame]
        above = frame
        while (parent := self._parents.get(above)) is not None:
            above = parent
            if above in self.links:
                body, T_body_link = self.links[above]
                found = Anchor(body, "", T_body_link @ self._within(above, frame))
                self._fixed[frame] = found  # what hangs under a link and is none is fixed to it
                return found
        return Anchor(-1, above, self._within(above, frame))

    def _within(self, target: str, source: str) -> SE3:
        try:
            return SE3.identity() if target == source else self._transforms.lookup(target, source)
        except TransformError:
            return SE3.identity()

    def root(self, name: str, T_world_body: Callable[[int], SE3]) -> SE3:
        """Where a root frame is in the world.

        Args:
            name: Of the frame.
            T_world_body: True pose of a body of the engine.
        """
        if name not in self.roots:
            for frame, (body, T_body_link) in self.links.items():
                if frame in self._parents and self._top(frame) == name:
                    T_world_link = T_world_body(body) @ T_body_link
                    self.roots[name] = T_world_link @ self._within(name, frame).inverse()
                    break
            else:
                return SE3.identity()
        return self.roots[name]

    def _top(self, frame: str) -> str:
        while (parent := self._parents.get(frame)) is not None:
            frame = parent
        return frame

    def place(self, frame: str, T_world_body: Callable[[int], SE3]) -> SE3:
        """``T_world_frame``; see `root`."""
        found = self.anchor(frame)
        base = T_world_body(found.body) if found.body >= 0 else self.root(found.root, T_world_body)
        return base @ found.T_anchor_frame

    def frames(self) -> tuple[str, ...]:
        """All frames that are known."""
        return tuple(self._parents)


def row(T: SE3) -> list[float]:
    """x, y, z, w, x, y, z."""
    return [float(value) for value in (*T.translation, *T.quaternion)]
