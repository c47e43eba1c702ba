"""``roboyard run`` and ``roboyard report``: a run of a scenario, its result, and its report."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.options import (
    DURATION,
    JSON,
    PAUSED,
    QUIET,
    RATE,
    READ_ONLY,
    ROBOT,
    SEED,
    SET,
    SMOKE,
    VIDEO,
    VIEW_PORT,
    WORLD,
    JsonOption,
    ScenarioArgument,
    with_options,
)
from roboyard.cli.terminal import print_columns, print_line, style
from roboyard.scenarios.run_options import RunOptions, SnapshotRequest

if TYPE_CHECKING:
    from roboyard.cli.run_display import RunDisplay
    from roboyard.scenarios import Run, RunResult
    from roboyard.view import View


_MAX_FINDINGS = 5
"""Maximum number of warnings about descriptions that are shown before a run."""
_SCENARIO, _EXECUTION, _OUTPUT, _VIEW = "Scenario", "Execution", "Output", "View and bridges"
"""Headings of options."""


@with_options(RunOptions, {"replay_inputs": _EXECUTION, "from_snapshot": _EXECUTION, "out": _OUTPUT})
def run(
    scenario: ScenarioArgument,
    *,
    robot: Annotated[str | None, ROBOT("; it replaces the main one", rich_help_panel=_SCENARIO)] = None,
    world: Annotated[str | None, WORLD("; it replaces the scenario's", rich_help_panel=_SCENARIO)] = None,
    settings: Annotated[list[str] | None, SET(rich_help_panel=_SCENARIO)] = None,
    seed: Annotated[int | None, SEED(rich_help_panel=_SCENARIO)] = None,
    duration: Annotated[float | None, DURATION(" of the run [s]", rich_help_panel=_SCENARIO)] = None,
    smoke: Annotated[bool, SMOKE(rich_help_panel=_SCENARIO)] = False,
    rate: Annotated[float | None, RATE(rich_help_panel=_EXECUTION)] = None,
    paused: Annotated[bool, PAUSED(rich_help_panel=_EXECUTION)] = False,
    save_snapshot: Annotated[
        list[str] | None,
        typer.Option(metavar="T:FILE", help="Save a snapshot at this time [s].", rich_help_panel=_EXECUTION),
    ] = None,
    external: Annotated[
        list[str] | None,
        typer.Option(metavar="NODE", help="An external node replaces this node.", rich_help_panel=_EXECUTION),
    ] = None,
    external_timeout: Annotated[
        float | None,
        typer.Option(metavar="S", min=0.1, help="Timeout of external calls; default: 30.", rich_help_panel=_EXECUTION),
    ] = None,
    options: RunOptions,
    video: Annotated[bool | None, VIDEO("; default: as the scenario says", rich_help_panel=_OUTPUT)] = None,
    quiet: Annotated[bool, QUIET(rich_help_panel=_OUTPUT)] = False,
    json: Annotated[bool, JSON(rich_help_panel=_OUTPUT)] = False,
    view: Annotated[
        bool, typer.Option("--view", help="Show and control the run in a browser.", rich_help_panel=_VIEW)
    ] = False,
    view_port: Annotated[int | None, VIEW_PORT(rich_help_panel=_VIEW)] = None,
    read_only: Annotated[bool, READ_ONLY(rich_help_panel=_VIEW)] = False,
    ros2: Annotated[
        bool, typer.Option("--ros2", help="Join ROS 2, domain ROS_DOMAIN_ID.", rich_help_panel=_VIEW)
    ] = False,
    ros1: Annotated[
        bool, typer.Option("--ros1", help="Join ROS 1, master ROS_MASTER_URI.", rich_help_panel=_VIEW)
    ] = False,
    foxglove: Annotated[
        bool, typer.Option("--foxglove", help="Serve Foxglove on port 8765.", rich_help_panel=_VIEW)
    ] = False,
    rosbridge: Annotated[
        bool, typer.Option("--rosbridge", help="Serve rosbridge on port 9090.", rich_help_panel=_VIEW)
    ] = False,
    bridge_topics: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="Bridge only these topics.", rich_help_panel=_VIEW)
    ] = None,
    bridge_host: Annotated[
        str, typer.Option(metavar="HOST", help="Address of the servers.", rich_help_panel=_VIEW)
    ] = "127.0.0.1",
    bridge_port: Annotated[
        int | None, typer.Option(metavar="PORT", min=1, max=65535, help="Port of the server.", rich_help_panel=_VIEW)
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(metavar="ORIGIN", help="Accept web pages of this origin.", rich_help_panel=_VIEW)
    ] = None,
) -> None:
    """Run a scenario, evaluate its criteria, and write a report.

    Exit code 0: all criteria passed; 1: a criterion or the run failed.
    """
    from contextlib import ExitStack
    from dataclasses import replace

    from roboyard.cli.bridge_options import BridgeOptions, open_view
    from roboyard.cli.exit_codes import exit_unless_success
    from roboyard.cli.run_display import RunDisplay
    from roboyard.cli.terminal import print_note, print_result
    from roboyard.scenarios import RunControl, RunObserver, load_scenario, run_scenario

    overrides = [*(settings or []), *([f"duration={duration!r}"] if duration is not None else [])]
    spec = load_scenario(scenario, overrides=overrides, smoke=smoke, robot=robot, world=world).with_seed(seed)
    enabled_bridges = {"ros2": ros2, "ros1": ros1, "foxglove": foxglove, "rosbridge": rosbridge}
    bridge_options = BridgeOptions.from_options(
        enabled_bridges,
        bridge_topics or (),
        bridge_host,
        bridge_port,
        external or (),
        external_timeout,
        allow_origin or (),
    )
    run_options = replace(
        options,
        video="as_configured" if video is None else "always" if video else "never",
        snapshots=tuple(_parse_snapshot(text, spec.config.duration) for text in save_snapshot or []),
    )
    real_time_factor = rate if rate is not None else 1.0 if view or bridge_options.kinds else 0.0

    def run_once(folder: Path | None, browser_view: View | None) -> tuple[RunResult, RunDisplay, bool]:
        """Return the result, the display, and whether a reset restarts the run."""
        control = RunControl(paused=paused, real_time_factor=real_time_factor)
        with RunDisplay(spec.name, spec.config.duration, control, quiet=quiet or json) as display:

            def on_start(started_run: Run) -> None:
                if browser_view is not None:
                    browser_view.begin(started_run, spec.name, spec.config.duration, control)
                _start_display(started_run, display)

            outcome = run_scenario(
                spec,
                replace(run_options, out=folder, bridges=tuple(bridge_options.attachments())),
                control=control,
                observer=RunObserver(
                    on_progress=lambda _: display.tick(),
                    on_log=display.log,
                    on_started=on_start,
                    on_stage=display.show_phase,
                ),
            )
        return outcome, display, control.is_resetting and display.signal is None

    with ExitStack() as stack:
        browser_view = stack.enter_context(open_view(view, view_port, read_only=read_only))
        out = None if options.out is None else Path(options.out)
        outcome, display, is_restarting = run_once(out, browser_view)
        number = 1
        while is_restarting:
            if not json:
                _print_outcome(outcome)
            number += 1
            outcome, display, is_restarting = run_once(
                out and out.resolve().with_name(f"{out.resolve().name}-{number}"), browser_view
            )

    def show(_: object) -> None:
        _print_outcome(outcome)
        for line in bridge_options.summary_lines():
            print_note(line)

    notes = [*outcome.notes, *bridge_options.summary_lines()]
    print_result({**outcome.metrics, "folder": outcome.folder, "files": outcome.files, "notes": notes}, json, show)
    exit_unless_success(_exit_code(outcome, display.signal))


def _print_outcome(outcome: RunResult) -> None:
    from roboyard.cli.terminal import print_note

    print_run_result(outcome.metrics, outcome.files)
    for line in outcome.notes:
        print_note(line)


def _parse_snapshot(text: str, duration: float) -> SnapshotRequest:
    """Parse ``T:FILE`` into the time [s] and the file of a snapshot.

    Raises:
        InputError: It names no time of the run, or no file that can be written.
    """
    from roboyard.config import UnitError, parse_quantity
    from roboyard.errors import InputError

    time, separator, file = text.partition(":")
    location = f"--save-snapshot {text}"
    try:
        seconds = float(time) if time.strip("+-.0123456789") == "" else parse_quantity(time, "s")
    except (UnitError, ValueError) as error:
        raise InputError(str(error), location=location, valid="T:FILE, as 12.5:later.state") from None
    if not separator or not file:
        raise InputError("the file is missing", location=location, valid="T:FILE, as 12.5:later.state")
    if not 0.0 <= seconds <= duration:
        raise InputError(f"{seconds:g} s is not within the run", location=location, valid=f"0 to {duration:g} s")
    path = Path(file)
    if path.is_dir() or not path.parent.is_dir():
        raise InputError(f"{path} cannot be a file", location=location, valid="a file in a folder that exists")
    return SnapshotRequest(seconds, path)


def _start_display(started_run: Run, display: RunDisplay) -> None:
    from roboyard.cli.terminal import description_findings, merge_findings

    found = merge_findings(description_findings(started_run))
    for finding in found[:_MAX_FINDINGS]:
        display.warn(finding)
    if len(found) > _MAX_FINDINGS:
        display.warn(
            f"and {len(found) - _MAX_FINDINGS} more warnings about the descriptions, which `roboyard check` lists"
        )
    display.start(started_run.bus)


def _exit_code(outcome: RunResult, number: int | None) -> int:
    """Return the exit code of a run; for a run that a signal ended, the code of that signal."""
    from roboyard.cli.exit_codes import signal_exit_code

    if outcome.state == "interrupted" and number in (signal.SIGINT, signal.SIGTERM):
        return signal_exit_code(number)
    return outcome.exit_code


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Run folder, also of a killed run.")],
    json: JsonOption = False,
) -> None:
    """Write the report of a run again.

    For a killed run the command computes the metrics from the recording.
    """
    from roboyard.cli.terminal import print_line, print_note, print_result
    from roboyard.scenarios import regenerate_report
    from roboyard.scenarios.provenance import describe_changes_since, describe_untested_versions, provenance_metadata
    from roboyard.scenarios.run_folder import RunFolder

    page = regenerate_report(folder)
    document = RunFolder(folder).read_metrics()
    provenance = document.get("provenance", {})
    notes = [
        describe_changes_since(provenance_metadata(provenance)),
        describe_untested_versions(provenance.get("versions", {})),
    ]
    notes = list(filter(None, notes))

    def show(_: object) -> None:
        print_criteria(document)
        for line in notes:
            print_note(line)
        print_line(f"report  {page}")

    print_result({**document, "report": page, "notes": notes}, json, show)


def print_run_result(document: Mapping[str, Any], files: Mapping[str, Path]) -> None:
    """Print the criteria, the main metrics and the files of a run."""
    print_criteria(document)
    print_shown_metrics(document)
    if files:
        print_line()
        print_columns([("  " + kind, file) for kind, file in files.items()])


def print_criteria(document: Mapping[str, Any]) -> None:
    """Print a line about the run, and one for each criterion."""
    is_success = bool(document["success"])
    state = str(document["state"])
    headline = (
        "criteria passed"
        if is_success and document["criteria"]
        else "finished"
        if is_success
        else _ENDINGS.get(state, state)
    )
    color = "1;32" if is_success else "1;31"
    criteria_note = "" if state == "done" or not document["criteria"] else "; criteria are not evaluated"
    print_line(f"{style(headline, color, sys.stdout)}: {document['scenario']}, seed {document['seed']}{criteria_note}")
    if document.get("error"):
        print_line(f"  {document['error']}")
    for name, found in document["criteria"].items():
        passed = found["passed"]
        mark = "?" if passed is None else style("✓", "32", sys.stdout) if passed else style("✗", "31", sys.stdout)
        print_line(f"  {mark} {name}: {found['expression']}{_format_values(found)}{_format_reason(found)}")


def print_shown_metrics(document: Mapping[str, Any]) -> None:
    """Print the metrics of the run, and those of the main robot, that are declared as shown."""
    from roboyard.evaluation.plugin import shown_metrics

    found = [(metric, document[metric.name]) for metric in shown_metrics() if document.get(metric.name) is not None]
    print_line("  " + ", ".join(f"{metric.summary_label} {metric.format_value(value)}" for metric, value in found))


_ENDINGS = {"done": "criteria failed", "failed": "failed", "killed": "killed"}


def _format_values(found: Mapping[str, Any]) -> str:
    values = ", ".join(f"{key} = {_format_value(value)}" for key, value in dict(found["values"]).items())
    return f"  ({values})" if values else ""


def _format_reason(found: Mapping[str, Any]) -> str:
    """Return the reason of a failed criterion that its values do not show."""
    return f", {found['reason']}" if found["reason"] and found["passed"] is False else ""


def _format_value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
