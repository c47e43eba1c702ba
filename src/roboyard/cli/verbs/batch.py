"""``roboyard batch``: many runs of one scenario, and what they say about the next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from roboyard.cli.grammar import JsonOption

if TYPE_CHECKING:
    from roboyard.scenarios import BatchResult
    from roboyard.scenarios.against import Against


_BOOKKEEPING = ("smoke", "success", "recorded", "messages", "sim_seconds", "wall_seconds")
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
    against: Annotated[
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
    keep: Annotated[
        Literal["failed", "all", "none"], typer.Option(help="Whose recordings stay.", case_sensitive=False)
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
    from roboyard.cli.batch_display import BatchDisplay
    from roboyard.cli.terminal import emit
    from roboyard.scenarios import run_batch
    from roboyard.scenarios.batch_export import check_export, check_place, write_junit
    from roboyard.scenarios.batch_export import export as write_table

    for path in export or ():
        check_export(path)
    if junit is not None:
        check_place(junit, "--junit")
    if len(scenarios) > 1 or scenarios == ["all"]:
        from roboyard.cli.suite_display import batch_many

        alone = {"--vary": vary, "--design": design, "--set": settings, "--export": export}
        options = {"smoke": smoke, "keep": keep, "video": video, "seed": seed}
        raise typer.Exit(
            batch_many(
                scenarios, runs, workers, cluster, against, out, junit, alone=alone, quiet=quiet, json=json, **options
            )
        )
    (scenario,) = scenarios
    with BatchDisplay(scenario, runs, quiet=quiet or json) as display:
        result = run_batch(
            scenario, runs, workers=workers, seed=seed, out=out, overrides=settings or (), vary=vary or (),
            design=design, smoke=smoke, keep=keep, video=video, against=against, cluster=cluster,
            opened=display.opened, progress=display.finished, announce=display.show_phase,
        )  # fmt: skip
    for path in export or ():
        write_table(result.results, path)
    if junit is not None:
        write_junit([result], junit)
    if json:
        emit({**result.to_dict(), "folder": result.folder, "report": result.report})
    else:
        _show(result)
    raise typer.Exit(result.exit_code)


def _show(result: BatchResult) -> None:
    from roboyard.cli.terminal import count, say, table

    say(f"{result.scenario}: {result.success}")
    if result.resumed:
        say(f"  {count(result.resumed, 'run')} of before")
    if result.failures:
        say()
        varied = any(r.varied for r in result.failures)
        ways = [", ".join(f"{key}={value}" for key, value in r.varied.items()) for r in result.failures]
        rows = [
            (r.seed, r.state, *([way] if varied else []), r.reason)
            for r, way in zip(result.failures, ways, strict=True)
        ]
        table(("seed", "state", *(["with"] if varied else []), "why"), rows, right=("seed",))
    if result.against is not None:
        _show_against(result.against)
    spreads = [
        (name, f"{s.mean:.4g}", f"{s.deviation:.3g}", f"{s.minimum:.4g}", f"{s.median:.4g}", f"{s.maximum:.4g}")
        for name, s in result.spreads.items()
        if "." not in name and name not in _BOOKKEEPING
    ]
    if spreads:
        say()
        names = ("mean", "std dev", "min", "median", "max")
        table(("metric", *names), spreads, right=names)
    say(f"\n{result.report or result.folder}")


def _show_against(found: Against) -> None:
    from roboyard.cli.terminal import count, say, table

    say(f"\nbeside {found.baseline}, in {count(found.after.total, 'run')} of the same seeds:")
    say(f"  {found.before.successes} succeeded then, {found.after.successes} now (McNemar's p = {found.p:.2g})")
    if found.broken:
        say(f"  broken: {'; '.join(found.broken)}")
    if found.mended:
        say(f"  mended: {'; '.join(found.mended)}")
    for note in found.notes:
        say(f"  note: {note}")
    changed = [change for change in found.changes if change.verdict != "same"]
    if changed:
        say()
        names = ("before", "now", "difference", "95 % interval", "q")
        rows = [
            (
                c.name,
                {"other": "changed"}.get(c.verdict, c.verdict),
                f"{c.before:.4g}",
                f"{c.after:.4g}",
                f"{c.difference:+.3g}",
                f"{c.low:+.3g} to {c.high:+.3g}",
                f"{c.q:.2g}",
            )
            for c in changed
        ]
        table(("metric", "", *names), rows, right=names)
    say(f"  regressions: {', '.join(found.regressions) or 'none'}")
