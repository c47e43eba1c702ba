"""Executes a scenario from start to criteria, metrics and report, and leaves its run folder."""

from __future__ import annotations

import gc
import math
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from roboyard.bus import ExternalInput
from roboyard.bus.log import LogRecord
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
from roboyard.errors import InputError, RoboyardError, describe_exception
from roboyard.record import McapWriter, open_recording, recorded_inputs
from roboyard.scenarios.assembly import build_run
from roboyard.scenarios.criteria import Criterion, CriterionResult
from roboyard.scenarios.faults.injection import create_fault
from roboyard.scenarios.loading import LoadedScenario
from roboyard.scenarios.nodes.faults import FaultServiceNode
from roboyard.scenarios.nodes.simulation_control import SimulationControlNode
from roboyard.scenarios.provenance import collect_provenance, compare_with_current
from roboyard.scenarios.report import write_report
from roboyard.scenarios.resolve import read_criteria, resolve_to_yaml
from roboyard.scenarios.result import (
    RunResult,
    RunState,
    build_document_before_start,
    build_metrics_document,
    run_metrics,
)
from roboyard.scenarios.run import Run
from roboyard.scenarios.run_control import RunControl, handle_interrupts
from roboyard.scenarios.run_folder import RunFolder, create_numbered_folder, prepare_folder
from roboyard.scenarios.snapshot import restore_snapshot, save_snapshot
from roboyard.scenarios.video_recorder import VideoRecorder

_MAX_SILENT_WAIT: Final = 0.1
"""A run that stands still for longer says why [s of wall time]."""
_MAX_FAILURE_VIDEO_DURATION: Final = 30.0
"""A film of a failure shows where to look; drawing all of a long run would hold a batch up."""


