"""Runs batches, comparisons and suites, and writes an HTML page about each into its folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from roboyard.compute import Pool
from roboyard.scenarios.batch.comparison import REPORT as COMPARISON_REPORT
from roboyard.scenarios.batch.comparison import VariantComparison, compare_variants
from roboyard.scenarios.batch.folder import REPORT as BATCH_REPORT
from roboyard.scenarios.batch.options import BatchOptions
from roboyard.scenarios.batch.runner import BatchObserver, BatchResult, run_batch
from roboyard.scenarios.batch.suite import SuiteObserver, SuiteResult, run_suite
from roboyard.scenarios.report.batch_pages import batch_page, comparison_page, suite_page
from roboyard.scenarios.run_folder import RunFolder


def _with_page(observer: BatchObserver | None) -> BatchObserver:
    """Return an observer that also writes the page of a batch whenever batch.json was written."""
    observer = observer or BatchObserver()

    def write_page(batch: BatchResult) -> None:
        RunFolder(batch.folder).write_text(batch.folder / BATCH_REPORT, batch_page(batch))
        observer.on_summary(batch)

    return replace(observer, on_summary=write_page)


def run_batch_and_report(
    scenario: str, options: BatchOptions, observer: BatchObserver | None = None, *, pool: Pool | None = None
) -> BatchResult:
    """Run a batch and write its page; arguments, result and errors are those of `run_batch`."""
    return run_batch(scenario, options, _with_page(observer), pool=pool)


def run_suite_and_report(
    options: BatchOptions,
    names: Sequence[str] | None = None,
    observer: SuiteObserver | None = None,
    *,
    pool: Pool | None = None,
) -> SuiteResult:
    """Run a suite and write its pages; arguments, result and errors are those of `run_suite`."""
    observer = observer or SuiteObserver()

    def write_page(suite: SuiteResult) -> None:
        RunFolder(suite.folder).write_text(suite.report, suite_page(suite))
        observer.on_summary(suite)

    page_observer = SuiteObserver(
        create_batch_observer=lambda name: _with_page(observer.create_batch_observer(name)), on_summary=write_page
    )
    return run_suite(options, names, page_observer, pool=pool)


def compare_and_report(
    scenario: str,
    vary: Sequence[str],
    options: BatchOptions,
    create_observer: Callable[[str], BatchObserver] | None = None,
    *,
    pool: Pool | None = None,
) -> VariantComparison:
    """Compare variants and write the pages; arguments, result and errors are those of `compare_variants`."""

    def create_page_observer(variant: str) -> BatchObserver:
        return _with_page(None if create_observer is None else create_observer(variant))

    result = compare_variants(scenario, vary, options, create_page_observer, pool=pool)
    RunFolder(result.folder).write_text(result.folder / COMPARISON_REPORT, comparison_page(result))
    return result
