"""The tree of commands, and the headings of commands and options in the help."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from roboyard import __version__
from roboyard.cli.completion import install_completion, show_completion
from roboyard.cli.exit_codes import EXIT_CODE_MEANINGS

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
        "pause": "run_control.pause",
        "resume": "run_control.resume",
        "step": "run_control.step",
        "rate": "run_control.rate",
        "stop": "run_control.stop",
        "snapshot": "run_control.snapshot",
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
"""The target of each command, under each of the headings: a module of `commands`, and a function or group in it."""
_SUBCOMMANDS: dict[str, dict[str, str]] = {
    "check": {
        "sensor": "check.sensor_contract",
        "movement": "movement.check_movement",
        "animation": "show.check_animation",
        "step-plan": "plan_steps.check_step_plan",
    },
    "plan": {"arm": "plan_arm.arm", "tasks": "plan_tasks.tasks", "steps": "plan_steps.steps"},
    "show": {
        "movement": "movement.show_movement",
        "gaits": "gaits.show_gaits",
        "animation": "show.show_animation",
        "step-plan": "plan_steps.show_step_plan",
        "terrain": "show.show_terrain",
    },
}
"""Commands of groups that are in another module than the group."""

_CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
HEADINGS = ("Run and evaluate", "Control a live run", "Inspect a live run or a recording", "Recordings", "Tools")
SUMMARY = "Describe, simulate and run robots, and evaluate them against ground truth."
_DEFAULT_PANEL = "Options"


class PanelCommand(TyperCommand):
    """A command whose help lists its options under the headings that they name as ``rich_help_panel``.

    The help is plain text: to import rich alone would double the time that it takes.
    """

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options of each heading in the order of their declaration."""
        arguments: list[tuple[str, str]] = []
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                arguments.append((record[0].partition(" <")[0], record[1]))  # without the name of a Python type
            else:
                panel = getattr(parameter, "rich_help_panel", None)
                panels.setdefault(panel if isinstance(panel, str) else _DEFAULT_PANEL, []).append(record)
        if len(panels.get(_DEFAULT_PANEL, ())) == 1 < len(panels):  # --help alone gets no heading
            last_rows = panels.pop(_DEFAULT_PANEL)
            panels[next(reversed(panels))] += last_rows
        for heading, rows in (("Arguments", arguments), *panels.items()):
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


class OrderedGroup(TyperGroup):
    """A group whose help lists its commands under headings, as plain text."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands in their order, under the heading each was registered with."""
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


class RootGroup(OrderedGroup):
    """The program; its help ends with the table of exit codes."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the exit codes."""
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)).rjust(3), meaning) for code, meaning in EXIT_CODE_MEANINGS.items()])


class CommandGroup(typer.Typer):
    """A group of commands whose options have headings."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Register a command; arguments as of `typer.Typer.command`."""
        return super().command(name, **{"cls": PanelCommand, **settings})


def _heading_index(heading: str) -> int:
    return HEADINGS.index(heading) if heading in HEADINGS else len(HEADINGS)


def command_group(summary: str, group: type[OrderedGroup] = OrderedGroup) -> CommandGroup:
    """Return a new group of commands with this summary in the help."""
    return CommandGroup(
        cls=group,
        help=summary,
        rich_markup_mode=None,
        add_completion=False,
        no_args_is_help=True,
        context_settings=_CONTEXT_SETTINGS,
    )


def make_app(commands: Collection[str] | None = None) -> typer.Typer:
    """Return the program with some of its commands, or with all.

    To load one command only saves a tenth of a second.

    Args:
        commands: Names; the program ignores others.
    """
    app = command_group(SUMMARY, RootGroup)
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


def make_summary_app() -> typer.Typer:
    """Return the program with the summaries of its commands only: enough for its help and for errors about names.

    To build the options of all commands would take twice the time.
    """
    app = command_group(SUMMARY, RootGroup)
    app.callback()(_root_callback)
    for heading, targets in zip(HEADINGS, _COMMANDS, strict=True):
        for name, target in targets.items():
            command = _load(target)
            if isinstance(command, typer.Typer):
                app.add_typer(command_group(str(command.info.help)), name=name, rich_help_panel=heading)
            else:
                app.command(name, help=command.__doc__, rich_help_panel=heading)(_summary_placeholder)
    return app


def _summary_placeholder() -> None:
    """Stand for a command that is only listed."""


def is_command(name: str) -> bool:
    """Return whether there is a command of this name."""
    return any(name in targets for targets in _COMMANDS)


def _show_version(is_requested: bool) -> None:
    if is_requested:
        print(f"roboyard {__version__}")
        raise typer.Exit(0)


def _root_callback(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
    install: Annotated[
        bool,
        typer.Option(
            "--install-completion", callback=install_completion, is_eager=True,
            help="Install completion for this shell: bash, zsh or fish.",
        ),
    ] = False,
    show: Annotated[
        bool,
        typer.Option(
            "--show-completion", callback=show_completion, is_eager=True,
            help="Print the completion script for this shell.",
        ),
    ] = False,
) -> None:  # fmt: skip
    """Describe, simulate and run robots, and evaluate them against ground truth."""


@cache
def _load_command(name: str) -> Callable[..., None] | typer.Typer:
    """Return the command of this name, with the subcommands of other modules."""
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
