"""``roboyard check``: whether a file is right, without running it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.grammar import JsonOption, group

if TYPE_CHECKING:
    from roboyard.description import Model, Repair
    from roboyard.errors import DescriptionError
    from roboyard.simulation import Simulation

    Survey = Callable[[Path], tuple[tuple[DescriptionError, ...], tuple[Repair, ...]]]

app = group("Check a scenario, robot, world, tree or tasks.")

SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Another value, e.g. robots.rover.at=[1,0,0].")
]
PictureOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw it: a .png or .jpg file.")]
ArgumentOption = Annotated[
    list[str] | None, typer.Option("--arg", metavar="NAME=VALUE", help="A xacro argument, e.g. ur_type=ur5e.")
]
RepairOption = Annotated[bool, typer.Option("--repair", help="Mend what can be mended, and say what was done.")]


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


@app.command("tree")
def tree(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Behaviour trees in BehaviorTree.CPP's XML.")],
    main: Annotated[
        str | None, typer.Option("--tree", metavar="ID", help="Which of its trees, if not the main.")
    ] = None,
    mock: Annotated[bool, typer.Option("--mock", help="Let unknown node types pass, with stand-ins.")] = False,
    json: JsonOption = False,
) -> None:
    """A behaviour tree: nodes, ports, scripts, subtrees.

    Files that it includes are looked at too.  An error says file, line, node, port and what would be right.
    """
    from roboyard.behavior import load_tree, load_trees
    from roboyard.cli.terminal import emit, fields, say

    trees = [load_tree(file, main=main, mock=mock)] if main else load_trees(file, mock=mock)
    told: list[dict[str, Any]] = []
    for found in trees:
        types = {node.type_name for node in found.nodes.values() if type(node).__module__.endswith(".mocks")}
        entries = dict.fromkeys(key for part in found.parts for key, _ in part.blackboard)
        subtrees = [part.tree for part in found.parts[1:]]
        told.append(
            {"tree": found.name, "nodes": len(found.nodes), "subtrees": subtrees, "entries": list(entries)}
            | {"mocked": sorted(types)}
        )
    if json:
        emit({"ok": True, "trees": told})
        return
    for one in told:
        shown = {
            key: value if isinstance(value, (str, int)) else ", ".join(map(str, value)) or "none"
            for key, value in one.items()
        }
        fields([(key, value) for key, value in shown.items() if key != "mocked" or mock])
    say("it is right" if told else "it is right, and has no tree")


@app.command("tasks")
def tasks(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Conditions, actions and goals in YAML.")],
    json: JsonOption = False,
) -> None:
    """Tasks: whether they make sense, and what goals cost.

    A goal that is impossible is no error: it says why.
    """
    from roboyard.behavior.goals import Impossible, as_xml, load_tasks, make_plan
    from roboyard.behavior.tree import read_tree
    from roboyard.cli.terminal import columns, emit, say

    found = load_tasks(file)
    domain, world = found.domain(), found.start()
    told: dict[str, dict[str, Any]] = {}
    for name in found.goals:
        try:
            plan = make_plan(domain, world, found.goal(name))
            read_tree(as_xml(plan, domain, world), source=f"{file}: the plan for {name}")
            told[name] = {"cost": plan.cost, "steps": [step.name for step in plan.steps]}
        except Impossible as error:
            told[name] = {"impossible": error.message}
    if json:
        emit({"ok": True, "actions": list(found.actions), "goals": told})
        return
    columns(
        [name, f"{one['cost']:.4g}", f"{len(one['steps'])} steps"] if "cost" in one else [name, "-", one["impossible"]]
        for name, one in told.items()
    )
    say("it is right")


@app.command("robot")
def robot(
    file: Annotated[str, typer.Argument(metavar="ROBOT", help="A file, or a name of `roboyard list`.")],
    arg: ArgumentOption = None,
    repair: RepairOption = False,
    picture: PictureOption = None,
    json: JsonOption = False,
) -> None:
    """A robot: what it is made of, and how it stands.

    Its description, the nodes that bring it up, and whether it keeps its balance.
    Every fault is said with its file and line.  With --repair each is mended where that can be, and listed.
    """
    from roboyard.cli import robot_report as report
    from roboyard.cli.terminal import columns, emit, fields, heading
    from roboyard.compute import compile_on_demand
    from roboyard.description import World, diagnose_model
    from roboyard.errors import DescriptionError
    from roboyard.scenarios import Run
    from roboyard.scenarios.catalog import find, find_robot

    _can_draw(picture)
    arguments = _arguments(arg or [])
    try:
        package = find_robot(file, arguments=arguments, repair=True)  # so that all faults are found, not only the first
    except DescriptionError as error:
        _refuse(find("robot", file), partial(diagnose_model, arguments=arguments), error, json)
        raise
    with (
        compile_on_demand(),
        Run(World("nowhere"), record=False) as run,
    ):  # what physics or a node cannot take is found out by trying
        model = run.add(package, "robot", nodes="all", arguments=arguments, repair=True).model
        _judge(model.repairs, repair, json)
        if not repair and model.repairs:  # none is needed: it is looked at as it stands
            model = package.load_model(arguments)
        findings = list(dict.fromkeys([*package.findings, *map(str, model.warnings), *run.simulation.notes]))
        _draw(run.simulation, picture)
    standing = _stands(model)
    moving = report.joints(model)
    data: dict[str, Any] = {
        "robot": package.name,
        "description": str(package.description),
        "links": len(model.links),
        "tree": report.tree(model),
        "masses": report.links(model),
        "joints": [joint["name"] for joint in moving if not joint["closes_loop"]],
        "limits": moving,
        "mass": model.mass,
        "sensors": report.sensors(model),
        "interfaces": report.interfaces(model),
        "nodes": {name: spec.use for name, spec in package.file.nodes.items()},
        "standing": standing,
        "warnings": findings,
        "repairs": [str(one) for one in model.repairs],
        "picture": picture,
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
            ("sensors", ", ".join(f"{one['name']} ({one['kind']})" for one in data["sensors"]) or "none"),
            (
                "takes commands",
                ", ".join(name for name, one in data["interfaces"].items() if one["commands"]) or "none",
            ),
            ("nodes", ", ".join(data["nodes"]) or "none"),
            ("on the ground", standing or "it has nothing to stand on"),
        ]
    )
    heading("tree")
    columns([(f"  {line}",) for line in data["tree"]])
    if moving:
        heading("joints")
        columns([(f"  {one['name']}", one["type"], report.limits_text(one)) for one in moving])
    _show_findings(findings, model.repairs)


@app.command("world")
def world(
    file: Annotated[str, typer.Argument(metavar="WORLD", help="A file, or a name of `roboyard list`.")],
    repair: RepairOption = False,
    picture: PictureOption = None,
    json: JsonOption = False,
) -> None:
    """A world: what stands in it.

    Every fault is said with its file and line.  With --repair each is mended where that can be, and listed.
    """
    from roboyard.cli.terminal import emit, fields
    from roboyard.description import diagnose_world, load_world
    from roboyard.errors import DescriptionError
    from roboyard.scenarios.catalog import find
    from roboyard.simulation import Simulation

    _can_draw(picture)
    path: Path = find("world", file)
    try:
        found = load_world(path, repair=True)
    except DescriptionError as error:
        _refuse(path, diagnose_world, error, json)
        raise
    simulation = Simulation(found)  # what physics cannot take is found out by trying
    _judge(found.repairs, repair, json)
    if not repair and found.repairs:  # none is needed: it is looked at as it stands
        found = load_world(path)
    findings = [*map(str, found.warnings), *simulation.notes]
    _draw(simulation, picture)
    simulation.close()
    models = [placed.name for placed in found.models]
    moving = {placed.name: placed.model.mass for placed in found.models if not placed.model.static}
    lamps = [light.name for light in found.lights]
    repairs = [str(one) for one in found.repairs]
    if json:
        about = {"world": found.name, "path": path, "models": models, "moving": moving, "lamps": lamps}
        emit({"ok": True, **about, "warnings": findings, "repairs": repairs, "picture": picture})
        return
    moves = ", ".join(f"{name} ({mass:.4g} kg)" for name, mass in moving.items())
    fields(
        [
            ("world", found.name),
            ("file", path),
            ("models", ", ".join(models) or "none"),
            ("that can move", moves or "none"),
            ("lamps", ", ".join(lamps) or "none"),
        ]
    )
    _show_findings(findings, found.repairs)


def _arguments(given: list[str]) -> dict[str, str]:
    """``--arg NAME=VALUE`` as a mapping. Raises InputError."""
    from roboyard.errors import InputError

    found = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--arg {one[:100]!r} is no argument", valid="NAME=VALUE, as in --arg ur_type=ur5e")
        found[name.strip()] = value
    return found


def _refuse(path: Path, survey: Survey, error: DescriptionError, json: bool) -> None:
    """Say every fault of a description of which one cannot be mended, and end with exit code 2.

    Returns where ``path`` is no file of a description: then ``error`` says it all.
    """
    from roboyard.cli.failures import BAD_INPUT
    from roboyard.cli.terminal import complain, count, emit, note
    from roboyard.scenarios.catalog import DESCRIPTION_SUFFIXES, WORLD_SUFFIXES

    if path.suffix not in (*DESCRIPTION_SUFFIXES, *WORLD_SUFFIXES):
        return
    faults, mendings = survey(path)
    if not faults:
        faults = (error,)
    needed = [one for one in mendings if one.is_required]
    told = [(str(one), False) for one in faults] + [(one.error_text, True) for one in needed]
    for text, mendable in told[:_SAID]:
        complain(text + (" [--repair mends it]" if mendable else ""))
    if len(told) > _SAID:
        note(f"and {count(len(told) - _SAID, 'more fault')}")
    note(f"{count(len(faults), 'fault')} cannot be mended, {len(needed)} can")
    if json:
        listed = [{"fault": text, "mendable": mendable} for text, mendable in told]
        faults_said = [text for text, _ in told]
        emit({"ok": False, "error": told[0][0], "faults": faults_said, "listed": listed, "exit_code": BAD_INPUT})
    raise typer.Exit(BAD_INPUT)


def _can_draw(picture: Path | None) -> None:
    if picture is not None:
        from roboyard.simulation.render.portrait import check_picture

        check_picture(picture)


def _draw(simulation: Simulation, picture: Path | None) -> None:
    if picture is not None:
        from roboyard.simulation.render.portrait import save_portrait

        save_portrait(simulation, picture)


def _judge(mendings: Sequence[Repair], repair: bool, json: bool) -> None:
    """Without ``repair`` say each fault that must be mended, and end with exit code 2."""
    from roboyard.cli.failures import BAD_INPUT
    from roboyard.cli.terminal import complain, count, emit, note

    faults = [one.error_text for one in mendings if one.is_required]
    if repair or not faults:
        return
    for fault in faults[:_SAID]:
        complain(fault)
    if len(faults) > _SAID:
        note(f"and {count(len(faults) - _SAID, 'more fault')}")
    note("--repair mends " + ("it" if len(faults) == 1 else "them") + " and lists what was done")
    if json:
        emit({"ok": False, "error": faults[0], "faults": faults, "exit_code": BAD_INPUT})
    raise typer.Exit(BAD_INPUT)


_SAID = 20
"""Faults that are said at most."""


def _stands(model: Model) -> str:
    """What becomes of the robot on level ground, its joints held; empty if it has nothing to stand on."""
    from roboyard.simulation.standing import stand

    if model.static or any(joint.parent == "world" for joint in model.joints):
        return "it is fixed to the world"
    standing = stand(model)
    if standing is None:
        return ""
    if standing.fell():
        why = "it tips" if standing.balances() else "its centre of mass does not lie above what it stands on"
        return f"it falls over with its joints held: {why}"
    if not standing.rests():
        return f"it does not come to rest: {standing.speed:.2g} m/s after a second, {standing.depth * 1e3:.2g} mm deep"
    return f"it rests, {standing.depth * 1e3:.2g} mm deep"


def _show_findings(findings: Sequence[str], mendings: Sequence[Repair] = ()) -> None:
    from roboyard.cli.findings import shortened
    from roboyard.cli.terminal import count, note, say

    for finding in shortened(findings):
        note(f"warning: {finding}")
    for mending in mendings:
        note(f"mended: {mending}")
    counted = [count(len(found), word) for found, word in ((findings, "warning"), (mendings, "mending")) if found]
    say("it is right" + (f", with {' and '.join(counted)}" if counted else ""))
