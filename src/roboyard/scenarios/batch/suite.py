"""A batch of every installed scenario, on the same workers, with one page about all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from roboyard.bringup.catalog import SCENARIOS
from roboyard.compute import Pool, ProcessPool, RayPool
from roboyard.errors import InputError
from roboyard.scenarios.batch.runner import BatchProgress, BatchResult, run_batch
from roboyard.scenarios.run_folder import RunFolder, create_numbered_folder, make_write_error

ALL: Final = "all"
SUMMARY: Final = "suite.json"
REPORT: Final = "report.html"


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """What came of all scenarios.

    Attributes:
        folder: Where the page and a batch's folder for each scenario lie.
        batches: By scenario.
        refused: Why scenarios could not begin, by name.
        abouts: One line on each scenario.
        report: The page.
    """

    folder: Path
    batches: dict[str, BatchResult]
    start_errors: dict[str, str]
    summaries: dict[str, str]
    report: Path

    @property
    def runs(self) -> int:
        """Of all scenarios."""
        return sum(batch.success_rate.total for batch in self.batches.values())

    @property
    def successes(self) -> int:
        """Of all scenarios."""
        return sum(batch.success_rate.successes for batch in self.batches.values())

    @property
    def exit_code(self) -> int:
        """0 if every run of every scenario succeeded, and nothing got worse than in a baseline."""
        return 1 if self.start_errors or any(batch.exit_code for batch in self.batches.values()) else 0

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return {
            "scenarios": {name: batch.to_dict() for name, batch in self.batches.items()},
            "start_errors": dict(self.start_errors),
            "runs": self.runs,
            "successes": self.successes,
        }


def run_suite(
    runs: int,
    *,
    only: Sequence[str] | None = None,
    workers: int | None = None,
    out: str | Path | None = None,
    base: str | Path = "runs",
    baseline_path: str | Path | None = None,
    cluster: str | None = None,
    pool: Pool | None = None,
    progress: Callable[[str], tuple[Callable[[Path, int], None], BatchProgress]] | None = None,
    **batch_options: Any,
) -> SuiteResult:
    """Run a batch of every installed scenario.

    It goes on where it was when ``out`` names its folder again.  A scenario that cannot begin does not keep the others
    from it.

    Args:
        runs: Of each scenario.
        only: Some scenarios; None: all.
        workers: Processes; None: one a core.
        out: Folder; None: a new one, ``<base>/all-batch-<NNN>``.
        base: Where new folders are made.
        against: Folder of such a suite: each scenario that it has is compared with its batch there.
        cluster: Run on a Ray cluster, at this address.
        pool: Workers of another kind; closed by whoever made them.
        progress: Called with each scenario's name, gives what `run_batch` calls as ``opened`` and ``progress``.
        batch: Further arguments of `run_batch`.

    Raises:
        InputError: there are no runs, no scenarios, no such baseline, or ``out`` holds something else.
        RunError: the folder cannot be written.
    """
    from roboyard.scenarios.report.batch_pages import suite_page

    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise InputError(f"{runs!r} runs", location="--runs", valid="at least 1")
    names = sorted(SCENARIOS) if only is None else list(only)
    if baseline_path is not None and not (Path(baseline_path) / SUMMARY).is_file():
        raise InputError(
            f"{baseline_path} is no suite", location="--baseline", valid="the folder of a `roboyard batch all`"
        )
    with ExitStack() as stack:
        if pool is None and cluster is not None:
            pool = stack.enter_context(RayPool(cluster, workers))
        folder = _open_suite_folder(out, base)
        if pool is None:
            pool = stack.enter_context(ProcessPool(workers, preload=("roboyard.scenarios.batch.worker",)))
        batches: dict[str, BatchResult] = {}
        start_errors: dict[str, str] = {}
        summaries = {name: SCENARIOS[name].summary if name in SCENARIOS else "" for name in names}

        def write_summary() -> SuiteResult:
            suite_result = SuiteResult(folder, batches, start_errors, summaries, folder / REPORT)
            RunFolder(folder).write_json(folder / SUMMARY, suite_result.to_dict())
            RunFolder(folder).write_text(suite_result.report, suite_page(suite_result))
            return suite_result

        for name in names:
            on_opened, on_progress = (None, None) if progress is None else progress(name)
            baseline = None if baseline_path is None else Path(baseline_path) / name
            try:
                batches[name] = run_batch(
                    name, runs, out=folder / name, pool=pool, on_opened=on_opened, progress=on_progress,
                    baseline_path=baseline if baseline is not None and baseline.is_dir() else None, **batch_options,
                )  # fmt: skip
            except InputError as error:
                start_errors[name] = str(error)
            except BaseException:
                write_summary()
                raise
            write_summary()  # after each: whatever ends it, the page tells what there is
        return write_summary()


def _open_suite_folder(out: str | Path | None, base: str | Path) -> Path:
    folder = Path(out) if out is not None else create_numbered_folder(f"{ALL}-batch", base).path
    if folder.is_dir() and any(folder.iterdir()) and not (folder / SUMMARY).is_file():
        raise InputError(f"{folder} holds something else than a suite", valid="a new folder, or that of the suite")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise make_write_error(folder, error) from error
    if not (folder / SUMMARY).is_file():
        RunFolder(folder).write_json(folder / SUMMARY, {"scenarios": {}})
    return folder
