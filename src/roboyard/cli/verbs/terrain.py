"""``roboyard show terrain``: uneven ground as a scenario would get it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roboyard.cli.grammar import JsonOption

Length = Annotated[float | None, typer.Option(metavar="M", help="As a scenario's key of that name.")]


def show_terrain(
    kind: Annotated[str, typer.Argument(metavar="TYPE|SCENARIO", help="Type of the terrain, or whose terrain.")],
    seed: Annotated[int | None, typer.Option(min=0, help="That it is drawn with; default: 0.")] = None,
    height_range: Length = None,
    cell_size: Length = None,
    fraction: Annotated[float | None, typer.Option(help="As a scenario's key of that name.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="PNG", help="Also draw it: a .png or .svg file.")] = None,
    json: JsonOption = False,
) -> None:
    """Uneven ground: of a type, or of a scenario.

    Types: flat, rough, blocks, stairs, ditch, wall, stones, slope.
    """
    from dataclasses import asdict

    from roboyard.cli.terminal import emit, fields
    from roboyard.cli.terrain_picture import draw_terrain
    from roboyard.config import load, yaml_from_data
    from roboyard.errors import InputError
    from roboyard.grids.terrain import TERRAIN_TYPES
    from roboyard.scenarios.catalog import scenarios
    from roboyard.scenarios.ground import TerrainEntry
    from roboyard.scenarios.spec import load_spec

    if out is not None and out.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"--out {out}", valid="a name that ends in .png or .svg")
    said = {"height_range": height_range, "cell_size": cell_size, "fraction": fraction}
    given = {name: value for name, value in said.items() if value is not None}
    number, entry = seed or 0, None
    if kind in scenarios() or Path(kind).is_file():
        scenario = load_spec(kind).scenario
        entry, number = scenario.terrain, scenario.seed if seed is None else seed
        if entry is None:
            raise InputError(f"scenario {kind} has no terrain", valid="a scenario with the key terrain")
    elif kind not in TERRAIN_TYPES:
        raise InputError(f"no terrain {kind!r}", valid=f"{', '.join(TERRAIN_TYPES)}, or a scenario with one")
    plain = (asdict(entry) if entry is not None else {"type": kind}) | given
    entry = load(TerrainEntry, yaml_from_data({key: value for key, value in plain.items() if value is not None}))
    ground = entry.make(number)
    low, high = float(ground.heights.min()), float(ground.heights.max())
    if out is not None:
        draw_terrain(out, ground, f"{entry.type}, height range {entry.height_range:g} m, seed {number}")
    if json:
        emit({
            "type": entry.type, "seed": number, "size": ground.size, "origin": ground.corner,
            "cell_size": ground.cell_size, "low": low, "high": high, "smooth": ground.smooth,
            "heights": ground.heights.tolist(), "picture": out,
        })  # fmt: skip
        return
    wide, deep = ground.size
    rows, columns = ground.heights.shape
    fields(
        [
            ("type", entry.type),
            ("size", f"{wide:.2f} x {deep:.2f} m from ({ground.corner[0]:g}, {ground.corner[1]:g})"),
            ("heights", f"{columns} x {rows}, {'corners' if ground.smooth else 'squares'} of {ground.cell_size:g} m"),
            ("low, high", f"{low:.3f}, {high:.3f} m"),
            *([("picture", str(out))] if out is not None else []),
        ]
    )
