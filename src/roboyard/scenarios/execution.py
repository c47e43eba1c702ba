"""Executes a scenario: builds its run, lets the clock run, evaluates the criteria, and writes the run folder."""

from __future__ import annotations

import gc
import math
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from roboyard.bus import ExternalInput
from roboyard.bus.socket import SocketServer
from roboyard.compute import (
    CompilationInterrupted,
    CompilationProgress,
    FirstCall,
    limit_blas_threads,
    listen_to_first_calls,
    monitor_compilation,
    wait_for_kernels,
)
from roboyard.errors import InputError, RoboyardError, RunError, describe_exception
from roboyard.record import McapWriter, open_recording, recorded_inputs
from roboyard.scenarios.assembly import build_run
from roboyard.scenarios.criteria import Criterion, CriterionResult
from roboyard.scenarios.evaluator import name_metrics
from roboyard.scenarios.faults.injection import create_fault
from roboyard.scenarios.loading import LoadedScenario
from roboyard.scenarios.nodes.faults import FaultServiceNode
from roboyard.scenarios.nodes.simulation_control import SimulationControlNode
from roboyard.scenarios.provenance import collect_provenance, describe_changes_since
from roboyard.scenarios.report import write_report
from roboyard.scenarios.resolve import ResolvedScenario, resolve_scenario
from roboyard.scenarios.result import (
    RunMeasurements,
    RunResult,
    RunState,
    ScenarioHeader,
    build_metrics_document,
)
from roboyard.scenarios.run import Run
from roboyard.scenarios.run_control import RunControl, handle_interrupts, run_in_slices
from roboyard.scenarios.run_folder import RunFolder, create_numbered_folder, prepare_folder
from roboyard.scenarios.run_options import RunObserver, RunOptions, RunProgress
from roboyard.scenarios.snapshot import restore_snapshot, save_snapshot
from roboyard.scenarios.video_recorder import VideoRecorder
from roboyard.simulation.video.mp4_writer import find_ffmpeg

_MAX_SILENT_WAIT: Final = 0.1
"""A run that waits longer for a kernel reports why [s of wall time]."""
_MAX_FAILURE_VIDEO_DURATION: Final = 30.0
"""Longest video of a failed run [s]: rendering all of a long run would hold a batch up."""


@dataclass(frozen=True, slots=True)
class _Execution:
    """One execution of a scenario: what is run, how, who controls and observes it, and where its files go."""

    scenario: ResolvedScenario
    options: RunOptions
    control: RunControl
    observer: RunObserver
    folder: RunFolder | None

    def monitor_compilation(self) -> AbstractContextManager[None]:
        """Report the progress of compiled kernels; raises CompilationInterrupted when the run is to stop."""
        return monitor_compilation(report=self._report_compilation, is_stopped=lambda: self.control.is_stopping)

    def finish_compilation(self) -> None:
        """Wait until the kernels that the run expects are compiled, or until it is to stop."""
        with suppress(CompilationInterrupted), self.monitor_compilation():
            wait_for_kernels(report=self._report_compilation, is_stopped=lambda: self.control.is_stopping)

    def _report_compilation(self, progress: CompilationProgress) -> None:
        report_compilation(self.observer.on_stage, progress)

    @contextmanager
    def discard_on_error(self, run: Run | None = None) -> Iterator[None]:
        """Leave nothing behind where the run cannot start; an interrupted compilation leaves what was recorded."""
        try:
            yield
        except CompilationInterrupted:
            raise
        except BaseException:
            if run is not None:
                run.close()
            if self.folder is not None:
                self.folder.discard()
            raise


