"""A batch of each of several scenarios, or of all installed ones, on the same workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from roboyard.bringup.catalog import SCENARIOS
from roboyard.compute import Pool, ProcessPool, RayPool
from roboyard.errors import InputError
from roboyard.scenarios.batch.options import BatchOptions
from roboyard.scenarios.batch.runner import BatchObserver, BatchResult, run_batch
from roboyard.scenarios.run_folder import RunFolder, create_numbered_folder, make_write_error

ALL: Final = "all"
SUMMARY: Final = "suite.json"
REPORT: Final = "report.html"


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """Results of the batches of several scenarios.

    Attributes:
        folder: Folder of the page and of a batch's folder for each scenario.
        batches: Result of each batch that has ended, by the name of its scenario.
        start_errors: Why scenarios could not begin, by name.
        summaries: One line on each scenario of the suite, by name.
    """

    folder: Path
    batches: dict[str, BatchResult]
    start_errors: dict[str, str]
    summaries: dict[str, str]

    @property
    def report(self) -> Path:
        """Path of the page about the suite."""
        return self.folder / REPORT

    @property
    def runs(self) -> int:
        """Number of runs of all scenarios."""
        return sum(batch.success_rate.total for batch in self.batches.values())

    @property
    def successes(self) -> int:
        """Number of successful runs of all scenarios."""
        return sum(batch.success_rate.successes for batch in self.batches.values())

    @property
    def exit_code(self) -> int:
        """0 if every run of every scenario succeeded and nothing is significantly worse than in a baseline, else 1."""
        return 1 if self.start_errors or any(batch.exit_code for batch in self.batches.values()) else 0

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data, for JSON."""
        return {
            "scenarios": {name: batch.to_dict() for name, batch in self.batches.items()},
            "start_errors": dict(self.start_errors),
            "runs": self.runs,
            "successes": self.successes,
        }


def _ignore(_: object) -> None:
    """Do nothing with an event that is not observed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteObserver:
    """Functions that are called while a suite runs; each does nothing by default.

    Attributes:
        create_batch_observer: Called with the name of a scenario before its batch begins; returns the observer of the
            batch.
        on_summary: Called with the result of the suite after suite.json was written: after each batch, and when the
            suite is stopped or fails.
    """

    create_batch_observer: Callable[[str], BatchObserver] = lambda _: BatchObserver()
    on_summary: Callable[[SuiteResult], None] = _ignore


def run_suite(
    options: BatchOptions,
    names: Sequence[str] | None = None,
    observer: SuiteObserver | None = None,
    *,
    pool: Pool | None = None,
) -> SuiteResult:
    """Run a batch of several scenarios and write suite.json into their folder; `batch.page_writer` also writes pages.

    A suite that was stopped continues if ``options.out`` names its folder again.  A scenario that cannot begin does
    not keep the others from running.

    Args:
        options: Options of each batch; ``out`` is the folder of all of them, ``baseline`` the folder of a suite.
        names: Names of installed scenarios; None: all.
        observer: Receives what happens.
        pool: Workers to use instead of ``options.workers`` and ``options.cluster``; closed by whoever created them.

    Raises:
        InputError: There is no such baseline or cluster, or the folder is not empty and holds no suite.
        RunError: The folder cannot be written.
    """
    observer = observer or SuiteObserver()
    installed = SCENARIOS
    scenario_names = sorted(installed) if names is None else list(names)
    suite_baseline = None if options.baseline is None else Path(options.baseline)
    if suite_baseline is not None and not (suite_baseline / SUMMARY).is_file():
        raise InputError(
            f"{suite_baseline} is no suite", location="--baseline", valid="the folder of a `roboyard batch all`"
        )
    with ExitStack() as stack:
        if pool is None and options.cluster is not None:
            pool = stack.enter_context(RayPool(options.cluster, options.workers))
        folder = _open_suite_folder(options.out, options.runs_folder)
        if pool is None:
            pool = stack.enter_context(ProcessPool(options.workers, preload=("roboyard.scenarios.batch.worker",)))
        summaries = {name: installed[name].summary if name in installed else "" for name in scenario_names}
        suite = SuiteResult(folder, {}, {}, summaries)
        for name in scenario_names:
            baseline = None if suite_baseline is None else suite_baseline / name
            batch_options = replace(
                options,
                out=folder / name,
                baseline=baseline if baseline is not None and baseline.is_dir() else None,
            )
            try:
                suite.batches[name] = run_batch(name, batch_options, observer.create_batch_observer(name), pool=pool)
            except InputError as error:
                suite.start_errors[name] = str(error)
            except BaseException:
                _write_summary(suite, observer)
                raise
            _write_summary(suite, observer)  # after each, so that the files are complete whatever ends the suite
        return suite


def _write_summary(suite: SuiteResult, observer: SuiteObserver) -> None:
    RunFolder(suite.folder).write_json(suite.folder / SUMMARY, suite.to_dict())
    observer.on_summary(suite)


def _open_suite_folder(out: str | Path | None, runs_folder: str | Path) -> Path:
    folder = Path(out) if out is not None else create_numbered_folder(f"{ALL}-batch", runs_folder).path
    if folder.is_dir() and any(folder.iterdir()) and not (folder / SUMMARY).is_file():
        raise InputError(f"{folder} is not empty and holds no suite", valid="a new folder, or that of the suite")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise make_write_error(folder, error) from error
    if not (folder / SUMMARY).is_file():
        RunFolder(folder).write_json(folder / SUMMARY, {"scenarios": {}})
    return folder
