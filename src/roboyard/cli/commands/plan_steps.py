"""``roboyard plan steps``, ``check step-plan`` and ``show step-plan``: step plans of legged robots on uneven ground."""

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

from roboyard.cli.arguments import IMAGE_SUFFIXES, parse_numbers, validate_output_path, write_text
from roboyard.cli.options import (
    ANIMATION,
    CLUSTER,
    GOAL,
    MOVEMENT,
    ORIGIN,
    OUT,
    PLANNER,
    ROBOT,
    SEED,
    START,
    WORKERS,
    CellSizeOption,
    FractionOption,
    HeightRangeOption,
    ImageOption,
    JsonOption,
)
from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import InputError

if TYPE_CHECKING:
    from roboyard.grids.terrain import TerrainConfig
    from roboyard.walking.free_gait.foothold_map import FootholdMap
    from roboyard.walking.free_gait.plan_checker import PlanCheckReport
    from roboyard.walking.free_gait.plan_file import HeightMapFile
    from roboyard.walking.free_gait.robot_model import FreeGaitModel
    from roboyard.walking.free_gait.step_plan import StepPlan


AnimationOption = Annotated[Path | None, ANIMATION()]
MovementOption = Annotated[Path | None, MOVEMENT()]
StepPlanArgument = Annotated[Path, typer.Argument(metavar="FILE", help="Step plan: .yaml or .json.")]


@dataclass(frozen=True)
class StepPlanOutputs:
    """Files to write; None: do not write it. All are checked before the search.

    Raises:
        InputError: A file has another suffix, or its folder does not exist.
    """

    image: Path | None = None
    animation: Path | None = None
    movement: Path | None = None

    def __post_init__(self) -> None:
        validate_output_path("--picture", self.image, IMAGE_SUFFIXES)
        validate_output_path("--animation", self.animation, (".gif", ".mp4", ".html"))
        validate_output_path("--movement", self.movement, (".xml",))
        if self.animation is not None and self.animation.suffix.lower() != ".gif":
            from roboyard.simulation.video.mp4_writer import find_ffmpeg

            find_ffmpeg()

    @property
    def files(self) -> dict[str, Path]:
        """Return the files to write by option."""
        candidates = {"picture": self.image, "animation": self.animation, "movement": self.movement}
        return {name: file for name, file in candidates.items() if file is not None}

    def write(
        self, plan: StepPlan, robot_model: FreeGaitModel, foothold_map: FootholdMap, goal: tuple[float, float]
    ) -> None:
        """Write the files.

        Raises:
            InputError: A file cannot be written.
        """
        if self.movement is not None:
            from roboyard.walking.foot_movement import format_movement
            from roboyard.walking.free_gait.step_plan import to_foot_movement

            write_text(
                self.movement,
                format_movement(to_foot_movement(plan, robot_model.legged_robot, name=self.movement.stem)),
            )
        if self.image is not None:
            from roboyard.walking.drawing import draw_step_plan

            draw_step_plan(self.image, plan, robot_model, foothold_map, goal)
        if self.animation is not None:
            from roboyard.walking.drawing import animate_step_plan

            animate_step_plan(self.animation, plan, robot_model, foothold_map)


_REPORT_PERIOD = 2.0
"""Period of progress lines where the terminal cannot be redrawn [s]."""


