"""``roboyard bench``: benchmarks of Roboyard and of reference implementations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roboyard.cli.options import ROBOT, RUNS, SEED, JsonOption

if TYPE_CHECKING:
    from roboyard.cli.benchmarks import BenchmarkResult


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Benchmarks: engine, bus, …; default: all.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="Folder of the files that a benchmark reads.")
    ] = None,
    runs: Annotated[int | None, RUNS(", where a benchmark counts runs")] = None,
    seed: Annotated[int | None, SEED(", where a benchmark has one; the first of several")] = None,
    worlds: Annotated[
        Path | None, typer.Option(metavar="FILE.npz", help="Worlds of the BARN data set, for barn.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(metavar="N", min=1, help="Seeds per world, for barn.")] = None,
    robot: Annotated[str | None, ROBOT(", where a benchmark is about arms")] = None,
    traces: Annotated[Path | None, typer.Option(metavar="FILE", help="Traces of trees, for tree.")] = None,
    terrains: Annotated[int | None, typer.Option(metavar="N", min=1, help="Number of terrains, for steps.")] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Plot planners over time, for steps: .svg or .png.")
    ] = None,
    nightly: Annotated[bool, typer.Option("--nightly", help="Run longer, with more repeats.")] = False,
    against: Annotated[
        str | None, typer.Option(metavar="REVISION", help="Compare the speed with this git revision.")
    ] = None,
    repeats: Annotated[int, typer.Option(metavar="N", min=1, help="Number of pairs of runs, with --against.")] = 5,
    tolerance: Annotated[float, typer.Option(metavar="PERCENT", help="Accepted slowdown, with --against [%].")] = 3.0,
    json: JsonOption = False,
) -> None:
    """Run benchmarks, including reference implementations.

    It needs a source checkout: the benchmarks are files in its folder benchmarks/. The command names reference
    implementations that are not installed, and leaves them out.

    With --against it measures both revisions in turn, and compares figures pair by pair.

    Exit code 1: a target is missed, or nothing could be measured; with --against: a figure is slower than the
    tolerance with its whole interval, or a revision could not be measured.
    """
    from roboyard.cli.arguments import validate_output_path
    from roboyard.cli.benchmarks import INSTALL_COMMAND, find_benchmarks, print_figures, run_benchmark
    from roboyard.cli.exit_codes import ExitCode, exit_unless_success
    from roboyard.cli.terminal import print_lines, print_note, print_result
    from roboyard.errors import InputError, RunError

    if folder is not None and not folder.is_dir():
        raise InputError(f"there is no folder {folder}", valid="a folder that exists")
    if worlds is not None and not worlds.is_file():
        raise InputError(f"there is no file {worlds}", valid="a file that exists")
    if traces is not None and not traces.is_file():
        raise InputError(f"there is no file {traces}", valid="a file that exists")
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
        exit_unless_success(compare_with_revision(against, names or [], arguments, repeats, tolerance, as_json=json))
        return
    results: dict[str, BenchmarkResult] = {}
    for name, path in find_benchmarks(names or []).items():
        if not json:
            print_note(f"measuring {name} …")
        results[name] = run_benchmark(path, nightly=nightly, folder=folder, **options)
    figures = {name: found.figures for name, found in results.items()}
    missed = [figure.name for found in figures.values() for figure in found if figure.is_target_met is False]
    skipped = [{"part": part, "reason": reason} for found in results.values() for part, reason in found.skipped]
    if not any(figures.values()):
        reasons = "; ".join(f"{item['part']}: {item['reason']}" for item in skipped) or "no figures"
        raise RunError(f"no benchmark could be measured: {reasons}", valid=INSTALL_COMMAND)

    def show(_: object) -> None:
        print_figures(figures)
        print_lines(line for found in results.values() for line in found.details)
        for item in skipped:
            print_note(f"skipped {item['part']}: {item['reason']}")
        without_peer = [f"{f.name}: {f.missing}" for found in figures.values() for f in found if f.missing]
        for line in without_peer:
            print_note(f"without reference {line}")
        if skipped or without_peer:
            print_note(f"install the missing packages with: {INSTALL_COMMAND}")

    result = {
        "figures": {name: [figure.to_dict() for figure in found] for name, found in figures.items()},
        "missed": missed,
        "skipped": skipped,
        "install": INSTALL_COMMAND if skipped else None,
        "details": {name: found.details for name, found in results.items()},
    }
    print_result(result, json, show)
    exit_unless_success(ExitCode.FAILURE if missed else ExitCode.SUCCESS)


def _option_words(name: str, value: object) -> list[str]:
    """Return an option as words; paths are absolute, since the other revision runs in another folder."""
    if value is None:
        return []
    is_path = isinstance(value, Path) or (name == "robot" and Path(str(value)).exists())
    return [f"--{name}", str(Path(str(value)).absolute()) if is_path else str(value)]
