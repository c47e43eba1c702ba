"""All verbs of the command, each from its own module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from roboyard import __version__
from roboyard.cli.grammar import HEADINGS, group
from roboyard.cli.verbs import (
    action,
    arm,
    bag,
    calibrate,
    check,
    interface,
    mesh,
    new,
    node,
    param,
    plan,
    service,
    show,
    tf,
    topic,
)
from roboyard.cli.verbs.batch import batch
from roboyard.cli.verbs.bench import bench
from roboyard.cli.verbs.check_sensor import sensor
from roboyard.cli.verbs.clip import check_clip, show_clip
from roboyard.cli.verbs.compare import compare
from roboyard.cli.verbs.convert import convert
from roboyard.cli.verbs.doctor import doctor
from roboyard.cli.verbs.drive import drive
from roboyard.cli.verbs.listing import list_things
from roboyard.cli.verbs.live import pause, rate, resume, save, step, stop
from roboyard.cli.verbs.map import map_
from roboyard.cli.verbs.movement import check_movement, show_movement
from roboyard.cli.verbs.plan_steps import check_steps, show_steps, steps
from roboyard.cli.verbs.replay import replay
from roboyard.cli.verbs.report import report
from roboyard.cli.verbs.run import run
from roboyard.cli.verbs.teleop import teleop
from roboyard.cli.verbs.terrain import show_terrain
from roboyard.cli.verbs.view import view
from roboyard.cli.verbs.warm import warm

app = group("Robots described, simulated, given their software and judged against ground truth.")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"roboyard {__version__}")
        raise typer.Exit(0)


@app.callback()
def _roboyard(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Robots described, simulated, given their software and judged against ground truth."""


check.app.command("sensor")(sensor)
check.app.command("movement")(check_movement)
check.app.command("clip")(check_clip)
check.app.command("plan")(check_steps)
plan.app.command("steps")(steps)
show.app.command("movement")(show_movement)
show.app.command("clip")(show_clip)
show.app.command("plan")(show_steps)
show.app.command("terrain")(show_terrain)

_VERBS: tuple[dict[str, Callable[..., None] | typer.Typer], ...] = (
    {"list": list_things, "run": run, "drive": drive, "batch": batch, "compare": compare, "report": report,
     "check": check.app, "calibrate": calibrate.app, "map": map_, "plan": plan.app, "show": show.app,
     "convert": convert, "new": new.app},
    {"teleop": teleop, "pause": pause, "resume": resume, "step": step, "rate": rate, "stop": stop, "save": save},
    {
        "topic": topic.app, "node": node.app, "service": service.app, "action": action.app, "param": param.app,
        "tf": tf.app, "interface": interface.app,
    },
    {"view": view, "replay": replay, "bag": bag.app},
    {"arm": arm.app, "mesh": mesh.app, "bench": bench, "warm": warm, "doctor": doctor},
)  # fmt: skip

for _heading, _verbs in zip(HEADINGS, _VERBS, strict=True):
    for _name, _verb in _verbs.items():
        if isinstance(_verb, typer.Typer):
            app.add_typer(_verb, name=_name, rich_help_panel=_heading)
        else:
            app.command(_name, rich_help_panel=_heading)(_verb)
