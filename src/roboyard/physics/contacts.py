"""Contact points and contact episodes; every physics step is examined, so that a contact of one step counts.

An episode is a time in which a model touches another one.  Contacts with the *ground* do not count, because wheels and
feet stand on it all the time: planes, terrain and floor slabs, as `roboyard.physics.compiler.ground` finds them.  They
do count for off-ground links, such as an arm's.  Contacts of the same pair less than `MAX_EPISODE_GAP` apart are one
episode, so that bouncing counts once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.physics.compiled_world import CompiledWorld, scoped_name
from roboyard.physics.kernels import contacts as contact_kernels
from roboyard.physics.mujoco_memory import mujoco_layout

_PAIR_TABLE_ROWS = 512
"""Room for pairs of shapes that touch at the same time."""
MAX_EPISODE_GAP = 0.1
"""Touches of a pair closer in time than this belong together [s]."""


@dataclass(frozen=True, slots=True)
class ContactEpisode:
    """A time in which ``model`` touched ``other_model``.

    Attributes:
        model: The model asked about.
        other_model: What it touched.
        geom: Its shape that touched first, ``model::link::collision``.
        other_geom: The other's.
        start_ns: End of the first step in contact.
        end_ns: End of the last step in contact (so far).
    """

    model: str
    other_model: str
    geom: str
    other_geom: str
    start_ns: int
    end_ns: int


class ContactMonitor:
    """Contact episodes of one compiled world.

    Attributes:
        tables: The tables that `update_contact_episodes` works on; `grow_table` replaces them.
        episode_count: Number of rows of the episode table in use.
        layout: The offsets of `MujocoLayout`.
    """

    def __init__(self, compiled: CompiledWorld, timestep_ns: int, previous: ContactMonitor | None = None) -> None:
        self._geoms = compiled.geoms
        self._names = list(compiled.addresses)
        self._dt = timestep_ns
        moving = [addresses.index for addresses in compiled.addresses.values() if addresses.is_movable]
        n_models = max(len(self._names), 1)
        monitored_rows, latest = np.full(n_models, -1, np.int32), np.full((len(moving), n_models), -1, np.int64)
        monitored_rows[moving] = np.arange(len(moving))
        self.layout = np.array(mujoco_layout(), np.int64)
        self.episode_count = 0
        self.tables = contact_kernels.ContactTables(
            self.geom_models,
            self.ground,
            self.off_ground,
            monitored_rows,
            latest,
            np.zeros((2 * latest.size + 64, 6), np.int64),
            np.full((_PAIR_TABLE_ROWS, 3), -1, np.int64),
            round(MAX_EPISODE_GAP * 1e9 / timestep_ns),
        )
        self._archive: list[ContactEpisode] = []
        self._cached_pairs: tuple[bytes, dict[str, frozenset[tuple[str, str]]]] = (b"", {})
        if previous is not None:
            self._continue_from(previous)

    @property
    def geom_models(self) -> NDArray[np.int32]:
        """Model of each geom."""
        return self._geoms.model_index

    @property
    def ground(self) -> NDArray[np.bool_]:
        """Whether each geom is ground."""
        return self._geoms.is_ground

    @property
    def off_ground(self) -> NDArray[np.bool_]:
        """Whether each geom belongs to a link that must not touch the ground."""
        return self._geoms.is_off_ground

    def grow_table(self) -> None:
        """Double the rows of the episode table."""
        episodes = self.tables.episodes
        self.tables = self.tables._replace(episodes=np.concatenate([episodes, np.zeros_like(episodes)]))

    def episodes(self, name: str | None = None) -> tuple[ContactEpisode, ...]:
        """Episodes of a model (or of all), oldest first."""
        rows = self.tables.episodes[: self.episode_count]
        all_episodes = [*self._archive, *(self._read_episode(row) for row in rows)]
        return tuple(episode for episode in all_episodes if name is None or episode.model == name)

    def geom_name(self, geom: int) -> str:
        """``model::link::part`` of a geom."""
        model = self._geoms.model_index[geom]
        model_name = self._names[model] if model >= 0 else "world"
        return scoped_name(model_name, self._geoms.link_names[geom], self._geoms.shape_names[geom])

    @cached_property
    def geom_names(self) -> tuple[str, ...]:
        """`geom_name` of all geoms."""
        return tuple(self.geom_name(geom) for geom in self.geoms)

    def pairs_since(self, step: int) -> dict[str, frozenset[tuple[str, str]]]:
        """By model, the pairs of shapes (own, other) that touched after ``step``."""
        recent_pairs = self.tables.pairs[
            self.tables.pairs[:, contact_kernels.PAIR_LAST_STEP] > step, : contact_kernels.PAIR_LAST_STEP
        ]
        if not len(recent_pairs):
            return {}
        key = recent_pairs.tobytes()
        if key != self._cached_pairs[0]:
            found: dict[str, set[tuple[str, str]]] = {}
            for geom, other_geom in recent_pairs:
                pair = (self.geom_name(geom), self.geom_name(other_geom))
                found.setdefault(self.model_of_geom(geom), set()).add(pair)
            self._cached_pairs = key, {name: frozenset(pairs) for name, pairs in found.items()}
        return self._cached_pairs[1]

    @property
    def geoms(self) -> range:
        """All geoms."""
        return range(len(self._geoms.model_index))

    def is_link_geom(self, geom: int, model: int, link: str, parts: tuple[str, ...]) -> bool:
        """Whether a geom is one of ``parts`` (empty: any) of a link."""
        if self._geoms.model_index[geom] != model or self._geoms.link_names[geom] != link:
            return False
        return not parts or self._geoms.shape_names[geom] in parts

    def link_of_geom(self, geom: int) -> tuple[int, str]:
        """Number of the model a geom belongs to (-1: none), and its link."""
        return int(self._geoms.model_index[geom]), self._geoms.link_names[geom]

    def model_of_geom(self, geom: int) -> str:
        """Name of the model a geom belongs to."""
        model = self._geoms.model_index[geom]
        return self._names[model] if model >= 0 else "world"

    def _read_episode(self, row: NDArray[np.int64]) -> ContactEpisode:
        return ContactEpisode(
            self._names[row[contact_kernels.MODEL]],
            self._names[row[contact_kernels.OTHER_MODEL]],
            self.geom_name(row[contact_kernels.GEOM]),
            self.geom_name(row[contact_kernels.OTHER_GEOM]),
            int(row[contact_kernels.START]) * self._dt,
            int(row[contact_kernels.END]) * self._dt,
        )

    def _continue_from(self, previous: ContactMonitor) -> None:
        """Keep the past, and let pairs in contact continue the same episode."""
        self.restore_episodes(previous.episodes())

    def restore_episodes(self, episodes: tuple[ContactEpisode, ...]) -> None:
        """Set the past; the newest episode of a pair that still exists may continue."""
        model_ids = {name: index for index, name in enumerate(self._names)}
        geoms = {self.geom_name(geom): geom for geom in reversed(range(len(self._geoms.model_index)))}
        newest = {(episode.model, episode.other_model): episode for episode in episodes}
        continuing = [
            episode
            for episode in newest.values()
            if {episode.model, episode.other_model} <= model_ids.keys()
            and {episode.geom, episode.other_geom} <= geoms.keys()
            and self.tables.monitored_rows[model_ids[episode.model]] >= 0
        ]
        self._archive = [episode for episode in episodes if episode not in continuing]
        self.tables.latest[:] = -1
        self.episode_count = 0
        for episode in sorted(continuing, key=lambda e: (e.start_ns, e.model, e.other_model)):
            while self.episode_count >= len(self.tables.episodes):
                self.grow_table()
            model, other_model = model_ids[episode.model], model_ids[episode.other_model]
            geom_id, other_geom_id = geoms[episode.geom], geoms[episode.other_geom]
            start, end = episode.start_ns // self._dt, episode.end_ns // self._dt
            self.tables.episodes[self.episode_count] = start, end, model, other_model, geom_id, other_geom_id
            self.tables.latest[self.tables.monitored_rows[model], other_model] = self.episode_count
            self.episode_count += 1


class ContactPoint(NamedTuple):
    """One contact point.

    Attributes:
        geom: ``model::link::collision`` of the model asked about.
        other_geom: The other one.
        position: In the world, or in a sensor's frame [m].
        normal: Unit vector in that frame, towards ``geom``.
        depth: How far they overlap [m].
        force: On ``geom``, in that frame [N].
    """

    geom: str
    other_geom: str
    position: tuple[float, float, float]
    normal: tuple[float, float, float]
    depth: float
    force: tuple[float, float, float]
