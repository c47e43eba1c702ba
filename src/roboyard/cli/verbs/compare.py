"""``roboyard compare``: one scenario in several ways, with the same seeds, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from roboyard.cli.grammar import JsonOption

if TYPE_CHECKING:
    from collections.abc import Callable

    from roboyard.scenarios import Comparison
    from roboyard.scenarios.batch_worker import Result


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
    keep: Annotated[
        Literal["failed", "all", "none"], typer.Option(help="Whose recordings stay.", case_sensitive=False)
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
    from contextlib import ExitStack

    from roboyard.cli.batch_display import BatchDisplay
    from roboyard.cli.terminal import emit
    from roboyard.scenarios import compare_scenario

    with ExitStack() as stack:

        def shown(way: str) -> Callable[[Result, int, int], None]:
            stack.close()
            return stack.enter_context(BatchDisplay(f"{scenario}, {way}", runs, quiet=quiet or json)).finished

        result = compare_scenario(
            scenario, vary, runs, overrides=settings or (), out=out, progress=shown, workers=workers, seed=seed,
            smoke=smoke, keep=keep,
        )  # fmt: skip
    if json:
        emit({**result.to_dict(), "folder": result.folder})
    else:
        _show(result)


def _show(result: Comparison) -> None:
    from roboyard.cli.terminal import say, table

    ways = list(result.batches)
    rows = [
        (name, *(f"{rates[way].successes}/{rates[way].total}" if rates[way].total else "-" for way in ways))
        for name, rates in result.shares().items()
    ]
    for name in result.asked:
        spreads = [result.batches[way].spreads.get(name) for way in ways]
        rows.append((name, *("-" if one is None else f"{one.mean:.4g}" for one in spreads)))
    table(("", *ways), rows, right=ways)
    say(f"\n{result.folder}/comparison.html")
