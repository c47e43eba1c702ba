"""``roboyard convert``: a robot or world in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from roboyard.cli.grammar import JsonOption


def convert(
    file: Annotated[str, typer.Argument(metavar="FILE", help="URDF, xacro, SDF, MJCF, or a name of `roboyard list`.")],
    to: Annotated[Literal["urdf", "sdf", "mjcf"], typer.Option(help="The format to write.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to; default: beside you, called like the original.")
    ] = None,
    kind: Annotated[
        Literal["robot", "world"] | None, typer.Option("--as", help="Read it as this; default: as what it is.")
    ] = None,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what can be mended, and say what was done.")] = False,
    json: JsonOption = False,
) -> None:
    """Write a robot or world as URDF, SDF or MJCF.

    What the format cannot say is listed.  Meshes that lie elsewhere are copied beside the file.
    """
    from roboyard.cli.conversion import convert as converted
    from roboyard.cli.findings import shortened
    from roboyard.cli.terminal import count, emit, note, say

    done = converted(file, to, out, kind, repair=repair)
    if json:
        emit(
            {
                "ok": True,
                "out": str(done.out),
                "copied": [str(path) for path in done.copied],
                "losses": list(done.losses),
                "warnings": list(done.warnings),
                "repairs": list(done.repairs),
                "mass": done.mass[0],
                "mass_written": done.mass[1],
            }
        )
        return
    for finding in shortened(done.warnings):
        note(f"warning: {finding}")
    for mending in done.repairs:
        note(f"mended: {mending}")
    for loss in done.losses:
        note(f"lost: {loss}")
    files = f" and {count(len(done.copied), 'file')} beside it" if done.copied else ""
    say(f"wrote {done.out}{files}: {done.mass[1]:.6g} kg, as in the original" if _same(done.mass) else
        f"wrote {done.out}{files}: {done.mass[1]:.6g} kg instead of {done.mass[0]:.6g} kg")  # fmt: skip


def _same(mass: tuple[float, float]) -> bool:
    return abs(mass[0] - mass[1]) <= 1e-6 * max(mass[0], 1e-9)
