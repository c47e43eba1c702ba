"""Options of a batch: how many runs, on which workers, what varies between them, and what stays on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from roboyard.config import parameter
from roboyard.config.wording import did_you_mean
from roboyard.errors import InputError
from roboyard.scenarios.batch.sampling import Design

StoredRuns = Literal["failed", "all", "none"]
"""Runs of a batch whose folders stay on disk."""
_STORED_RUNS = ("failed", "all", "none")


@dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """How a scenario is run many times.

    A batch that was stopped or killed continues if ``out`` names its folder again: finished runs are not repeated.

    Raises:
        InputError: There are no runs, or ``stored_runs`` has another value.
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
        if isinstance(self.runs, bool) or not isinstance(self.runs, int) or self.runs < 1:
            raise InputError(f"{self.runs!r} runs", location="--runs", valid="at least 1")
        if self.stored_runs not in _STORED_RUNS:
            raise InputError(
                f"keep {self.stored_runs!r}{did_you_mean(self.stored_runs, _STORED_RUNS)}", location="--keep",
                valid=", ".join(_STORED_RUNS),
            )  # fmt: skip
