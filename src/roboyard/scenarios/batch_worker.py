"""One run of a batch, in a worker process; importing this module makes the worker warm."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from roboyard.errors import RoboyardError
from roboyard.scenarios.control import Control
from roboyard.scenarios.document import metrics_of
from roboyard.scenarios.metrics import Value
from roboyard.scenarios.runner import run_scenario
from roboyard.scenarios.spec import Spec, load_spec


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker is told: plain data, so that it travels to any kind of worker.

    Attributes:
        scenario: A name, or a file.
        seed: Of the run.
        overrides: Further settings.
        smoke: The short variant.
        keep: Whose files stay: "all", "failed" or "none".
        folder: For them; nothing is written, or removed, where none are kept.
        video: Make one of a failed run.
    """

    scenario: str
    seed: int
    overrides: tuple[str, ...]
    smoke: bool
    folder: str
    keep: str
    video: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """What a worker answers.

    Attributes:
        seed: Of the run.
        state: "done", "failed", "interrupted", or "lost" when the worker died.
        success: Whether the criteria held.
        reason: Why not.
        metrics: Numbers under the names that criteria use.
        folder: Where the run was kept; "" if it was not.
    """

    seed: int
    state: str
    success: bool
    reason: str = ""
    metrics: dict[str, Value] = field(default_factory=dict)
    folder: str = ""


@lru_cache(maxsize=8)
def _spec(scenario: str, overrides: tuple[str, ...], smoke: bool) -> Spec:
    return load_spec(scenario, overrides=overrides, smoke=smoke)


def run_job(job: Job) -> Result:
    """Run one seed; cameras are not recorded in batches.

    A run that cannot start is a result with its reason, not an exception: the others shall go on.
    """
    folder = Path(job.folder) if job.keep != "none" else None
    try:
        spec = _spec(job.scenario, (*job.overrides, "record.cameras=0"), job.smoke).seeded(job.seed)
        outcome = run_scenario(
            spec, out=folder, keep=folder is not None, report=job.keep == "all",
            video="failed" if job.video else False, control=Control(), serve=False,
        )  # fmt: skip
    except RoboyardError as error:
        _discard(folder)
        return Result(job.seed, "failed", False, str(error))
    kept = job.keep == "all" or (job.keep == "failed" and not outcome.success)
    if kept and job.keep == "failed":
        _report(outcome.folder)
    elif not kept:
        _discard(folder)
    metrics = {name: value for name, value in metrics_of(outcome.metrics).items() if name != "seed"}
    return Result(job.seed, outcome.state, outcome.success, outcome.reason, metrics, str(folder) if kept else "")


def _discard(folder: Path | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _report(folder: Path | None) -> None:
    from roboyard.scenarios.rewrite import rewrite_report

    if folder is not None:
        rewrite_report(folder)
