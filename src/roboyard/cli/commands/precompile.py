"""``roboyard precompile``: compiles kernels before a first run."""

from __future__ import annotations

from typing import Annotated

import typer

from roboyard.cli.completion import complete_scenarios
from roboyard.cli.options import ALL, JsonOption


def precompile(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCENARIO…", help="Scenarios whose kernels are compiled.", autocompletion=complete_scenarios
        ),
    ] = None,
    everything: Annotated[bool, ALL(", all kernels of the package")] = False,
    json: JsonOption = False,
) -> None:
    """Compile kernels into the cache before a first run.

    Useful in a Dockerfile, or for the cache of a CI service.

    Clones and environments with the same kernels, versions and processor share the cache, whose folder
    `roboyard doctor` prints.
    """
    from roboyard.cli.terminal import print_line, print_note, print_result
    from roboyard.compute import cache_root, compile_all_kernels, expected_kernels, wait_for_kernels
    from roboyard.errors import InputError
    from roboyard.scenarios import load_scenario
    from roboyard.scenarios.assembly import build_run
    from roboyard.scenarios.resolve import resolve_scenario

    if bool(scenarios) == everything:
        selection = "scenarios and --all" if everything else "neither a scenario nor --all"
        raise InputError(f"{selection} given, so no kernel was compiled", valid="names of scenarios, or --all alone")
    specs = [load_scenario(name) for name in scenarios or ()]

    def report(progress: object) -> None:
        if not json:
            print_note(f"compiling {progress}")

    without_examples = compile_all_kernels(report=report) if everything else []
    for spec in specs:
        with build_run(resolve_scenario(spec), record=False):
            wait_for_kernels(report=report)
    n_ready = len(expected_kernels())
    result = {"kernels": n_ready, "without_examples": without_examples, "cache": str(cache_root())}

    def show(_: object) -> None:
        print_line(f"{n_ready} kernels ready in {cache_root()}")
        if without_examples:
            print_line(f"{len(without_examples)} kernels have no example and compile at their first call")

    print_result(result, json, show)
