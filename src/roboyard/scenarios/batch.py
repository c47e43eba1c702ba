"""Many runs of one scenario: each with its own seed, on warm worker processes, resumable, summed up."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from roboyard.compute import (
    Pool,
    ProcessPool,
    RayPool,
    can_write_cache,
    count_usable_cores,
    monitor_compilation,
    wait_for_kernels,
)
from roboyard.config.wording import did_you_mean
from roboyard.errors import InputError, RoboyardError
from roboyard.scenarios.against import Against, compare_with, read_baseline
from roboyard.scenarios.assemble import assemble, read_criteria
from roboyard.scenarios.batch_folder import BatchFolder, open_folder
from roboyard.scenarios.batch_worker import Job, Result, recovered, run_job, run_job_apart, run_key, unpack
from roboyard.scenarios.catalog import find, scenarios
from roboyard.scenarios.provenance import provenance
from roboyard.scenarios.runner import report_compilation
from roboyard.scenarios.spec import Spec, load_spec
from roboyard.scenarios.statistics import Rate, Spread, spread, wilson
from roboyard.scenarios.varied import Design, Trial, plan_trials, read_varied

_AHEAD = 2
"""Jobs waiting per worker: enough that none is idle, few enough that stopping is quick."""

Progress = Callable[[Result, int, int], None]


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What a batch came to.

    Attributes:
        scenario: Its name.
        folder: Where results, report and kept runs lie.
        results: One a run, in order of seeds.
        success: Share of successes with its interval.
        spreads: How each metric varied over the runs that measured it.
        resumed: How many results were there before.
        against: What has changed since a baseline, if there is one.
        report: The page about it; None: it was not written.
        source: The scenario as it was given.
        overrides: For all runs.
        smoke: Whether they are of the smoke variant.
    """

    scenario: str
    folder: Path
    results: tuple[Result, ...]
    success: Rate
    spreads: dict[str, Spread] = field(default_factory=dict)
    resumed: int = 0
    against: Against | None = None
    report: Path | None = None
    source: str = ""
    overrides: tuple[str, ...] = ()
    smoke: bool = False

    @property
    def failures(self) -> tuple[Result, ...]:
        """Runs that did not succeed, with their reasons."""
        return tuple(result for result in self.results if not result.success)

    @property
    def exit_code(self) -> int:
        """0 if every run succeeded, and nothing got worse than in the baseline."""
        return 1 if self.failures or (self.against is not None and self.against.regressions) else 0

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
            "failures": [
                {"seed": r.seed, "reason": r.reason, "folder": r.folder, **({"varied": r.varied} if r.varied else {})}
                for r in self.failures
            ],
            **({} if self.against is None else {"against": self.against.to_dict()}),
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
    vary: Sequence[str] = (),
    design: Design | None = None,
    smoke: bool = False,
    keep: str = "failed",
    video: bool = False,
    against: str | Path | None = None,
    cluster: str | None = None,
    pool: Pool | None = None,
    opened: Callable[[Path, int], None] | None = None,
    progress: Progress | None = None,
    announce: Callable[[str], None] | None = None,
) -> BatchResult:
    """Run a scenario with seeds ``seed``, ``seed`` + 1, …

    A batch that was stopped or killed goes on where it was when ``out`` names its folder again: finished runs are
    not run twice, not even those whose film was being drawn.

    Args:
        scenario: Name or path.
        runs: How many; with a grid, how many at each of its points.
        workers: Processes; None: one a core.
        seed: First seed; None: the scenario's.
        out: Folder; None: a new one, ``<base>/<scenario>-batch-<NNN>``.
        base: Where new folders are made.
        overrides: ``key.path=value``.
        vary: ``key.path=distribution``, drawn for each run; see `read_distribution`.
        design: How runs lie among what is varied: "random" (None), "lhs" or "grid"; see `plan_trials`.
        smoke: Run the smoke variant.
        keep: Whose recordings stay: "failed", "all" or "none".
        video: Make a film of every failed run that is kept.
        against: Folder or batch.json of a batch that this one is compared with.
        cluster: Run on a Ray cluster, at this address; see `RayPool`.
        pool: Workers of another kind behind the same interface; closed by whoever made them.
        opened: Called with the folder and the number of runs before the first begins.
        progress: Called with each result, the number done and the number wanted.
        announce: Called with what is done before the first run: "compiling kernels: 7 of 23 (…), about 12 s left; once
            only".

    Raises:
        InputError: no runs are asked for, the scenario or what is varied is not right, ``out`` holds another batch,
            the baseline is none, or there is no cluster.
        RunError: the folder cannot be written.
    """
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise InputError(f"{runs!r} runs", location="--runs", valid="at least 1")
    if keep not in ("failed", "all", "none"):
        raise InputError(f"keep {keep!r}{did_you_mean(keep, ['failed', 'all', 'none'])}", valid="failed, all, none")
    spec = load_spec(scenario, overrides=tuple(overrides), smoke=smoke)
    first = spec.scenario.seed if seed is None else seed
    varied = read_varied(vary)
    if design is not None and not varied:
        raise InputError(f"design {design} of nothing", location="--design", valid="with --vary key=distribution")
    trials = plan_trials(varied, design or "random", first, runs)
    _check(scenario, trials, tuple(overrides), smoke)
    baseline = None if against is None else read_baseline(against, spec.name, smoke, trials, overrides)
    lock = provenance().lock
    header: dict[str, Any] = {"scenario": spec.name, "overrides": list(overrides), "smoke": smoke, "lock": lock}
    if varied:
        header |= {"vary": list(vary), "design": design or "random"}
    if varied and design in ("lhs", "grid"):  # each part of these designs depends on the whole
        header["points"] = [first, runs]
    with ExitStack() as stack:
        if pool is None and cluster is not None:  # before there is a folder: nobody may answer there
            pool = stack.enter_context(RayPool(cluster, workers))
        folder = open_folder(spec.name, out, base, header)
        if opened is not None:
            opened(folder.path, len(trials))
        jobs = {
            run_key(trial.seed, trial.plain): Job(
                _for_all(scenario), trial.seed, (*overrides, *trial.assignments), smoke, str(folder.path / trial.name),
                keep, video, trial.plain, lock,
            )
            for trial in trials
        }  # fmt: skip
        done = {result.key: result for result in folder.results() if result.finished}
        done = {key: result for key, result in done.items() if key in jobs}
        log = stack.enter_context(folder.log())

        def take(key: str, result: Result) -> None:
            log.write(json.dumps(asdict(result)) + "\n")
            log.flush()
            done[key] = result

        def sum_up() -> BatchResult:
            found = [done[key] for key in jobs if key in done]
            judged = None if baseline is None else compare_with(baseline, found, _senses(spec))
            summed = replace(
                summarise(spec.name, folder.path, found, resumed), against=judged, report=folder.report,
                source=scenario, overrides=tuple(overrides), smoke=smoke,
            )  # fmt: skip
            _write(folder, summed, spec)
            return summed

        for key, job in jobs.items():  # what was under way when the batch was stopped, however far it had come
            if key not in done and (ended := recovered(job)) is not None:
                take(key, ended)
        resumed = len(done)
        open_jobs = {key: job for key, job in jobs.items() if key not in done}
        for job in open_jobs.values():
            shutil.rmtree(job.folder, ignore_errors=True)
        try:
            with ExitStack() as inner:
                if pool is None and open_jobs:
                    count = max(1, min(workers or count_usable_cores(), len(open_jobs)))
                    pool = inner.enter_context(ProcessPool(count, preload=("roboyard.scenarios.batch_worker",)))
                    _compile_kernels(next(iter(open_jobs.values())), announce or (lambda _: None))
                for key, result in _results(open_jobs, pool):
                    take(key, result)
                    if progress is not None:
                        progress(result, len(done), len(jobs))
        except BaseException:
            for key, job in open_jobs.items():
                if key not in done and (ended := recovered(job)) is not None:
                    take(key, ended)
                    if progress is not None:
                        progress(ended, len(done), len(jobs))
            sum_up()
            raise
        return sum_up()


