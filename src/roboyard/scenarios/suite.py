"""A batch of every installed scenario, one after the other on the same workers, and one page about all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from roboyard.compute import Pool, ProcessPool, RayPool
from roboyard.errors import InputError
from roboyard.scenarios.batch import BatchResult, Progress, run_batch
from roboyard.scenarios.catalog import scenarios
from roboyard.scenarios.run_folder import RunFolder, new_folder, unwritable

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
    refused: dict[str, str]
    abouts: dict[str, str]
    report: Path

    @property
    def runs(self) -> int:
        """Of all scenarios."""
        return sum(batch.success.total for batch in self.batches.values())

    @property
    def successes(self) -> int:
        """Of all scenarios."""
        return sum(batch.success.successes for batch in self.batches.values())

    @property
    def exit_code(self) -> int:
        """0 if every run of every scenario succeeded, and nothing got worse than in a baseline."""
        return 1 if self.refused or any(batch.exit_code for batch in self.batches.values()) else 0

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return {
            "scenarios": {name: batch.to_dict() for name, batch in self.batches.items()},
            "refused": dict(self.refused),
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
    against: str | Path | None = None,
    cluster: str | None = None,
    pool: Pool | None = None,
    progress: Callable[[str], tuple[Callable[[Path, int], None], Progress]] | None = None,
    **batch: Any,
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
    from roboyard.scenarios.report.suite import suite_page

    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise InputError(f"{runs!r} runs", location="--runs", valid="at least 1")
    known = scenarios()
    names = sorted(known) if only is None else list(only)
    if against is not None and not (Path(against) / SUMMARY).is_file():
        raise InputError(f"{against} is no suite", location="--against", valid="the folder of a `roboyard batch all`")
    with ExitStack() as stack:
        if pool is None and cluster is not None:
            pool = stack.enter_context(RayPool(cluster, workers))
        folder = _open(out, base)
        if pool is None:
            pool = stack.enter_context(ProcessPool(workers, preload=("roboyard.scenarios.batch_worker",)))
        batches: dict[str, BatchResult] = {}
        refused: dict[str, str] = {}
        abouts = {name: known[name].summary if name in known else "" for name in names}

        def sum_up() -> SuiteResult:
            found = SuiteResult(folder, batches, refused, abouts, folder / REPORT)
            RunFolder(folder).write_json(folder / SUMMARY, found.to_dict())
            RunFolder(folder).write_text(found.report, suite_page(found))
            return found

        for name in names:
            opened, told = (None, None) if progress is None else progress(name)
            baseline = None if against is None else Path(against) / name
            try:
                batches[name] = run_batch(
                    name, runs, out=folder / name, pool=pool, opened=opened, progress=told,
                    against=baseline if baseline is not None and baseline.is_dir() else None, **batch,
                )  # fmt: skip
            except InputError as error:
                refused[name] = str(error)
            except BaseException:
                sum_up()
                raise
            sum_up()  # after each: whatever ends it, the page tells what there is
        return sum_up()


def _open(out: str | Path | None, base: str | Path) -> Path:
    folder = Path(out) if out is not None else new_folder(f"{ALL}-batch", base).path
    if folder.is_dir() and any(folder.iterdir()) and not (folder / SUMMARY).is_file():
        raise InputError(f"{folder} holds something else than a suite", valid="a new folder, or that of the suite")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error
    if not (folder / SUMMARY).is_file():
        RunFolder(folder).write_json(folder / SUMMARY, {"scenarios": {}})
    return folder