class SearchProgress:
    """Progress of a search, and the conditions that end it; all its threads may use it.

    Args:
        max_events: Maximum number of events.
        time_limit: Maximum duration [s]; None: no limit.
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
        """Elapsed time [s]."""
        return wall_seconds() - self._start

    @property
    def is_out_of_time(self) -> bool:
        """Whether the time limit is reached."""
        return self._time_limit is not None and self.elapsed >= self._time_limit

    def should_stop(self) -> bool:
        """Return whether the search must end."""
        return self.is_interrupted or self.is_out_of_time

    def update(self, events: int, improved_plan: StepPlan | None) -> None:
        """Report the number of events in one part of the search, and a plan that improves on this part's others."""
        thread = threading.get_ident()
        if events < self._current_events.get(thread, 0):  # another part has begun
            self._finished_events[thread] = self._finished_events.get(thread, 0) + self._current_events[thread]
        self._current_events[thread] = events
        best = self._best
        if improved_plan is not None and (best is None or improved_plan.cost < best.cost):
            self._best = improved_plan

    @property
    def fraction(self) -> float:
        """Used fraction of the time limit, or else of the events, 0 to 1."""
        used = self._n_events / self._max_events if self._time_limit is None else self.elapsed / self._time_limit
        return min(used, 1.0)

    @property
    def _n_events(self) -> int:
        return sum(self._current_events.copy().values()) + sum(self._finished_events.copy().values())

    def progress_line(self) -> str:
        """Return a line about the progress."""
        best = self._best
        best_text = f"best {best.duration:.1f} s, {len(best.swings)} steps" if best is not None else "no plan yet"
        return f"{self.elapsed:.1f} s, {self._n_events} events, {best_text}"


