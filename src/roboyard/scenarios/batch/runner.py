"""Runs a scenario with many seeds on worker processes; a batch that was stopped can be continued."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TextIO

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
from roboyard.errors import InputError, RoboyardError
from roboyard.scenarios.assembly import build_run
from roboyard.scenarios.batch.folder import REPORT, BatchFolder, open_batch_folder
from roboyard.scenarios.batch.options import BatchOptions
from roboyard.scenarios.batch.sampling import Trial, parse_distributions, plan_trials
from roboyard.scenarios.batch.statistics import (
    Baseline,
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


@dataclass(frozen=True, slots=True)
class BatchResult:
    """Result of a batch.

    Attributes:
        scenario: Name of the scenario.
        folder: Folder of the results, the page and the runs that were kept.
        results: Results of the trials, ordered by seed.
        success_rate: Fraction of successful runs with its confidence interval.
        metric_summaries: How each metric varied over the runs that measured it.
        resumed_count: Number of results that were there before, when the batch was continued.
        baseline_comparison: Changes since the baseline; None without a baseline.
        source: Scenario as it was given: a name or a path.
        overrides: Overrides of all runs.
        smoke: Whether the runs are of the smoke variant.
        summary: One line on the scenario.
        preferred_directions: Metrics of the scenario's criteria, of which small (-1) or large (+1) values are better,
            or neither (0).
        comparison_metrics: Further metrics that the scenario wants to be shown first.
    """

    scenario: str
    folder: Path
    results: tuple[TrialResult, ...]
    success_rate: Proportion
    metric_summaries: dict[str, MetricSummary] = field(default_factory=dict)
    resumed_count: int = 0
    baseline_comparison: BaselineComparison | None = None
    source: str = ""
    overrides: tuple[str, ...] = ()
    smoke: bool = False
    summary: str = ""
    preferred_directions: Mapping[str, int] = field(default_factory=dict)
    comparison_metrics: tuple[str, ...] = ()

    @property
    def report(self) -> Path | None:
        """Path of the page about the batch; None if no page was written."""
        path = self.folder / REPORT
        return path if path.is_file() else None

    @property
    def failures(self) -> tuple[TrialResult, ...]:
        """Results of the runs that did not succeed."""
        return tuple(result for result in self.results if not result.success)

    @property
    def exit_code(self) -> int:
        """0 if every run succeeded and nothing is significantly worse than in the baseline, else 1."""
        has_regressed = self.baseline_comparison is not None and bool(self.baseline_comparison.regressions)
        return 1 if self.failures or has_regressed else 0

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data, for JSON."""
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


