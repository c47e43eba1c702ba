"""``roboyard batch all``, or of some: one scenario after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from roboyard.cli.batch_display import BatchDisplay
from roboyard.cli.terminal import count, emit, say, table
from roboyard.config.wording import did_you_mean
from roboyard.errors import InputError, UnknownNameError
from roboyard.scenarios.batch_export import write_junit
from roboyard.scenarios.catalog import scenarios
from roboyard.scenarios.suite import SuiteResult, run_suite


def batch_many(
    names: Sequence[str],
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
    """Run these, or ["all"], show what came of it, and give the exit code.

    Raises:
        InputError: an option is given that only makes sense for one scenario (``alone``), or a name twice.
        UnknownNameError: a name is not that of an installed scenario.
    """
    for option, value in alone.items():
        if value:
            raise InputError(f"{option} with several scenarios", valid="one scenario, or without it")
    only = None if list(names) == ["all"] else _checked(names)
    with ExitStack() as stack:

        def shown(name: str) -> tuple[Callable[[Path, int], None], Callable[..., None]]:
            stack.close()
            display = stack.enter_context(BatchDisplay(name, runs, quiet=quiet or json))
            return display.opened, display.finished

        result = run_suite(
            runs, only=only, workers=workers, cluster=cluster, against=against, out=out, progress=shown, **options
        )  # fmt: skip
    if junit is not None:
        write_junit(list(result.batches.values()), junit)
    if json:
        emit({**result.to_dict(), "folder": result.folder, "report": result.report})
    else:
        _show(result)
    return result.exit_code


def _checked(names: Sequence[str]) -> Sequence[str]:
    known = scenarios()
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise UnknownNameError(f"'{name}' among several scenarios", valid=f"names of `roboyard list`{hint}")
    twice = next((name for name in names if list(names).count(name) > 1), None)
    if twice is not None:
        raise InputError(f"'{twice}' is named twice", valid="each scenario once")
    return names


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
