"""Shell completion: installs it for bash, zsh and fish, and completes commands, options and names.

The functions that complete names load only light modules, since they run at every press of the tab key, and give no
name where an error occurs: a shell has no place to show it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import typer

from roboyard.errors import InputError, RoboyardError

if TYPE_CHECKING:
    from roboyard.bringup.catalog import FileRegistry

PROGRAM = "roboyard"
VARIABLE = "_ROBOYARD_COMPLETE"
"""The environment variable by which a shell asks for completions."""
SHELLS = ("bash", "zsh", "fish")
SCALAR_SCENARIO_KEYS = ("duration", "seed", "stop_when", "summary", "timestep", "world")
"""Keys at the top level of scenarios that hold one value and that every scenario may have."""

Arguments = ParamSpec("Arguments")
Completions = list[str] | list[tuple[str, str]]


def install_completion(value: bool) -> None:
    """Install the completion for the shell that called the program, and exit.

    Raises:
        InputError: The shell is none of `SHELLS`.
    """
    if value:
        from typer.completion import install  # type: ignore[attr-defined]

        from roboyard.cli.terminal import print_line

        shell, path = install(_find_shell(), PROGRAM, VARIABLE)
        print_line(f"completion for {shell} installed in {path}; it works in new terminals")
        raise typer.Exit


def show_completion(value: bool) -> None:
    """Print the completion script for the shell that called the program, and exit.

    Raises:
        InputError: The shell is none of `SHELLS`.
    """
    if value:
        from typer.completion import get_completion_script  # type: ignore[attr-defined]

        from roboyard.cli.terminal import print_line

        print_line(get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=_find_shell()))
        raise typer.Exit


def _find_shell() -> str:
    import shellingham  # type: ignore[import-untyped]

    try:
        shell = shellingham.detect_shell()[0]
    except shellingham.ShellDetectionFailure:
        shell = Path(os.environ.get("SHELL", "")).name
    if shell not in SHELLS:
        raise InputError(f"no completion for the shell {shell or '(unknown)'}", valid=", ".join(SHELLS))
    return str(shell)


def complete(make_command: Callable[[str | None], Any]) -> int | None:
    """Answer a shell that asks for completions.

    Args:
        make_command: Makes the program with one command, or with all where it is None.

    Returns:
        The exit code; None if no shell asks.
    """
    instruction = os.environ.get(VARIABLE)
    if not instruction:
        return None
    from typer.completion import completion_init, shell_complete  # type: ignore[attr-defined]

    completion_init()
    words = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    names = [word for word in words.split()[1:] if not word.startswith("-")]
    has_command = bool(names) and (len(words.split()) > 2 or words.endswith(" "))
    try:
        return shell_complete(make_command(names[0] if has_command else None), {}, PROGRAM, VARIABLE, instruction)
    except SystemExit as error:  # fish asks by the exit code whether there are completions
        return error.code if isinstance(error.code, int) else 1


def _without_errors(complete_names: Callable[Arguments, Completions]) -> Callable[Arguments, Completions]:
    """Make a completion return no names where an error occurs."""

    @wraps(complete_names)
    def complete_safely(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Completions:
        try:
            return complete_names(*args, **kwargs)
        except (RoboyardError, OSError, ValueError):
            return []

    return complete_safely


@_without_errors
def complete_scenarios(incomplete: str) -> Completions:
    """Complete the name of an installed scenario."""
    from roboyard.bringup.catalog import SCENARIOS

    return _complete_entries(SCENARIOS, incomplete)


@_without_errors
def complete_robots(incomplete: str) -> Completions:
    """Complete the name of an installed robot."""
    from roboyard.bringup.catalog import ROBOTS

    return _complete_entries(ROBOTS, incomplete)


@_without_errors
def complete_worlds(incomplete: str) -> Completions:
    """Complete the name of an installed world."""
    from roboyard.bringup.catalog import WORLDS

    return _complete_entries(WORLDS, incomplete)


@_without_errors
def complete_nodes(incomplete: str) -> Completions:
    """Complete the name of a registered node class."""
    from roboyard.bringup.catalog import NODES

    return _select(NODES.names(), incomplete)


@_without_errors
def complete_live_runs(incomplete: str) -> Completions:
    """Complete the name of a live run."""
    from roboyard.bus.socket import live_runs

    return _select((run.name for run in live_runs()), incomplete)


@_without_errors
def complete_topics(ctx: typer.Context, incomplete: str) -> Completions:
    """Complete the name of a topic of the live run or the recording that the command names."""
    from roboyard.cli.source import open_source

    with open_source(*_source_options(ctx)) as source:
        return _select_absolute((topic.name for topic in source.topics()), incomplete)


@_without_errors
def complete_run_nodes(ctx: typer.Context, incomplete: str) -> Completions:
    """Complete the name of a node of the live run or the recording that the command names."""
    from roboyard.cli.graph import list_nodes
    from roboyard.cli.source import open_source

    with open_source(*_source_options(ctx)) as source:
        return _select_absolute((node["name"] for node in list_nodes(source)), incomplete)


@_without_errors
def complete_settings(ctx: typer.Context, incomplete: str) -> Completions:
    """Complete a key of ``--set``: the options of the scenario with their choices, its keys, and its nested keys."""
    from roboyard.bringup.catalog import SCENARIOS
    from roboyard.config import read_yaml

    scenario = ctx.params.get("scenario") or ctx.params.get("scenarios")
    names = list(scenario) if isinstance(scenario, list | tuple) else [scenario] if scenario else ctx.args
    if len(names) != 1:  # the arguments are in ctx.args where an option still lacks its value
        return []
    data = read_yaml(SCENARIOS.resolve(str(names[0]))).to_data()
    return _select(_setting_keys(data), incomplete)


def _setting_keys(data: Any) -> Iterator[str]:
    """Keys that a scenario's file names, with ``=`` behind those that hold a value."""
    content = data if isinstance(data, Mapping) else {}
    for option, definition in (content.get("options") or {}).items():
        for choice in (definition or {}).get("choices") or {}:
            yield f"{option}={choice}"
    for key in dict.fromkeys([*SCALAR_SCENARIO_KEYS, *content]):
        value = content.get(key)
        if key in ("options", "variants"):
            continue
        if isinstance(value, Mapping):
            yield from _nested_keys(value, f"{key}.")
        else:
            yield f"{key}="


def _nested_keys(data: Mapping[str, Any], prefix: str) -> Iterator[str]:
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _nested_keys(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}="


def _complete_entries(registry: FileRegistry, incomplete: str) -> Completions:
    return [(entry.name, entry.summary) for entry in registry.entries() if entry.name.startswith(incomplete)]


def _select(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _source_options(ctx: typer.Context) -> tuple[str | None, Path | None]:
    file = ctx.params.get("file") or ctx.params.get("recording")
    return ctx.params.get("run"), None if file is None else Path(file)


def _select_absolute(names: Iterable[str], incomplete: str) -> list[str]:
    """Names of a bus, with the leading slash where the user typed it or nothing."""
    is_relative = incomplete != "" and not incomplete.startswith("/")
    return _select((name.removeprefix("/") if is_relative else name for name in names), incomplete)
