"""Options and arguments that several commands share: one name, one meaning, one type each.

A command that has more to say about a shared option than its meaning, e.g. the default that follows from another
argument, appends it: ``SEED("; default: the scenario's")``. Every help text of an option begins with its meaning.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from roboyard.cli import completion
from roboyard.config.parameter import parameter_info


@dataclass(frozen=True)
class SharedOption:
    """An option that several commands have.

    Attributes:
        names: Its long name, and its short one if it has any.
        meaning: What it means in every command: a phrase without a full stop.
        metavar: What its value is called in the help; None for a flag.
        settings: Other arguments of `typer.Option`, e.g. the smallest value.
    """

    names: tuple[str, ...]
    meaning: str
    metavar: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    def __call__(self, detail: str = "", **settings: Any) -> Any:
        """Return what `typer.Option` makes of it.

        Args:
            detail: What a command adds to the meaning, with the mark that separates it: "; default: 0".
            settings: Arguments of `typer.Option` that this command changes, e.g. the panel.
        """
        arguments = {"metavar": self.metavar, **self.settings, **settings}
        return typer.Option(*self.names, help=f"{self.meaning}{detail}.", **arguments)


def _option(names: str, meaning: str, metavar: str | None = None, **settings: Any) -> SharedOption:
    return SharedOption(tuple(names.split()), meaning, metavar, settings)


OUT = _option("--out -o", "Output file or folder", "PATH")
IMAGE = _option("--picture", "Also draw an image into this file", "FILE")
SEED = _option("--seed", "Seed of all random generators", "N", min=0)
WORKERS = _option("--workers", "Number of parallel workers", "N", min=1)
CLUSTER = _option("--cluster", "Ray cluster: HOST:PORT of its head, or local", "ADDRESS")
ROBOT = _option("--robot", "Robot, by name or file", "NAME|FILE", autocompletion=completion.complete_robots)
WORLD = _option("--world", "World, by name or file", "NAME|FILE", autocompletion=completion.complete_worlds)
NODE = _option("--node", "Node", "NODE", autocompletion=completion.complete_nodes)
SET = _option("--set", "Override a value; repeatable", "KEY=VALUE", autocompletion=completion.complete_settings)
VARY = _option("--vary", "Vary a key over the runs; repeatable", "KEY=VALUES")
RUNS = _option("--runs -n", "Number of runs", "N", min=1)
SMOKE = _option("--smoke", "Run the short variant, at most 5 s")
RETAINED_RECORDINGS = _option("--keep", "Which runs keep their recordings", case_sensitive=False)
VIDEO = _option("--video/--no-video", "Write a video")
DURATION = _option("--duration -d", "Stop after this time", "S")
RATE = _option("--rate", "Real-time factor; 0: as fast as possible", "FACTOR", min=0.0)
PAUSED = _option("--paused", "Start paused; space resumes, s steps, q stops")
VIEW_PORT = _option("--view-port", "Port of the view; default: 8711 or a free one", "PORT", min=1, max=65535)
READ_ONLY = _option("--read-only", "Do not accept control from the browser")
QUIET = _option("--quiet -q", "Print no progress")
JSON = _option("--json", "Print the result as JSON")
RUN = _option("--run", "Live run, by name or process id", "NAME", autocompletion=completion.complete_live_runs)
FILE = _option("--file -f", "Recording or run folder to read instead of a live run", "PATH")
TOPIC = _option("--topic", "Topic", "TOPIC", autocompletion=completion.complete_topics)
TOPICS = _option("--topics -t", "Only these topics; patterns as '/rover/*'", "TOPIC")
EXCLUDE = _option("--exclude -x", "Not these topics; patterns as '/rover/*'", "TOPIC")
COUNT = _option("--count -n", "Stop after this many", "N", min=1)
ONCE = _option("--once -1", "Stop after the first one")
TIME = _option("--time", "Time in the recording [s]; default: its end", "S")
ALL = _option("--all -a", "Include everything")
OVERWRITE = _option("--overwrite", "Replace the new file if it exists")
REPAIR = _option("--repair", "Repair what can be repaired, and list the repairs")
PLANNER = _option("--planner", "Planner", "NAME")
START = _option("--start", "Start", "POSE")
GOAL = _option("--goal", "Goal", "GOAL")
GROUP = _option("--group", "Joint group; default: the first", "NAME")
TOOL = _option("--tool", "Tool of the joint group; default: the first", "NAME")
SAMPLES = _option("--samples", "Number of random joint positions", "N")
HEIGHT_RANGE = _option("--height-range", "Height range of the terrain [m]", "METERS")
CELL_SIZE = _option("--cell-size", "Side of a cell of the terrain [m]", "METERS")
FRACTION = _option("--fraction", "Fraction of the terrain that its type changes, 0 to 1", "NUMBER")
ORIGIN = _option("--origin", "Origin", "POINT")
TREE = _option("--tree", "Tree of the file; default: the main one", "ID")
MOCK = _option("--mock", "Replace unknown node types by mocks")
TRIANGLES = _option("--triangles", "Maximum number of triangles", "N")
SHAPES = _option("--shapes", "Shapes: box, cylinder, capsule, sphere; or hull; or decompose", "TYPE,…")
MAX_SHAPES = _option("--max-shapes", "Maximum number of collision shapes", "N")
UNIT = _option("--unit", "Unit of the file's numbers: m, cm, mm or in", "UNIT")
MASS = _option("--mass", "Total mass [kg]", "KG")
PLANE = _option("--plane", "Cut at the plane a x + b y + c z = d; repeatable", "x=D|a,b,c,d")
BOX = _option("--box", "Split off the part inside this box; repeatable", "x0,y0,z0,x1,y1,z1")
NAMES = _option("--names", "Names of the parts, the largest first", "A,B,…")
MESH_FORMAT = _option("--format", "Format of the printed elements: urdf or sdf", "FORMAT")
ANIMATION = _option("--animation", "Also draw an animation into this file: .gif, .mp4 or .html", "FILE")
MOVEMENT = _option("--movement", "Also write the plan as a movement: .xml", "FILE")
INTERPOLATION = _option("--interpolation", "Interpolation between steps: cosine or spline", "NAME")
TICKS = _option("--ticks", "Minimum number of 20 ms ticks between steps; default: the file's, or 8", "N")
HEIGHT = _option("--height", "Height of the person [m]", "METERS")
WINDOW = _option("--window -w", "Number of latest messages to evaluate", "N", min=2)

JsonOption = Annotated[bool, JSON()]
RunOption = Annotated[str | None, RUN("; default: the only one")]
FileOption = Annotated[Path | None, FILE()]
SettingsOption = Annotated[list[str] | None, SET(", e.g. robots.rover.pose=[1,0,0]")]
QuietOption = Annotated[bool, QUIET()]
PausedOption = Annotated[bool, PAUSED()]
OverwriteOption = Annotated[bool, OVERWRITE()]
RepairOption = Annotated[bool, REPAIR()]
GroupOption = Annotated[str | None, GROUP()]
ToolOption = Annotated[str | None, TOOL()]
HeightRangeOption = Annotated[float | None, HEIGHT_RANGE()]
CellSizeOption = Annotated[float | None, CELL_SIZE()]
FractionOption = Annotated[float | None, FRACTION()]
TreeOption = Annotated[str | None, TREE()]
MockOption = Annotated[bool, MOCK()]
CountOption = Annotated[int | None, COUNT()]
OnceOption = Annotated[bool, ONCE()]
TimeOption = Annotated[float | None, TIME()]
WindowOption = Annotated[int, WINDOW()]
ImageOption = Annotated[Path | None, IMAGE(": .png or .svg")]
PhotoOption = Annotated[Path | None, IMAGE(": .png or .jpg")]

ScenarioArgument = Annotated[
    str,
    typer.Argument(metavar="SCENARIO", help="Scenario, by name or file.", autocompletion=completion.complete_scenarios),
]
RobotArgument = Annotated[
    str, typer.Argument(metavar="ROBOT", help="Robot, by name or file.", autocompletion=completion.complete_robots)
]
WorldArgument = Annotated[
    str, typer.Argument(metavar="WORLD", help="World, by name or file.", autocompletion=completion.complete_worlds)
]
TopicArgument = Annotated[
    str,
    typer.Argument(
        metavar="TOPIC", help="Topic; the leading slash may be left out.", autocompletion=completion.complete_topics
    ),
]
NodeArgument = Annotated[
    str,
    typer.Argument(
        metavar="NODE", help="Node; the leading slash may be left out.", autocompletion=completion.complete_run_nodes
    ),
]
RecordingArgument = Annotated[
    Path, typer.Argument(metavar="RECORDING", help="Recording of any format, or run folder.", show_default=False)
]


def with_options(
    options_class: type[Any],
    options: Mapping[str, Any],
    defaults: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command options for fields of a dataclass.

    The declarations of the fields give type, bounds, default and help. The command has a parameter ``options``; in its
    place the decorated command has one option for each field, and calls the command with an instance of the class.

    Args:
        options_class: The dataclass; its fields are declared with `roboyard.config.parameter`.
        options: By the name of the field, the heading of its option in the help; or, where the option has another name
            or text than the field, what a `SharedOption` or `typer.Option` returns.
        defaults: Defaults of this command that are not those of the class, by the name of the field.
    """
    types, declared = get_type_hints(options_class), {one.name: one for one in fields(options_class)}
    tuple_fields = {name for name in options if get_origin(types[name]) is tuple}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        generated = [
            _field_option(declared[name], types[name], option, (defaults or {}).get(name, MISSING))
            for name, option in options.items()
        ]
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            parameters += generated if parameter.name == "options" else [parameter]

        @wraps(command)
        def call(**arguments: Any) -> None:
            values = {name: arguments.pop(name) for name in options}
            for name in values.keys() & tuple_fields:
                values[name] = tuple(values[name] or ())
            command(**arguments, options=options_class(**values))

        del call.__dict__["__wrapped__"]  # so that typer reads the new signature
        call.__dict__["__signature__"] = signature.replace(parameters=parameters)
        call.__annotations__ = {one.name: one.annotation for one in parameters}
        return call

    return decorate


