"""``roboyard batch`` and ``roboyard compare``: many runs of scenarios, and variants of one scenario side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from roboyard.cli.app import JsonOption
from roboyard.cli.run_display import BatchDisplay
from roboyard.cli.terminal import format_count, print_json, print_line, print_table
from roboyard.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from roboyard.scenarios import BatchObserver, BatchOptions, BatchResult, VariantComparison
    from roboyard.scenarios.batch.statistics import BaselineComparison
    from roboyard.scenarios.batch.suite import SuiteResult


_BOOKKEEPING_METRICS = ("smoke", "success", "recorded", "messages", "sim_time", "wall_time")
"""Metrics that say nothing about the robot; --json has them."""


def batch(
    scenarios: Annotated[
        list[str],
        typer.Argument(metavar="SCENARIO…", help="A name of `roboyard list`, or a file; several names; or all."),
    ],
    runs: Annotated[int, typer.Option("--runs", "-n", metavar="N", min=1, help="How many runs, each with its seed.")],
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", metavar="KEY=DIST", help="Drawn for each run: uniform:0,1, normal:m,s, a,b, … (below)."),
    ] = None,
    design: Annotated[
        Literal["random", "lhs", "grid"] | None,
        typer.Option(help="How runs lie among what varies; grid: N runs at each point.", case_sensitive=False),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(metavar="BASELINE", help="A batch's folder or batch.json: is this one worse?")
    ] = None,
    workers: Annotated[int | None, typer.Option(metavar="K", min=1, help="Processes; default: one a core.")] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDR", help="Run on a Ray cluster: HOST:PORT of its head, or local.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="First seed; default: the scenario's.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Another value: duration=10.")
    ] = None,
    smoke: Annotated[bool, typer.Option("--smoke", help="The short variant, at most 5 s.")] = False,
    retained_recordings: Annotated[
        Literal["failed", "all", "none"], typer.Option("--keep", help="Whose recordings stay.", case_sensitive=False)
    ] = "failed",
    video: Annotated[bool, typer.Option("--video/--no-video", help="Make a video of each failed run.")] = True,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="New folder, or that of a batch to go on with.")
    ] = None,
    export: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="A table of all runs, in .csv or .parquet.")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Runs as tests, in JUnit's XML, for CI systems.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the result.")] = False,
    json: JsonOption = False,
) -> None:
    """Run a scenario many times, each with its own seed.

    It leaves a folder with report.html, batch.json and the runs that are kept. Finished runs are not repeated: naming
    the folder of a stopped or killed batch with --out goes on with it.

    --vary KEY=uniform:LOW,HIGH, loguniform:LOW,HIGH, normal:MEAN,DEVIATION, integer:FIRST,LAST, range:LOW,HIGH,COUNT,
    or values: KEY=A,B. May be repeated.

    Several SCENARIOs: a batch of each, and one page about all of them. SCENARIO all: every installed one; with --smoke
    that takes minutes, not hours.

    Exit code 0: every run succeeded, and nothing got significantly worse than in the baseline; 1: it is not so; 2: the
    input was wrong.
    """
    from roboyard.scenarios import BatchOptions, run_and_report
    from roboyard.scenarios.batch.export import ensure_writable, validate_export_path, write_junit
    from roboyard.scenarios.batch.export import export_results as write_table

    for path in export or ():
        validate_export_path(path)
    if junit is not None:
        ensure_writable(junit, "--junit")
    options = BatchOptions(
        runs=runs, first_seed=seed, overrides=tuple(settings or ()), smoke=smoke, vary=tuple(vary or ()), design=design,
        workers=workers, cluster=cluster, out=out, keep=retained_recordings, video=video, baseline=baseline,
    )  # fmt: skip
    if len(scenarios) > 1 or scenarios == ["all"]:
        single_scenario_options = {"--vary": vary, "--design": design, "--set": settings, "--export": export}
        for option, value in single_scenario_options.items():
            if value:
                raise InputError(f"{option} with several scenarios", valid="one scenario, or without it")
        raise typer.Exit(run_suite_command(scenarios, options, junit, quiet=quiet, json=json))
    (scenario,) = scenarios
    with BatchDisplay(scenario, runs, quiet=quiet or json) as display:
        result = run_and_report(scenario, options, _observer(display))
    for path in export or ():
        write_table(result.results, path)
    if junit is not None:
        write_junit([result], junit)
    if json:
        print_json({**result.to_dict(), "folder": result.folder, "report": result.report})
    else:
        _print_batch(result)
    raise typer.Exit(result.exit_code)


def _observer(display: BatchDisplay) -> BatchObserver:
    """Return the observer that shows a batch on a display."""
    from roboyard.scenarios import BatchObserver

    return BatchObserver(on_opened=display.set_folder, on_stage=display.show_phase, on_result=display.add_result)


def _display_opener(runs: int, stack: ExitStack, *, quiet: bool) -> Callable[[str], BatchObserver]:
    """Return a function that opens the display of the next batch, after closing that of the batch before."""

    def open_display(name: str) -> BatchObserver:
        stack.close()
        return _observer(stack.enter_context(BatchDisplay(name, runs, quiet=quiet)))

    return open_display


def _print_batch(result: BatchResult) -> None:
    from roboyard.cli.terminal import format_count, print_line, print_table

    print_line(f"{result.scenario}: {result.success_rate}")
    if result.resumed_count:
        print_line(f"  {format_count(result.resumed_count, 'run')} of before")
    if result.failures:
        print_line()
        varied = any(r.varied_values for r in result.failures)
        variations = [", ".join(f"{key}={value}" for key, value in r.varied_values.items()) for r in result.failures]
        rows = [
            (r.seed, r.state, *([variation] if varied else []), r.reason)
            for r, variation in zip(result.failures, variations, strict=True)
        ]
        print_table(("seed", "state", *(["with"] if varied else []), "why"), rows, right=("seed",))
    if result.baseline_comparison is not None:
        _print_baseline_comparison(result.baseline_comparison)
    spreads = [
        (
            name,
            f"{s.mean:.4g}",
            f"{s.standard_deviation:.3g}",
            f"{s.minimum:.4g}",
            f"{s.median:.4g}",
            f"{s.maximum:.4g}",
        )
        for name, s in result.metric_summaries.items()
        if "." not in name and name not in _BOOKKEEPING_METRICS
    ]
    if spreads:
        print_line()
        names = ("mean", "std dev", "min", "median", "max")
        print_table(("metric", *names), spreads, right=names)
    print_line(f"\n{result.report or result.folder}")


def _print_baseline_comparison(found: BaselineComparison) -> None:
    from roboyard.cli.terminal import format_count, print_line, print_table

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
    if json:
        print_json({**result.to_dict(), "folder": result.folder, "report": result.report})
    else:
        _print_suite(result)
    return result.exit_code


def _check_names(names: Sequence[str]) -> Sequence[str]:
    from roboyard.bringup.catalog import SCENARIOS
    from roboyard.config.wording import did_you_mean

    for name in names:
        if name not in SCENARIOS:
            hint = did_you_mean(name, SCENARIOS)
            raise UnknownNameError(f"'{name}' among several scenarios", valid=f"names of `roboyard list`{hint}")
    duplicate = next((name for name in names if list(names).count(name) > 1), None)
    if duplicate is not None:
        raise InputError(f"'{duplicate}' is named twice", valid="each scenario once")
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
    print_table(("scenario", "succeeded", "95 % interval", "why not"), rows, right=("succeeded", "95 % interval"))
    print_line(f"\n{result.successes} of {format_count(result.runs, 'run')} succeeded\n\n{result.report}")


def compare(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="A name of `roboyard list`, or a file.")],
    vary: Annotated[
        list[str], typer.Option("--vary", metavar="KEY=A,B", help="What differs: method=own,thesis. May be repeated.")
    ],
    runs: Annotated[int, typer.Option("--runs", "-n", metavar="N", min=1, help="How many of each, one a seed.")] = 5,
    workers: Annotated[int | None, typer.Option(metavar="K", min=1, help="Processes; default: one a core.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="First seed; default: the scenario's.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Another value, for all: duration=10.")
    ] = None,
    smoke: Annotated[bool, typer.Option("--smoke", help="The short variant, at most 5 s.")] = False,
    retained_recordings: Annotated[
        Literal["failed", "all", "none"], typer.Option("--keep", help="Whose recordings stay.", case_sensitive=False)
    ] = "failed",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="New folder, or that of a comparison to go on with.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the result.")] = False,
    json: JsonOption = False,
) -> None:
    """Run a scenario in several ways, side by side.

    Each way gets the same seeds. It leaves a folder with a batch for each way and comparison.html: shares with their
    intervals, each run's metrics.

    Exit code 0: it ran, whatever came of it; 2: the input was wrong.
    """
    from roboyard.scenarios import BatchOptions, compare_and_report

    options = BatchOptions(
        runs=runs, first_seed=seed, overrides=tuple(settings or ()), smoke=smoke, workers=workers, out=out,
        keep=retained_recordings,
    )  # fmt: skip
    with ExitStack() as stack:
        open_display = _display_opener(runs, stack, quiet=quiet or json)
        result = compare_and_report(scenario, vary, options, lambda variant: open_display(f"{scenario}, {variant}"))
    if json:
        print_json({**result.to_dict(), "folder": result.folder})
    else:
        _print_comparison(result)


def _print_comparison(result: VariantComparison) -> None:
    from roboyard.cli.terminal import print_line, print_table

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
