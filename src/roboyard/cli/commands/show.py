"""``roboyard show``: the content of a file as text and as an image; behavior trees of runs, terrains, animations."""

from __future__ import annotations

import json as plain_json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.app import FileOption, JsonOption, RunOption, command_group
from roboyard.cli.source import LiveSource, Source, absolute_name, open_source
from roboyard.cli.terminal import flush_output, format_time, print_json, print_line
from roboyard.errors import InputError

if TYPE_CHECKING:
    from roboyard.behavior.playback import Playback
    from roboyard.simulation.people.clip import Clip


app = command_group("Show what a file holds.")


@app.callback()
def _show_callback() -> None:
    """Show what a file holds."""


@app.command("octree")
def octree(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="OctoMap's .bt or .ot.")],
    out: Annotated[Path | None, typer.Option(metavar="PNG", help="Also draw it: a .png or .svg file.")] = None,
    json: JsonOption = False,
) -> None:
    """A map of space.

    Its kind, resolution, nodes and extent, and how much is occupied and free.  The picture
    is cut open: of what is occupied it has the sides that were seen and face the onlooker.
    """
    from roboyard.cli.terminal import print_fields, print_json
    from roboyard.errors import InputError
    from roboyard.mapping.octree import read_octree
    from roboyard.mapping.octree.drawing import draw_octree

    if out is not None and out.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"--out {out}", valid="a name that ends in .png or .svg")
    found = read_octree(file)
    leaves = found.leaves
    low, high = leaves.extent()
    occupied, free = leaves.volume(occupied=True), leaves.volume(occupied=False)
    if out is not None:
        draw_octree(out, leaves, f"{file.name}: {leaves.resolution:g} m, {occupied:.2f} m³ occupied")
    if json:
        print_json(
            {
                "file": file, "kind": found.kind, "binary": found.binary, "resolution": leaves.resolution,
                "nodes": leaves.nodes, "leaves": len(leaves), "occupied_leaves": int(leaves.occupied.sum()),
                "low": low.tolist(), "high": high.tolist(), "occupied_volume": occupied, "free_volume": free,
                "picture": out,
            }
        )  # fmt: skip
        return
    content = "free and occupied" if found.binary else "all probabilities"
    size = " × ".join(f"{edge:.2f}" for edge in high - low)
    print_fields(
        [
            ("kind", f"{found.kind}, {content}{' and colours' if leaves.colors is not None else ''}"),
            ("resolution", f"{leaves.resolution:g} m"),
            ("nodes", f"{leaves.nodes}, {len(leaves)} of them leaves"),
            ("extent", f"{size} m, from ({', '.join(f'{value:.2f}' for value in low)})"),
            ("occupied", f"{occupied:.3f} m³, {int(leaves.occupied.sum())} leaves"),
            ("free", f"{free:.3f} m³"),
            *([("picture", str(out))] if out is not None else []),
        ]
    )