def run_scenario(
    loaded: LoadedScenario,
    *,
    out: str | Path | None = None,
    runs_folder: str | Path = "runs",
    keep_files: bool = True,
    report: bool = True,
    video: bool | Literal["failed"] | None = None,
    replay_inputs: str | Path | None = None,
    resume_from: str | Path | None = None,
    snapshots: Iterable[tuple[float, str | Path]] = (),
    control: RunControl | None = None,
    on_progress: Callable[[RunProgress], None] | None = None,
    on_log: Callable[[LogRecord], None] | None = None,
    on_stage: Callable[[str], None] | None = None,
    on_started: Callable[[Run], None] | None = None,
    serve: bool = True,
    bridges: Iterable[Callable[[Run], AbstractContextManager[object]]] = (),
) -> RunResult:
    """Run a scenario to its end, judge it, and write its folder.

    Ctrl-C and SIGTERM end it in order: recording, metrics and report are complete up to there, criteria are marked as
    not judged.  A node that fails ends it likewise.  While the assembly of the run waits for kernels, they end
    it at once: its folder is complete, with a recording that has no messages.

    Args:
        loaded: From ``load_scenario``.
        out: Its folder: new or empty.  None: a new one, ``<runs>/<scenario>-<NNN>``.
        runs_folder: Where new folders are made.
        keep_files: False leaves nothing on disk (and writes no report).
        report: False leaves the report out.
        video: Make a video, drawn by a second process during the run (after the run where there is one core);
            "failed": only of a run that is no success, half a minute at most, drawn after it; None: if the scenario
            always wants one.
        replay_inputs: A recording (or a run's folder) whose inputs from outside are repeated.
        resume_from: A state that this scenario saved: go on from there.  Recording, metrics and report are those of the
            whole run; the recording is byte for byte that of a run that was never interrupted.
        snapshots: Times [s] and files: the state is saved at the first instant at or after each time.
        control: The hand on its clock.
        on_progress: Called every 0.1 simulated seconds.
        on_log: Called with every line of the log.
        on_stage: Called with what is done besides the clock: "drawing the video: frame 7 of 60", "writing the report".
        on_started: Called with the run once it is assembled.
        serve: Whether other processes reach it through a socket.
        bridges: Bridges to others, which are open while the clock goes; see `Run.open_bridge`.

    Raises:
        InputError and its kinds: the scenario cannot be started; nothing is left behind.
        RunError: its folder cannot be written.
    """
    limit_blas_threads(1)
    control = control or RunControl()
    external_inputs, input_notes = _read_inputs(replay_inputs)
    criteria, stop_condition = read_criteria(loaded)
    if video is True:
        from roboyard.simulation.video.mp4_writer import find_ffmpeg

        find_ffmpeg()  # who asks for a video learns before the run that none can be written
    folder = _create_folder(loaded, out, runs_folder) if keep_files else None
    with handle_interrupts(control), ExitStack() as stack:
        stack.enter_context(listen_to_first_calls(partial(_report_first_call, on_stage or _ignore_text)))
        report_progress = partial(report_compilation, on_stage or _ignore_text)
        monitor = partial(monitor_compilation, report=report_progress, is_stopped=lambda: control.is_stopping)
        try:
            with monitor():
                run = _build_run(loaded, folder)
        except CompilationInterrupted:
            return _end_before_start(loaded, folder, criteria, on_stage or _ignore_text, report=report)
        stack.callback(run.close)
        if on_log is not None:
            run.bus.log_sinks.append(on_log)
        for time, path in snapshots:
            control.request_snapshot(Path(path), time)
        control.bind(run.bus)
        snapshot_folder = folder.path if folder is not None else Path()
        run.bus.add(SimulationControlNode(control=control, snapshot_folder=snapshot_folder), "clock")
        run.bus.add(
            FaultServiceNode(faults=(), events=run.events, create_fault=partial(create_fault, run)), "faults_by_hand"
        )
        notes = [*input_notes, *_resume(run, loaded, resume_from, folder)]
        run.bus.inputs.schedule(item for item in external_inputs if resume_from is None or item[0] > run.bus.now_ns)
        # before anybody can call, for nobody is answered meanwhile
        with suppress(CompilationInterrupted), monitor():
            wait_for_kernels(report=report_progress, is_stopped=lambda: control.is_stopping)
        if serve:
            stack.callback(SocketServer(run.bus, loaded.name).close)
        _open_bridges(run, bridges, folder)
        video_recorder = _create_video_recorder(run, loaded, folder, video)
        if video_recorder is not None:
            stack.callback(video_recorder.close)
        if on_started is not None:
            on_started(run)
        stack.enter_context(reduced_garbage_collection())
        end = close_run(
            run,
            execute(
                run,
                loaded.config.duration,
                control,
                stop_condition,
                on_progress,
                lambda path: save_snapshot(run, loaded, path),
            ),
        )
        document = build_metrics_document(
            run, summary=loaded.config.summary, world=loaded.config.world, state=end.state, error=end.error,
            results=_evaluate_criteria(run, criteria, end.state), smoke=loaded.is_smoke,
        )  # fmt: skip
        if folder is not None:
            _write_metrics(folder, document, end)
            if video_recorder is not None and _is_video_needed(video_recorder, video, document):
                notes += video_recorder.write(on_stage or _ignore_text, lambda: control.is_stopping)
            if report:
                (on_stage or _ignore_text)("writing the report")
                write_report(folder, world=run.simulation)
        if end.unexpected is not None:
            raise end.unexpected
    return RunResult(
        loaded.name, loaded.config.seed, end.state, document["success"], end.error, document,
        folder.path if folder else None, folder.files() if folder else {}, tuple(notes),
    )  # fmt: skip


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
    """What others gave to a recorded run, and in what that run was made differently."""
    if path is None:
        return [], []
    with open_recording(path) as recording:
        differences = compare_with_current({key: str(value) for key, value in recording.metadata.items()})
        return recorded_inputs(recording), [f"{path}: {differences}"] if differences else []


def _create_folder(loaded: LoadedScenario, out: str | Path | None, runs_folder: str | Path) -> RunFolder:
    name = f"{loaded.name}-smoke" if loaded.is_smoke else loaded.name
    return prepare_folder(out) if out is not None else create_numbered_folder(name, runs_folder)


def _build_run(loaded: LoadedScenario, folder: RunFolder | None) -> Run:
    """Put it together; if that fails nothing is left behind, if it is interrupted what was recorded."""
    try:
        run = build_run(loaded, out=folder.path if folder else None, record=folder is not None)
        if folder is not None:
            folder.write_text(folder.scenario, resolve_to_yaml(loaded))
    except CompilationInterrupted:
        raise
    except BaseException:
        if folder is not None:
            folder.discard()
        raise
    return run


