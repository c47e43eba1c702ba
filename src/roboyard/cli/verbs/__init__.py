"""All verbs of the command, each from its own module, which is imported when the command line names the verb."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer

from roboyard import __version__
from roboyard.cli.grammar import HEADINGS, group

_COMMANDS: tuple[dict[str, str], ...] = (
    {"list": "listing.list_things", "run": "run.run", "drive": "drive.drive", "batch": "batch.batch",
     "compare": "compare.compare", "report": "report.report", "map": "map.map_", "convert": "convert.convert",
     "check": "check.app", "calibrate": "calibrate.app", "plan": "plan.app", "show": "show.app", "new": "new.app",
     "schema": "schema.schema"},
    {"teleop": "teleop.teleop", "pause": "live.pause", "resume": "live.resume", "step": "live.step",
     "rate": "live.rate", "stop": "live.stop", "save": "live.save"},
    {"topic": "topic.app", "node": "node.app", "service": "service.app", "action": "action.app", "param": "param.app",
     "tf": "tf.app", "interface": "interface.app"},
    {"view": "view.view", "replay": "replay.replay", "bag": "bag.app"},
    {"arm": "arm.app", "mesh": "mesh.app", "bench": "bench.bench", "warm": "warm.warm",
     "doctor": "doctor.doctor"},
)  # fmt: skip
"""Where each verb is, under each of the headings: a module of this package, and a function or a group in it."""
_ADDED: dict[str, dict[str, str]] = {
    "check": {"sensor": "check_sensor.sensor", "movement": "movement.check_movement", "clip": "clip.check_clip",
              "plan": "plan_steps.check_steps"},
    "plan": {"steps": "plan_steps.steps"},
    "show": {"movement": "movement.show_movement", "clip": "clip.show_clip", "plan": "plan_steps.show_steps",
             "terrain": "terrain.show_terrain"},
}  # fmt: skip
"""Commands of groups that have modules of their own."""


def make_app(commands: Collection[str] | None = None) -> typer.Typer:
    """The command with some of its verbs, or with all; to read what options all of them take needs a tenth of a second.

    Args:
        commands: Names; others are ignored.
    """
    app = group("Robots described, simulated, given their software and judged against ground truth.")
    app.callback()(_roboyard)
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


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"roboyard {__version__}")
        raise typer.Exit(0)


def _roboyard(
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
        for subcommand, target in _ADDED.get(name, {}).items():
            command.command(subcommand)(_load(target))
    return command


def _load(target: str) -> Any:
    module, _, attribute = target.partition(".")
    return getattr(import_module(f"{__name__}.{module}"), attribute)


def __getattr__(name: str) -> Any:
    if name == "app":
        return make_app()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
