"""Many runs of one scenario, each with its own seed: on warm worker processes, resumable, summed up."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from roboyard.compute import Pool, ProcessPool, usable_cores
from roboyard.errors import InputError, RoboyardError
from roboyard.scenarios.batch_worker import Job, Result, run_job
from roboyard.scenarios.provenance import provenance
from roboyard.scenarios.run_folder import RunFolder, new_folder
from roboyard.scenarios.spec import load_spec
from roboyard.scenarios.statistics import Rate, Spread, spread, wilson

RESULTS, SUMMARY = "results.jsonl", "batch.json"
_AHEAD = 2
"""Jobs waiting per worker: enough that none is idle, few enough that stopping is quick."""


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What a batch came to.

    Attributes:
        scenario: Its name.
        folder: Where results and kept runs lie.
        results: One a seed, in order of seeds.
        success: Share of successes with its interval.
        spreads: How each metric varied over the runs that measured it.
        resumed: How many results were there before.
    """

    scenario: str
    folder: Path
    results: tuple[Result, ...]
    success: Rate
    spreads: dict[str, Spread] = field(default_factory=dict)
    resumed: int = 0

    @property
    def failures(self) -> tuple[Result, ...]:
        """Runs that did not succeed, with their reasons."""
        return tuple(result for result in self.results if not result.success)

    @property
    def exit_code(self) -> int:
        """0 if every run succeeded."""
        return 1 if self.failures else 0

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return {
            "scenario": self.scenario,
            "runs": self.success.total,
            "successes": self.success.successes,
            "success_rate": self.success.value if self.success.total else None,
            "success_low": self.success.low,
            "success_high": self.success.high,
            "metrics": {name: asdict(found) for name, found in self.spreads.items()},
            "failures": [{"seed": r.seed, "reason": r.reason, "folder": r.folder} for r in self.failures],
        }


def run_batch(
    scenario: str,
    runs: int,
    *,
    workers: int | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    base: str | Path = "runs",
    overrides: Sequence[str] = (),
    smoke: bool = False,
    keep: str = "failed",
    video: bool = False,
    pool: Pool | None = None,
    progress: Callable[[Result, int, int], None] | None = None,
) -> BatchResult:
    """Run a scenario with seeds ``seed``, ``seed`` + 1, …

    A batch that was stopped or killed goes on where it was when ``out`` names its folder again: finished seeds are
    not run twice.

    Args:
        scenario: Name or path.
        runs: How many.
        workers: Processes; None: one a core.
        seed: First seed; None: the scenario's.
        out: Folder; None: a new one, ``<base>/<scenario>-batch-<NNN>``.
        base: Where new folders are made.
        overrides: ``key.path=value``.
        smoke: Run the smoke variant.
        keep: Whose recordings stay: "failed", "all" or "none".
        video: Make a film of every failed run that is kept.
        pool: Workers of another kind behind the same interface; closed by whoever made them.
        progress: Called with each result, the number done and the number wanted.

    Raises:
        InputError: no runs are asked for, the scenario is not right, or ``out`` holds another batch.
        RunError: the folder cannot be written.
    """
    if runs < 1:
        raise InputError(f"{runs} runs", where="--runs", valid="at least 1")
    if keep not in ("failed", "all", "none"):
        raise InputError(f"keep {keep!r}", valid="failed, all, none")
    spec = load_spec(scenario, overrides=tuple(overrides), smoke=smoke)
    first = spec.scenario.seed if seed is None else seed
    header = {"scenario": spec.name, "overrides": list(overrides), "smoke": smoke, "lock": provenance().lock}
    folder = _open(spec.name, out, base, header)
    done = {result.seed: result for result in _read(folder / RESULTS) if result.state not in ("lost", "interrupted")}
    seeds = range(first, first + runs)
    resumed = sum(number in done for number in seeds)
    jobs = [
        Job(scenario, number, tuple(overrides), smoke, str(folder / f"seed-{number:06d}"), keep, video)
        for number in seeds
        if number not in done
    ]
    for job in jobs:  # what was under way when the batch was stopped or killed, however far it had come
        shutil.rmtree(job.folder, ignore_errors=True)
    with ExitStack() as stack:
        if pool is None and jobs:
            count = max(1, min(workers or usable_cores(), len(jobs)))
            pool = stack.enter_context(ProcessPool(count, preload=("roboyard.scenarios.batch_worker",)))
        _mend(folder / RESULTS)
        log = stack.enter_context((folder / RESULTS).open("a", encoding="utf-8"))
        for result in _results(jobs, pool):
            log.write(json.dumps(asdict(result)) + "\n")
            log.flush()
            done[result.seed] = result
            if progress is not None:
                progress(result, sum(number in done for number in seeds), runs)
    summed = summarise(spec.name, folder, [done[number] for number in seeds if number in done], resumed)
    RunFolder(folder).write_json(folder / SUMMARY, {**header, "summary": summed.to_dict()})
    return summed


