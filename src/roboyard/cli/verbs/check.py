"""``roboyard check``: whether a file is right, without running it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from roboyard.cli.grammar import JsonOption, group

app = group("Check a scenario, robot or world without running it.")

SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Another value, e.g. robots.rover.at=[1,0,0].")
]


@app.command("scenario")
def scenario(
    file: Annotated[str, typer.Argument(metavar="SCENARIO", help="A file, or a name of `roboyard list`.")],
    robot: Annotated[str | None, typer.Option(metavar="FILE|NAME", help="Instead of the main robot.")] = None,
    world: Annotated[str | None, typer.Option(metavar="FILE|NAME", help="Instead of the world.")] = None,
    settings: SetOption = None,
    json: JsonOption = False,
) -> None:
    """A scenario and everything it names.

    World, robots, nodes, scripts, criteria.
    """
    from roboyard.cli.terminal import emit, fields
    from roboyard.scenarios import check_scenario

    found = check_scenario(file, overrides=tuple(settings or ()), robot=robot, world=world)
    if json:
        emit({"ok": True, "check": found})
        return
    fields(
        [
            ("scenario", found.scenario),
            ("world", found.world),
            *(("robot", f"{name}: {', '.join(nodes) or 'no nodes'}") for name, nodes in found.robots.items()),
            ("topics", f"{len(found.topics)}"),
            ("criteria may use", ", ".join(found.metrics)),
        ]
    )
    _show_findings(found.findings)


@app.command("robot")
def robot(
    file: Annotated[str, typer.Argument(metavar="ROBOT", help="A file, or a name of `roboyard list`.")],
    json: JsonOption = False,
) -> None:
    """A robot: its description, and the nodes that bring it up."""
    from roboyard.cli.terminal import emit, fields
    from roboyard.description import World
    from roboyard.scenarios import Run
    from roboyard.scenarios.catalog import find_robot

    package = find_robot(file)
    with Run(World("nowhere"), record=False) as run:  # what physics or a node cannot take is found out by trying
        model = run.add(package, "robot", nodes="all").model
        findings = list(dict.fromkeys([*package.findings, *map(str, model.findings), *run.simulation.notes]))
    joints = [joint for joint in model.joints if joint.type != "fixed"]
    data: dict[str, Any] = {
        "robot": package.name,
        "description": str(package.description),
        "links": len(model.links),
        "joints": [joint.name for joint in joints],
        "mass": model.mass,
        "sensors": [sensor.name for sensor in model.sensors],
        "nodes": {name: spec.use for name, spec in package.file.nodes.items()},
        "findings": findings,
    }
    if json:
        emit({"ok": True, **data})
        return
    fields(
        [
            ("robot", data["robot"]),
            ("description", data["description"]),
            ("links", f"{data['links']}, {data['mass']:.4g} kg in all"),
            ("moving joints", ", ".join(data["joints"]) or "none"),
            ("sensors", ", ".join(data["sensors"]) or "none"),
            ("nodes", ", ".join(data["nodes"]) or "none"),
        ]
    )
    _show_findings(findings)


@app.command("world")
def world(
    file: Annotated[str, typer.Argument(metavar="WORLD", help="A file, or a name of `roboyard list`.")],
    json: JsonOption = False,
) -> None:
    """A world: what stands in it."""
    from roboyard.cli.terminal import emit, fields
    from roboyard.description import load_world
    from roboyard.scenarios.catalog import find
    from roboyard.simulation import Simulation

    path: Path = find("world", file)
    found = load_world(path)
    simulation = Simulation(found)  # what physics cannot take is found out by trying
    findings = [*map(str, found.findings), *simulation.notes]
    simulation.close()
    models = [placed.name for placed in found.models]
    if json:
        emit({"ok": True, "world": found.name, "path": path, "models": models, "findings": findings})
        return
    fields([("world", found.name), ("file", path), ("models", ", ".join(models) or "none")])
    _show_findings(findings)


def _show_findings(findings: Sequence[str]) -> None:
    from roboyard.cli.findings import shortened
    from roboyard.cli.terminal import count, note, say

    for finding in shortened(findings):
        note(f"warning: {finding}")
    say("it is right" + (f", with {count(len(findings), 'warning')}" if findings else ""))
