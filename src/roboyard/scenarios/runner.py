"""Runs a scenario from start to verdict and leaves its folder."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
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
from roboyard.errors import InputError
from roboyard.record import McapWriter, open_recording, recorded_inputs
from roboyard.scenarios.as_run import scenario_as_run
from roboyard.scenarios.assemble import assemble, read_criteria
from roboyard.scenarios.clock import Ending, Progress, finish, let_run
from roboyard.scenarios.clock_node import ClockNode
from roboyard.scenarios.control import Control, interruptible
from roboyard.scenarios.document import State, make_document, make_document_before_start, totals
from roboyard.scenarios.expressions import Criterion, Verdict
from roboyard.scenarios.faults.by_hand import FaultsByHand
from roboyard.scenarios.faults.deeds import deed_by_hand
from roboyard.scenarios.filming import Filming
from roboyard.scenarios.outcome import Outcome
from roboyard.scenarios.provenance import compare_with_here, provenance
from roboyard.scenarios.report import write_report
from roboyard.scenarios.run import Run
from roboyard.scenarios.run_folder import RunFolder, given_folder, new_folder
from roboyard.scenarios.spec import Spec
from roboyard.scenarios.state import restore_run, save_run

_NOTICED_S: Final = 0.1
"""A run that stands still for longer says why [s of wall time]."""
_FAILURE_S: Final = 30.0
"""A film of a failure shows where to look; drawing all of a long run would hold a batch up."""


def run_scenario(
    spec: Spec,
    *,
    out: str | Path | None = None,
    runs: str | Path = "runs",
    keep: bool = True,
    report: bool = True,
    video: bool | Literal["failed"] | None = None,
    inputs: str | Path | None = None,
    from_state: str | Path | None = None,
    save_states: Iterable[tuple[float, str | Path]] = (),
    control: Control | None = None,
    progress: Callable[[Progress], None] | None = None,
    log: Callable[[LogRecord], None] | None = None,
    stage: Callable[[str], None] | None = None,
    started: Callable[[Run], None] | None = None,
    serve: bool = True,
    attach: Iterable[Callable[[Run], AbstractContextManager[object]]] = (),
) -> Outcome:
    """Run a scenario to its end, judge it, and write its folder.

    Ctrl-C and SIGTERM end it in order: recording, metrics and report are complete up to there, criteria are marked as
    not judged.  A node that fails ends it likewise.  While the assembly of the run waits for kernels, they end
    it at once: its folder is complete, with a recording that has no messages.

    Args:
        spec: From ``load_spec``.
        out: Its folder: new or empty.  None: a new one, ``<runs>/<scenario>-<NNN>``.
        runs: Where new folders are made.
        keep: False leaves nothing on disk (and writes no report).
        report: False leaves the report out.
        video: Make a video, drawn by a second process during the run (after the run where there is one core);
            "failed": only of a run that is no success, half a minute at most, drawn after it; None: if the scenario
            always wants one.
        inputs: A recording (or a run's folder) whose inputs from outside are repeated.
        from_state: A state that this scenario saved: go on from there.  Recording, metrics and report are those of the
            whole run; the recording is byte for byte that of a run that was never interrupted.
        save_states: Times [s] and files: the state is saved at the first instant at or after each time.
        control: The hand on its clock.
        progress: Called every 0.1 simulated seconds.
        log: Called with every line of the log.
        stage: Called with what is done besides the clock: "drawing the video: frame 7 of 60", "writing the report".
        started: Called with the run once it is assembled.
        serve: Whether other processes reach it through a socket.
        attach: Bridges to others, which are open while the clock goes; see `Run.attach`.

    Raises:
        InputError and its kinds: the scenario cannot be started; nothing is left behind.
        RunError: its folder cannot be written.
    """
    limit_blas_threads(1)
    control = control or Control()
    repeated, origin = _read_inputs(inputs)
    criteria, until = read_criteria(spec)
    if video is True:
        from roboyard.scenarios.video.mp4 import find_ffmpeg

        find_ffmpeg()  # who asks for a video learns before the run that none can be written
    folder = _folder(spec, out, runs) if keep else None
    with interruptible(control), ExitStack() as stack:
        stack.enter_context(listen_to_first_calls(partial(_report_first_call, stage or _nobody)))
        report_progress = partial(report_compilation, stage or _nobody)
        monitor = partial(monitor_compilation, report=report_progress, is_stopped=lambda: control.stopping)
        try:
            with monitor():
                run = _assemble(spec, folder)
        except CompilationInterrupted:
            return _end_before_start(spec, folder, criteria, stage or _nobody, report=report)
        stack.callback(run.close)
        if log is not None:
            run.bus.log_sinks.append(log)
        for time, path in save_states:
            control.save(Path(path), time)
        control.bind(run.bus)
        states = folder.path if folder is not None else Path()
        run.bus.add(ClockNode(control=control, states=states), "clock")
        run.bus.add(FaultsByHand(deeds=(), events=run.events, make=partial(deed_by_hand, run)), "faults_by_hand")
        notes = [*origin, *_restore(run, spec, from_state, folder)]
        run.bus.inputs.schedule(item for item in repeated if from_state is None or item[0] > run.bus.now_ns)
        # before anybody can call, for nobody is answered meanwhile
        with suppress(CompilationInterrupted), monitor():
            wait_for_kernels(report=report_progress, is_stopped=lambda: control.stopping)
        if serve:
            stack.callback(SocketServer(run.bus, spec.name).close)
        _attach(run, attach, folder)
        filming = _filming(run, spec, folder, video)
        if filming is not None:
            stack.callback(filming.close)
        if started is not None:
            started(run)
        stack.enter_context(seldom_collected())
        ending = finish(
            run, let_run(run, spec.scenario.duration, control, until, progress, lambda path: save_run(run, spec, path))
        )
        document = make_document(
            run, summary=spec.scenario.summary, world=spec.scenario.world, state=ending.state, error=ending.error,
            verdicts=_judge(run, criteria, ending.state), smoke=spec.smoke,
        )  # fmt: skip
        if folder is not None:
            _write_numbers(folder, document, ending)
            if filming is not None and _is_filmed(filming, video, document):
                notes += filming.write(stage or _nobody, lambda: control.stopping)
            if report:
                (stage or _nobody)("writing the report")
                write_report(folder, world=run.simulation)
        if ending.unexpected is not None:
            raise ending.unexpected
    return Outcome(
        spec.name, spec.scenario.seed, ending.state, document["success"], ending.error, document,
        folder.path if folder else None, folder.files() if folder else {}, tuple(notes),
    )  # fmt: skip


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Look for garbage seldom, and not among what is there already: runs make many objects, but hardly a cycle."""
    usual = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


def _read_inputs(path: str | Path | None) -> tuple[list[tuple[int, ExternalInput]], list[str]]:
    """What others gave to a recorded run, and in what that run was made differently."""
    if path is None:
        return [], []
    with open_recording(path) as recording:
        other = compare_with_here({key: str(value) for key, value in recording.metadata.items()})
        return recorded_inputs(recording), [f"{path}: {other}"] if other else []


def _folder(spec: Spec, out: str | Path | None, runs: str | Path) -> RunFolder:
    name = f"{spec.name}-smoke" if spec.smoke else spec.name
    return given_folder(out) if out is not None else new_folder(name, runs)


def _assemble(spec: Spec, folder: RunFolder | None) -> Run:
    """Put it together; if that fails nothing is left behind, if it is interrupted what was recorded."""
    try:
        run = assemble(spec, out=folder.path if folder else None, record=folder is not None)
        if folder is not None:
            folder.write_text(folder.scenario, scenario_as_run(spec))
    except CompilationInterrupted:
        raise
    except BaseException:
        if folder is not None:
            folder.discard()
        raise
    return run


def _end_before_start(
    spec: Spec,
    folder: RunFolder | None,
    criteria: dict[str, Criterion],
    announce: Callable[[str], None],
    *,
    report: bool,
) -> Outcome:
    """Write the folder of a run that was interrupted while it was being assembled."""
    scenario = spec.scenario
    document = make_document_before_start(
        name=spec.name, summary=scenario.summary, world=scenario.world, seed=scenario.seed, state="interrupted",
        results=[Verdict(name, c.text, None, (), "interrupted") for name, c in criteria.items()], smoke=spec.smoke,
    )  # fmt: skip
    if folder is not None:
        folder.write_json(folder.metrics, document)
        folder.write_text(folder.scenario, scenario_as_run(spec))
        if not folder.recording.is_file():
            metadata = provenance().metadata() | {"run": spec.name, "seed": str(scenario.seed)}
            McapWriter(folder.recording, metadata).close()
        if report:
            announce("writing the report")
            write_report(folder)
    return Outcome(
        spec.name, scenario.seed, "interrupted", False, None, document,
        folder.path if folder else None, folder.files() if folder else {},
    )  # fmt: skip


def _attach(
    run: Run, attach: Iterable[Callable[[Run], AbstractContextManager[object]]], folder: RunFolder | None
) -> None:
    """Open bridges; if one cannot be, nothing is left behind."""
    try:
        for make in attach:
            run.attach(make)
    except BaseException:
        run.close()
        if folder is not None:
            folder.discard()
        raise


def _restore(run: Run, spec: Spec, path: str | Path | None, folder: RunFolder | None) -> list[str]:
    """Go on from a saved state, if there is one; if that cannot be, nothing is left behind."""
    if path is None:
        return []
    try:
        notes = restore_run(run, spec, Path(path))
        if run.bus.now_ns >= round(spec.scenario.duration * 1e9):
            raise InputError(
                f"the state is of {run.time:g} s, and the run ends at {spec.scenario.duration:g} s",
                location=str(path), valid="a longer duration",
            )  # fmt: skip
    except BaseException:
        run.close()
        if folder is not None:
            folder.discard()
        raise
    return list(notes)


def _judge(run: Run, criteria: dict[str, Criterion], state: State) -> tuple[Verdict, ...]:
    metrics = run.evaluation.flat(totals(run))
    if state != "done":
        return tuple(Verdict(name, c.text, None, (), state) for name, c in criteria.items())
    rejections = run.evaluation.rejection_reasons()
    return tuple(criterion.judge(metrics, name, rejections) for name, criterion in criteria.items())


def _filming(run: Run, spec: Spec, folder: RunFolder | None, video: bool | str | None) -> Filming | None:
    entry = spec.scenario.video
    wanted = entry.always if video is None else bool(video)
    if not wanted or folder is None:
        return None
    # Whether a run fails is known at its end only, and the workers of a batch use all cores already.
    after = video == "failed"
    return Filming(run, entry, folder, concurrent=not after, max_duration=_FAILURE_S if after else math.inf)


def _is_filmed(video_maker: Filming, video: bool | str | None, document: dict[str, Any]) -> bool:
    """Only failures if so asked; and nothing is begun when somebody waits for the end."""
    if document["state"] == "interrupted":
        return video_maker.is_concurrent
    return not (video == "failed" and document["success"])


def report_compilation(report: Callable[[str], None], progress: CompilationProgress) -> None:
    """Say how far the compilation of kernels has come."""
    report(f"compiling kernels: {progress}; once only")


def _report_first_call(report: Callable[[str], None], call: FirstCall) -> None:
    """Say why a run stood still: a kernel was not expected, or was called while the world was still being built."""
    if not call.is_cached and call.seconds > _NOTICED_S:
        name = call.name.removeprefix("roboyard.")
        report(f"waited {call.seconds:.1f} s for the kernel {name} to be compiled; once only")


def _nobody(_: str) -> None:
    """Hears what nobody wants to hear."""


def _write_numbers(folder: RunFolder, document: dict[str, Any], ending: Ending) -> None:
    """First of all: they matter most if the disk is nearly full or somebody is impatient."""
    folder.write_json(folder.metrics, document)
    if ending.trace:
        folder.write_text(folder.error, ending.trace)
