"""``roboyard show``: what a file holds, in words and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roboyard.cli.grammar import FileOption, JsonOption, RunOption, group

app = group("Show what a file holds.")


@app.callback()
def _show() -> None:
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
    from roboyard.cli.octree_picture import draw
    from roboyard.cli.terminal import emit, fields
    from roboyard.errors import InputError
    from roboyard.mapping.octree import read_octree

    if out is not None and out.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"--out {out}", valid="a name that ends in .png or .svg")
    found = read_octree(file)
    leaves = found.leaves
    low, high = leaves.extent()
    occupied, free = leaves.volume(occupied=True), leaves.volume(occupied=False)
    if out is not None:
        draw(out, leaves, f"{file.name}: {leaves.resolution:g} m, {occupied:.2f} m³ occupied")
    if json:
        emit(
            {
                "file": file, "kind": found.kind, "binary": found.binary, "resolution": leaves.resolution,
                "nodes": leaves.nodes, "leaves": len(leaves), "occupied_leaves": int(leaves.occupied.sum()),
                "low": low.tolist(), "high": high.tolist(), "occupied_volume": occupied, "free_volume": free,
                "picture": out,
            }
        )  # fmt: skip
        return
    about = "free and occupied" if found.binary else "all probabilities"
    size = " × ".join(f"{edge:.2f}" for edge in high - low)
    fields(
        [
            ("kind", f"{found.kind}, {about}{' and colours' if leaves.colors is not None else ''}"),
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
    mission: Annotated[str, typer.Option(metavar="NODE", help="Whose tree, if several robots have one.")] = "",
    at: Annotated[float | None, typer.Option(metavar="S", help="When, in a recording; default: its end.")] = None,
    changes: Annotated[bool, typer.Option("--changes", help="Of a run: at each change, with its time.")] = False,
    json: JsonOption = False,
) -> None:
    """A behaviour tree: of a file, a live run or a recording.

    One node a line, with its ports, conditions and scripts; subtrees where they are used.
    Of a run also where each node stands, [RUNNING], or in parentheses what it answered last.
    """
    from roboyard.config import write_atomic
    from roboyard.errors import InputError

    if file is None or recording is not None:
        from roboyard.cli.tree_playback import show_run

        if file is not None:
            raise InputError(f"{file} and --file", valid="a tree's file or a recording")
        show_run(run, recording, mission, at, changes=changes, json=json)
        return
    from roboyard.behavior import load_tree
    from roboyard.behavior.show import as_svg, as_text
    from roboyard.cli.terminal import emit, say

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
            {"uid": node.uid, "type": node.type_name, "kind": node.kind.value, "path": node.path, "where": node.where}
            for node in found.walk()
        ]
        emit({"tree": found.name, "nodes": nodes, "text": as_text(found), "picture": out})
        return
    say(as_text(found))
