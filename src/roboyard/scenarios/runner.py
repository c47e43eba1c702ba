"""Runs a scenario from start to verdict and leaves its folder."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roboyard.bus import Input
from roboyard.bus.log import Record
from roboyard.bus.socket import SocketServer
from roboyard.compute import limit_blas_threads
from roboyard.errors import RoboyardError
from roboyard.record import inputs_of, open_recording
from roboyard.scenarios.as_run import scenario_as_run
from roboyard.scenarios.assemble import assemble, read_criteria
from roboyard.scenarios.control import Control, interruptible
from roboyard.scenarios.document import State, make_document, totals
from roboyard.scenarios.expressions import Criterion, Verdict
from roboyard.scenarios.outcome import Outcome
from roboyard.scenarios.report import write_report
from roboyard.scenarios.run import Attach, Run
from roboyard.scenarios.run_folder import RunFolder, given_folder, new_folder
from roboyard.scenarios.spec import Spec

_SLICE_NS = 100_000_000
"""How often progress is told and ``until`` is looked at [ns of simulated time]."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: simulated time and duration [s], wall time [s]."""

    time: float
    duration: float
    wall_seconds: float

    @property
    def real_time_factor(self) -> float:
        """Simulated seconds per wall second so far."""
        return self.time / self.wall_seconds if self.wall_seconds > 0.0 else 0.0