def summarise(scenario: str, folder: Path, results: Sequence[Result], resumed: int = 0) -> BatchResult:
    """Rates and spreads of results."""
    ordered = tuple(sorted(results, key=lambda result: result.seed))
    success = wilson(sum(result.success for result in ordered), len(ordered))
    names = dict.fromkeys(name for result in ordered for name in result.metrics)
    spreads: dict[str, Spread] = {}
    for name in names:
        values = [v for result in ordered if isinstance(v := result.metrics.get(name), int | float)]
        found = spread([float(value) for value in values])
        if found is not None:
            spreads[name] = found
    return BatchResult(scenario, folder, ordered, success, spreads, resumed)


def _results(jobs: list[Job], pool: Pool | None) -> Iterator[Result]:
    """Results as they come, with a bounded number of jobs on their way."""
    if pool is None:
        return
    waiting = iter(jobs)
    running: dict[Future[Result], Job] = {}
    while True:
        while len(running) < pool.workers * _AHEAD and (job := next(waiting, None)) is not None:
            running[pool.submit(run_job, job)] = job
        if not running:
            return
        ready, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in sorted(ready, key=lambda item: running[item].seed):
            job = running.pop(future)
            try:
                yield future.result()
            except RoboyardError as error:  # the worker died; the seed is tried again when the batch is resumed
                yield Result(job.seed, "lost", False, str(error))


def _open(name: str, out: str | Path | None, base: str | Path, header: dict[str, Any]) -> Path:
    """The batch's folder: new, or one that holds a batch of the same kind."""
    folder = Path(out) if out is not None else new_folder(f"{name}-batch", base).path
    summary = folder / SUMMARY
    if folder.is_dir() and any(folder.iterdir()):
        if not summary.is_file():
            raise InputError(f"{folder} holds something else than a batch", valid="a new folder, or that of the batch")
        try:
            before = json.loads(summary.read_text("utf-8"))
        except ValueError as error:
            raise InputError(f"cannot be read: {error}", where=str(summary)) from error
        for key, value in header.items():
            if before.get(key) != value:
                raise InputError(
                    f"the batch in {folder} ran with {key} {before.get(key)!r}, not {value!r}", valid="another folder"
                )
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    RunFolder(folder).write_json(summary, header)
    return folder


def _mend(path: Path) -> None:
    """End a line that a kill has torn, so that the next result begins its own."""
    if path.is_file() and not path.read_bytes().endswith(b"\n"):
        with path.open("a", encoding="utf-8") as file:
            file.write("\n")


def _read(path: Path) -> Iterator[Result]:
    """Results of before; a line that a kill has torn is left out."""
    if not path.is_file():
        return
    for line in path.read_text("utf-8").splitlines():
        try:
            yield Result(**json.loads(line))
        except (ValueError, TypeError):
            continue