def run_scenario(
    loaded: LoadedScenario,
    options: RunOptions | None = None,
    *,
    control: RunControl | None = None,
    observer: RunObserver | None = None,
) -> RunResult:
    """Run a scenario to its end, evaluate it, and write its folder.

    Ctrl-C and SIGTERM end the run in order: recording, metrics and report are complete up to there, and criteria are
    marked as not evaluated.  A node that fails ends it likewise.  While the build of the run waits for kernels, they
    end it at once: its folder is complete, with a recording that has no messages.

    Args:
        loaded: From ``load_scenario``.
        options: How the run is executed; None: the defaults of `RunOptions`.
        control: Pauses, steps and stops the run; None: the run is not controlled.
        observer: Its functions are called with the run's progress; None: no function is called.

    Raises:
        InputError and its kinds: the scenario cannot be started; nothing is left behind.
        RunError: its folder cannot be written.
    """
    options, control, observer = options or RunOptions(), control or RunControl(), observer or RunObserver()
    limit_blas_threads(1)
    inputs, notes = _read_inputs(options.replay_inputs)
    if options.video == "always":
        find_ffmpeg()  # whoever asks for a video learns before the run that none can be written
    scenario = resolve_scenario(loaded)
    execution = _Execution(scenario, options, control, observer, _create_folder(loaded, options))
    with handle_interrupts(control), ExitStack() as stack:
        stack.enter_context(listen_to_first_calls(partial(_report_first_call, observer)))
        try:
            run = _build(execution)
        except CompilationInterrupted:
            return _end_before_start(execution)
        stack.callback(run.close)
        _add_control(execution, run)
        notes += _resume(execution, run)
        run.bus.inputs.schedule(item for item in inputs if options.from_snapshot is None or item[0] > run.bus.now_ns)
        execution.finish_compilation()  # before anybody can call, for nobody is answered meanwhile
        if options.serve:
            stack.callback(SocketServer(run.bus, loaded.name).close)
        with execution.discard_on_error(run):
            for bridge in options.bridges:
                run.open_bridge(bridge)
        video = _create_video_recorder(execution, run)
        if video is not None:
            stack.callback(video.close)
        observer.on_started(run)
        stack.enter_context(reduced_garbage_collection())
        save = partial(save_snapshot, run, scenario)
        end = execute(
            run, loaded.config.duration, control, observer=observer, stop_condition=scenario.stop_condition, save=save
        )
        end = close_run(run, end)
        document = evaluate(run, scenario, end)
        notes += write_outputs(execution, run, document, end, video)
        if end.unexpected is not None:
            raise end.unexpected
    return RunResult.from_document(document, execution.folder, tuple(notes))


@contextmanager
def reduced_garbage_collection() -> Iterator[None]:
    """Look for garbage seldom, and not among what is there already: runs make many objects, but hardly a cycle."""
    threshold = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*threshold)
        gc.unfreeze()


def _read_inputs(path: str | Path | None) -> tuple[list[tuple[int, ExternalInput]], list[str]]:
    """External inputs of a recorded run, and notes on how that run was made differently."""
    if path is None:
        return [], []
    with open_recording(path) as recording:
        differences = describe_changes_since({key: str(value) for key, value in recording.metadata.items()})
        return recorded_inputs(recording), [f"{path}: {differences}"] if differences else []


def _create_folder(loaded: LoadedScenario, options: RunOptions) -> RunFolder | None:
    if not options.write_files:
        return None
    if options.out is not None:
        return prepare_folder(options.out)
    return create_numbered_folder(f"{loaded.name}-smoke" if loaded.is_smoke else loaded.name, options.runs_folder)


def _build(execution: _Execution) -> Run:
    """Build the run and write its scenario; where that fails, nothing is left behind."""
    folder = execution.folder
    with execution.discard_on_error(), execution.monitor_compilation():
        run = build_run(execution.scenario, out=folder.path if folder else None, record=folder is not None)
        if folder is not None:
            folder.write_text(folder.scenario, execution.scenario.to_yaml())
    return run


def _add_control(execution: _Execution, run: Run) -> None:
    """Let the caller and the services of the run pause, step, stop and save it, and inject faults."""
    control, folder = execution.control, execution.folder
    run.bus.log_sinks.append(execution.observer.on_log)
    for request in execution.options.snapshots:
        control.request_snapshot(Path(request.path), request.time)
    control.bind(run.bus)
    run.bus.add(
        SimulationControlNode(control=control, snapshot_folder=folder.path if folder is not None else Path()), "clock"
    )
    run.bus.add(
        FaultServiceNode(faults=(), events=run.events, create_fault=partial(create_fault, run)), "faults_by_hand"
    )


