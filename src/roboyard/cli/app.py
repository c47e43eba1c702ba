"""The tree of commands, their headings in the help, and options that many commands share."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from roboyard import __version__

_COMMANDS: tuple[dict[str, str], ...] = (
    {
        "list": "catalog.list_entries",
        "run": "run.run",
        "bringup": "bringup.bringup",
        "batch": "batch.batch",
        "compare": "batch.compare",
        "report": "run.report",
        "map": "map.map_",
        "convert": "convert.convert",
        "check": "check.app",
        "calibrate": "calibrate.app",
        "plan": "plan_path.app",
        "show": "show.app",
        "new": "catalog.new_app",
        "schema": "schema.schema",
    },
    {
        "teleop": "teleop.teleop",
        "pause": "live.pause",
        "resume": "live.resume",
        "step": "live.step",
        "rate": "live.rate",
        "stop": "live.stop",
        "snapshot": "live.snapshot",
    },
    {
        "topic": "topic.app",
        "node": "node.app",
        "service": "service.app",
        "action": "action.app",
        "param": "param.app",
        "tf": "tf.app",
        "interface": "interface.app",
    },
    {"view": "replay.view", "replay": "replay.replay", "bag": "bag.app"},
    {
        "arm": "arm.app",
        "mesh": "mesh.app",
        "bench": "bench.bench",
        "precompile": "precompile.precompile",
        "doctor": "doctor.doctor",
    },
)
"""Where each verb is, under each of the headings: a module of this package, and a function or a group in it."""
_SUBCOMMANDS: dict[str, dict[str, str]] = {
    "check": {
        "sensor": "check.sensor",
        "movement": "movement.check_movement",
        "animation": "show.check_animation",
        "step-plan": "plan_steps.check_step_plan",
    },
    "plan": {"steps": "plan_steps.steps"},
    "show": {
        "movement": "movement.show_movement",
        "animation": "show.show_animation",
        "step-plan": "plan_steps.show_step_plan",
        "terrain": "show.show_terrain",
    },
}
"""Commands of groups that have modules of their own."""

_CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}

RunOption = Annotated[
    str | None,
    typer.Option("--run", metavar="NAME", help="Live run, by name or process id; default: the only one."),
]
FileOption = Annotated[
    Path | None,
    typer.Option("--file", "-f", metavar="REC", help="A recording or a run's folder, instead of a live run."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


HEADINGS = ("Run and judge", "Steer a live run", "Look into a live run or a recording", "Recordings", "Around it")


class OrderedGroup(TyperGroup):
    """A group whose help lists its verbs under headings; plain text, since rich alone would double the time."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the verbs in their order, under the heading each was registered with."""
        sections: dict[str, list[tuple[str, Any]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                heading = getattr(command, "rich_help_panel", None)
                sections.setdefault(heading if isinstance(heading, str) else "Commands", []).append((name, command))
        name_width = max((len(name) for rows in sections.values() for name, _ in rows), default=0)
        for heading in sorted(sections, key=_heading_index):
            rows = sections[heading]
            with formatter.section(heading):
                limit = formatter.width - 6 - name_width
                formatter.write_dl(
                    [(name.ljust(name_width), command.get_short_help_str(limit)) for name, command in rows]
                )


def _heading_index(heading: str) -> int:
    return HEADINGS.index(heading) if heading in HEADINGS else len(HEADINGS)


def command_group(summary: str) -> typer.Typer:
    """A new group of verbs."""
    return typer.Typer(
        cls=OrderedGroup,
        help=summary,
        rich_markup_mode=None,
        add_completion=False,
        no_args_is_help=True,
        context_settings=_CONTEXT_SETTINGS,
    )


def make_app(commands: Collection[str] | None = None) -> typer.Typer:
    """The command with some of its verbs, or with all; to read what options all of them take needs a tenth of a second.

    Args:
        commands: Names; others are ignored.
    """
    app = command_group("Robots described, simulated, given their software and judged against ground truth.")
    app.callback()(_root_callback)
    for heading, targets in zip(HEADINGS, _COMMANDS, strict=True):
        for name in targets:
            if commands is None or name in commands:
                command = _load_command(name)
                if isinstance(command, typer.Typer):
                    app.add_typer(command, name=name, rich_help_panel=heading)
                else:
                    app.command(name, rich_help_panel=heading)(command)
    return app


def is_command(name: str) -> bool:
    """Whether there is a verb of this name."""
    return any(name in targets for targets in _COMMANDS)


def _show_version(is_requested: bool) -> None:
    if is_requested:
        print(f"roboyard {__version__}")
        raise typer.Exit(0)


def _root_callback(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Robots described, simulated, given their software and judged against ground truth."""


@cache
def _load_command(name: str) -> Callable[..., None] | typer.Typer:
    """The verb of this name, with what other modules add to it."""
    command: Callable[..., None] | typer.Typer = _load(next(targets[name] for targets in _COMMANDS if name in targets))
    if isinstance(command, typer.Typer):
        for subcommand, target in _SUBCOMMANDS.get(name, {}).items():
            command.command(subcommand)(_load(target))
    return command


def _load(target: str) -> Any:
    module, _, attribute = target.partition(".")
    return getattr(import_module(f"roboyard.cli.commands.{module}"), attribute)


def __getattr__(name: str) -> Any:
    if name == "app":
        return make_app()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
