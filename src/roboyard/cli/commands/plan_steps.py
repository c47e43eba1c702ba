"""``roboyard plan steps``, ``check step-plan`` and ``show step-plan``: walks over uneven ground."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.app import JsonOption
from roboyard.cli.arguments import validate_output_path, write_text
from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import InputError

if TYPE_CHECKING:
    from roboyard.grids.terrain import TerrainConfig
    from roboyard.walking.steps.checker import Verdict
    from roboyard.walking.steps.ground import Ground
    from roboyard.walking.steps.plan import StepPlan
    from roboyard.walking.steps.plan_file import HeightMapFile
    from roboyard.walking.steps.rig import Rig


ImageOption = Annotated[Path | None, typer.Option("--picture", metavar="FILE.png", help="Draw it; .svg also.")]
AnimationOption = Annotated[
    Path | None, typer.Option(metavar="FILE.gif", help="Draw it as it moves; .mp4 and .html also.")
]
MovementOption = Annotated[
    Path | None, typer.Option(metavar="FILE.xml", help="Write it as a movement, whose feet walk it when it is played.")
]


@dataclass(frozen=True)
class StepPlanOutputs:
    """Files to write; None: not.  All are looked at before anything long begins.

    Raises:
        InputError: a name that ends otherwise, or a folder that is not there.
    """

    image: Path | None = None
    animation: Path | None = None
    movement: Path | None = None

    def __post_init__(self) -> None:
        validate_output_path("--picture", self.image, (".png", ".svg"))
        validate_output_path("--animation", self.animation, (".gif", ".mp4", ".html"))
        validate_output_path("--movement", self.movement, (".xml",))
        if self.animation is not None and self.animation.suffix.lower() != ".gif":
            from roboyard.simulation.video.mp4_writer import find_ffmpeg

            find_ffmpeg()

    @property
    def files(self) -> dict[str, Path]:
        """Those that are written, by option."""
        candidates = {"picture": self.image, "animation": self.animation, "movement": self.movement}
        return {name: file for name, file in candidates.items() if file is not None}

    def write(self, plan: StepPlan, rig: Rig, ground: Ground, goal: tuple[float, float]) -> None:
        """Write them. Raises InputError where one cannot be written."""
        if self.movement is not None:
            from roboyard.walking.movement_file import movement_text
            from roboyard.walking.steps.as_movement import movement_of

            write_text(self.movement, movement_text(movement_of(plan, rig.walker, name=self.movement.stem)))
        if self.image is not None:
            from roboyard.walking.drawing import draw_steps

            draw_steps(self.image, plan, rig, ground, goal)
        if self.animation is not None:
            from roboyard.walking.drawing import animate_steps

            animate_steps(self.animation, plan, rig, ground)


_REPORT_PERIOD = 2.0
"""Between two lines about it where none can be drawn again and again [s]."""


class SearchProgress:
    """What a search asks and tells; from any of its threads.

    Args:
        budget: Events that it tries at most.
        seconds: How long it may take; None: as long as the budget lasts.
    """

    def __init__(self, max_events: int, time_limit: float | None) -> None:
        self.is_interrupted = False
        self._max_events, self._time_limit = max_events, time_limit
        self._start = wall_seconds()
        self._current_events: dict[int, int] = {}
        self._best: StepPlan | None = None
        self._finished_events: dict[int, int] = {}

    @property
    def elapsed(self) -> float:
        """How long it takes by now [s]."""
        return wall_seconds() - self._start

    @property
    def is_out_of_time(self) -> bool:
        """Whether its time is over."""
        return self._time_limit is not None and self.elapsed >= self._time_limit

    def should_stop(self) -> bool:
        """Whether it shall end."""
        return self.is_interrupted or self.is_out_of_time

    def update(self, events: int, improved_plan: StepPlan | None) -> None:
        """So many events were tried in one part of the search, and a plan that is better than that part's others."""
        thread = threading.get_ident()
        if events < self._current_events.get(thread, 0):  # another part has begun
            self._finished_events[thread] = self._finished_events.get(thread, 0) + self._current_events[thread]
        self._current_events[thread] = events
        best = self._best
        if improved_plan is not None and (best is None or improved_plan.cost < best.cost):
            self._best = improved_plan

    @property
    def fraction(self) -> float:
        """How much of the time, or else of the budget, is used: 0 to 1."""
        used = self._n_events / self._max_events if self._time_limit is None else self.elapsed / self._time_limit
        return min(used, 1.0)

    @property
    def _n_events(self) -> int:
        return sum(self._current_events.copy().values()) + sum(self._finished_events.copy().values())

    def progress_line(self) -> str:
        """How far it is, in a line."""
        best = self._best
        best_text = f"best {best.duration:.1f} s, {len(best.swings)} steps" if best is not None else "no plan yet"
        return f"{self.elapsed:.1f} s, {self._n_events} events, {best_text}"