@contextmanager
def run_search_with_progress(max_events: int, time_limit: float | None, *, quiet: bool) -> Iterator[SearchProgress]:
    """Show the progress of a search until the context ends; the first Ctrl-C or SIGTERM ends only the search.

    Args:
        max_events: Maximum number of events.
        time_limit: Maximum duration [s]; None: no limit.
        quiet: Show nothing.
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
    """Print a line about the progress at intervals."""
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
"""Upper bound of the events that a core tries per second."""
_MAX_TIME_LIMIT = 86_400.0
_MAX_COORDINATE = 1e4


def steps(
    terrain: Annotated[
        str, typer.Argument(metavar="TYPE|FILE", help="Terrain: its type, or a height map in .npy or an image.")
    ],
    goal: Annotated[str, GOAL(": position of the body [m]", metavar="X,Y")],
    start: Annotated[str, START(": pose of the body [m, rad]", metavar="X,Y[,THETA]")] = "0,0",
    robot: Annotated[str, ROBOT("; it needs legs")] = "akrobat",
    planner: Annotated[str, PLANNER(": splitting, greedy, genetic, …")] = "splitting",
    max_events: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, max=_MAX_INTEGER, help="Maximum number of events; default: 200000, or --time-limit."
        ),
    ] = None,
    time_limit: Annotated[float | None, typer.Option(metavar="S", help="Maximum duration of the search [s].")] = None,
    seed: Annotated[int, SEED(max=_MAX_INTEGER)] = 0,
    workers: Annotated[int, WORKERS("; they do not change the plan", max=64)] = 1,
    cluster: Annotated[str | None, CLUSTER()] = None,
    energy: Annotated[float, typer.Option(metavar="WEIGHT", help="Weight of the work of the joints.")] = 0.0,
    leg_loss: Annotated[
        float, typer.Option(metavar="WEIGHT", help="Weight of the stability after the loss of a leg.")
    ] = 0.0,
    failed_leg: Annotated[str | None, typer.Option(metavar="NAME", help="Leg that carries no load.")] = None,
    ground_seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the terrain.")] = 0,
    origin: Annotated[str | None, ORIGIN(" of the terrain: the corner of its smallest x and y [m]")] = None,
    size: Annotated[str | None, typer.Option(metavar="X,Y", help="Size of the terrain [m].")] = None,
    height_range: HeightRangeOption = None,
    cell_size: CellSizeOption = None,
    fraction: FractionOption = None,
    out: Annotated[Path | None, OUT(": the plan, .yaml or .json", metavar="FILE")] = None,
    image: ImageOption = None,
    animation: AnimationOption = None,
    movement: MovementOption = None,
    json: JsonOption = False,
) -> None:
    """Plan the steps of a legged robot over uneven ground.

    An independent checker checks the plan. Ctrl-C ends the search; the command prints and writes the best plan so far.

    Exit code 1: there is no plan, or the check failed; 2: the terrain, the start or the goal cannot be used; 130:
    ended by Ctrl-C.
    """
    from roboyard.bringup.legged_robot import load_free_gait_model
    from roboyard.cli.exit_codes import ExitCode, exit_unless_success
    from roboyard.cli.terminal import print_fields, print_note, print_result
    from roboyard.walking.errors import NoStepPlanError
    from roboyard.walking.free_gait.plan_analysis import joint_work, leg_loss_margins
    from roboyard.walking.free_gait.plan_checker import PlanCheckLimits, check_plan
    from roboyard.walking.free_gait.plan_file import create_foothold_map, format_step_plan, height_function
    from roboyard.walking.free_gait.planning import plan_steps
    from roboyard.walking.free_gait.problem import PlanCostWeights, StepPlanningProblem

    validate_output_path("--out", out, (".yaml", ".yml", ".json"))
    outputs = StepPlanOutputs(image, animation, movement)
    if time_limit is not None and not 0.0 < time_limit <= _MAX_TIME_LIMIT:
        raise InputError(f"--time-limit {time_limit:g}", valid=f"more than 0, up to {_MAX_TIME_LIMIT:g} s")
    first = parse_numbers("--start", start, (2, 3), limit=_MAX_COORDINATE)
    last = parse_numbers("--goal", goal, 2, limit=_MAX_COORDINATE)
    heading = first[2] if len(first) == 3 else 0.0
    entry = _load_ground(
        terrain, origin, size, {"height_range": height_range, "cell_size": cell_size, "fraction": fraction}, ground_seed
    )
    heights, robot_model = height_function(entry), load_free_gait_model(robot, failed_leg=failed_leg)
    foothold_map = create_foothold_map(entry, robot_model, [first[:2], last], heading)
    problem = StepPlanningProblem.create(
        robot_model, foothold_map, first[:2], last, PlanCostWeights(joint_work=energy, leg_loss=leg_loss)
    )
    events = max_events or (
        _DEFAULT_MAX_EVENTS if time_limit is None else math.ceil(time_limit * _MAX_EVENT_RATE * workers)
    )
    try:
        with run_search_with_progress(events, time_limit, quiet=json) as search:
            plan = plan_steps(
                problem,
                planner,
                budget=events,
                seed=seed,
                workers=workers,
                cluster=cluster,
                should_stop=search.should_stop,
                on_progress=search.update,
            )
    except NoStepPlanError as error:
        if search.is_interrupted:
            raise KeyboardInterrupt from None
        failure = {"plan": None, "reason": error.message, "cells": [list(cell) for cell in error.barrier_cells]}
        text = f"no plan: {error}"
        print_result(failure, json, lambda _: print_note(text))
        exit_unless_success(ExitCode.FAILURE)
        return
    check_result = check_plan(
        plan,
        robot_model.legged_robot,
        robot_model.body_box,
        heights,
        (last[0], last[1]),
        PlanCheckLimits(min_stability_margin=robot_model.min_stability_margin),
    )
    if out is not None:
        write_text(out, format_step_plan(plan, robot_model.legged_robot, robot, (last[0], last[1]), entry, failed_leg))
    outputs.write(plan, robot_model, foothold_map, (last[0], last[1]))
    total_joint_work, leg_loss_stability = (
        joint_work(plan, robot_model),
        float((leg_loss_margins(plan)[1] > 0.0).mean()),
    )
    statistics = plan.statistics
    stopped_by = "by Ctrl-C" if search.is_interrupted else "by --time-limit" if search.is_out_of_time else None
    search_text = (
        f"{statistics.events} events, {statistics.candidates} candidates, {statistics.arrivals} reached the goal"
        + (f"; ended {stopped_by} after {search.elapsed:.1f} s" if stopped_by else "")
    )
    fields = [
        ("duration", f"{plan.duration:.1f} s for {plan.path_length:.2f} m, {len(plan.swings)} steps"),
        ("cost", f"{plan.cost:.1f} s with the weights of stability and ground"),
        ("margin", _format_margin(check_result)),
        ("loss of a leg", f"stable for {100.0 * leg_loss_stability:.0f} % of the time"),
        ("work", f"{total_joint_work:.0f} J of the joints"),
        ("search", search_text),
        ("check", _format_faults(check_result)),
        ("out", out),
        *outputs.files.items(),
    ]
    result = {
        "plan": {
            "duration": plan.duration,
            "length": plan.path_length,
            "steps": len(plan.swings),
            "cost": plan.cost,
        },
        "stability_margin": check_result.min_stability_margin,
        "tilt_margin": check_result.min_tip_over_angle,
        "joint_speed_fraction": check_result.max_speed_fraction,
        "work": total_joint_work,
        "leg_loss_stability": leg_loss_stability,
        "faults": [f"{one.kind}: {one.description}" for one in check_result.faults],
        "planner": planner,
        "events": statistics.events,
        "candidates": statistics.candidates,
        "arrivals": statistics.arrivals,
        "stopped_by": stopped_by,
        "out": out,
        "picture": image,
        **outputs.files,
    }
    print_result(result, json, lambda _: print_fields(fields))
    if search.is_interrupted:
        raise KeyboardInterrupt
    exit_unless_success(ExitCode.FAILURE if check_result.faults else ExitCode.SUCCESS)


def check_step_plan(file: StepPlanArgument, json: JsonOption = False) -> None:
    """Check whether a robot can execute a step plan.

    The check covers joint limits and speeds, the support polygon, footholds and collisions, every 10 ms.

    Exit code 1: the robot cannot execute it; 2: the file is not valid.
    """
    from roboyard.bringup.legged_robot import load_free_gait_model
    from roboyard.cli.exit_codes import ExitCode, exit_unless_success
    from roboyard.cli.terminal import print_fields, print_result
    from roboyard.walking.free_gait.plan_checker import PlanCheckLimits, check_plan
    from roboyard.walking.free_gait.plan_file import height_function, load_step_plan

    step_file = load_step_plan(file)
    robot_model = load_free_gait_model(step_file.robot, failed_leg=step_file.failed_leg)
    plan = step_file.to_plan(robot_model.legged_robot)
    check_result = check_plan(
        plan,
        robot_model.legged_robot,
        robot_model.body_box,
        height_function(step_file.ground),
        step_file.goal,
        PlanCheckLimits(min_stability_margin=robot_model.min_stability_margin),
    )
    result = {
        "ok": not check_result.faults, "file": file, "duration": plan.duration, "steps": len(plan.swings),
        "checked_instants": check_result.n_samples, "stability_margin": check_result.min_stability_margin,
        "tilt_margin": check_result.min_tip_over_angle, "joint_speed_fraction": check_result.max_speed_fraction,
        "faults": [
            {"type": one.kind, "time": one.time, "description": one.description, "count": one.count}
            for one in check_result.faults
        ],
    }  # fmt: skip
    fields = [
        ("robot", step_file.robot),
        ("duration", f"{plan.duration:.1f} s, {len(plan.swings)} steps"),
        ("margin", _format_margin(check_result)),
        ("joints", f"up to {100.0 * check_result.max_speed_fraction:.0f} % of their maximum speed"),
        ("check", _format_faults(check_result)),
    ]
    print_result(result, json, lambda _: print_fields(fields))
    exit_unless_success(ExitCode.FAILURE if check_result.faults else ExitCode.SUCCESS)


def show_step_plan(
    file: StepPlanArgument,
    image: ImageOption = None,
    animation: AnimationOption = None,
    movement: MovementOption = None,
    json: JsonOption = False,
) -> None:
    """Show the goal and the steps of a step plan.

    The image shows the paths of body and feet, the contacts of each foot over time, the range of the body, and the
    stability. The animation shows the body, the legs and the support polygon.
    """
    from roboyard.bringup.legged_robot import load_free_gait_model
    from roboyard.cli.terminal import print_result
    from roboyard.walking.free_gait.plan_file import create_foothold_map, load_step_plan

    outputs, step_file = StepPlanOutputs(image, animation, movement), load_step_plan(file)
    robot_model = load_free_gait_model(step_file.robot, failed_leg=step_file.failed_leg)
    plan = step_file.to_plan(robot_model.legged_robot)
    if outputs.files:
        ends = [plan.body_track[0, 1:3].tolist(), step_file.goal]
        outputs.write(
            plan, robot_model, create_foothold_map(step_file.ground, robot_model, ends, plan.heading), step_file.goal
        )
    names = [leg.name for leg in robot_model.legged_robot.legs]
    result = {
        "file": file,
        "robot": step_file.robot,
        "goal": step_file.goal,
        "duration": plan.duration,
        "length": plan.path_length,
        "provenance": dict(step_file.provenance),
        "steps": [
            {
                "leg": names[one.leg],
                "lift_off_time": one.lift_off_time,
                "touch_down_time": one.touch_down_time,
                "target": one.target,
            }
            for one in plan.swings
        ],
        **outputs.files,
    }
    files = [(name, str(file)) for name, file in outputs.files.items()]
    print_result(result, json, lambda found: _print_step_plan(found, files))


def _print_step_plan(result: dict[str, Any], files: list[tuple[str, str]]) -> None:
    from roboyard.cli.terminal import print_fields, print_table

    steps, goal = result["steps"], result["goal"]
    print_fields(
        [
            ("robot", result["robot"]),
            ("goal", f"({goal[0]:.2f}, {goal[1]:.2f}) m"),
            ("duration", f"{result['duration']:.1f} s for {result['length']:.2f} m, {len(steps)} steps"),
            *result["provenance"].items(),
            *files,
        ]
    )
    headers = ["leg", "lift-off [s]", "touch-down [s]", "x [m]", "y [m]", "z [m]"]
    rows = [
        [
            one["leg"],
            f"{one['lift_off_time']:.2f}",
            f"{one['touch_down_time']:.2f}",
            *(f"{value:.3f}" for value in one["target"]),
        ]
        for one in steps
    ]
    print_table(headers, rows, right=headers[1:])


def _format_margin(check_result: PlanCheckReport) -> str:
    tilt = math.degrees(check_result.min_tip_over_angle)
    return f"{check_result.min_stability_margin:.3f} m in the plane; {tilt:.0f}° of tilt"


def _format_faults(check_result: PlanCheckReport) -> str:
    if not check_result.faults:
        return f"no fault at {check_result.n_samples} instants"
    return "; ".join(f"{one.kind} at {one.time:.2f} s: {one.description}" for one in check_result.faults)


def _load_ground(
    kind: str, origin: str | None, size: str | None, options: dict[str, float | None], seed: int
) -> TerrainConfig | HeightMapFile:
    from roboyard.config import load, yaml_from_data
    from roboyard.grids.terrain import TERRAINS, TerrainConfig
    from roboyard.walking.free_gait.plan_file import HeightMapFile

    settings: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if kind in TERRAINS:
        if origin is not None:
            settings["origin"] = parse_numbers("--origin", origin, 2, limit=_MAX_COORDINATE)
        if size is not None:
            settings["size"] = parse_numbers("--size", size, 2, limit=_MAX_COORDINATE)
        return load(TerrainConfig, yaml_from_data({"type": kind, "seed": seed, **settings}))
    if not Path(kind).suffix:
        raise InputError(
            f"unknown terrain {kind!r}", valid=f"{', '.join(TERRAINS.names())}, or a height map: .npy, .png"
        )
    for option, value in (("--size", size), ("--fraction", options["fraction"])):
        if value is not None:
            raise InputError(
                f"{option} requires a type of terrain, not a height map", valid=", ".join(TERRAINS.names())
            )
    if origin is not None:
        settings["origin"] = parse_numbers("--origin", origin, 2, limit=_MAX_COORDINATE)
    return load(HeightMapFile, yaml_from_data({"file": str(Path(kind).resolve()), **settings}))
