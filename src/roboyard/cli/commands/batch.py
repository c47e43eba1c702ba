"""``roboyard batch`` and ``roboyard compare``: many runs of scenarios, and several variants of one scenario."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roboyard.cli.completion import complete_scenarios
from roboyard.cli.options import (
    CLUSTER,
    OUT,
    RETAINED_RECORDINGS,
    RUNS,
    SEED,
    SET,
    SMOKE,
    VARY,
    VIDEO,
    WORKERS,
    JsonOption,
    QuietOption,
    ScenarioArgument,
    with_options,
)
from roboyard.cli.terminal import format_count, print_line, print_result, print_table
from roboyard.errors import InputError, UnknownNameError
from roboyard.scenarios.batch.options import BatchOptions

if TYPE_CHECKING:
    from roboyard.cli.run_display import BatchDisplay
    from roboyard.scenarios import BatchObserver, BatchResult, VariantComparison
    from roboyard.scenarios.batch.statistics import BaselineComparison
    from roboyard.scenarios.batch.suite import SuiteResult


_WORKERS = WORKERS("; default: one per core")
_FIRST_SEED = SEED(" of the first run; default: the scenario's")


@with_options(
    BatchOptions,
    {
        "runs": RUNS(", each with its own seed"),
        "vary": VARY(", by a distribution (below)"),
        "design": typer.Option(
            "--design", help="Design of the varied values; grid: N runs per point.", case_sensitive=False
        ),
        "baseline": typer.Option(
            "--baseline", metavar="PATH", help="Compare with this batch: its folder or batch.json."
        ),
        "workers": _WORKERS,
        "cluster": CLUSTER(),
        "first_seed": _FIRST_SEED,
        "overrides": SET(),
        "smoke": SMOKE(),
        "stored_runs": RETAINED_RECORDINGS(),
        "video": VIDEO(" of each failed run"),
        "out": OUT("; the folder of a stopped batch continues it", metavar="DIR"),
    },
    defaults={"video": True},
)
def batch(
    scenarios: Annotated[
        list[str],
        typer.Argument(
            metavar="SCENARIO…", help="Scenarios, by name or file; or all.", autocompletion=complete_scenarios
        ),
    ],
    *,
    options: BatchOptions,
    export: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Write a table of all runs: .csv or .parquet; repeatable.")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the runs as tests in JUnit XML, for CI systems.")
    ] = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Run a scenario many times with different seeds.

    The folder holds report.html, batch.json and the retained runs. --out with the folder of a stopped batch executes
    the missing runs.

    --vary KEY=uniform:LOW,HIGH, loguniform:LOW,HIGH, normal:MEAN,DEVIATION, integer:FIRST,LAST, range:LOW,HIGH,COUNT,
    or values: KEY=A,B.

    Several scenarios get a batch each and a common page. The scenario all stands for every installed one; with
    --smoke that takes minutes, not hours.

    Exit code 1: a run failed, or a metric regressed significantly from the baseline.
    """
    from roboyard.cli.exit_codes import exit_unless_success
    from roboyard.cli.run_display import BatchDisplay
    from roboyard.scenarios import run_batch_and_report
    from roboyard.scenarios.batch.export import ensure_writable, validate_export_path, write_junit
    from roboyard.scenarios.batch.export import export_results as write_table

    for path in export or ():
        validate_export_path(path)
    if junit is not None:
        ensure_writable(junit, "--junit")
    if len(scenarios) > 1 or scenarios == ["all"]:
        single_scenario_options = {
            "--vary": options.vary, "--design": options.design, "--set": options.overrides, "--export": export,
        }  # fmt: skip
        for option, value in single_scenario_options.items():
            if value:
                raise InputError(f"{option} requires a single scenario", valid=f"one scenario, or no {option}")
        exit_unless_success(run_suite_command(scenarios, options, junit, quiet=quiet, json=json))
        return
    (scenario,) = scenarios
    with BatchDisplay(scenario, options.runs, quiet=quiet or json) as display:
        result = run_batch_and_report(scenario, options, _observer(display))
    for path in export or ():
        write_table(result.results, path)
    if junit is not None:
        write_junit([result], junit)
    data = {**result.to_dict(), "folder": result.folder, "report": result.report}
    print_result(data, json, lambda _: _print_batch(result))
    exit_unless_success(result.exit_code)