@contextmanager
def run_search_with_progress(max_events: int, time_limit: float | None, *, quiet: bool) -> Iterator[SearchProgress]:
    """Draw a search's progress until the context ends; meanwhile the first Ctrl-C or SIGTERM only ends the search.

    Args:
        budget: Events that it tries at most.
        seconds: How long it may take; None: as long as the budget lasts.
        quiet: Draw nothing.
    """
    from roboyard.cli.terminal import is_interactive

    search = SearchProgress(max_events, time_limit)

    def handle(number: int, _frame: FrameType | None) -> None:
        if search.is_interrupted:
            raise KeyboardInterrupt
        search.is_interrupted = True

    is_main_thread = threading.current_thread() is threading.main_thread()
    previous_handlers = {n: signal.signal(n, handle) for n in (signal.SIGINT, signal.SIGTERM)} if is_main_thread else {}
    display: AbstractContextManager[object]
    if quiet:
        display = nullcontext()
    elif is_interactive():
        from roboyard.cli.terminal import draw_progress

        display = draw_progress(search.progress_line, lambda: search.fraction, 8.0)
    else:
        display = _print_lines(search)
    try:
        with display:
            yield search
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


@contextmanager
def _print_lines(search: SearchProgress) -> Iterator[None]:
    """Say a line about it now and then."""
    from roboyard.cli.terminal import print_note

    finished = threading.Event()

    def print_progress() -> None:
        while not finished.wait(_REPORT_PERIOD):
            print_note(search.progress_line())

    thread = threading.Thread(target=print_progress, daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


_MAX_INTEGER = 2**53 - 1
_DEFAULT_MAX_EVENTS = 200_000
_MAX_EVENT_RATE = 2_000_000
"""More events than a core tries in a second."""
_MAX_TIME_LIMIT = 86_400.0
LengthOption = Annotated[
    float | None, typer.Option(metavar="M", help="Of the ground, as a scenario's key of that name.")
]


def steps(
    kind: Annotated[str, typer.Argument(metavar="KIND|FILE", help="Ground: a kind of terrain, a .npy or a picture.")],
    goal: Annotated[str, typer.Option("--to", metavar="X,Y", help="Where the body shall go [m].")],
    start: Annotated[str, typer.Option("--from", metavar="X,Y[,THETA]", help="Where it is [m, rad].")] = "0,0",
    robot: Annotated[str, typer.Option(metavar="NAME|FILE", help="With legs.")] = "akrobat",
    planner: Annotated[str, typer.Option(metavar="NAME", help="splitting, greedy, genetic, …")] = "splitting",
    max_events: Annotated[
        int | None,
        typer.Option(min=1, max=_MAX_INTEGER, help="Events to try; default: 200000, or what --time-limit allow."),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="S", help="Take the best plan of so long a search.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=_MAX_INTEGER, help="Of what the planner draws.")] = 0,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Cores; the plan is the same.")] = 1,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDR", help="Over a Ray cluster: its head's HOST:PORT, or local.")
    ] = None,
    energy: Annotated[float, typer.Option(metavar="W", help="Weight of the joints' work in a plan's cost.")] = 0.0,
    leg_loss: Annotated[float, typer.Option(metavar="W", help="Weight of how it stands if a foot gives way.")] = 0.0,
    failed_leg: Annotated[str | None, typer.Option(metavar="NAME", help="Never stand on this leg.")] = None,
    ground_seed: Annotated[int, typer.Option(min=0, help="That the ground is drawn with.")] = 0,
    origin: Annotated[
        str | None, typer.Option(metavar="X,Y", help="Corner of the ground of the least x and y.")
    ] = None,
    size: Annotated[str | None, typer.Option(metavar="X,Y", help="Of the ground, of a kind [m].")] = None,
    height_range: LengthOption = None,
    cell_size: LengthOption = None,
    fraction: Annotated[float | None, typer.Option(help="Of the ground, as a scenario's key of that name.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE.yaml", help="Write the plan; .json also.")] = None,
    image: ImageOption = None,
    animation: AnimationOption = None,
    movement: MovementOption = None,
    json: JsonOption = False,
) -> None:
    """Steps over uneven ground: where to set which foot, and when.

    The plan is looked at once more by a checker that shares no code with the planner.
    Ctrl-C ends the search; the best plan so far is told and written, complete.

    Exit code 0: there is a plan, and it is right; 1: none was found; 2: ground, start or goal cannot be used;
    130: ended by Ctrl-C.
    """
    from roboyard.bringup.legged_robot import load_free_gait_model
    from roboyard.cli.terminal import print_fields, print_json, print_note
    from roboyard.walking.errors import NoPlan
    from roboyard.walking.steps.checker import Limits, check_plan
    from roboyard.walking.steps.plan_file import create_ground, format_step_plan, height_function
    from roboyard.walking.steps.planning import plan_steps
    from roboyard.walking.steps.problem import Problem, Rating
    from roboyard.walking.steps.upkeep import leg_loss_margins, work

    validate_output_path("--out", out, (".yaml", ".yml", ".json"))
    outputs = StepPlanOutputs(image, animation, movement)
    if time_limit is not None and not 0.0 < time_limit <= _MAX_TIME_LIMIT:
        raise InputError(f"--time-limit {time_limit:g}", valid=f"more than 0, up to {_MAX_TIME_LIMIT:g} s")
    first, last = _parse_numbers("--from", start, (2, 3)), _parse_numbers("--to", goal, (2,))
    heading = first[2] if len(first) == 3 else 0.0
    entry = _load_ground(
        kind, origin, size, {"height_range": height_range, "cell_size": cell_size, "fraction": fraction}, ground_seed
    )
    heights, rig = height_function(entry), load_free_gait_model(robot, failed_leg=failed_leg)
    ground = create_ground(entry, rig, [first[:2], last], heading)
    problem = Problem.of(rig, ground, first[:2], last, Rating(energy=energy, leg_loss=leg_loss))
    events = max_events or (
        _DEFAULT_MAX_EVENTS if time_limit is None else math.ceil(time_limit * _MAX_EVENT_RATE * workers)
    )
    try:
        with run_search_with_progress(events, time_limit, quiet=json) as search:
            plan = plan_steps(
                problem, planner, budget=events, seed=seed, workers=workers, cluster=cluster, stop=search.should_stop,
                told=search.update,
            )  # fmt: skip
    except NoPlan as error:
        if search.is_interrupted:
            raise KeyboardInterrupt from None
        if json:
            print_json({"plan": None, "why": error.message, "cells": [list(cell) for cell in error.cells]})
        else:
            print_note(f"roboyard: no plan: {error}")
        raise typer.Exit(1) from None
    check_result = check_plan(plan, rig.walker, rig.body, heights, (last[0], last[1]), Limits(margin=rig.margin))
    if out is not None:
        write_text(out, format_step_plan(plan, rig.walker, robot, (last[0], last[1]), entry, failed_leg))
    outputs.write(plan, rig, ground, (last[0], last[1]))
    joint_work, leg_loss_stability = work(plan, rig), float((leg_loss_margins(plan)[1] > 0.0).mean())
    effort, stopped_by = (
        plan.effort,
        "by Ctrl-C" if search.is_interrupted else "by --time-limit" if search.is_out_of_time else None,
    )
    if json:
        print_json(
            {
                "plan": {
                    "duration": plan.duration,
                    "length": plan.length,
                    "steps": len(plan.swings),
                    "cost": plan.cost,
                },
                "margin": check_result.margin,
                "tilt": check_result.tilt,
                "rate": check_result.rate,
                "work": joint_work,
                "stands_on_one_less": leg_loss_stability,
                "faults": [f"{one.kind}: {one.what}" for one in check_result.faults],
                "planner": planner,
                "events": effort.events,
                "candidates": effort.candidates,
                "arrivals": effort.arrivals,
                "ended": stopped_by,
                "out": out,
                "picture": image,
                **outputs.files,
            }
        )
    else:
        print_fields(
            [
                ("duration", f"{plan.duration:.1f} s for {plan.length:.2f} m, {len(plan.swings)} steps"),
                ("cost", f"{plan.cost:.1f} s with how near it is to tipping, and the ground"),
                ("margin", _format_margin(check_result)),
                ("if a foot gave way", f"it would stand for {100.0 * leg_loss_stability:.0f} % of the time"),
                ("work", f"{joint_work:.0f} J of the joints"),
                (
                    "search",
                    f"{effort.events} events, {effort.candidates} candidates, {effort.arrivals} arrived"
                    + (f"; ended {stopped_by} after {search.elapsed:.1f} s" if stopped_by else ""),
                ),
                ("checked", _format_faults(check_result)),
                *([("out", str(out))] if out is not None else []),
                *((name, str(file)) for name, file in outputs.files.items()),
            ]
        )
    if search.is_interrupted:
        raise KeyboardInterrupt
    if check_result.faults:
        raise typer.Exit(1)


