"""``roboyard batch all``: every installed scenario, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from roboyard.cli.batch_display import BatchDisplay
from roboyard.cli.terminal import count, emit, say, table
from roboyard.errors import InputError
from roboyard.scenarios.batch_export import write_junit
from roboyard.scenarios.suite import SuiteResult, run_suite


def batch_all(
    runs: int,
    workers: int | None,
    cluster: str | None,
    against: Path | None,
    out: Path | None,
    junit: Path | None,
    *,
    alone: Mapping[str, object],
    quiet: bool,
    json: bool,
    **options: Any,
) -> int:
    """Run all, show what came of it, and give the exit code.

    Raises:
        InputError: an option is given that only makes sense for one scenario (``alone``).
    """
    for name, value in alone.items():
        if value:
            raise InputError(f"{name} with all scenarios", valid="one scenario, or without it")
    with ExitStack() as stack:

        def shown(name: str) -> tuple[Callable[[Path, int], None], Callable[..., None]]:
            stack.close()
            display = stack.enter_context(BatchDisplay(name, runs, quiet=quiet or json))
            return display.opened, display.finished

        result = run_suite(
            runs, workers=workers, cluster=cluster, against=against, out=out, progress=shown, **options
        )  # fmt: skip
    if junit is not None:
        write_junit(list(result.batches.values()), junit)
    if json:
        emit({**result.to_dict(), "folder": result.folder, "report": result.report})
    else:
        _show(result)
    return result.exit_code


def _show(result: SuiteResult) -> None:
    rows = []
    for name in result.abouts:
        if name in result.refused:
            rows.append((name, "-", "-", result.refused[name]))
            continue
        rate = result.batches[name].success
        reasons = dict.fromkeys(failure.reason or failure.state for failure in result.batches[name].failures)
        interval = f"{rate.low:.0%} to {rate.high:.0%}"
        rows.append((name, f"{rate.successes}/{rate.total}", interval, "; ".join(reasons)))
    table(("scenario", "succeeded", "95 % interval", "why not"), rows, right=("succeeded", "95 % interval"))
    say(f"\n{result.successes} of {count(result.runs, 'run')} succeeded\n\n{result.report}")