def summarise(scenario: str, folder: Path, results: Sequence[Result], resumed: int = 0) -> BatchResult:
    """Rates and spreads of results."""
    ordered = tuple(sorted(results, key=lambda result: result.seed))
    success = wilson(sum(result.success for result in ordered), len(ordered))
    names = dict.fromkeys(name for result in ordered for name in result.metrics)
    spreads: dict[str, Spread] = {}
    for name in names:
        found = spread([value for result in ordered if (value := result.measured(name)) is not None])
        if found is not None:
            spreads[name] = found
    return BatchResult(scenario, folder, ordered, success, spreads, resumed)


def _write(folder: BatchFolder, summed: BatchResult, spec: Spec) -> None:
    from roboyard.scenarios.report.batch import batch_page

    folder.write(list(summed.results), summed.to_dict())
    folder.write_report(batch_page(summed, spec.scenario.summary, _senses(spec), spec.scenario.compared))


def _senses(spec: Spec) -> dict[str, int]:
    """Metrics that criteria ask for: wanted small (-1), great (+1), or it cannot be said (0)."""
    criteria = list(read_criteria(spec)[0].values())
    found = {name: 0 for criterion in criteria for name in criterion.names}
    for criterion in criteria:
        found |= criterion.senses()
    return found


def _for_all(scenario: str) -> str:
    """How workers find it, whatever folder they work in: installed ones by name, files by their whole path."""
    return scenario if scenario in scenarios() else str(find("scenario", scenario).resolve())