def check_step_plan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A plan of steps: .yaml or .json.")],
    json: JsonOption = False,
) -> None:
    """A plan of steps: whether a robot can walk it.

    Joints, their speeds, the support polygon, footholds and collisions, worked out anew every 10 ms.

    Exit code 1: it cannot; 2: the file is wrong.
    """
    from roboyard.bringup.legged_robot import load_free_gait_model
    from roboyard.cli.terminal import print_fields, print_json
    from roboyard.walking.steps.checker import Limits, check_plan
    from roboyard.walking.steps.plan_file import height_function, load_step_plan

    step_file = load_step_plan(file)
    rig = load_free_gait_model(step_file.robot, failed_leg=step_file.failed_leg)
    plan = step_file.to_plan(rig.walker)
    check_result = check_plan(
        plan, rig.walker, rig.body, height_function(step_file.ground), step_file.goal, Limits(margin=rig.margin)
    )
    if json:
        print_json(
            {
                "ok": not check_result.faults,
                "file": file,
                "duration": plan.duration,
                "steps": len(plan.swings),
                "looks": check_result.looks,
                "margin": check_result.margin,
                "tilt": check_result.tilt,
                "rate": check_result.rate,
                "faults": [
                    {"kind": one.kind, "time": one.time, "what": one.what, "count": one.count}
                    for one in check_result.faults
                ],
            }
        )
    else:
        print_fields(
            [
                ("robot", step_file.robot),
                ("takes", f"{plan.duration:.1f} s, {len(plan.swings)} steps"),
                ("margin", _format_margin(check_result)),
                ("joints", f"at {100.0 * check_result.rate:.0f} % of their speed at most"),
                ("checked", _format_faults(check_result)),
            ]
        )
    if check_result.faults:
        raise typer.Exit(1)