@app.command("tree")
def tree(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Behaviour trees in BehaviorTree.CPP's XML.")
    ] = None,
    main: Annotated[
        str | None, typer.Option("--tree", metavar="ID", help="Which of its trees, if not the main.")
    ] = None,
    mock: Annotated[bool, typer.Option("--mock", help="Let unknown node types pass, with stand-ins.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="SVG", help="Also draw it: a .svg file.")] = None,
    recording: FileOption = None,
    run: RunOption = None,
    node: Annotated[str, typer.Option(metavar="NODE", help="Whose tree, if several robots have one.")] = "",
    time: Annotated[float | None, typer.Option(metavar="S", help="When, in a recording; default: its end.")] = None,
    transitions: Annotated[
        bool, typer.Option("--transitions", help="Of a run: at each change, with its time.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """A behaviour tree: of a file, a live run or a recording.

    One node a line, with its ports, conditions and scripts; subtrees where they are used.
    Of a run also where each node stands, [RUNNING], or in parentheses what it answered last.
    """
    from roboyard.config import write_atomic
    from roboyard.errors import InputError

    if file is None or recording is not None:
        if file is not None:
            raise InputError(f"{file} and --file", valid="a tree's file or a recording")
        print_tree_state(run, recording, node, time, transitions=transitions, json=json)
        return
    from roboyard.behavior import load_tree
    from roboyard.behavior.show import as_svg, as_text
    from roboyard.cli.terminal import print_json, print_line

    if out is not None and out.suffix.lower() != ".svg":
        raise InputError(f"--out {out}", valid="a name that ends in .svg")
    found = load_tree(file, main=main, mock=mock)
    if out is not None:
        try:
            write_atomic(out, as_svg(found))
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", location=str(out)) from None
    if json:
        nodes = [
            {
                "uid": tree_node.uid,
                "type": tree_node.type_name,
                "kind": tree_node.kind.value,
                "path": tree_node.path,
                "where": tree_node.where,
            }
            for tree_node in found.walk()
        ]
        print_json({"tree": found.name, "nodes": nodes, "text": as_text(found), "picture": out})
        return
    print_line(as_text(found))


TerrainLengthOption = Annotated[float | None, typer.Option(metavar="M", help="As a scenario's key of that name.")]


def show_terrain(
    kind: Annotated[str, typer.Argument(metavar="TYPE|SCENARIO", help="Type of the terrain, or whose terrain.")],
    seed: Annotated[int | None, typer.Option(min=0, help="That it is drawn with; default: 0.")] = None,
    height_range: TerrainLengthOption = None,
    cell_size: TerrainLengthOption = None,
    fraction: Annotated[float | None, typer.Option(help="As a scenario's key of that name.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="PNG", help="Also draw it: a .png or .svg file.")] = None,
    json: JsonOption = False,
) -> None:
    """Uneven ground: of a type, or of a scenario.

    Types: flat, rough, blocks, stairs, ditch, wall, stones, slope.
    """
    from dataclasses import asdict

    from roboyard.bringup.catalog import SCENARIOS
    from roboyard.cli.terminal import print_fields, print_json
    from roboyard.config import load, yaml_from_data
    from roboyard.errors import InputError
    from roboyard.evaluation.terrain_figure import draw_terrain
    from roboyard.grids.terrain import TERRAINS, TerrainConfig
    from roboyard.scenarios.loading import load_scenario

    if out is not None and out.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"--out {out}", valid="a name that ends in .png or .svg")
    options = {"height_range": height_range, "cell_size": cell_size, "fraction": fraction}
    overrides = {name: value for name, value in options.items() if value is not None}
    number, entry = seed or 0, None
    if kind in SCENARIOS or Path(kind).is_file():
        scenario = load_scenario(kind).config
        entry, number = scenario.terrain, scenario.seed if seed is None else seed
        if entry is None:
            raise InputError(f"scenario {kind} has no terrain", valid="a scenario with the key terrain")
    elif kind not in TERRAINS:
        raise InputError(f"no terrain {kind!r}", valid=f"{', '.join(TERRAINS.names())}, or a scenario with one")
    settings = (asdict(entry) if entry is not None else {"type": kind}) | overrides
    entry = load(TerrainConfig, yaml_from_data({key: value for key, value in settings.items() if value is not None}))
    ground = entry.generate(number)
    low, high = float(ground.heights.min()), float(ground.heights.max())
    if out is not None:
        draw_terrain(out, ground, f"{entry.type}, height range {entry.height_range:g} m, seed {number}")
    if json:
        print_json({
            "type": entry.type, "seed": number, "size": ground.size, "origin": ground.corner,
            "cell_size": ground.cell_size, "low": low, "high": high, "smooth": ground.smooth,
            "heights": ground.heights.tolist(), "picture": out,
        })  # fmt: skip
        return
    width, depth = ground.size
    rows, columns = ground.heights.shape
    print_fields(
        [
            ("type", entry.type),
            ("size", f"{width:.2f} x {depth:.2f} m from ({ground.corner[0]:g}, {ground.corner[1]:g})"),
            ("heights", f"{columns} x {rows}, {'corners' if ground.smooth else 'squares'} of {ground.cell_size:g} m"),
            ("low, high", f"{low:.3f}, {high:.3f} m"),
            *([("picture", str(out))] if out is not None else []),
        ]
    )


AnimationArgument = Annotated[
    str, typer.Argument(metavar="FILE|NAME", help="Key poses, BVH or COLLADA; or one of ours.")
]
HeightOption = Annotated[float, typer.Option(metavar="M", help="Of the person.")]


def check_animation(file: AnimationArgument, height: HeightOption = 1.75, json: JsonOption = False) -> None:
    """A clip of a person's motion: whether it can be read.

    How long it is, whether it goes round, how far a round travels, how many steps it has,
    and how far feet slide while they stand.
    """
    from roboyard.cli.terminal import print_fields, print_json
    from roboyard.simulation.people.library import find_clip

    clip = find_clip(file)
    found = _animation_data(clip, height)
    if json:
        print_json({"ok": True, "file": file, **found})
        return
    print_fields(_animation_rows(found))


def show_animation(
    file: AnimationArgument,
    height: HeightOption = 1.75,
    out: Annotated[Path | None, typer.Option(metavar="PNG|GIF", help="Draw some poses, or the whole motion.")] = None,
    json: JsonOption = False,
) -> None:
    """A clip of a person's motion, in words and as a picture.

    A .png or .jpg file shows some of its poses beside each other, a .gif one how it moves.
    """
    from roboyard.cli.terminal import print_fields, print_json
    from roboyard.errors import InputError
    from roboyard.simulation.people.anthropometry import Physique
    from roboyard.simulation.people.body import make_body
    from roboyard.simulation.people.library import find_clip
    from roboyard.simulation.people.picture import save_animation, save_strip

    if out is not None and out.suffix.lower() not in (".png", ".jpg", ".jpeg", ".gif"):
        raise InputError(f"--out {out}", valid="a name that ends in .png, .jpg or .gif")
    body = make_body(Physique.of_height(height))
    clip = find_clip(file)
    if out is not None:
        (save_animation if out.suffix.lower() == ".gif" else save_strip)(clip, body, out)
    found = {**_animation_data(clip, height), "picture": out}
    if json:
        print_json({"file": file, **found})
        return
    print_fields([*_animation_rows(found), *([("picture", str(out))] if out is not None else [])])


def _animation_data(clip: Clip, height: float) -> dict[str, Any]:
    from roboyard.simulation.people.clip import steps_of

    steps = [slid * height for slid in steps_of(clip)]
    return {
        "clip": clip.name, "summary": clip.summary, "period": clip.period, "samples": clip.frames, "loop": clip.loop,
        "travel": clip.travel * height, "turning": clip.turning, "hand": clip.hand, "steps": len(steps),
        "slide": max(steps, default=0.0),
    }  # fmt: skip


def _animation_rows(found: dict[str, Any]) -> list[tuple[str, Any]]:
    return [
        ("clip", f"{found['clip']}: {found['summary']}" if found["summary"] else found["clip"]),
        ("takes", f"{found['period']:.2f} s, {found['samples']} samples{', goes round' if found['loop'] else ''}"),
        *([("travels", f"{found['travel']:.2f} m a round")] if found["travel"] else []),
        *([("turns", f"{found['turning']:.2f} rad a round")] if found["turning"] else []),
        *([("reaches", f"with the {found['hand']} hand")] if found["hand"] else []),
        ("stands", f"{found['steps']} times; a foot slides by at most {1000.0 * found['slide']:.1f} mm"),
    ]


def print_tree_state(
    run: str | None, recording: Path | None, node_name: str, time: float | None, *, transitions: bool, json: bool
) -> None:
    """Print a mission's tree.

    Args:
        run: Name of a live run; None: the only one.
        recording: In its place, a recording.
        mission: The node; empty: the only one with a tree.
        at: When [s]; None: now, or at the recording's end.
        changes: At each change up to then, not only then.
        json: As one JSON object each.

    Raises:
        InputError: there is no tree, or several to choose from; or a time is asked of a live run.
    """
    from roboyard.behavior.playback import Playback

    with open_source(run, recording) as source:
        if source.is_live and time is not None:
            raise InputError("--time of a live run", valid="a recording, with --file")
        node = _find_tree_node(source, node_name)
        playback, until_ns, last_ns = Playback(), None if time is None else round(time * 1e9), 0
        for received in source.messages([f"{node}/tree", f"{node}/events"]):
            if until_ns is not None and received.time_ns > until_ns:
                break
            last_ns = received.time_ns
            if received.topic.endswith("/events"):
                playback.events(received.message.data)
            elif received.message.data.splitlines() != playback.lines:
                playback.tree(received.message.data)
                if isinstance(source, LiveSource):
                    _request_node_states(source, node, playback)
            if transitions:
                _print_tree(playback, last_ns, json=json, shows_time=True)
            elif source.is_live and playback.lines:
                break
        if not transitions:
            _print_tree(playback, last_ns if until_ns is None else until_ns, json=json, shows_time=False)


def _print_tree(playback: Playback, time_ns: int, *, json: bool, shows_time: bool) -> None:
    if json:
        nodes = [
            {"uid": uid, "status": playback.now.get(uid, "IDLE"), "last": playback.last.get(uid)}
            for uid in range(1, len(playback.lines) + 1)
        ]
        print_json({"time": time_ns * 1e-9, "text": str(playback), "nodes": nodes})
    else:
        print_line((f"# {format_time(time_ns)}\n" if shows_time else "") + str(playback))
    flush_output()


def _find_tree_node(source: Source, node_name: str) -> str:
    names = {topic.name for topic in source.topics()}
    nodes = sorted(name[:-5] for name in names if name.endswith("/tree") and f"{name[:-5]}/events" in names)
    if node_name and absolute_name(node_name) in nodes:
        return absolute_name(node_name)
    if node_name or len(nodes) != 1:
        message = f"no tree of {node_name}" if node_name else "several trees" if nodes else "there is no tree"
        raise InputError(message, location=source.name, valid="--node " + " or ".join(nodes) if nodes else "a mission")
    return nodes[0]


def _request_node_states(source: LiveSource, node: str, playback: Playback) -> None:
    """Where the nodes stand that changed before somebody looked."""
    from roboyard.messages import srv

    response = source.connection.call(f"{node}/state", srv.Trigger, srv.Trigger.Request())
    playback.take((int(uid), str(status)) for uid, status in plain_json.loads(response.message))