def _end_before_start(
    loaded: LoadedScenario,
    folder: RunFolder | None,
    criteria: dict[str, Criterion],
    on_stage: Callable[[str], None],
    *,
    report: bool,
) -> RunResult:
    """Write the folder of a run that was interrupted while it was being assembled."""
    config = loaded.config
    document = build_document_before_start(
        name=loaded.name,
        summary=config.summary,
        world=config.world,
        seed=config.seed,
        state="interrupted",
        results=[CriterionResult(name, c.text, None, (), "interrupted") for name, c in criteria.items()],
        smoke=loaded.is_smoke,
    )
    if folder is not None:
        folder.write_json(folder.metrics, document)
        folder.write_text(folder.scenario, resolve_to_yaml(loaded))
        if not folder.recording.is_file():
            metadata = collect_provenance().metadata() | {"run": loaded.name, "seed": str(config.seed)}
            McapWriter(folder.recording, metadata).close()
        if report:
            on_stage("writing the report")
            write_report(folder)
    return RunResult(
        loaded.name, config.seed, "interrupted", False, None, document,
        folder.path if folder else None, folder.files() if folder else {},
    )  # fmt: skip


def _open_bridges(
    run: Run, bridges: Iterable[Callable[[Run], AbstractContextManager[object]]], folder: RunFolder | None
) -> None:
    """Open bridges; if one cannot be, nothing is left behind."""
    try:
        for bridge in bridges:
            run.open_bridge(bridge)
    except BaseException:
        run.close()
        if folder is not None:
            folder.discard()
        raise


def _resume(run: Run, loaded: LoadedScenario, path: str | Path | None, folder: RunFolder | None) -> list[str]:
    """Go on from a saved state, if there is one; if that cannot be, nothing is left behind."""
    if path is None:
        return []
    try:
        notes = restore_snapshot(run, loaded, Path(path))
        if run.bus.now_ns >= round(loaded.config.duration * 1e9):
            raise InputError(
                f"the state is of {run.time:g} s, and the run ends at {loaded.config.duration:g} s",
                location=str(path), valid="a longer duration",
            )  # fmt: skip
    except BaseException:
        run.close()
        if folder is not None:
            folder.discard()
        raise
    return list(notes)


def _evaluate_criteria(run: Run, criteria: dict[str, Criterion], state: RunState) -> tuple[CriterionResult, ...]:
    metrics = run.evaluation.flat_metrics(run_metrics(run))
    if state != "done":
        return tuple(CriterionResult(name, c.text, None, (), state) for name, c in criteria.items())
    rejections = run.evaluation.rejection_reasons()
    return tuple(criterion.evaluate(metrics, name, rejections) for name, criterion in criteria.items())


def _create_video_recorder(
    run: Run, loaded: LoadedScenario, folder: RunFolder | None, video: bool | str | None
) -> VideoRecorder | None:
    config = loaded.config.video
    is_requested = config.enabled if video is None else bool(video)
    if not is_requested or folder is None:
        return None
    # Whether a run fails is known at its end only, and the workers of a batch use all cores already.
    is_after_run = video == "failed"
    return VideoRecorder(
        run,
        config,
        folder,
        concurrent=not is_after_run,
        max_duration=_MAX_FAILURE_VIDEO_DURATION if is_after_run else math.inf,
    )


def _is_video_needed(video_recorder: VideoRecorder, video: bool | str | None, document: dict[str, Any]) -> bool:
    """Only failures if so asked; and nothing is begun when somebody waits for the end."""
    if document["state"] == "interrupted":
        return video_recorder.is_concurrent
    return not (video == "failed" and document["success"])


def report_compilation(report: Callable[[str], None], progress: CompilationProgress) -> None:
    """Say how far the compilation of kernels has come."""
    report(f"compiling kernels: {progress}; once only")


def _report_first_call(report: Callable[[str], None], call: FirstCall) -> None:
    """Say why a run stood still: a kernel was not expected, or was called while the world was still being built."""
    if not call.is_cached and call.seconds > _MAX_SILENT_WAIT:
        name = call.name.removeprefix("roboyard.")
        report(f"waited {call.seconds:.1f} s for the kernel {name} to be compiled; once only")


def _ignore_text(_: str) -> None:
    """Hears what nobody wants to hear."""


