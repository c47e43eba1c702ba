"""Runs a scenario with many seeds on worker processes: resumable, with a summary and a report."""

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

from roboyard.bringup.catalog import SCENARIOS
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
from roboyard.scenarios.assembly import build_run
from roboyard.scenarios.batch.folder import BatchFolder, open_batch_folder
from roboyard.scenarios.batch.sampling import Design, Trial, parse_distributions, plan_trials
from roboyard.scenarios.batch.statistics import (
    BaselineComparison,
    MetricSummary,
    Proportion,
    compare_to_baseline,
    read_baseline,
    summarize_metric,
    wilson_interval,
)
from roboyard.scenarios.batch.worker import (
    TrialJob,
    TrialResult,
    recover_result,
    run_trial,
    run_trial_remote,
    trial_key,
    unpack_archive,
)
from roboyard.scenarios.execution import report_compilation
from roboyard.scenarios.loading import LoadedScenario, load_scenario
from roboyard.scenarios.provenance import collect_provenance
from roboyard.scenarios.resolve import read_criteria, resolve_scenario

_JOBS_PER_WORKER = 2
"""Jobs waiting per worker: enough that none is idle, few enough that stopping is quick."""

BatchProgress = Callable[[TrialResult, int, int], None]


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
    results: tuple[TrialResult, ...]
    success_rate: Proportion
    metric_summaries: dict[str, MetricSummary] = field(default_factory=dict)
    resumed_count: int = 0
    baseline_comparison: BaselineComparison | None = None
    report: Path | None = None
    source: str = ""
    overrides: tuple[str, ...] = ()
    smoke: bool = False

    @property
    def failures(self) -> tuple[TrialResult, ...]:
        """Runs that did not succeed, with their reasons."""
        return tuple(result for result in self.results if not result.success)

    @property
    def exit_code(self) -> int:
        """0 if every run succeeded, and nothing got worse than in the baseline."""
        return (
            1 if self.failures or (self.baseline_comparison is not None and self.baseline_comparison.regressions) else 0
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return {
            "scenario": self.scenario,
            "runs": self.success_rate.total,
            "successes": self.success_rate.successes,
            "success_rate": self.success_rate.value if self.success_rate.total else None,
            "success_low": self.success_rate.low,
            "success_high": self.success_rate.high,
            "metrics": {name: asdict(summary) for name, summary in self.metric_summaries.items()},
            "failures": [
                {
                    "seed": r.seed,
                    "reason": r.reason,
                    "folder": r.folder,
                    **({"varied_values": r.varied_values} if r.varied_values else {}),
                }
                for r in self.failures
            ],
            **({} if self.baseline_comparison is None else {"baseline_comparison": self.baseline_comparison.to_dict()}),
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
    baseline_path: str | Path | None = None,
    cluster: str | None = None,
    pool: Pool | None = None,
    on_opened: Callable[[Path, int], None] | None = None,
    progress: BatchProgress | None = None,
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
    spec = load_scenario(scenario, overrides=tuple(overrides), smoke=smoke)
    first_seed = spec.config.seed if seed is None else seed
    distributions = parse_distributions(vary)
    if design is not None and not distributions:
        raise InputError(f"design {design} of nothing", location="--design", valid="with --vary key=distribution")
    trials = plan_trials(distributions, design or "random", first_seed, runs)
    _check_trials(scenario, trials, tuple(overrides), smoke)
    baseline = None if baseline_path is None else read_baseline(baseline_path, spec.name, smoke, trials, overrides)
    lock = collect_provenance().lock
    header: dict[str, Any] = {"scenario": spec.name, "overrides": list(overrides), "smoke": smoke, "lock": lock}
    if distributions:
        header |= {"vary": list(vary), "design": design or "random"}
    if distributions and design in ("lhs", "grid"):  # each part of these designs depends on the whole
        header["points"] = [first_seed, runs]
    with ExitStack() as stack:
        if pool is None and cluster is not None:  # before there is a folder: nobody may answer there
            pool = stack.enter_context(RayPool(cluster, workers))
        folder = open_batch_folder(spec.name, out, base, header)
        if on_opened is not None:
            on_opened(folder.path, len(trials))
        jobs = {
            trial_key(trial.seed, trial.parsed_values): TrialJob(
                _worker_scenario(scenario),
                trial.seed,
                (*overrides, *trial.assignments),
                smoke,
                str(folder.path / trial.name),
                keep,
                video,
                trial.parsed_values,
                lock,
            )
            for trial in trials
        }
        finished = {result.key: result for result in folder.results() if result.is_finished}
        finished = {key: result for key, result in finished.items() if key in jobs}
        log = stack.enter_context(folder.log())

        def store_result(key: str, result: TrialResult) -> None:
            log.write(json.dumps(asdict(result)) + "\n")
            log.flush()
            finished[key] = result

        def write_summary() -> BatchResult:
            ordered_results = [finished[key] for key in jobs if key in finished]
            comparison = (
                None
                if baseline is None
                else compare_to_baseline(baseline, ordered_results, _preferred_directions(spec))
            )
            batch_result = replace(
                summarize_batch(spec.name, folder.path, ordered_results, resumed),
                baseline_comparison=comparison,
                report=folder.report,
                source=scenario,
                overrides=tuple(overrides),
                smoke=smoke,
            )
            _write_folder(folder, batch_result, spec)
            return batch_result

        for key, job in jobs.items():  # what was under way when the batch was stopped, however far it had come
            if key not in finished and (recovered := recover_result(job)) is not None:
                store_result(key, recovered)
        resumed = len(finished)
        open_jobs = {key: job for key, job in jobs.items() if key not in finished}
        for job in open_jobs.values():
            shutil.rmtree(job.folder, ignore_errors=True)
        try:
            with ExitStack() as pool_stack:
                if pool is None and open_jobs:
                    count = max(1, min(workers or count_usable_cores(), len(open_jobs)))
                    pool = pool_stack.enter_context(ProcessPool(count, preload=("roboyard.scenarios.batch.worker",)))
                    _compile_kernels(next(iter(open_jobs.values())), announce or (lambda _: None))
                for key, result in _run_trials(open_jobs, pool):
                    store_result(key, result)
                    if progress is not None:
                        progress(result, len(finished), len(jobs))
        except BaseException:
            for key, job in open_jobs.items():
                if key not in finished and (recovered := recover_result(job)) is not None:
                    store_result(key, recovered)
                    if progress is not None:
                        progress(recovered, len(finished), len(jobs))
            write_summary()
            raise
        return write_summary()


def summarize_batch(scenario: str, folder: Path, results: Sequence[TrialResult], resumed_count: int = 0) -> BatchResult:
    """Rates and spreads of results."""
    ordered = tuple(sorted(results, key=lambda result: result.seed))
    success_rate = wilson_interval(sum(result.success for result in ordered), len(ordered))
    names = dict.fromkeys(name for result in ordered for name in result.metrics)
    metric_summaries: dict[str, MetricSummary] = {}
    for name in names:
        summary = summarize_metric([value for result in ordered if (value := result.metric(name)) is not None])
        if summary is not None:
            metric_summaries[name] = summary
    return BatchResult(scenario, folder, ordered, success_rate, metric_summaries, resumed_count)


def _write_folder(folder: BatchFolder, batch_result: BatchResult, spec: LoadedScenario) -> None:
    from roboyard.scenarios.report.batch_pages import batch_page

    folder.write(list(batch_result.results), batch_result.to_dict())
    folder.write_report(
        batch_page(batch_result, spec.config.summary, _preferred_directions(spec), spec.config.comparison_metrics)
    )


def _preferred_directions(spec: LoadedScenario) -> dict[str, int]:
    """Metrics that criteria ask for: wanted small (-1), great (+1), or it cannot be said (0)."""
    criteria = list(read_criteria(spec)[0].values())
    directions = {name: 0 for criterion in criteria for name in criterion.metric_names}
    for criterion in criteria:
        directions |= criterion.preferred_directions()
    return directions


def _worker_scenario(scenario: str) -> str:
    """How workers find it, whatever folder they work in: installed ones by name, files by their whole path."""
    return scenario if scenario in SCENARIOS else str(SCENARIOS.resolve(scenario).resolve())


def _check_trials(scenario: str, trials: Sequence[Trial], overrides: tuple[str, ...], smoke: bool) -> None:
    """Read the scenario with the least and the greatest of each number drawn, and with each text: before any run."""
    for key in dict.fromkeys(key for trial in trials for key, _ in trial.varied_values):
        texts = dict.fromkeys(value for trial in trials for name, value in trial.varied_values if name == key)
        numbers = {
            text: number for text in texts if isinstance(number := Trial(0, ((key, text),)).parsed_values[key], float)
        }
        extremes = {min(numbers, key=numbers.__getitem__), max(numbers, key=numbers.__getitem__)} if numbers else set()
        for text in (*extremes, *(text for text in texts if text not in numbers)):
            load_scenario(scenario, overrides=(*overrides, f"{key}={text}"), smoke=smoke)


def _compile_kernels(job: TrialJob, announce: Callable[[str], None]) -> None:
    """Compile the kernels that the runs call, on all cores, while the workers start.

    A worker by itself would compile them one after the other, while the others wait for it.  Where compiled code
    cannot be kept, each worker has to.  A run that cannot be assembled says so as a result.
    """
    if not can_write_cache():
        return
    report = partial(report_compilation, announce)
    with monitor_compilation(report=report), suppress(Exception, SystemExit):
        spec = load_scenario(job.scenario, overrides=(*job.overrides, "record.camera_rate=0"), smoke=job.smoke)
        with build_run(resolve_scenario(spec.with_seed(job.seed)), record=False):
            wait_for_kernels(report=report)


def _run_trials(jobs: dict[str, TrialJob], pool: Pool | None) -> Iterator[tuple[str, TrialResult]]:
    """Results as they come, with a bounded number of jobs on their way."""
    if pool is None:
        return
    waiting = iter(jobs)
    running: dict[Future[Any], str] = {}
    while True:
        while len(running) < pool.workers * _JOBS_PER_WORKER and (key := next(waiting, None)) is not None:
            running[pool.submit(run_trial_remote if pool.has_separate_filesystem else run_trial, jobs[key])] = key
        if not running:
            return
        ready, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in sorted(ready, key=lambda item: jobs[running[item]].seed):
            key = running.pop(future)
            yield key, _collect_result(jobs[key], future, is_remote=pool.has_separate_filesystem)


def _collect_result(job: TrialJob, future: Future[Any], *, is_remote: bool) -> TrialResult:
    try:
        if not is_remote:
            trial_result: TrialResult = future.result()
            return trial_result
        result, archive = future.result()
    except RoboyardError as error:  # the worker died; if the run had not ended it is tried again on resuming
        return recover_result(job) or TrialResult(job.seed, "lost", False, str(error), varied_values=job.varied_values)
    return unpack_archive(job, result, archive)