def show_step_plan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A plan of steps: .yaml or .json.")],
    image: ImageOption = None,
    animation: AnimationOption = None,
    movement: MovementOption = None,
    json: JsonOption = False,
) -> None:
    """A plan of steps: where it leads, and its steps.

    The picture: tracks of body and feet, when which foot is down, where on its way the body could be meanwhile, and how
    firmly it stands.  The animation: body, legs and the polygon of the feet that are down.
    """
    from roboyard.bringup.legged_robot import load_free_gait_model
    from roboyard.cli.terminal import print_fields, print_json, print_table
    from roboyard.walking.steps.plan_file import create_ground, load_step_plan

    outputs, step_file = StepPlanOutputs(image, animation, movement), load_step_plan(file)
    rig = load_free_gait_model(step_file.robot, failed_leg=step_file.failed_leg)
    plan = step_file.to_plan(rig.walker)
    if outputs.files:
        ends = [plan.track[0, 1:3].tolist(), step_file.goal]
        outputs.write(plan, rig, create_ground(step_file.ground, rig, ends, plan.heading), step_file.goal)
    names = [leg.name for leg in rig.walker.legs]
    if json:
        print_json(
            {
                "file": file,
                "robot": step_file.robot,
                "goal": step_file.goal,
                "duration": plan.duration,
                "length": plan.length,
                "steps": [
                    {"leg": names[one.leg], "lifts": one.lifts, "lands": one.lands, "target": one.target}
                    for one in plan.swings
                ],
                **outputs.files,
            }
        )
        return
    print_fields(
        [
            ("robot", step_file.robot),
            ("goal", f"({step_file.goal[0]:.2f}, {step_file.goal[1]:.2f}) m"),
            ("takes", f"{plan.duration:.1f} s for {plan.length:.2f} m, {len(plan.swings)} steps"),
            *((f"{key}", value) for key, value in step_file.provenance.items()),
            *((name, str(file)) for name, file in outputs.files.items()),
        ]
    )
    print_table(
        ["leg", "lifts [s]", "lands [s]", "x [m]", "y [m]", "z [m]"],
        [
            [names[one.leg], f"{one.lifts:.2f}", f"{one.lands:.2f}", *(f"{value:.3f}" for value in one.target)]
            for one in plan.swings
        ],
        {"lifts [s]", "lands [s]", "x [m]", "y [m]", "z [m]"},
    )