def run_scenario(
    spec: Spec,
    *,
    out: str | Path | None = None,
    runs: str | Path = "runs",
    keep: bool = True,
    report: bool = True,
    inputs: str | Path | None = None,
    control: Control | None = None,
    progress: Callable[[Progress], None] | None = None,
    log: Callable[[Record], None] | None = None,
    started: Callable[[Run], None] | None = None,
    attach: Iterable[Attach] = (),
    serve: bool = True,
) -> Outcome:
    """Run a scenario to its end, judge it, and write its folder.

    Ctrl-C and SIGTERM end it in order: recording, metrics and report are complete up to there, criteria are marked as
    not judged.  A node that fails ends it likewise.

    Args:
        spec: From ``load_spec``.
        out: Its folder: new or empty.  None: a new one, ``<runs>/<scenario>-<NNN>``.
        runs: Where new folders are made.
        keep: False leaves nothing on disk (and writes no report).
        report: False leaves the report out.
        inputs: A recording (or a run's folder) whose inputs from outside are repeated.
        control: The hand on its clock.
        progress: Called every 0.1 simulated seconds.
        log: Called with every line of the log.
        started: Called with the run once it is assembled.
        attach: What watches it from outside.
        serve: Whether other processes reach it through a socket.

    Raises:
        InputError and its kinds: the scenario cannot be started; nothing is left behind.
        RunError: its folder cannot be written.
    """
    limit_blas_threads(1)
    control = control or Control()
    repeated = _read_inputs(inputs)
    criteria, until = read_criteria(spec.scenario)
    folder = _folder(spec, out, runs) if keep else None
    with interruptible(control), ExitStack() as stack:
        run = _assemble(spec, folder, attach)
        stack.callback(run.close)
        if log is not None:
            run.bus.log_sinks.append(log)
        run.bus.inputs.schedule(repeated)
        control.bind(run.bus)
        if serve:
            stack.callback(SocketServer(run.bus, spec.name).close)
        if started is not None:
            started(run)
        ending = _go(run, spec, control, until, progress)
        ending = _finish(run, ending)
        document = make_document(
            run, about=spec.scenario.about, world=spec.scenario.world, state=ending.state, error=ending.error,
            verdicts=_judge(run, criteria, ending.state), smoke=spec.smoke,
        )  # fmt: skip
        if folder is not None:
            _write(run, folder, document, ending, report=report)
        if ending.unexpected is not None:
            raise ending.unexpected
    return Outcome(
        spec.name, spec.scenario.seed, ending.state, document["success"], ending.error, document,
        folder.path if folder else None, folder.files() if folder else {},
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Ending:
    """How the clock came to stand: ``unexpected`` is a fault of the program, not of a node or file."""

    state: State
    error: str | None = None
    trace: str = ""
    unexpected: Exception | None = None


def _read_inputs(path: str | Path | None) -> list[tuple[int, Input]]:
    if path is None:
        return []
    with open_recording(path) as recording:
        return inputs_of(recording)


def _folder(spec: Spec, out: str | Path | None, runs: str | Path) -> RunFolder:
    name = f"{spec.name}-smoke" if spec.smoke else spec.name
    return given_folder(out) if out is not None else new_folder(name, runs)


def _assemble(spec: Spec, folder: RunFolder | None, attach: Iterable[Attach]) -> Run:
    """Put it together; if that fails nothing is left behind."""
    try:
        run = assemble(spec, out=folder.path if folder else None, record=folder is not None, attach=attach)
        if folder is not None:
            folder.write_text(folder.scenario, scenario_as_run(spec))
    except BaseException:
        if folder is not None:
            folder.discard()
        raise
    return run


def _go(
    run: Run, spec: Spec, control: Control, until: Criterion | None, progress: Callable[[Progress], None] | None
) -> _Ending:
    duration = spec.scenario.duration
    end_ns = round(duration * 1e9)
    try:
        while run.bus.now_ns < end_ns and not control.stopping:
            step = control.next_step()
            if step is not None:
                _step(run, step, end_ns)
            else:
                target_ns = min((run.bus.now_ns // _SLICE_NS + 1) * _SLICE_NS, end_ns)
                run.advance(target_ns, control.wanted)
                if run.bus.now_ns < target_ns and not control.wanted():
                    control.stop()  # another process said so through the socket
            if progress is not None:
                progress(Progress(run.time, duration, run.wall_seconds))
            if until is not None and until.judge(run.evaluation.flat(totals(run))).passed:
                break
    except KeyboardInterrupt:
        return _Ending("interrupted")
    except RoboyardError as error:
        return _Ending("failed", str(error), "".join(traceback.format_exception(error)))
    except Exception as error:  # noqa: BLE001 - what was recorded is saved first, then it is raised again
        text = f"{type(error).__name__}: {error}"
        return _Ending("failed", text, "".join(traceback.format_exception(error)), error)
    return _Ending("interrupted" if control.stopping else "done")


def _step(run: Run, seconds: float, end_ns: int) -> None:
    """Run one step of a paused run: ``seconds`` of simulated time, or one instant if that is 0."""
    executor = run.bus.executor
    if seconds <= 0.0:
        executor.step()
        return
    paused, executor.paused = executor.paused, False
    try:
        run.advance(min(run.bus.now_ns + round(seconds * 1e9), end_ns))
    finally:
        executor.paused = paused


def _finish(run: Run, ending: _Ending) -> _Ending:
    """Close everything; an error in that counts unless there was one before."""
    try:
        run.finish()
    except RoboyardError as error:
        if ending.error is None:
            return _Ending("failed", str(error), "".join(traceback.format_exception(error)))
    return ending


def _judge(run: Run, criteria: dict[str, Criterion], state: State) -> tuple[Verdict, ...]:
    metrics = run.evaluation.flat(totals(run))
    if state != "done":
        return tuple(Verdict(name, c.text, None, (), state) for name, c in criteria.items())
    return tuple(criterion.judge(metrics, name) for name, criterion in criteria.items())


def _write(run: Run, folder: RunFolder, document: dict[str, Any], ending: _Ending, *, report: bool) -> None:
    """Numbers first: they matter most if the disk is nearly full or somebody is impatient."""
    folder.write_json(folder.metrics, document)
    if ending.trace:
        folder.write_text(folder.error, ending.trace)
    if report:
        write_report(folder, world=run.simulation)
