"""``roboyard show``: the content of a file as text and as an image; behavior trees of runs, terrains, animations."""

from __future__ import annotations

import json as plain_json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.app import command_group
from roboyard.cli.arguments import IMAGE_SUFFIXES, PHOTO_SUFFIXES, validate_output_path, write_text
from roboyard.cli.options import (
    HEIGHT,
    IMAGE,
    NODE,
    SEED,
    CellSizeOption,
    FileOption,
    FractionOption,
    HeightRangeOption,
    ImageOption,
    JsonOption,
    MockOption,
    RunOption,
    TimeOption,
    TreeOption,
)
from roboyard.cli.source import DataSource, LiveSource, absolute_name, open_source
from roboyard.cli.terminal import flush_output, format_time, print_fields, print_line, print_result
from roboyard.errors import InputError

if TYPE_CHECKING:
    from roboyard.behavior.tree_drawing import TreePlayback
    from roboyard.people.clip import AnimationClip


app = command_group("Show the content of a file as text and as an image.")


@app.callback()
def _show_callback() -> None:
    """Show the content of a file as text and as an image."""


@app.command("octree")
def octree(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="OctoMap file: .bt or .ot.")],
    image: ImageOption = None,
    json: JsonOption = False,
) -> None:
    """Show an octree map.

    Type, resolution, number of nodes, extent, and the occupied and the free volume. The image shows the occupied
    surfaces of a cut through the map.
    """
    from roboyard.mapping.octree import read_octree
    from roboyard.mapping.octree.drawing import draw_octree

    validate_output_path("--picture", image, IMAGE_SUFFIXES)
    found = read_octree(file)
    leaves = found.leaves
    low, high = leaves.extent()
    occupied, free = leaves.volume(occupied=True), leaves.volume(occupied=False)
    if image is not None:
        draw_octree(image, leaves, f"{file.name}: {leaves.resolution:g} m, {occupied:.2f} m³ occupied")
    result = {
        "file": file, "type": found.tree_type, "binary": found.binary, "resolution": leaves.resolution,
        "nodes": leaves.n_nodes, "leaves": len(leaves), "occupied_leaves": int(leaves.occupied.sum()),
        "min_corner": low.tolist(), "max_corner": high.tolist(), "occupied_volume": occupied, "free_volume": free,
        "has_colors": leaves.colors is not None, "picture": image,
    }  # fmt: skip
    print_result(result, json, _print_octree)


def _print_octree(result: dict[str, Any]) -> None:
    content = "free and occupied" if result["binary"] else "all probabilities"
    low, high = result["min_corner"], result["max_corner"]
    size = " × ".join(f"{b - a:.2f}" for a, b in zip(low, high, strict=True))
    print_fields(
        [
            ("type", f"{result['type']}, {content}{' and colors' if result['has_colors'] else ''}"),
            ("resolution", f"{result['resolution']:g} m"),
            ("nodes", f"{result['nodes']}, {result['leaves']} of them leaves"),
            ("extent", f"{size} m, from ({', '.join(f'{value:.2f}' for value in low)})"),
            ("occupied", f"{result['occupied_volume']:.3f} m³, {result['occupied_leaves']} leaves"),
            ("free", f"{result['free_volume']:.3f} m³"),
            ("picture", result["picture"]),
        ]
    )


