"""``roboyard precompile``: compiles kernels before a first run needs them."""

from __future__ import annotations

from typing import Annotated

import typer

from roboyard.cli.app import JsonOption


def precompile(
    scenarios: Annotated[
        list[str] | None, typer.Argument(metavar="SCENARIO", help="Names or files: the kernels that their runs call.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All kernels of the package.")] = False,
    json: JsonOption = False,
) -> None:
    """Compile kernels into the cache ahead of a first run.

    Useful in a Dockerfile, or for the cache of a CI service.

    Clones and environments with the same kernels, versions and processor share the cache.
    `roboyard doctor` says where it lies.
    """
    from roboyard.cli.terminal import print_json, print_line, print_note
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
    if json:
        print_json({"kernels": n_ready, "without_examples": without_examples, "cache": str(cache_root())})
        return
    print_line(f"{n_ready} kernels ready in {cache_root()}")
    if without_examples:
        print_line(f"compiled at their first call, having no examples: {len(without_examples)}")