def _field_option(declaration: Field[Any], annotation: Any, option: Any, default: Any) -> inspect.Parameter:
    """Return the parameter of a command for a field of a dataclass."""
    info = parameter_info(declaration)
    is_path = Path in get_args(annotation)
    if default is MISSING:
        default = declaration.default
    kind: Any = annotation
    if is_path:
        kind = Path | None if default is None else Path
    elif get_origin(annotation) is tuple:  # repeatable
        kind, default = list[get_args(annotation)[0]] | None, default or None  # type: ignore[misc]
    if isinstance(option, str):
        name = "--" + declaration.name.replace("_", "-")
        shared = _SHARED_OPTIONS.get(name)
        if shared is not None:
            option = shared(f": {info.doc}", rich_help_panel=option)
        else:
            text = f"{info.doc[:1].upper()}{info.doc[1:]}."
            option = typer.Option(name, help=text, metavar="PATH" if is_path else None, rich_help_panel=option)
    if option.min is None:
        option.min, option.max = info.constraint.low, info.constraint.high
    return inspect.Parameter(
        declaration.name, inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is MISSING else default, annotation=Annotated[kind, option],
    )  # fmt: skip


_SHARED_OPTIONS = {
    one.names[0].partition("/")[0]: one for one in list(globals().values()) if isinstance(one, SharedOption)
}
