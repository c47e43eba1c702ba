"""Runs batches, comparisons and suites, and writes an HTML page about each into its folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from roboyard.compute import Pool
from roboyard.scenarios.batch.comparison import REPORT as COMPARISON_REPORT
from roboyard.scenarios.batch.comparison import VariantComparison, compare_variants
from roboyard.scenarios.batch.folder import REPORT as BATCH_REPORT
from roboyard.scenarios.batch.options import BatchOptions
from roboyard.scenarios.batch.runner import BatchObserver, BatchResult, run_batch
from roboyard.scenarios.batch.suite import SuiteObserver, SuiteResult, run_suite
from roboyard.scenarios.batch.worker import TrialResult
from roboyard.scenarios.report.batch_pages import batch_page, comparison_page, suite_page
from roboyard.scenarios.run_folder import RunFolder


class _BatchPageWriter(BatchObserver):
    """Writes the page of a batch whenever batch.json was written, and passes everything on to another observer."""

    def __init__(self, observer: BatchObserver | None) -> None:
        self._observer = observer or BatchObserver()

    def on_opened(self, folder: Path, runs: int) -> None:
        self._observer.on_opened(folder, runs)

    def on_stage(self, text: str) -> None:
        self._observer.on_stage(text)

    def on_result(self, result: TrialResult, finished: int, total: int) -> None:
        self._observer.on_result(result, finished, total)

    def on_summary(self, batch: BatchResult) -> None:
        RunFolder(batch.folder).write_text(batch.folder / BATCH_REPORT, batch_page(batch))
        self._observer.on_summary(batch)


class _SuitePageWriter(SuiteObserver):
    """Writes the pages of a suite and of its batches, and passes everything on to another observer."""

    def __init__(self, observer: SuiteObserver | None) -> None:
        self._observer = observer or SuiteObserver()

    def create_batch_observer(self, scenario: str) -> BatchObserver:
        return _BatchPageWriter(self._observer.create_batch_observer(scenario))

    def on_summary(self, suite: SuiteResult) -> None:
        RunFolder(suite.folder).write_text(suite.report, suite_page(suite))
        self._observer.on_summary(suite)


def run_and_report(
    scenario: str, options: BatchOptions, observer: BatchObserver | None = None, *, pool: Pool | None = None
) -> BatchResult:
    """Run a batch and write its page; arguments, result and errors are those of `run_batch`."""
    return run_batch(scenario, options, _BatchPageWriter(observer), pool=pool)


def run_suite_and_report(
    options: BatchOptions,
    names: Sequence[str] | None = None,
    observer: SuiteObserver | None = None,
    *,
    pool: Pool | None = None,
) -> SuiteResult:
    """Run a suite and write its pages; arguments, result and errors are those of `run_suite`."""
    return run_suite(options, names, _SuitePageWriter(observer), pool=pool)


def compare_and_report(
    scenario: str,
    vary: Sequence[str],
    options: BatchOptions,
    create_observer: Callable[[str], BatchObserver] | None = None,
    *,
    pool: Pool | None = None,
) -> VariantComparison:
    """Compare variants and write the pages; arguments, result and errors are those of `compare_variants`."""

    def create_page_writer(variant: str) -> BatchObserver:
        return _BatchPageWriter(None if create_observer is None else create_observer(variant))

    result = compare_variants(scenario, vary, options, create_page_writer, pool=pool)
    RunFolder(result.folder).write_text(result.folder / COMPARISON_REPORT, comparison_page(result))
    return result