@app.command("tree")
def tree(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Behavior trees in the XML of BehaviorTree.CPP.")
    ] = None,
    main: TreeOption = None,
    mock: MockOption = False,
    image: Annotated[Path | None, IMAGE(": .svg")] = None,
    recording: FileOption = None,
    run: RunOption = None,
    node: Annotated[str, NODE(" that executes the tree; default: the only one", autocompletion=None)] = "",
    time: TimeOption = None,
    transitions: Annotated[
        bool, typer.Option("--transitions", help="Print the tree at each change, with its time.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show a behavior tree of a file, a live run or a recording.

    One node per line, with its ports, conditions and scripts; subtrees in their places. Of a run also the status of
    each node, as [RUNNING], or its last status in parentheses.
    """
    if file is None or recording is not None:
        if file is not None:
            raise InputError(f"only one of {file} and --file is allowed", valid="a file of trees or a recording")
        print_tree_state(run, recording, node, time, transitions=transitions, json=json)
        return
    from roboyard.behavior import load_tree
    from roboyard.behavior.tree_drawing import tree_to_svg, tree_to_text

    validate_output_path("--picture", image, (".svg",))
    found = load_tree(file, main=main, mock=mock)
    if image is not None:
        write_text(image, tree_to_svg(found))
    nodes = [
        {
            "uid": tree_node.uid,
            "type": tree_node.type_name,
            "node_type": tree_node.node_type.value,
            "path": tree_node.path,
            "location": tree_node.location,
        }
        for tree_node in found.walk()
    ]
    result = {"tree": found.name, "nodes": nodes, "text": tree_to_text(found), "picture": image}
    print_result(result, json, lambda _: print_line(tree_to_text(found)))


def show_terrain(
    terrain: Annotated[str, typer.Argument(metavar="TYPE|SCENARIO", help="Type of a terrain, or a scenario with one.")],
    seed: Annotated[int | None, SEED("; default: the scenario's, or 0")] = None,
    height_range: HeightRangeOption = None,
    cell_size: CellSizeOption = None,
    fraction: FractionOption = None,
    image: ImageOption = None,
    json: JsonOption = False,
) -> None:
    """Show the terrain of a type or of a scenario.

    Types: flat, rough, blocks, stairs, ditch, wall, stones, slope.
    """
    from roboyard.evaluation.terrain_figure import draw_terrain
    from roboyard.scenarios.loading import find_terrain

    validate_output_path("--picture", image, IMAGE_SUFFIXES)
    options = {"height_range": height_range, "cell_size": cell_size, "fraction": fraction}
    config, number = find_terrain(terrain, seed, {name: value for name, value in options.items() if value is not None})
    ground = config.generate(number)
    if image is not None:
        draw_terrain(image, ground, f"{config.type}, height range {config.height_range:g} m, seed {number}")
    result = {
        "type": config.type, "seed": number, "size": ground.size, "origin": ground.corner,
        "cell_size": ground.cell_size, "min_height": float(ground.heights.min()),
        "max_height": float(ground.heights.max()), "smooth": ground.smooth, "heights": ground.heights.tolist(),
        "picture": image,
    }  # fmt: skip
    print_result(result, json, _print_terrain)


def _print_terrain(result: dict[str, Any]) -> None:
    (width, depth), origin, heights = result["size"], result["origin"], result["heights"]
    cells = "corners" if result["smooth"] else "squares"
    print_fields(
        [
            ("type", result["type"]),
            ("size", f"{width:.2f} x {depth:.2f} m from ({origin[0]:g}, {origin[1]:g})"),
            ("heights", f"{len(heights[0])} x {len(heights)}, {cells} of {result['cell_size']:g} m"),
            ("min, max", f"{result['min_height']:.3f}, {result['max_height']:.3f} m"),
            ("picture", result["picture"]),
        ]
    )


AnimationArgument = Annotated[
    str, typer.Argument(metavar="FILE|NAME", help="Key poses, BVH or COLLADA file, or an installed animation.")
]
HeightOption = Annotated[float, HEIGHT()]


def check_animation(file: AnimationArgument, height: HeightOption = 1.75, json: JsonOption = False) -> None:
    """Check whether an animation of a person can be read.

    The command prints its duration, whether it repeats, the distance of one cycle, the number of steps, and the
    distance that feet slide while they stand.
    """
    from roboyard.people.clip_library import find_clip

    result = {"ok": True, "file": file, **_animation_data(find_clip(file), height)}
    print_result(result, json, _print_animation)


def show_animation(
    file: AnimationArgument,
    height: HeightOption = 1.75,
    image: Annotated[Path | None, IMAGE(": .png or .jpg with some poses, or .gif with the motion")] = None,
    json: JsonOption = False,
) -> None:
    """Show an animation of a person as text and as an image."""
    from roboyard.people.anthropometry import BodyDimensions
    from roboyard.people.body import make_person_model
    from roboyard.people.clip_library import find_clip
    from roboyard.simulation.clip_images import save_clip_animation, save_clip_strip

    validate_output_path("--picture", image, (*PHOTO_SUFFIXES, ".gif"))
    body = make_person_model(BodyDimensions.from_height(height))
    clip = find_clip(file)
    if image is not None:
        (save_clip_animation if image.suffix.lower() == ".gif" else save_clip_strip)(clip, body, image)
    print_result({"file": file, **_animation_data(clip, height), "picture": image}, json, _print_animation)


def _animation_data(clip: AnimationClip, height: float) -> dict[str, Any]:
    from roboyard.people.clip import measure_foot_slip

    slides = [slide * height for slide in measure_foot_slip(clip)]
    return {
        "animation": clip.name,
        "summary": clip.summary,
        "duration": clip.period,
        "samples": clip.num_frames,
        "repeats": clip.loop,
        "distance": clip.travel_per_period * height,
        "rotation": clip.yaw_per_period,
        "hand": clip.reaching_hand,
        "steps": len(slides),
        "max_slide": max(slides, default=0.0),
    }


def _print_animation(result: dict[str, Any]) -> None:
    summary = f": {result['summary']}" if result["summary"] else ""
    repeats = ", repeats" if result["repeats"] else ""
    print_fields(
        [
            ("animation", f"{result['animation']}{summary}"),
            ("duration", f"{result['duration']:.2f} s, {result['samples']} samples{repeats}"),
            ("distance", f"{result['distance']:.2f} m per cycle" if result["distance"] else None),
            ("rotation", f"{result['rotation']:.2f} rad per cycle" if result["rotation"] else None),
            ("reach", f"with the {result['hand']} hand" if result["hand"] else None),
            ("steps", f"{result['steps']}; a foot slides by at most {1000.0 * result['max_slide']:.1f} mm"),
            ("picture", result.get("picture")),
        ]
    )


def print_tree_state(
    run: str | None, recording: Path | None, node_name: str, time: float | None, *, transitions: bool, json: bool
) -> None:
    """Print the behavior tree of a run or recording with the status of its nodes.

    Args:
        run: Name of a live run; None: the only one.
        recording: Recording to read instead.
        node_name: Node that executes the tree; empty: the only one.
        time: Time in the recording [s]; None: its end.
        transitions: Print the tree at each change until then.
        json: Print JSON objects.

    Raises:
        InputError: There is no tree, or there are several, or a time is given for a live run.
    """
    from roboyard.behavior.tree_drawing import TreePlayback

    with open_source(run, recording) as source:
        if source.is_live and time is not None:
            raise InputError("--time requires a recording", valid="--file, or no --time")
        node = _find_tree_node(source, node_name)
        playback, until_ns, last_ns = TreePlayback(), None if time is None else round(time * 1e9), 0
        for received in source.messages([f"{node}/tree", f"{node}/events"]):
            if until_ns is not None and received.time_ns > until_ns:
                break
            last_ns = received.time_ns
            if received.topic.endswith("/events"):
                playback.apply_events(received.message.data)
            elif received.message.data.splitlines() != playback.lines:
                playback.set_tree(received.message.data)
                if isinstance(source, LiveSource):
                    _request_node_states(source, node, playback)
            if transitions:
                _print_tree(playback, last_ns, json=json, shows_time=True)
            elif source.is_live and playback.lines:
                break
        if not transitions:
            _print_tree(playback, last_ns if until_ns is None else until_ns, json=json, shows_time=False)


def _print_tree(playback: TreePlayback, time_ns: int, *, json: bool, shows_time: bool) -> None:
    nodes = [
        {
            "uid": uid,
            "status": playback.current_statuses.get(uid, "IDLE"),
            "last_status": playback.last_statuses.get(uid),
        }
        for uid in range(1, len(playback.lines) + 1)
    ]
    heading = f"# {format_time(time_ns)}\n" if shows_time else ""
    result = {"time": time_ns * 1e-9, "text": str(playback), "nodes": nodes}
    print_result(result, json, lambda _: print_line(f"{heading}{playback}"))
    flush_output()


def _find_tree_node(source: DataSource, node_name: str) -> str:
    names = {topic.name for topic in source.topics()}
    nodes = sorted(name[:-5] for name in names if name.endswith("/tree") and f"{name[:-5]}/events" in names)
    if node_name and absolute_name(node_name) in nodes:
        return absolute_name(node_name)
    if node_name or len(nodes) != 1:
        message = (
            f"node {node_name} has no tree"
            if node_name
            else "several nodes have a tree"
            if nodes
            else "no node has a tree"
        )
        raise InputError(
            message,
            location=source.name,
            valid="--node " + " or ".join(nodes) if nodes else "a run with a behavior tree",
        )
    return nodes[0]


def _request_node_states(source: LiveSource, node: str, playback: TreePlayback) -> None:
    """Request the present status of all nodes, since earlier events are not received."""
    from roboyard.messages import srv

    response = source.connection.call(f"{node}/state", srv.Trigger, srv.Trigger.Request())
    playback.apply_statuses((int(uid), str(status)) for uid, status in plain_json.loads(response.message))