def _observer(display: BatchDisplay) -> BatchObserver:
    """Return the observer that shows a batch on a display."""
    from roboyard.scenarios import BatchObserver

    return BatchObserver(on_opened=display.set_folder, on_stage=display.show_phase, on_result=display.add_result)


def _display_opener(runs: int, stack: ExitStack, *, quiet: bool) -> Callable[[str], BatchObserver]:
    """Return a function that opens the display of the next batch, after closing that of the batch before."""

    from roboyard.cli.run_display import BatchDisplay

    def open_display(name: str) -> BatchObserver:
        stack.close()
        return _observer(stack.enter_context(BatchDisplay(name, runs, quiet=quiet)))

    return open_display


def _print_batch(result: BatchResult) -> None:
    from roboyard.evaluation.plugin import shown_metrics
    from roboyard.scenarios.batch.statistics import UNCOMPARED_METRICS

    print_line(f"{result.scenario}: {result.success_rate}")
    if result.resumed_count:
        print_line(f"  {format_count(result.resumed_count, 'run')} from before")
    if result.failures:
        print_line()
        varied = any(r.varied_values for r in result.failures)
        variations = [", ".join(f"{key}={value}" for key, value in r.varied_values.items()) for r in result.failures]
        rows = [
            (r.seed, r.state, *([variation] if varied else []), r.reason)
            for r, variation in zip(result.failures, variations, strict=True)
        ]
        print_table(("seed", "state", *(["varied"] if varied else []), "reason"), rows, right=("seed",))
    if result.baseline_comparison is not None:
        _print_baseline_comparison(result.baseline_comparison)
    first_names = (*result.comparison_metrics, *(metric.name for metric in shown_metrics()))
    ordered_names = dict.fromkeys((*first_names, *result.metric_summaries))
    spreads = [
        (
            name,
            f"{s.mean:.4g}",
            f"{s.standard_deviation:.3g}",
            f"{s.minimum:.4g}",
            f"{s.median:.4g}",
            f"{s.maximum:.4g}",
        )
        for name in ordered_names
        if (s := result.metric_summaries.get(name)) is not None
        and (name in result.comparison_metrics or ("." not in name and name not in UNCOMPARED_METRICS))
    ]
    if spreads:
        print_line()
        names = ("mean", "std dev", "min", "median", "max")
        print_table(("metric", *names), spreads, right=names)
    print_line(f"\n{result.report or result.folder}")


def _print_baseline_comparison(found: BaselineComparison) -> None:
    n_pairs = format_count(found.after.total, "run")
    print_line(f"\ncompared with the baseline {found.baseline}, {n_pairs} with the same seeds:")
    print_line(
        f"  {found.before.successes} succeeded before, {found.after.successes} now (McNemar's p = {found.p:.2g})"
    )
    if found.newly_failed:
        print_line(f"  newly failed: {'; '.join(found.newly_failed)}")
    if found.newly_passed:
        print_line(f"  newly passed: {'; '.join(found.newly_passed)}")
    for note in found.notes:
        print_line(f"  note: {note}")
    changed = [change for change in found.changes if change.kind != "unchanged"]
    if changed:
        print_line()
        names = ("before", "now", "difference", "95 % interval", "q")
        rows = [
            (
                c.name,
                c.kind,
                f"{c.before:.4g}",
                f"{c.after:.4g}",
                f"{c.difference:+.3g}",
                f"{c.low:+.3g} to {c.high:+.3g}",
                f"{c.q:.2g}",
            )
            for c in changed
        ]
        print_table(("metric", "", *names), rows, right=names)
    print_line(f"  regressions: {', '.join(found.regressions) or 'none'}")


