"""``roboyard run`` and ``roboyard report``: a run of a scenario, its result, and its report."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.app import JsonOption
from roboyard.cli.terminal import print_columns, print_line, style

if TYPE_CHECKING:
    from roboyard.cli.run_display import RunDisplay
    from roboyard.scenarios import Run, RunResult, SnapshotRequest
    from roboyard.view import View


_MAX_FINDINGS = 5
"""How many warnings about descriptions are shown before a run."""


def run(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="A name of `roboyard list`, or a file.")],
    robot: Annotated[str | None, typer.Option(metavar="FILE|NAME", help="Another robot for the main one.")] = None,
    world: Annotated[str | None, typer.Option(metavar="FILE|NAME", help="Another world.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of every random generator.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Another value: robots.rover.pose=[1,0,0].")
    ] = None,
    duration: Annotated[float | None, typer.Option(metavar="S", help="End after this simulated time [s].")] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            metavar="X", min=0.0, help="1: real time (default with --view and bridges); 0: as fast as possible."
        ),
    ] = None,
    paused: Annotated[bool, typer.Option("--paused", help="Begin paused: space goes on, s steps, q ends.")] = False,
    replay_inputs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Repeat what came from outside in this run or recording.")
    ] = None,
    from_snapshot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Go on from a state that this scenario saved.")
    ] = None,
    save_snapshot: Annotated[
        list[str] | None, typer.Option(metavar="T:FILE", help="Save the whole state at this simulated time [s].")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="New folder; default: runs/SCENARIO-NNN.")] = None,
    smoke: Annotated[bool, typer.Option("--smoke", help="The short variant, at most 5 s.")] = False,
    video: Annotated[
        bool | None, typer.Option("--video/--no-video", help="Make a video; default: what the scenario says.")
    ] = None,
    view: Annotated[bool, typer.Option("--view", help="Show it in a browser, and steer it there.")] = False,
    view_port: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=65535, help="Port of --view; default: 8711, or a free one.")
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="With --view: nobody may steer.")] = False,
    ros2: Annotated[bool, typer.Option("--ros2", help="Be in ROS 2's graph, in the domain of ROS_DOMAIN_ID.")] = False,
    ros1: Annotated[bool, typer.Option("--ros1", help="Be in ROS 1's graph, at the master of ROS_MASTER_URI.")] = False,
    foxglove: Annotated[bool, typer.Option("--foxglove", help="Serve Foxglove, on port 8765.")] = False,
    rosbridge: Annotated[bool, typer.Option("--rosbridge", help="Serve roslib's rosbridge, on port 9090.")] = False,
    bridge_topics: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="Topics that bridges show, as /rover/*; default: all.")
    ] = None,
    bridge_host: Annotated[str, typer.Option(metavar="ADDR", help="Address that bridges listen on.")] = "127.0.0.1",
    bridge_port: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=65535, help="Port of --foxglove or --rosbridge.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Web pages of this origin may connect to --foxglove or --rosbridge."),
    ] = None,
    external: Annotated[
        list[str] | None, typer.Option(metavar="NODE", help="Leave this node out; one outside takes its place.")
    ] = None,
    external_timeout: Annotated[
        float | None,
        typer.Option(metavar="S", min=0.1, help="How long calls of --external's services may take; default: 30."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the verdict.")] = False,
    json: JsonOption = False,
) -> None:
    """Run a scenario and judge it.

    It leaves a folder with recording, metrics, report and the scenario as it was run.
    A reset from outside begins it anew, in a folder beside it.

    Exit code 0: the criteria held; 1: they did not, or the run failed; 2: the input was wrong; 130: Ctrl-C.
    """
    from contextlib import ExitStack

    from roboyard.cli.bridge_options import BridgeOptions, open_view
    from roboyard.cli.run_display import RunDisplay
    from roboyard.cli.terminal import print_json, print_note
    from roboyard.scenarios import RunControl, RunObserver, RunOptions, load_scenario, run_scenario

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
    real_time_factor = rate if rate is not None else 1.0 if view or bridge_options.kinds else 0.0

    def run_once(folder: Path | None, browser_view: View | None) -> tuple[RunResult, RunDisplay, bool]:
        """The outcome, what showed it, and whether it shall begin anew."""
        control = RunControl(paused=paused, real_time_factor=real_time_factor)
        with RunDisplay(spec.name, spec.config.duration, control, quiet=quiet or json) as display:

            def on_start(started_run: Run) -> None:
                if browser_view is not None:
                    browser_view.begin(started_run, spec.name, spec.config.duration, control)
                _start_display(started_run, display)

            outcome = run_scenario(
                spec,
                RunOptions(
                    out=folder,
                    replay_inputs=replay_inputs,
                    from_snapshot=from_snapshot,
                    snapshots=tuple(_parse_snapshot(text, spec.config.duration) for text in save_snapshot or []),
                    video="as_configured" if video is None else "always" if video else "never",
                    bridges=tuple(bridge_options.attachments()),
                ),
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
        outcome, display, is_restarting = run_once(out, browser_view)
        number = 1
        while is_restarting:
            if not json:
                _print_outcome(outcome)
            number += 1
            outcome, display, is_restarting = run_once(
                out and out.resolve().with_name(f"{out.resolve().name}-{number}"), browser_view
            )
    if json:
        print_json(
            {
                **outcome.metrics,
                "folder": outcome.folder,
                "files": outcome.files,
                "notes": [*outcome.notes, *bridge_options.summary_lines()],
            }
        )
    else:
        _print_outcome(outcome)
        for line in bridge_options.summary_lines():
            print_note(line)
    raise typer.Exit(_exit_code(outcome, display.signal))


def _print_outcome(outcome: RunResult) -> None:
    from roboyard.cli.terminal import print_note

    print_run_result(outcome.metrics, outcome.files)
    for line in outcome.notes:
        print_note(line)


def _parse_snapshot(text: str, duration: float) -> SnapshotRequest:
    """Time and file of ``T:FILE``."""
    from roboyard.config import UnitError, parse_quantity
    from roboyard.errors import InputError
    from roboyard.scenarios import SnapshotRequest

    time, separator, file = text.partition(":")
    location = f"--save-snapshot {text}"
    try:
        seconds = float(time) if time.strip("+-.0123456789") == "" else parse_quantity(time, "s")
    except (UnitError, ValueError) as error:
        raise InputError(str(error), location=location, valid="T:FILE, as 12.5:later.state") from None
    if not separator or not file:
        raise InputError("names no file", location=location, valid="T:FILE, as 12.5:later.state")
    if not 0.0 <= seconds <= duration:
        raise InputError(f"{seconds:g} s is not in the run", location=location, valid=f"0 to {duration:g} s")
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
        display.warn(f"and {len(found) - _MAX_FINDINGS} more about the descriptions: `roboyard check` lists them")
    display.start(started_run.bus)


def _exit_code(outcome: RunResult, number: int | None) -> int:
    """Of a run that a signal ended, what shells show for that signal."""
    if outcome.state == "interrupted" and number in (signal.SIGINT, signal.SIGTERM):
        return 128 + number
    return outcome.exit_code


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run's folder; also one whose run was killed.")],
    json: JsonOption = False,
) -> None:
    """Write a run's report anew.

    For a run whose process was killed the metrics are computed from its recording.
    """
    from roboyard.cli.terminal import print_json, print_line, print_note
    from roboyard.scenarios import regenerate_report
    from roboyard.scenarios.provenance import compare_with_current, compare_with_lock, metadata_from_dict
    from roboyard.scenarios.run_folder import RunFolder

    page = regenerate_report(folder)
    document = RunFolder(folder).read_metrics()
    provenance = document.get("provenance", {})
    notes = [compare_with_current(metadata_from_dict(provenance)), compare_with_lock(provenance.get("versions", {}))]
    notes = list(filter(None, notes))
    if json:
        print_json({**document, "report": page, "notes": notes})
        return
    print_criteria(document)
    for line in notes:
        print_note(line)
    print_line(f"report  {page}")


def print_run_result(document: Mapping[str, Any], files: Mapping[str, Path]) -> None:
    """Verdict, main numbers, and where everything lies."""
    print_criteria(document)
    print_metrics(document)
    if files:
        print_line()
        print_columns([("  " + kind, file) for kind, file in files.items()])


def print_criteria(document: Mapping[str, Any]) -> None:
    """One line for the run, one for each criterion."""
    is_success = bool(document["success"])
    state = str(document["state"])
    headline = (
        "criteria held" if is_success and document["criteria"] else "done" if is_success else _ENDINGS.get(state, state)
    )
    color = "1;32" if is_success else "1;31"
    criteria_note = "" if state == "done" or not document["criteria"] else "; criteria are not judged"
    print_line(f"{style(headline, color, sys.stdout)}: {document['scenario']}, seed {document['seed']}{criteria_note}")
    if document.get("error"):
        print_line(f"  {document['error']}")
    for name, found in document["criteria"].items():
        passed = found["passed"]
        mark = "?" if passed is None else style("✓", "32", sys.stdout) if passed else style("✗", "31", sys.stdout)
        print_line(f"  {mark} {name}: {found['expression']}{_format_values(found)}{_format_reason(found)}")


def print_metrics(document: Mapping[str, Any]) -> None:
    """Print the metrics of the run, and those of the main robot, that are declared as shown."""
    from roboyard.evaluation.plugin import shown_metrics

    found = [(metric, document[metric.name]) for metric in shown_metrics() if document.get(metric.name) is not None]
    print_line("  " + ", ".join(f"{metric.shown} {metric.format_value(value)}" for metric, value in found))


_ENDINGS = {"done": "criteria not held", "failed": "failed", "killed": "killed"}


def _format_values(found: Mapping[str, Any]) -> str:
    values = ", ".join(f"{key} = {_format_value(value)}" for key, value in dict(found["values"]).items())
    return f"  ({values})" if values else ""


def _format_reason(found: Mapping[str, Any]) -> str:
    """Why a criterion was not held or could not be judged, if there is more to say than its values."""
    return f", {found['reason']}" if found["reason"] and found["passed"] is False else ""


def _format_value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