def _resume(execution: _Execution, run: Run) -> list[str]:
    """Continue from the snapshot if the options name one; where that fails, nothing is left behind."""
    path, duration = execution.options.from_snapshot, execution.scenario.config.duration
    if path is None:
        return []
    with execution.discard_on_error(run):
        notes = restore_snapshot(run, execution.scenario, Path(path))
        if run.bus.now_ns >= round(duration * 1e9):
            raise InputError(
                f"the state is of {run.time:g} s, and the run ends at {duration:g} s",
                location=str(path), valid="a longer duration",
            )  # fmt: skip
    return list(notes)


def _create_video_recorder(execution: _Execution, run: Run) -> VideoRecorder | None:
    config, mode, folder = execution.scenario.config.video, execution.options.video, execution.folder
    is_requested = config.enabled if mode == "as_configured" else mode != "never"
    if not is_requested or folder is None:
        return None
    # Whether a run fails is known at its end only, and the workers of a batch use all cores already.
    is_after_run = mode == "on_failure"
    max_duration = _MAX_FAILURE_VIDEO_DURATION if is_after_run else math.inf
    return VideoRecorder(run, config, folder, concurrent=not is_after_run, max_duration=max_duration)


def evaluate(run: Run, scenario: ResolvedScenario, end: RunEnd) -> dict[str, Any]:
    """Evaluate the criteria of a finished run, and build its metrics document (metrics.json)."""
    measurements = run.measure()
    if end.state == "done":
        robots = {name: robot["metrics"] for name, robot in measurements.robots.items()}
        metrics, rejections = name_metrics(measurements.totals, robots), run.evaluation.rejection_reasons()
        results = [criterion.evaluate(metrics, name, rejections) for name, criterion in scenario.criteria.items()]
    else:
        results = _unevaluated(scenario, end.state)
    return build_metrics_document(_header(scenario), measurements, state=end.state, error=end.error, results=results)


def write_outputs(
    execution: _Execution, run: Run, document: dict[str, Any], end: RunEnd, video: VideoRecorder | None
) -> list[str]:
    """Write metrics, video and report into the run folder, and return notes about them.

    The metrics come first: they matter most if the disk is nearly full or the user interrupts the command.
    """
    folder, observer, control = execution.folder, execution.observer, execution.control
    if folder is None:
        return []
    notes = []
    folder.write_json(folder.metrics, document)
    if end.traceback_text:
        folder.write_text(folder.error, end.traceback_text)
    if video is not None and _is_video_needed(video, execution.options, document):
        notes += video.write(observer.on_stage, lambda: control.is_stopping)
    if execution.options.write_report:
        observer.on_stage("writing the report")
        write_report(folder, world=run.simulation)
    return notes


def _is_video_needed(video: VideoRecorder, options: RunOptions, document: dict[str, Any]) -> bool:
    """An interrupted run only completes a video that was begun; "on_failure" needs a run that did not succeed."""
    if document["state"] == "interrupted":
        return video.is_concurrent
    return not (options.video == "on_failure" and document["success"])


def _end_before_start(execution: _Execution) -> RunResult:
    """Write the folder of a run that was interrupted while it was being built."""
    scenario, folder = execution.scenario, execution.folder
    document = build_metrics_document(
        _header(scenario),
        RunMeasurements.before_start(),
        state="interrupted",
        results=_unevaluated(scenario, "interrupted"),
    )
    if folder is not None:
        folder.write_json(folder.metrics, document)
        folder.write_text(folder.scenario, scenario.to_yaml())
        if not folder.recording.is_file():
            metadata = collect_provenance().metadata() | {"run": scenario.name, "seed": str(scenario.config.seed)}
            McapWriter(folder.recording, metadata).close()
        if execution.options.write_report:
            execution.observer.on_stage("writing the report")
            write_report(folder)
    return RunResult.from_document(document, folder)


def _header(scenario: ResolvedScenario) -> ScenarioHeader:
    config = scenario.config
    return ScenarioHeader(
        name=scenario.name, summary=config.summary, world=config.world, seed=config.seed,
        is_smoke=scenario.loaded.is_smoke,
    )  # fmt: skip


def _unevaluated(scenario: ResolvedScenario, state: RunState) -> list[CriterionResult]:
    return [CriterionResult(name, item.text, None, (), state) for name, item in scenario.criteria.items()]


