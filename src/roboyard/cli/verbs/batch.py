"""``roboyard batch``: many runs of one scenario, and what they say about the next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from roboyard.cli.grammar import JsonOption

if TYPE_CHECKING:
    from roboyard.scenarios import BatchResult


_BOOKKEEPING = ("smoke", "success", "recorded", "messages", "sim_seconds", "wall_seconds")
"""Metrics that say nothing about the robot; --json has them."""


def batch(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="A name of `roboyard list`, or a file.")],
    runs: Annotated[int, typer.Option("--runs", "-n", metavar="N", min=1, help="How many runs, each with its seed.")],
    workers: Annotated[int | None, typer.Option(metavar="K", min=1, help="Processes; default: one a core.")] = None,
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
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the result.")] = False,
    json: JsonOption = False,
) -> None:
    """Run a scenario many times, each with its own seed.

    Finished seeds are kept: naming the folder of a stopped or killed batch with --out goes on with it.

    Exit code 0: every run succeeded; 1: not every one; 2: the input was wrong.
    """
    from roboyard.cli.batch_display import BatchDisplay
    from roboyard.cli.terminal import emit
    from roboyard.scenarios import run_batch

    with BatchDisplay(scenario, runs, quiet=quiet or json) as display:
        result = run_batch(
            scenario, runs, workers=workers, seed=seed, out=out, overrides=settings or (), smoke=smoke, keep=keep,
            video=video, progress=display.finished,
        )  # fmt: skip
    if json:
        emit({**result.to_dict(), "folder": result.folder})
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
        table(("seed", "state", "why"), [(r.seed, r.state, r.reason) for r in result.failures], right=("seed",))
    rows = [
        (name, f"{s.mean:.4g}", f"{s.deviation:.3g}", f"{s.minimum:.4g}", f"{s.median:.4g}", f"{s.maximum:.4g}")
        for name, s in result.spreads.items()
        if "." not in name and name not in _BOOKKEEPING
    ]
    if rows:
        say()
        names = ("mean", "std dev", "min", "median", "max")
        table(("metric", *names), rows, right=names)
    say(f"\n{result.folder}/")
