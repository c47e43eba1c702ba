"""``roboyard convert``: a robot or world in another format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from roboyard.cli.options import OUT, JsonOption, RepairOption

if TYPE_CHECKING:
    from roboyard.description.write.conversion import DescriptionConversion


def convert(
    file: Annotated[str, typer.Argument(metavar="FILE", help="URDF, xacro, SDF, MJCF, or a name of `roboyard list`.")],
    to: Annotated[Literal["urdf", "sdf", "mjcf"], typer.Option(help="Format to write.")],
    out: Annotated[
        Path | None, OUT("; default: named after the original, in the current folder", metavar="FILE")
    ] = None,
    kind: Annotated[
        Literal["robot", "world"] | None, typer.Option("--read-as", help="Kind of the file; default: by its content.")
    ] = None,
    repair: RepairOption = False,
    json: JsonOption = False,
) -> None:
    """Convert a robot or world to URDF, SDF or MJCF.

    The command lists what the format cannot hold. It copies meshes of other folders beside the file.
    """
    from roboyard.bringup.description_source import find_description
    from roboyard.cli.terminal import print_result
    from roboyard.description.write.conversion import convert_description

    result = convert_description(find_description(file, to, kind, repair=repair), to, out)
    data = {
        "ok": True, "out": result.out, "copied_files": result.copied, "losses": result.losses,
        "warnings": result.warnings, "repairs": result.repairs, "mass": result.mass[0], "mass_written": result.mass[1],
    }  # fmt: skip
    print_result(data, json, lambda _: _print_conversion(result))


def _print_conversion(result: DescriptionConversion) -> None:
    from roboyard.cli.terminal import format_count, merge_findings, print_line, print_note

    for finding in merge_findings(result.warnings):
        print_note(f"warning: {finding}")
    for repair in result.repairs:
        print_note(f"repaired: {repair}")
    for loss in result.losses:
        print_note(f"lost: {loss}")
    files = f" and {format_count(len(result.copied), 'file')} beside it" if result.copied else ""
    before, after = result.mass
    comparison = "as in the original" if _is_same_mass(result.mass) else f"instead of {before:.6g} kg"
    separator = ", " if _is_same_mass(result.mass) else " "
    print_line(f"wrote {result.out}{files}: {after:.6g} kg{separator}{comparison}")


def _is_same_mass(mass: tuple[float, float]) -> bool:
    return abs(mass[0] - mass[1]) <= 1e-6 * max(mass[0], 1e-9)