def _format_margin(check_result: Verdict) -> str:
    tilt = math.degrees(check_result.tilt)
    return f"{check_result.margin:.3f} m at least from above; in space {tilt:.0f}° until it tips over"


def _format_faults(check_result: Verdict) -> str:
    if not check_result.faults:
        return f"nothing is wrong at {check_result.looks} moments"
    return "; ".join(f"{one.kind} at {one.time:.2f} s: {one.what}" for one in check_result.faults)


def _parse_numbers(option: str, text: str, counts: tuple[int, ...]) -> list[float]:

    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in counts or not all(math.isfinite(number) and abs(number) < 1e4 for number in numbers):
        raise InputError(
            f"{option} {text[:80]!r}", valid=f"{' or '.join(map(str, counts))} numbers with commas, below 10000"
        )
    return numbers


def _load_ground(
    kind: str, origin: str | None, size: str | None, options: dict[str, float | None], seed: int
) -> TerrainConfig | HeightMapFile:
    from roboyard.config import load, yaml_from_data
    from roboyard.grids.terrain import TERRAINS, TerrainConfig
    from roboyard.walking.steps.plan_file import HeightMapFile

    settings: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if kind in TERRAINS:
        if origin is not None:
            settings["origin"] = _parse_numbers("--origin", origin, (2,))
        if size is not None:
            settings["size"] = _parse_numbers("--size", size, (2,))
        return load(TerrainConfig, yaml_from_data({"type": kind, "seed": seed, **settings}))
    if not Path(kind).suffix:
        raise InputError(
            f"no ground {kind!r}", valid=f"{', '.join(TERRAINS.names())}, or a file of heights: .npy, .png"
        )
    for option, value in (("--size", size), ("--fraction", options["fraction"])):
        if value is not None:
            raise InputError(
                f"{option} with a file of heights", valid=f"{option} with a kind: {', '.join(TERRAINS.names())}"
            )
    if origin is not None:
        settings["origin"] = _parse_numbers("--origin", origin, (2,))
    return load(HeightMapFile, yaml_from_data({"file": str(Path(kind).resolve()), **settings}))