def _check(scenario: str, trials: Sequence[Trial], overrides: tuple[str, ...], smoke: bool) -> None:
    """Read the scenario with the least and the greatest of each number drawn, and with each text: before any run."""
    for key in dict.fromkeys(key for trial in trials for key, _ in trial.varied):
        texts = dict.fromkeys(value for trial in trials for name, value in trial.varied if name == key)
        numbers = {text: number for text in texts if isinstance(number := Trial(0, ((key, text),)).plain[key], float)}
        few = {min(numbers, key=numbers.__getitem__), max(numbers, key=numbers.__getitem__)} if numbers else set()
        for text in (*few, *(text for text in texts if text not in numbers)):
            load_spec(scenario, overrides=(*overrides, f"{key}={text}"), smoke=smoke)


def _compile_kernels(job: Job, announce: Callable[[str], None]) -> None:
    """Compile the kernels that the runs call, on all cores, while the workers start.

    A worker by itself would compile them one after the other, while the others wait for it.  Where compiled code
    cannot be kept, each worker has to.  A run that cannot be assembled says so as a result.
    """
    if not can_write_cache():
        return
    report = partial(report_compilation, announce)
    with monitor_compilation(report=report), suppress(Exception, SystemExit):
        spec = load_spec(job.scenario, overrides=(*job.overrides, "record.camera_rate=0"), smoke=job.smoke)
        with assemble(spec.seeded(job.seed), record=False):
            wait_for_kernels(report=report)


def _results(jobs: dict[str, Job], pool: Pool | None) -> Iterator[tuple[str, Result]]:
    """Results as they come, with a bounded number of jobs on their way."""
    if pool is None:
        return
    waiting = iter(jobs)
    running: dict[Future[Any], str] = {}
    while True:
        while len(running) < pool.workers * _AHEAD and (key := next(waiting, None)) is not None:
            running[pool.submit(run_job_apart if pool.has_separate_filesystem else run_job, jobs[key])] = key
        if not running:
            return
        ready, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in sorted(ready, key=lambda item: jobs[running[item]].seed):
            key = running.pop(future)
            yield key, _settle(jobs[key], future, apart=pool.has_separate_filesystem)


def _settle(job: Job, future: Future[Any], *, apart: bool) -> Result:
    try:
        if not apart:
            found: Result = future.result()
            return found
        result, archive = future.result()
    except RoboyardError as error:  # the worker died; if the run had not ended it is tried again on resuming
        return recovered(job) or Result(job.seed, "lost", False, str(error), varied=job.varied)
    return unpack(job, result, archive)