def _ignore(*_: object) -> None:
    """Do nothing with an event that is not observed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchObserver:
    """Functions that are called while a batch runs; each does nothing by default.

    Attributes:
        on_opened: Called with the folder and the planned number of runs, before the first run.
        on_stage: Called with a text about work before the first run, as "compiling kernels: 7 of 23 (…), about 12 s
            left; once only".
        on_result: Called with the result of each run, the number of runs that have a result now, and the planned
            number.
        on_summary: Called with the result of the batch after batch.json was written: at the end, and when the batch is
            stopped or fails.
    """

    on_opened: Callable[[Path, int], None] = _ignore
    on_stage: Callable[[str], None] = _ignore
    on_result: Callable[[TrialResult, int, int], None] = _ignore
    on_summary: Callable[[BatchResult], None] = _ignore


def run_batch(
    scenario: str, options: BatchOptions, observer: BatchObserver | None = None, *, pool: Pool | None = None
) -> BatchResult:
    """Run a scenario with many seeds and write batch.json into its folder; `batch.page_writer` also writes a page.

    Args:
        scenario: Name or path of the scenario.
        options: How it is run.
        observer: Receives what happens.
        pool: Workers to use instead of ``options.workers`` and ``options.cluster``; closed by whoever created them.

    Raises:
        InputError: The scenario or what varies is not valid, the folder holds another batch, the baseline is none, or
            there is no cluster.
        RunError: The folder cannot be written.
    """
    plan = _plan_batch(scenario, options)
    observer = observer or BatchObserver()
    with ExitStack() as stack:
        if pool is None and options.cluster is not None:  # before there is a folder: the cluster may not answer
            pool = stack.enter_context(RayPool(options.cluster, options.workers))
        folder = open_batch_folder(plan.loaded.name, options.out, options.runs_folder, plan.header())
        observer.on_opened(folder.path, len(plan.trials))
        state = _BatchState(plan, folder, stack.enter_context(folder.log()), observer)
        state.recover_results(announce=False)  # of runs that were under way when the batch was stopped
        state.resumed_count = len(state.finished)
        for job in state.open_jobs().values():
            shutil.rmtree(job.folder, ignore_errors=True)
        try:
            with ExitStack() as pool_stack:
                open_jobs = state.open_jobs()
                if pool is None and open_jobs:
                    count = max(1, min(options.workers or count_usable_cores(), len(open_jobs)))
                    pool = pool_stack.enter_context(ProcessPool(count, preload=("roboyard.scenarios.batch.worker",)))
                    _compile_kernels(next(iter(open_jobs.values())), observer.on_stage)
                for key, result in _run_trials(open_jobs, pool):
                    state.add_result(key, result, announce=True)
        except BaseException:
            state.recover_results(announce=True)
            state.write_summary()
            raise
        return state.write_summary()


@dataclass(frozen=True, slots=True)
class _BatchPlan:
    """What a batch is going to run.

    Attributes:
        scenario: Scenario as it was given.
        loaded: The scenario with the overrides of all runs.
        options: Options of the batch.
        first_seed: Seed of the first run.
        trials: Seed and varied values of each run.
        baseline: Stored batch with which this one is compared.
        lock: Hash of the installed packages' versions.
    """

    scenario: str
    loaded: LoadedScenario
    options: BatchOptions
    first_seed: int
    trials: tuple[Trial, ...]
    baseline: Baseline | None
    lock: str

    def header(self) -> dict[str, Any]:
        """Return what makes it this batch: a folder with another header cannot be continued."""
        options = self.options
        header: dict[str, Any] = {
            "scenario": self.loaded.name, "overrides": list(options.overrides), "smoke": options.smoke,
            "lock": self.lock,
        }  # fmt: skip
        if options.vary:
            header |= {"vary": list(options.vary), "design": options.design or "random"}
        if options.vary and options.design in ("lhs", "grid"):  # each part of these designs depends on the whole
            header["points"] = [self.first_seed, options.runs]
        return header

    def jobs(self, folder: Path) -> dict[str, TrialJob]:
        """Return a job for each trial, by the key of the trial."""
        options, scenario = self.options, _worker_scenario(self.scenario)
        return {
            trial_key(trial.seed, trial.parsed_values): TrialJob(
                scenario,
                trial.seed,
                (*options.overrides, *trial.assignments),
                options.smoke,
                str(folder / trial.name),
                options.stored_runs,
                options.video,
                trial.parsed_values,
                self.lock,
            )
            for trial in self.trials
        }


def _plan_batch(scenario: str, options: BatchOptions) -> _BatchPlan:
    loaded = load_scenario(scenario, overrides=options.overrides, smoke=options.smoke)
    first_seed = loaded.config.seed if options.first_seed is None else options.first_seed
    distributions = parse_distributions(options.vary)
    if options.design is not None and not distributions:
        raise InputError(
            f"design {options.design} without --vary", location="--design", valid="with --vary key=distribution"
        )
    trials = tuple(plan_trials(distributions, options.design or "random", first_seed, options.runs))
    _check_trials(scenario, trials, options)
    baseline = (
        None
        if options.baseline is None
        else read_baseline(options.baseline, loaded.name, options.smoke, trials, options.overrides)
    )
    return _BatchPlan(scenario, loaded, options, first_seed, trials, baseline, collect_provenance().lock)


class _BatchState:
    """Results of a batch that is under way, in memory and in its folder.

    Args:
        plan: What is run.
        folder: Folder of the batch.
        log: File to which each result is appended.
        observer: Receives results and summaries.
    """

    def __init__(self, plan: _BatchPlan, folder: BatchFolder, log: TextIO, observer: BatchObserver) -> None:
        self._plan, self._folder, self._log, self._observer = plan, folder, log, observer
        self._jobs = plan.jobs(folder.path)
        self.finished = {
            result.key: result for result in folder.results() if result.is_finished and result.key in self._jobs
        }
        self.resumed_count = 0

    def open_jobs(self) -> dict[str, TrialJob]:
        """Return the jobs without a result."""
        return {key: job for key, job in self._jobs.items() if key not in self.finished}

    def add_result(self, key: str, result: TrialResult, *, announce: bool) -> None:
        """Store a result, and notify the observer."""
        self._log.write(json.dumps(asdict(result)) + "\n")
        self._log.flush()
        self.finished[key] = result
        if announce:
            self._observer.on_result(result, len(self.finished), len(self._jobs))

    def recover_results(self, *, announce: bool) -> None:
        """Store the results of runs that ended without a reply to the batch."""
        for key, job in self.open_jobs().items():
            result = recover_result(job)
            if result is not None:
                self.add_result(key, result, announce=announce)

    def write_summary(self) -> BatchResult:
        """Write batch.json, notify the observer, and return the result."""
        plan = self._plan
        results = [self.finished[key] for key in self._jobs if key in self.finished]
        directions = _preferred_directions(plan.loaded)
        comparison = None if plan.baseline is None else compare_to_baseline(plan.baseline, results, directions)
        batch = replace(
            summarize_batch(plan.loaded.name, self._folder.path, results, self.resumed_count),
            baseline_comparison=comparison,
            source=plan.scenario,
            overrides=plan.options.overrides,
            smoke=plan.options.smoke,
            summary=plan.loaded.config.summary,
            preferred_directions=directions,
            comparison_metrics=plan.loaded.config.comparison_metrics,
        )
        self._folder.write(list(batch.results), batch.to_dict())
        self._observer.on_summary(batch)
        return batch


def summarize_batch(scenario: str, folder: Path, results: Sequence[TrialResult], resumed_count: int = 0) -> BatchResult:
    """Return success rate and metric summaries of results."""
    ordered = tuple(sorted(results, key=lambda result: result.seed))
    success_rate = wilson_interval(sum(result.success for result in ordered), len(ordered))
    names = dict.fromkeys(name for result in ordered for name in result.metrics)
    metric_summaries: dict[str, MetricSummary] = {}
    for name in names:
        summary = summarize_metric([value for result in ordered if (value := result.metric(name)) is not None])
        if summary is not None:
            metric_summaries[name] = summary
    return BatchResult(scenario, folder, ordered, success_rate, metric_summaries, resumed_count)


def _preferred_directions(loaded: LoadedScenario) -> dict[str, int]:
    """Return the metrics of the criteria: whether small (-1) or large (+1) values are better, or neither (0)."""
    criteria = list(read_criteria(loaded)[0].values())
    directions = {name: 0 for criterion in criteria for name in criterion.metric_names}
    for criterion in criteria:
        directions |= criterion.preferred_directions()
    return directions


def _worker_scenario(scenario: str) -> str:
    """Return how workers in any folder find the scenario: an installed one by name, a file by its absolute path."""
    return scenario if scenario in SCENARIOS else str(SCENARIOS.resolve(scenario).resolve())


def _check_trials(scenario: str, trials: Sequence[Trial], options: BatchOptions) -> None:
    """Load the scenario with the smallest and largest value of each varied number, and with each text."""
    for key in dict.fromkeys(key for trial in trials for key, _ in trial.varied_values):
        texts = dict.fromkeys(value for trial in trials for name, value in trial.varied_values if name == key)
        numbers = {
            text: number for text in texts if isinstance(number := Trial(0, ((key, text),)).parsed_values[key], float)
        }
        extremes = {min(numbers, key=numbers.__getitem__), max(numbers, key=numbers.__getitem__)} if numbers else set()
        for text in (*extremes, *(text for text in texts if text not in numbers)):
            load_scenario(scenario, overrides=(*options.overrides, f"{key}={text}"), smoke=options.smoke)


def _compile_kernels(job: TrialJob, announce: Callable[[str], None]) -> None:
    """Compile the kernels that the runs call, on all cores, while the workers start.

    A single worker would compile them one after the other, while the others wait for it.  Where compiled code cannot be
    stored, each worker has to compile it.  A run that cannot be built reports this as its result.
    """
    if not can_write_cache():
        return
    report = partial(report_compilation, announce)
    with monitor_compilation(report=report), suppress(Exception, SystemExit):
        loaded = load_scenario(job.scenario, overrides=(*job.overrides, "record.camera_rate=0"), smoke=job.smoke)
        with build_run(resolve_scenario(loaded.with_seed(job.seed)), record=False):
            wait_for_kernels(report=report)


def _run_trials(jobs: dict[str, TrialJob], pool: Pool | None) -> Iterator[tuple[str, TrialResult]]:
    """Iterate over results in the order of their arrival; the number of submitted jobs is bounded."""
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
    except RoboyardError as error:  # the worker died; a run that had not ended is repeated on resuming
        return recover_result(job) or TrialResult(job.seed, "lost", False, str(error), varied_values=job.varied_values)
    return unpack_archive(job, result, archive)