def run_suite_command(
    names: Sequence[str], options: BatchOptions, junit: Path | None, *, quiet: bool, json: bool
) -> int:
    """Run several scenarios, or all for ["all"], print the result, and return the exit code.

    Raises:
        InputError: A name is given twice.
        UnknownNameError: A name is not that of an installed scenario.
    """
    from roboyard.scenarios import run_suite_and_report
    from roboyard.scenarios.batch.export import write_junit
    from roboyard.scenarios.batch.suite import SuiteObserver

    selected_names = None if list(names) == ["all"] else _check_names(names)
    with ExitStack() as stack:
        open_display = _display_opener(options.runs, stack, quiet=quiet or json)
        result = run_suite_and_report(options, selected_names, SuiteObserver(create_batch_observer=open_display))
    if junit is not None:
        write_junit(list(result.batches.values()), junit)
    data = {**result.to_dict(), "folder": result.folder, "report": result.report}
    print_result(data, json, lambda _: _print_suite(result))
    return result.exit_code


def _check_names(names: Sequence[str]) -> Sequence[str]:
    from roboyard.bringup.catalog import SCENARIOS
    from roboyard.config.wording import did_you_mean

    if "all" in names:
        raise InputError("the name all stands for every scenario", valid="all alone, or names of scenarios")
    for name in names:
        if name not in SCENARIOS:
            hint = did_you_mean(name, SCENARIOS)
            raise UnknownNameError(f"unknown scenario '{name}'", valid=f"names of `roboyard list scenarios`{hint}")
    duplicate = next((name for name in names if list(names).count(name) > 1), None)
    if duplicate is not None:
        raise InputError(f"scenario '{duplicate}' occurs twice", valid="each scenario once")
    return names


def _print_suite(result: SuiteResult) -> None:
    rows = []
    for name in result.summaries:
        if name in result.start_errors:
            rows.append((name, "-", "-", result.start_errors[name]))
            continue
        rate = result.batches[name].success_rate
        reasons = dict.fromkeys(failure.reason or failure.state for failure in result.batches[name].failures)
        interval = f"{rate.low:.0%} to {rate.high:.0%}"
        rows.append((name, f"{rate.successes}/{rate.total}", interval, "; ".join(reasons)))
    print_table(("scenario", "succeeded", "95 % interval", "reason"), rows, right=("succeeded", "95 % interval"))
    print_line(f"\n{result.successes} of {format_count(result.runs, 'run')} succeeded\n\n{result.report}")


@with_options(
    BatchOptions,
    {
        "runs": RUNS(" of each variant, each with its own seed"),
        "workers": _WORKERS,
        "first_seed": _FIRST_SEED,
        "overrides": SET(" of all variants"),
        "smoke": SMOKE(),
        "stored_runs": RETAINED_RECORDINGS(),
        "out": OUT("; the folder of a stopped comparison continues it", metavar="DIR"),
    },
    defaults={"runs": 5},
)
def compare(
    scenario: ScenarioArgument,
    *,
    vary: Annotated[list[str], VARY(", by values: method=own,thesis")],
    options: BatchOptions,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Compare variants of a scenario with the same seeds.

    The folder holds a batch for each variant and comparison.html with success rates, their intervals, and metrics.

    Exit code 0: the variants ran, also where runs failed.
    """
    from roboyard.scenarios import compare_and_report

    with ExitStack() as stack:
        open_display = _display_opener(options.runs, stack, quiet=quiet or json)
        result = compare_and_report(scenario, vary, options, lambda variant: open_display(f"{scenario}, {variant}"))
    print_result({**result.to_dict(), "folder": result.folder}, json, lambda _: _print_comparison(result))


def _print_comparison(result: VariantComparison) -> None:
    variants = list(result.batches)
    rows = [
        (
            name,
            *(
                f"{rates[variant].successes}/{rates[variant].total}" if rates[variant].total else "-"
                for variant in variants
            ),
        )
        for name, rates in result.success_rates().items()
    ]
    for name in result.compared_metrics:
        spreads = [result.batches[variant].metric_summaries.get(name) for variant in variants]
        rows.append((name, *("-" if one is None else f"{one.mean:.4g}" for one in spreads)))
    print_table(("", *variants), rows, right=variants)
    print_line(f"\n{result.folder}/comparison.html")