def report_compilation(report: Callable[[str], None], progress: CompilationProgress) -> None:
    """Report how far the compilation of kernels has come."""
    report(f"compiling kernels: {progress}; once only")


def _report_first_call(observer: RunObserver, call: FirstCall) -> None:
    """Report why a run waited: a kernel was not expected, or was called while the world was still being built."""
    if not call.is_cached and call.seconds > _MAX_SILENT_WAIT:
        name = call.name.removeprefix("roboyard.")
        observer.on_stage(f"waited {call.seconds:.1f} s for the kernel {name} to be compiled; once only")


_OFFLOAD_TIMEOUT_NS = 10_000_000_000
"""How long a snapshot waits for offloaded work [ns of simulated time]."""


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How the clock came to stand: ``unexpected`` is a fault of the program, not of a node or file."""

    state: RunState
    error: str | None = None
    traceback_text: str = ""
    unexpected: BaseException | None = None


def execute(
    run: Run,
    duration: float,
    control: RunControl,
    *,
    observer: RunObserver | None = None,
    stop_condition: Criterion | None = None,
    save: Callable[[Path], None] | None = None,
) -> RunEnd:
    """Let the clock run to the end, or until the control stops it, something fails, or the stop condition holds.

    Args:
        run: Built, at time zero or at the time of a snapshot.
        duration: Simulated time at which the run ends [s].
        control: Pauses, steps and stops the clock, and requests snapshots.
        observer: Its `on_progress` is called every 0.1 simulated seconds.
        stop_condition: Ends the run early.
        save: Saves a snapshot of the run to a file; None: requests for snapshots are rejected with an error in the log.
    """
    observer, save = observer or RunObserver(), save or _reject_snapshot
    end_ns = round(duration * 1e9)
    try:
        _save_requested_snapshots(run, control, save, end_ns)
        for _ in run_in_slices(run.bus.executor, control, end_ns, advance=run.advance_to):
            observer.on_progress(RunProgress(run.time, duration, run.wall_seconds))
            if stop_condition is not None:
                metrics = run.evaluation.flat_metrics(run.totals(), stop_condition.metric_names)
                if stop_condition.evaluate(metrics).passed:
                    break
            _save_requested_snapshots(run, control, save, end_ns)
        while (request := control.pop_snapshot_request()) is not None:
            _save_snapshot(run, save, *request)
    except KeyboardInterrupt:
        return RunEnd("interrupted")
    except RoboyardError as error:
        return RunEnd("failed", str(error), "".join(traceback.format_exception(error)))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - what was recorded is saved first, then it is raised again
        return RunEnd("failed", describe_exception(error), "".join(traceback.format_exception(error)), error)
    return RunEnd("interrupted" if control.is_stopping else "done")


def _save_requested_snapshots(run: Run, control: RunControl, save: Callable[[Path], None], end_ns: int) -> None:
    """Save the snapshots that are due, each at an instant at which no offloaded work is under way."""
    while (
        run.bus.now_ns < end_ns and not control.is_stopping and (request := control.pop_snapshot_request()) is not None
    ):
        _finish_offloaded_work(run, control, end_ns)
        _save_snapshot(run, save, *request)


def _finish_offloaded_work(run: Run, control: RunControl, end_ns: int) -> None:
    """Advance to the first instant at which no offloaded work is under way, if there is one soon."""
    deadline_ns = min(run.bus.now_ns + _OFFLOAD_TIMEOUT_NS, end_ns)
    run.advance_to(deadline_ns, lambda: control.is_stopping or not run.bus.offload.pending)


def _reject_snapshot(path: Path) -> None:
    raise RunError(
        "a run that was not built from a scenario cannot save its state",
        location=str(path),
        valid="a run of `run_scenario`",
    )


def _save_snapshot(run: Run, save: Callable[[Path], None], path: Path, is_required: bool) -> None:
    try:
        save(path)
    except RoboyardError as error:
        if is_required:
            raise
        run.bus.log.error(f"the state was not saved: {error}")


def close_run(run: Run, end: RunEnd) -> RunEnd:
    """Close everything; an error in that counts unless there was one before."""
    try:
        run.finish()
    except RoboyardError as error:
        if end.error is None:
            return RunEnd("failed", str(error), "".join(traceback.format_exception(error)))
    return end
