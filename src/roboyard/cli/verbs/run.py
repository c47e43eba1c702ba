"""``roboyard run``: a scenario from start to verdict."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roboyard.cli.grammar import JsonOption

if TYPE_CHECKING:
    from roboyard.cli.display import Display
    from roboyard.scenarios import Outcome, Run
    from roboyard.view import View

_FINDINGS = 5
"""How many warnings about descriptions are shown before a run."""


def run(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="A name of `roboyard list`, or a file.")],
    robot: Annotated[str | None, typer.Option(metavar="FILE|NAME", help="Another robot for the main one.")] = None,
    world: Annotated[str | None, typer.Option(metavar="FILE|NAME", help="Another world.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of every random generator.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Another value: robots.rover.at=[1,0,0].")
    ] = None,
    duration: Annotated[float | None, typer.Option(metavar="S", help="End after this simulated time [s].")] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            metavar="X", min=0.0, help="1: real time (default with --view and bridges); 0: as fast as possible."
        ),
    ] = None,
    paused: Annotated[bool, typer.Option("--paused", help="Begin paused: space goes on, s steps, q ends.")] = False,
    inputs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Repeat what came from outside in this run or recording.")
    ] = None,
    from_state: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Go on from a state that this scenario saved.")
    ] = None,
    save_state: Annotated[
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
    external_wait: Annotated[
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

    from roboyard.cli.bridging import Bridging
    from roboyard.cli.display import Display
    from roboyard.cli.terminal import emit, note
    from roboyard.cli.viewing import opened
    from roboyard.scenarios import Control, load_spec, run_scenario

    overrides = [*(settings or []), *([f"duration={duration!r}"] if duration is not None else [])]
    spec = load_spec(scenario, overrides=overrides, smoke=smoke, robot=robot, world=world).seeded(seed)
    wanted = {"ros2": ros2, "ros1": ros1, "foxglove": foxglove, "rosbridge": rosbridge}
    bridging = Bridging.of(
        wanted, bridge_topics or (), bridge_host, bridge_port, external or (), external_wait, allow_origin or ()
    )
    pace = rate if rate is not None else 1.0 if view or bridging.kinds else 0.0

    def once(folder: Path | None, shown: View | None) -> tuple[Outcome, Display, bool]:
        """The outcome, what showed it, and whether it shall begin anew."""
        control = Control(paused=paused, pace=pace)
        with Display(spec.name, spec.scenario.duration, control, quiet=quiet or json) as display:

            def started(made: Run) -> None:
                if shown is not None:
                    shown.begin(made, spec.name, spec.scenario.duration, control)
                _started(made, display)

            outcome = run_scenario(
                spec,
                out=folder,
                inputs=inputs,
                from_state=from_state,
                save_states=[_moment(text, spec.scenario.duration) for text in save_state or []],
                video=video,
                control=control,
                progress=lambda _: display.tick(),
                log=display.log,
                started=started,
                stage=display.stage,
                attach=bridging.attach(),
            )
        return outcome, display, control.resetting and display.signal is None

    with ExitStack() as stack:
        shown = stack.enter_context(opened(view, view_port, read_only=read_only))
        outcome, display, again = once(out, shown)
        number = 1
        while again:
            if not json:
                _show(outcome)
            number += 1
            outcome, display, again = once(out and out.resolve().with_name(f"{out.resolve().name}-{number}"), shown)
    if json:
        emit(
            {
                **outcome.metrics,
                "folder": outcome.folder,
                "files": outcome.files,
                "notes": [*outcome.notes, *bridging.told()],
            }
        )
    else:
        _show(outcome)
        for line in bridging.told():
            note(line)
    raise typer.Exit(_exit_code(outcome, display.signal))


def _show(outcome: Outcome) -> None:
    from roboyard.cli.summary import show_outcome
    from roboyard.cli.terminal import note

    show_outcome(outcome.metrics, outcome.files)
    for line in outcome.notes:
        note(line)


def _moment(text: str, duration: float) -> tuple[float, Path]:
    """Time and file of ``T:FILE``."""
    from roboyard.config import UnitError, parse_quantity
    from roboyard.errors import InputError

    time, colon, file = text.partition(":")
    where = f"--save-state {text}"
    try:
        seconds = float(time) if time.strip("+-.0123456789") == "" else parse_quantity(time, "s")
    except (UnitError, ValueError) as error:
        raise InputError(str(error), location=where, valid="T:FILE, as 12.5:later.state") from None
    if not colon or not file:
        raise InputError("names no file", location=where, valid="T:FILE, as 12.5:later.state")
    if not 0.0 <= seconds <= duration:
        raise InputError(f"{seconds:g} s is not in the run", location=where, valid=f"0 to {duration:g} s")
    path = Path(file)
    if path.is_dir() or not path.parent.is_dir():
        raise InputError(f"{path} cannot be a file", location=where, valid="a file in a folder that exists")
    return seconds, path


def _started(made: Run, display: Display) -> None:
    from roboyard.cli.findings import findings_of, shortened

    found = shortened(findings_of(made))
    for finding in found[:_FINDINGS]:
        display.warn(finding)
    if len(found) > _FINDINGS:
        display.warn(f"and {len(found) - _FINDINGS} more about the descriptions: `roboyard check` lists them")
    display.started(made.bus)


def _exit_code(outcome: Outcome, number: int | None) -> int:
    """Of a run that a signal ended, what shells show for that signal."""
    if outcome.state == "interrupted" and number in (signal.SIGINT, signal.SIGTERM):
        return 128 + number
    return outcome.exit_code
