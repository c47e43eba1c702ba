"""Contact episodes: every physics step is looked at, so that a tap of one step counts.

An episode is a time in which a model touches another one.  Contacts with the *ground* do not count: planes, terrain,
and every shape of a model or link whose name starts with ``ground`` or ``floor``; wheels and feet stand on it all the
time.  They do count for links that are not meant to touch it, as an arm's.  Touches of the same pair less than `GAP`
apart are one episode, so that bouncing counts once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from roboyard.simulation import contact_loop as s
from roboyard.simulation.assembly import Assembled
from roboyard.simulation.layout import layout
from roboyard.simulation.naming import scoped

_PAIRS = 512
"""Room for pairs of shapes that touch at the same time."""
GAP = 0.1
"""Touches of a pair closer in time than this belong together [s]."""


@dataclass(frozen=True, slots=True)
class Episode:
    """A time in which ``robot`` touched ``other``.

    Attributes:
        robot: The model asked about.
        other: What it touched.
        own: Its shape that touched first, ``model::link::collision``.
        against: The other's.
        start_ns: End of the first step in contact.
        end_ns: End of the last step in contact (so far).
    """

    robot: str
    other: str
    own: str
    against: str
    start_ns: int
    end_ns: int


class ContactWatch:
    """The tables `stepping.watch_contacts` works on, for one compiled world."""

    def __init__(self, assembled: Assembled, timestep_ns: int, older: ContactWatch | None = None) -> None:
        self._geoms = assembled.geoms
        self._names = list(assembled.placements)
        self._dt = timestep_ns
        moving = [placement.index for placement in assembled.placements.values() if placement.moves]
        self.robots = np.full(max(len(self._names), 1), -1, np.int32)
        self.robots[moving] = np.arange(len(moving))
        self.latest = np.full((len(moving), max(len(self._names), 1)), -1, np.int64)
        self.gap = round(GAP * 1e9 / timestep_ns)
        self.layout = np.array(layout(), np.int64)
        self.count = 0
        self.table = np.zeros((2 * self.latest.size + 64, 6), np.int64)
        self.pairs = np.full((_PAIRS, 3), -1, np.int64)
        self._archive: list[Episode] = []
        self._seen: tuple[bytes, dict[str, frozenset[tuple[str, str]]]] = (b"", {})
        if older is not None:
            self._continue(older)

    @property
    def owner(self) -> NDArray[np.int32]:
        """Model of each geom."""
        return self._geoms.model

    @property
    def ground(self) -> NDArray[np.bool_]:
        """Whether each geom is ground."""
        return self._geoms.ground

    @property
    def aloft(self) -> NDArray[np.bool_]:
        """Whether each geom is not meant to touch the ground."""
        return self._geoms.aloft

    def make_room(self) -> None:
        """Double the table."""
        self.table = np.concatenate([self.table, np.zeros_like(self.table)])

    def episodes(self, name: str | None = None) -> tuple[Episode, ...]:
        """Episodes of a model (or of all), oldest first."""
        every = [*self._archive, *(self._episode(row) for row in self.table[: self.count])]
        return tuple(episode for episode in every if name is None or episode.robot == name)

    def geom_name(self, geom: int) -> str:
        """``model::link::part`` of a geom."""
        model = self._geoms.model[geom]
        owner = self._names[model] if model >= 0 else "world"
        return scoped(owner, self._geoms.links[geom], self._geoms.parts[geom])

    @cached_property
    def geom_names(self) -> tuple[str, ...]:
        """`geom_name` of all geoms."""
        return tuple(self.geom_name(geom) for geom in self.geoms)

    def touched_since(self, step: int) -> dict[str, frozenset[tuple[str, str]]]:
        """By model, the pairs of shapes (own, other) that touched after ``step``."""
        touched = self.pairs[self.pairs[:, s.LAST] > step, : s.LAST]
        if not len(touched):
            return {}
        key = touched.tobytes()
        if key != self._seen[0]:
            found: dict[str, set[tuple[str, str]]] = {}
            for own, against in touched:
                pair = (self.geom_name(own), self.geom_name(against))
                found.setdefault(self.model_name(own), set()).add(pair)
            self._seen = key, {name: frozenset(pairs) for name, pairs in found.items()}
        return self._seen[1]

    @property
    def geoms(self) -> range:
        """All geoms."""
        return range(len(self._geoms.model))

    def is_part(self, geom: int, model: int, link: str, parts: tuple[str, ...]) -> bool:
        """Whether a geom is one of ``parts`` (empty: any) of a link."""
        if self._geoms.model[geom] != model or self._geoms.links[geom] != link:
            return False
        return not parts or self._geoms.parts[geom] in parts

    def link_of(self, geom: int) -> tuple[int, str]:
        """Number of the model a geom belongs to (-1: none), and its link."""
        return int(self._geoms.model[geom]), self._geoms.links[geom]

    def model_name(self, geom: int) -> str:
        """Name of the model a geom belongs to."""
        model = self._geoms.model[geom]
        return self._names[model] if model >= 0 else "world"

    def _episode(self, row: NDArray[np.int64]) -> Episode:
        return Episode(
            self._names[row[s.ROBOT]],
            self._names[row[s.OTHER]],
            self.geom_name(row[s.OWN_GEOM]),
            self.geom_name(row[s.OTHER_GEOM]),
            int(row[s.START]) * self._dt,
            int(row[s.END]) * self._dt,
        )

    def _continue(self, older: ContactWatch) -> None:
        """Keep the past, and let pairs that are touching go on in the same episode."""
        self.restore(older.episodes())

    def restore(self, episodes: tuple[Episode, ...]) -> None:
        """Set the past; the newest episode of a pair that still exists may continue."""
        numbers = {name: index for index, name in enumerate(self._names)}
        geoms = {self.geom_name(geom): geom for geom in reversed(range(len(self._geoms.model)))}
        newest = {(episode.robot, episode.other): episode for episode in episodes}
        known = [
            episode
            for episode in newest.values()
            if {episode.robot, episode.other} <= numbers.keys()
            and {episode.own, episode.against} <= geoms.keys()
            and self.robots[numbers[episode.robot]] >= 0
        ]
        self._archive = [episode for episode in episodes if episode not in known]
        self.latest[:] = -1
        self.count = 0
        for episode in sorted(known, key=lambda e: (e.start_ns, e.robot, e.other)):
            while self.count >= len(self.table):
                self.make_room()
            robot, other = numbers[episode.robot], numbers[episode.other]
            own, against = geoms[episode.own], geoms[episode.against]
            start, end = episode.start_ns // self._dt, episode.end_ns // self._dt
            self.table[self.count] = start, end, robot, other, own, against
            self.latest[self.robots[robot], other] = self.count
            self.count += 1
