"""Options of a batch: how many runs, on which workers, what varies between them, and what stays on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from roboyard.config import parameter

Design = Literal["random", "lhs", "grid"]
"""How the runs of a batch cover what varies; lhs: Latin hypercube."""
StoredRuns = Literal["failed", "all", "none"]
"""Runs of a batch whose folders stay on disk."""


@dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """How a scenario is run many times.

    A batch that was stopped or killed continues if ``out`` names its folder again: finished runs are not repeated.

    Raises:
        ConfigError: A value is of the wrong type, below its limit, or not among its choices.
    """

    runs: int = parameter(low=1, doc="number of runs, each with its own seed; with design `grid` at each grid point")
    first_seed: int | None = parameter(
        None, low=0, doc="seed of the first run; the others count on from it; default: the scenario's seed"
    )
    overrides: tuple[str, ...] = parameter((), doc="`KEY=VALUE` for all runs, as of `--set`")
    smoke: bool = parameter(False, doc="run the smoke variant, at most 5 simulated seconds")
    vary: tuple[str, ...] = parameter((), doc="`KEY=DISTRIBUTION`: a value that is drawn for each run")
    design: Design | None = parameter(
        None, doc="how the runs cover what varies: random, lhs (Latin hypercube) or grid; default: random"
    )
    workers: int | None = parameter(None, low=1, doc="number of worker processes; default: one per core")
    cluster: str | None = parameter(None, doc="address of a Ray cluster that executes the runs: HOST:PORT, or local")
    out: str | Path | None = parameter(
        None, doc="new folder, or that of a batch to continue; default: a new one in `runs_folder`"
    )
    runs_folder: str | Path = parameter("runs", doc="folder in which new folders are created")
    stored_runs: StoredRuns = parameter("failed", doc="runs whose folders stay on disk: failed, all or none")
    video: bool = parameter(False, doc="make a video of each failed run whose folder stays")
    baseline: str | Path | None = parameter(
        None, doc="folder or batch.json of an earlier batch, with which this one is compared run by run"
    )

    def __post_init__(self) -> None:
        from roboyard.config import check

        check(self)
