"""``roboyard bench``: the figures that Roboyard promises, measured here and now beside their peers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roboyard.cli.grammar import JsonOption

if TYPE_CHECKING:
    from roboyard.cli.figures import Measured


def bench(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]…", help="engine, bus, …; default: all.")] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--dir", "--maps", "--pictures", metavar="DIR", help="Files, where a benchmark looks at files."),
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
    from roboyard.cli.bench_table import show
    from roboyard.cli.figures import INSTALL, benchmarks, measure
    from roboyard.cli.steps_outputs import check_file
    from roboyard.cli.terminal import emit, note, say
    from roboyard.errors import InputError, RunError

    if folder is not None and not folder.is_dir():
        raise InputError(f"there is no folder {folder}", valid="a folder of files to look at")
    if worlds is not None and not worlds.is_file():
        raise InputError(f"there is no file {worlds}", valid="a file of worlds")
    if traces is not None and not traces.is_file():
        raise InputError(f"there is no file {traces}", valid="a file of traces")
    check_file("--plot", plot, (".svg", ".png"))
    given = (
        ("runs", runs),
        ("seed", seed),
        ("worlds", worlds),
        ("seeds", seeds),
        ("robot", robot),
        ("traces", traces),
        ("terrains", terrains),
        ("plot", plot),
    )
    counts = {name: value for name, value in given if value is not None}
    if against is not None:
        from roboyard.cli.bench_against_table import bench_against

        words = [word for name, value in {"dir": folder, **counts}.items() for word in _option(name, value)]
        words += ["--nightly"] * nightly
        raise typer.Exit(bench_against(against, names or [], words, repeats, tolerance, as_json=json))
    results: dict[str, Measured] = {}
    for name, path in benchmarks(names or []).items():
        if not json:
            note(f"measuring {name} …")
        results[name] = measure(path, nightly=nightly, folder=folder, **counts)
    figures = {name: found.figures for name, found in results.items()}
    missed = [figure.name for found in figures.values() for figure in found if figure.held is False]
    skipped = [{"what": what, "why": why} for found in results.values() for what, why in found.skipped]
    if not any(figures.values()):
        reasons = "; ".join(f"{item['what']}: {item['why']}" for item in skipped) or "no figures"
        raise RunError(f"nothing could be measured: {reasons}", valid=INSTALL)
    if json:
        shown = {name: [figure.to_dict() for figure in found] for name, found in figures.items()}
        install, details = INSTALL if skipped else None, {name: found.details for name, found in results.items()}
        emit({"figures": shown, "missed": missed, "skipped": skipped, "install": install, "details": details})
    else:
        show(figures)
        for line in (line for found in results.values() for line in found.details):
            say(line)
        for item in skipped:
            note(f"skipped {item['what']}: {item['why']}")
        alone = [f"{f.name}: {f.missing}" for found in figures.values() for f in found if f.missing]
        for line in alone:
            note(f"without its peer {line}")
        if skipped or alone:
            note(f"what is missing comes with: {INSTALL}")
    if missed:
        raise typer.Exit(1)


def _option(name: str, value: object) -> list[str]:
    """An option, with paths that hold in another folder, too."""
    if value is None:
        return []
    is_path = isinstance(value, Path) or (name == "robot" and Path(str(value)).exists())
    return [f"--{name}", str(Path(str(value)).absolute()) if is_path else str(value)]