def _write_metrics(folder: RunFolder, document: dict[str, Any], end: RunEnd) -> None:
    """First of all: they matter most if the disk is nearly full or somebody is impatient."""
    folder.write_json(folder.metrics, document)
    if end.traceback_text:
        folder.write_text(folder.error, end.traceback_text)


_PROGRESS_PERIOD_NS = 100_000_000
"""How often progress is told and ``stop_condition`` is looked at [ns of simulated time]."""


_OFFLOAD_TIMEOUT_NS = 10_000_000_000
"""How long saving a state waits for offloaded work [ns of simulated time]."""


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run is: simulated time and duration [s], wall time [s]."""

    time: float
    duration: float
    wall_seconds: float

    @property
    def real_time_factor(self) -> float:
        """Simulated seconds per wall second so far."""
        return self.time / self.wall_seconds if self.wall_seconds > 0.0 else 0.0


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
    stop_condition: Criterion | None = None,
    on_progress: Callable[[RunProgress], None] | None = None,
    save: Callable[[Path], None] | None = None,
) -> RunEnd:
    """Run to the end, or until somebody stops it, something fails, or ``stop_condition`` holds.

    Args:
        run: Assembled.
        duration: Simulated time at which it ends [s].
        control: The hand on the clock.
        stop_condition: Ends it early.
        on_progress: Called every 0.1 simulated seconds.
        save: Saves the run's state to a file when ``control`` wants it.
    """
    end_ns = round(duration * 1e9)
    try:
        while run.bus.now_ns < end_ns and not control.is_stopping:
            if save is not None and (request := control.take_snapshot_request()) is not None:
                _finish_offloaded_work(run, control, end_ns)
                _save_snapshot(run, save, *request)
                continue
            step_duration = control.take_step_request()
            if step_duration is not None:
                _run_step(run, step_duration, end_ns)
            else:
                target_ns = min((run.bus.now_ns // _PROGRESS_PERIOD_NS + 1) * _PROGRESS_PERIOD_NS, end_ns)
                run.advance_to(target_ns, control.has_request)
                if run.bus.now_ns < target_ns and not control.has_request():
                    control.stop()  # another process said so through the socket
            if on_progress is not None:
                on_progress(RunProgress(run.time, duration, run.wall_seconds))
            if (
                stop_condition is not None
                and stop_condition.evaluate(
                    run.evaluation.flat_metrics(run_metrics(run), stop_condition.metric_names)
                ).passed
            ):
                break
        while save is not None and (request := control.take_snapshot_request()) is not None:
            _save_snapshot(run, save, *request)
    except KeyboardInterrupt:
        return RunEnd("interrupted")
    except RoboyardError as error:
        return RunEnd("failed", str(error), "".join(traceback.format_exception(error)))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - what was recorded is saved first, then it is raised again
        return RunEnd("failed", describe_exception(error), "".join(traceback.format_exception(error)), error)
    return RunEnd("interrupted" if control.is_stopping else "done")


def _finish_offloaded_work(run: Run, control: RunControl, end_ns: int) -> None:
    """Go on to the first instant at which no offloaded work is under way, if there is one soon."""
    deadline_ns = min(run.bus.now_ns + _OFFLOAD_TIMEOUT_NS, end_ns)
    run.advance_to(deadline_ns, lambda: control.is_stopping or not run.bus.offload.pending)


def _save_snapshot(run: Run, save: Callable[[Path], None], path: Path, is_required: bool) -> None:
    try:
        save(path)
    except RoboyardError as error:
        if is_required:
            raise
        run.bus.log.error(f"the state was not saved: {error}")


def _run_step(run: Run, duration: float, end_ns: int) -> None:
    """Run one step of a paused run: ``duration`` of simulated time, or one instant if that is 0."""
    executor = run.bus.executor
    if duration <= 0.0:
        executor.step()
        return
    paused, executor.paused = executor.paused, False
    try:
        run.advance_to(min(run.bus.now_ns + round(duration * 1e9), end_ns))
    finally:
        executor.paused = paused


def close_run(run: Run, end: RunEnd) -> RunEnd:
    """Close everything; an error in that counts unless there was one before."""
    try:
        run.finish()
    except RoboyardError as error:
        if end.error is None:
            return RunEnd("failed", str(error), "".join(traceback.format_exception(error)))
    return end
