"""``roboyard convert``: a robot or world in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from roboyard.cli.app import JsonOption


def convert(
    file: Annotated[str, typer.Argument(metavar="FILE", help="URDF, xacro, SDF, MJCF, or a name of `roboyard list`.")],
    to: Annotated[Literal["urdf", "sdf", "mjcf"], typer.Option(help="The format to write.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to; default: beside you, called like the original.")
    ] = None,
    kind: Annotated[
        Literal["robot", "world"] | None, typer.Option("--read-as", help="Read it as this; default: as what it is.")
    ] = None,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what can be mended, and say what was done.")] = False,
    json: JsonOption = False,
) -> None:
    """Write a robot or world as URDF, SDF or MJCF.

    What the format cannot say is listed.  Meshes that lie elsewhere are copied beside the file.
    """
    from roboyard.cli.description_conversion import convert_description as converted
    from roboyard.cli.terminal import format_count, merge_findings, print_json, print_line, print_note

    result = converted(file, to, out, kind, repair=repair)
    if json:
        print_json(
            {
                "ok": True,
                "out": str(result.out),
                "copied": [str(path) for path in result.copied],
                "losses": list(result.losses),
                "warnings": list(result.warnings),
                "repairs": list(result.repairs),
                "mass": result.mass[0],
                "mass_written": result.mass[1],
            }
        )
        return
    for finding in merge_findings(result.warnings):
        print_note(f"warning: {finding}")
    for repaired in result.repairs:
        print_note(f"mended: {repaired}")
    for loss in result.losses:
        print_note(f"lost: {loss}")
    files = f" and {format_count(len(result.copied), 'file')} beside it" if result.copied else ""
    print_line(
        f"wrote {result.out}{files}: {result.mass[1]:.6g} kg, as in the original"
        if _is_same_mass(result.mass)
        else f"wrote {result.out}{files}: {result.mass[1]:.6g} kg instead of {result.mass[0]:.6g} kg"
    )


def _is_same_mass(mass: tuple[float, float]) -> bool:
    return abs(mass[0] - mass[1]) <= 1e-6 * max(mass[0], 1e-9)
