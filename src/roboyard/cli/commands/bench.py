"""``roboyard bench``: the figures that Roboyard promises, measured here and now beside their peers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roboyard.cli.app import JsonOption

if TYPE_CHECKING:
    from roboyard.cli.benchmarks import BenchmarkResult


def bench(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]…", help="engine, bus, …; default: all.")] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Files, where a benchmark looks at files."),
    ] = None,
    runs: Annotated[
        int | None, typer.Option("--runs", metavar="N", min=1, help="How many, where a benchmark counts runs.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="The first, where a benchmark has seeds.")] = None,
    worlds: Annotated[
        Path | None, typer.Option("--worlds", metavar="FILE.npz", help="Of the BARN benchmark, for barn.")
    ] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", metavar="N", min=1, help="Of each world, for barn.")] = None,
    robot: Annotated[
        str | None, typer.Option("--robot", metavar="NAME|FILE", help="Whose, where a benchmark is about arms.")
    ] = None,
    traces: Annotated[Path | None, typer.Option("--traces", metavar="FILE", help="Of trees, for tree.")] = None,
    terrains: Annotated[int | None, typer.Option("--terrains", metavar="N", min=1, help="How many, for steps.")] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE.svg", help="Draw planners over time, for steps; .png also."),
    ] = None,
    nightly: Annotated[bool, typer.Option("--nightly", help="Longer, with more repeats.")] = False,
    against: Annotated[
        str | None, typer.Option("--against", metavar="REVISION", help="Compare speed with this git revision's.")
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", min=1, help="How many pairs of runs, with --against.")
    ] = 5,
    tolerance: Annotated[
        float, typer.Option("--tolerance", metavar="PERCENT", help="How much slower is no failure, with --against.")
    ] = 3.0,
    json: JsonOption = False,
) -> None:
    """Measure what is promised, beside its peers.

    Needs a source checkout: the benchmarks are files in its folder benchmarks/.
    A peer that is not installed is said and left out.

    With --against, both revisions are measured in turn, and figures are compared pair by pair.

    Exit code 1 if a target is missed, or nothing could be measured; with --against if a figure is slower than the
    tolerance allows, with all of its spread, or a side could not be measured.
    """
    from roboyard.cli.arguments import validate_output_path
    from roboyard.cli.benchmarks import INSTALL_COMMAND, find_benchmarks, print_figures, run_benchmark
    from roboyard.cli.terminal import print_json, print_line, print_note
    from roboyard.errors import InputError, RunError

    if folder is not None and not folder.is_dir():
        raise InputError(f"there is no folder {folder}", valid="a folder of files to look at")
    if worlds is not None and not worlds.is_file():
        raise InputError(f"there is no file {worlds}", valid="a file of worlds")
    if traces is not None and not traces.is_file():
        raise InputError(f"there is no file {traces}", valid="a file of traces")
    validate_output_path("--plot", plot, (".svg", ".png"))
    optional_values = (
        ("runs", runs),
        ("seed", seed),
        ("worlds", worlds),
        ("seeds", seeds),
        ("robot", robot),
        ("traces", traces),
        ("terrains", terrains),
        ("plot", plot),
    )
    options = {name: value for name, value in optional_values if value is not None}
    if against is not None:
        from roboyard.cli.benchmark_comparison import compare_with_revision

        arguments = [word for name, value in {"data": folder, **options}.items() for word in _option_words(name, value)]
        arguments += ["--nightly"] * nightly
        raise typer.Exit(compare_with_revision(against, names or [], arguments, repeats, tolerance, as_json=json))
    results: dict[str, BenchmarkResult] = {}
    for name, path in find_benchmarks(names or []).items():
        if not json:
            print_note(f"measuring {name} …")
        results[name] = run_benchmark(path, nightly=nightly, folder=folder, **options)
    figures = {name: found.figures for name, found in results.items()}
    missed = [figure.name for found in figures.values() for figure in found if figure.is_target_met is False]
    skipped = [{"what": part, "why": reason} for found in results.values() for part, reason in found.skipped]
    if not any(figures.values()):
        reasons = "; ".join(f"{item['what']}: {item['why']}" for item in skipped) or "no figures"
        raise RunError(f"nothing could be measured: {reasons}", valid=INSTALL_COMMAND)
    if json:
        figure_data = {name: [figure.to_dict() for figure in found] for name, found in figures.items()}
        install, details = (
            INSTALL_COMMAND if skipped else None,
            {name: found.details for name, found in results.items()},
        )
        print_json(
            {"figures": figure_data, "missed": missed, "skipped": skipped, "install": install, "details": details}
        )
    else:
        print_figures(figures)
        for line in (line for found in results.values() for line in found.details):
            print_line(line)
        for item in skipped:
            print_note(f"skipped {item['what']}: {item['why']}")
        without_peer = [f"{f.name}: {f.missing}" for found in figures.values() for f in found if f.missing]
        for line in without_peer:
            print_note(f"without its peer {line}")
        if skipped or without_peer:
            print_note(f"what is missing comes with: {INSTALL_COMMAND}")
    if missed:
        raise typer.Exit(1)


def _option_words(name: str, value: object) -> list[str]:
    """An option, with paths that hold in another folder, too."""
    if value is None:
        return []
    is_path = isinstance(value, Path) or (name == "robot" and Path(str(value)).exists())
    return [f"--{name}", str(Path(str(value)).absolute()) if is_path else str(value)]
