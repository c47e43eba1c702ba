"""Entry point: runs a command, and turns each error into one line and an exit code."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import typer

from roboyard.cli import terminal
from roboyard.cli.app import is_command, make_app, make_summary_app
from roboyard.cli.completion import complete
from roboyard.cli.exit_codes import report_error


def main() -> None:
    """Run the ``roboyard`` program."""
    gc.set_threshold(300_000, 20, 100)  # imports make no garbage, and collections take a tenth of the start-up
    code = complete(lambda name: _load_command_line(_command_name([name] if name else [])))
    sys.exit(run(sys.argv[1:]) if code is None else code)


@cache
def _load_command_line(name: str | None = None) -> Any:
    """Return the program with one command, or with the summaries of all of them."""
    return typer.main.get_command(make_summary_app() if name is None else make_app([name]))


def _command_name(arguments: Sequence[str]) -> str | None:
    """The command that the first argument without a hyphen names; None where it names none."""
    first = next((word for word in arguments if not word.startswith("-")), None)
    return first if first is not None and is_command(first) else None


def run(arguments: Sequence[str]) -> int:
    """Run one command line.

    Args:
        arguments: Its words, without the name of the program.

    Returns:
        The exit code, see `exit_codes.ExitCode`.
    """
    as_json = "--json" in (arguments[: arguments.index("--")] if "--" in arguments else arguments)
    try:
        command = _load_command_line(_command_name(arguments))
        with _cache_warnings_as_lines(), command.make_context("roboyard", list(arguments)) as context:
            command.invoke(context)
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - the one place that turns exceptions into exit codes
        return report_error(error, as_json=as_json)
    return 0


@contextmanager
def _cache_warnings_as_lines() -> Iterator[None]:
    """Print warnings about the cache of kernels as notes, without their position in the source."""
    show = warnings.showwarning

    def divert_and_show(*arguments: Any, **options: Any) -> None:
        """Show the first warning; only a warning needs the import, which takes a tenth of the start-up."""
        from roboyard.compute.kernel_folders import divert_cache_warnings

        warnings.showwarning = show
        divert_cache_warnings(lambda message: terminal.print_note(f"warning: {message}"))
        warnings.showwarning(*arguments, **options)

    warnings.showwarning = divert_and_show
    try:
        yield
    finally:
        warnings.showwarning = show
