"""The entry point: runs a verb, and turns whatever happens into one line and an exit code."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import typer

from roboyard.cli.failures import report
from roboyard.cli.verbs import is_verb, make_app


def main() -> None:
    """The ``roboyard`` command."""
    gc.set_threshold(300_000, 20, 100)  # imports make no garbage, and to look for it takes a tenth of a start
    sys.exit(run(sys.argv[1:]))


@cache
def _command(verb: str | None = None) -> Any:
    """The command with one verb, or with all of them."""
    return typer.main.get_command(make_app(None if verb is None else [verb]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; gives its exit code."""
    as_json = "--json" in (arguments[: arguments.index("--")] if "--" in arguments else arguments)
    try:
        command = _command(arguments[0] if arguments and is_verb(arguments[0]) else None)
        with command.make_context("roboyard", list(arguments)) as context:
            command.invoke(context)
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - the one place where everything ends
        return report(error, as_json=as_json)
    return 0
