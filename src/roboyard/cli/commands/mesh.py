"""``roboyard mesh``: surfaces from mesh files, prepared for simulation: parts, shapes, inertia, links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.app import command_group
from roboyard.cli.arguments import parse_box, parse_plane
from roboyard.cli.options import (
    BOX,
    MASS,
    MAX_SHAPES,
    MESH_FORMAT,
    NAMES,
    OUT,
    PLANE,
    REPAIR,
    SHAPES,
    TRIANGLES,
    UNIT,
    JsonOption,
)
from roboyard.cli.options import ORIGIN as ORIGIN_OPTION
from roboyard.errors import DescriptionError, InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from roboyard.description.meshes import TriangleMesh

app = command_group("Prepare meshes: split, simplify, recenter, collision, …")

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="STL, OBJ, PLY, OFF, DAE, GLB or glTF.")]
UnitOption = Annotated[str, UNIT()]
MeshRepairOption = Annotated[bool, REPAIR(": holes and orientations of triangles")]
OutFolder = Annotated[Path | None, OUT("; default: a folder named after the input", metavar="DIR")]
OutFile = Annotated[Path | None, OUT("; default: a file named after the input", metavar="FILE")]
FormatOption = Annotated[str, MESH_FORMAT()]
PlaneOption = Annotated[list[str] | None, PLANE()]
BoxOption = Annotated[list[str] | None, BOX()]
NamesOption = Annotated[str | None, NAMES()]
ShapesOption = Annotated[str, SHAPES()]
_DEFAULT_SHAPES = "box,cylinder,sphere"
_MAX_CONVEX_PIECES = 16


@app.command("split")
def split(
    file: FileArgument,
    split_by: Annotated[str | None, typer.Option(metavar="METHOD", help="Method: components, planes or boxes.")] = None,
    planes: PlaneOption = None,
    boxes: BoxOption = None,
    names: NamesOption = None,
    out: OutFolder = None,
    unit: UnitOption = "m",
    repair: MeshRepairOption = False,
    json: JsonOption = False,
) -> None:
    """Split a surface by connected components, planes or boxes."""
    from roboyard.cli.terminal import print_result
    from roboyard.description.meshes import write_stl

    method = split_by or ("planes" if planes else "boxes" if boxes else "components")
    has_input = {"components": not planes and not boxes, "planes": bool(planes), "boxes": bool(boxes)}
    if not has_input.get(method, False):
        raise InputError(f"--split-by {method}", valid="components alone, planes with --plane, boxes with --box")
    surface, repairs = (
        load_closed_surface(file, unit, repair) if method != "components" or repair else (load_surface(file, unit), ())
    )
    parts, method = split_surface(surface, planes or [], boxes or [], names)
    folder = out or Path(f"{file.stem}_parts")
    rows: list[dict[str, Any]] = []
    for name, part in parts.items():
        target = folder / f"{name}.stl"
        write_stl(target, part)
        rows.append({"part": name, "file": str(target), **_surface_data(part)})
    print_result({"split_by": method, "parts": rows, "repairs": repairs}, json, _print_parts)


def _print_parts(result: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_line, print_table

    _print_repairs(result["repairs"])
    rows = result["parts"]
    cells = [[r["part"], r["triangles"], "-" if r["volume"] is None else f"{r['volume']:.4g}", r["file"]] for r in rows]
    print_table(["part", "triangles", "volume [m³]", "file"], cells, right=["triangles", "volume [m³]"])
    if any(row["volume"] is None for row in rows):
        print_line("parts without a volume are open")


@app.command("simplify")
def simplify(
    file: FileArgument,
    triangles: Annotated[int | None, TRIANGLES(", reached approximately")] = None,
    max_error: Annotated[
        float | None, typer.Option(metavar="METERS", help="Maximum displacement of the surface [m].")
    ] = None,
    out: OutFile = None,
    unit: UnitOption = "m",
    json: JsonOption = False,
) -> None:
    """Simplify a mesh to a number of triangles or an error bound."""
    from roboyard.cli.terminal import print_fields, print_result
    from roboyard.description.meshes import simplify_to_count, simplify_to_error, write_stl

    surface = load_surface(file, unit)
    if triangles is not None and max_error is None:
        simplified = simplify_to_count(surface, triangles)
    elif max_error is not None and triangles is None:
        simplified = simplify_to_error(surface, max_error)
    else:
        raise InputError("one target is required", valid="--triangles N or --max-error METERS")
    target = out or Path(f"{file.stem}_reduced.stl")
    write_stl(target, simplified.mesh)
    before, after = len(surface.faces), len(simplified.mesh.faces)
    result = {
        "file": str(target), "triangles_before": before, **_surface_data(simplified.mesh), "error": simplified.error
    }  # fmt: skip
    relative_error = f"{simplified.error / surface.diagonal:.2%} of the size"
    fields = [
        ("triangles", f"{before} → {after}"),
        ("maximum error", f"{format_length(simplified.error)}, {relative_error}"),
        ("file", target),
    ]
    print_result(result, json, lambda _: print_fields(fields))


@app.command("recenter")
def recenter(
    file: FileArgument,
    origin: Annotated[str, ORIGIN_OPTION(": com, base, center, or x,y,z [m]")] = "com",
    rotate: Annotated[
        str, typer.Option(metavar="R,P,Y", help="Rotation about the new origin: roll, pitch, yaw [degrees].")
    ] = "0,0,0",
    out: OutFile = None,
    unit: UnitOption = "m",
    repair: MeshRepairOption = False,
    json: JsonOption = False,
) -> None:
    """Move the origin of a mesh and rotate its axes."""
    import math

    import numpy as np

    from roboyard.cli.arguments import parse_numbers
    from roboyard.cli.terminal import print_fields, print_result
    from roboyard.description.meshes import compute_origin_transform, write_stl
    from roboyard.description.meshes.robot_from_meshes import format_origin

    roll, pitch, yaw = (math.radians(angle) for angle in parse_numbers("--rotate", rotate, 3))
    needs_volume = origin == "com" or repair
    surface, repairs = load_closed_surface(file, unit, repair) if needs_volume else (load_surface(file, unit), ())
    target_origin = origin if origin in ("com", "base", "center") else np.array(parse_numbers("--origin", origin, 3))
    T = compute_origin_transform(surface, target_origin, (roll, pitch, yaw))
    target = out or Path(f"{file.stem}_placed.stl")
    write_stl(target, surface.transformed(T))
    T_old_new = T.inverse()

    def show(_: object) -> None:
        _print_repairs(repairs)
        print_fields([("origin in the original", format_origin(T_old_new)), ("file", target)])

    result = {
        "file": str(target), "T_old_new": {"xyz": T_old_new.translation, "rpy": T_old_new.rpy}, "repairs": repairs,
        **_surface_data(surface.transformed(T)),
    }  # fmt: skip
    print_result(result, json, show)


@app.command("collision")
def collision(
    file: FileArgument,
    shapes: ShapesOption = _DEFAULT_SHAPES,
    max_shapes: Annotated[int, MAX_SHAPES(" or convex pieces")] = 1,
    out: OutFolder = None,
    unit: UnitOption = "m",
    repair: MeshRepairOption = False,
    dialect: FormatOption = "urdf",
    json: JsonOption = False,
) -> None:
    """Approximate a surface by shapes for collision checking.

    The command prints collision elements and their distance from the surface. It writes hulls and convex pieces into
    files.
    """
    from roboyard.cli.terminal import format_count, print_lines, print_note, print_result
    from roboyard.description.meshes import approximate_collision, write_stl
    from roboyard.description.meshes.robot_from_meshes import PlacedShape, format_collisions
    from roboyard.description.shapes import Mesh
    from roboyard.geometry import SE3

    surface, repairs = load_closed_surface(file, unit, repair) if repair else (load_surface(file, unit), ())
    kinds = tuple(kind.strip() for kind in shapes.split(","))
    limit = _MAX_CONVEX_PIECES if kinds == ("decompose",) and max_shapes == 1 else max_shapes
    with locate_errors(file):
        found = approximate_collision(surface, kinds, limit)
    folder = out or Path(f"{file.stem}_collision")
    placed: list[PlacedShape] = [*found.shapes]
    for number, piece in enumerate(found.pieces):
        target = folder / f"{file.stem}_{number}.stl"
        write_stl(target, piece)
        placed.append((Mesh(str(target), None), SE3.identity()))
    texts = format_collisions(placed, dialect)

    def show(_: object) -> None:
        _print_repairs(repairs)
        print_lines(texts)
        reference = "the body's" if surface.is_closed else "its hull's (the surface is open)"
        print_note(
            f"{format_count(len(placed), 'shape')}, {found.volume_excess:+.1%} of {reference} volume; largest gap "
            f"{format_length(found.max_gap)}, largest protrusion of the mesh {format_length(found.max_protrusion)}"
        )

    result = {
        "shapes": [
            {"type": type(shape).__name__.lower(), "shape": shape, "xyz": T.translation, "rpy": T.rpy}
            for shape, T in placed
        ],
        "volume_excess": found.volume_excess, "max_gap": found.max_gap, "max_protrusion": found.max_protrusion,
        "elements": texts, "repairs": repairs,
    }  # fmt: skip
    print_result(result, json, show)


@app.command("inertia")
def inertia(
    file: FileArgument,
    mass: Annotated[float | None, MASS()] = None,
    density: Annotated[float | None, typer.Option(metavar="KG/M³", help="Density instead of the mass [kg/m³].")] = None,
    unit: UnitOption = "m",
    repair: MeshRepairOption = False,
    dialect: FormatOption = "urdf",
    json: JsonOption = False,
) -> None:
    """Compute the mass properties of a closed surface."""
    from roboyard.cli.terminal import print_line, print_note, print_result
    from roboyard.description.meshes import compute_mass_properties
    from roboyard.description.meshes.robot_from_meshes import format_inertial

    surface, repairs = load_closed_surface(file, unit, repair)
    found = compute_mass_properties(surface, mass, density)
    text = format_inertial(found.to_inertial(), dialect)

    def show(_: object) -> None:
        _print_repairs(repairs)
        print_line(text)
        print_note(f"{found.mass:.4g} kg in {found.volume:.4g} m³: {found.density:.4g} kg/m³")

    result = {
        "mass": found.mass, "volume": found.volume, "density": found.density, "com": found.com,
        "inertia": found.inertia, "principal_moments": found.principal_moments, "element": text, "repairs": repairs,
    }  # fmt: skip
    print_result(result, json, show)


@app.command("robot")
def robot(
    file: FileArgument,
    mass: Annotated[float | None, MASS(", distributed over the links by volume")] = None,
    link_masses: Annotated[
        list[str] | None, typer.Option("--link-mass", metavar="LINK=KG", help="Mass of a link [kg]; repeatable.")
    ] = None,
    joints: Annotated[
        list[str] | None,
        typer.Option(
            "--joint", metavar="LINK=TYPE[,AXIS[,PARENT]]", help="Joint of a link, e.g. wheel=continuous,y; repeatable."
        ),
    ] = None,
    planes: PlaneOption = None,
    boxes: BoxOption = None,
    names: NamesOption = None,
    triangles: Annotated[int, TRIANGLES(" of each visual")] = 5000,
    shapes: ShapesOption = _DEFAULT_SHAPES,
    max_shapes: Annotated[int, MAX_SHAPES(" of each link")] = 1,
    out: OutFolder = None,
    unit: UnitOption = "m",
    repair: MeshRepairOption = False,
    json: JsonOption = False,
) -> None:
    """Convert the surface of a whole robot to a URDF with links.

    Parts become links; the largest or first one is the base. Each link gets a simplified visual, collision shapes,
    and the inertia of its part of the mass. Links are fixed to the base unless --joint names another joint.
    """
    from roboyard.cli.arguments import parse_joints, parse_masses
    from roboyard.cli.terminal import print_result
    from roboyard.description import load_model
    from roboyard.description.meshes import distribute_mass, repair_mesh, write_robot_urdf

    masses = parse_masses(link_masses or [])
    attachments = parse_joints(joints or [])
    surface = load_surface(file, unit)
    repairs: list[str] = []
    if planes or boxes:
        surface, part_repairs = repair_mesh(surface, repair, str(file))
        repairs += part_repairs
    parts, _ = split_surface(surface, planes or [], boxes or [], names)
    for name, part in parts.items():
        parts[name], part_repairs = repair_mesh(part, repair, f"{file}: {name}")
        repairs += [f"{name}: {line}" for line in part_repairs]
    mass_properties = distribute_mass({name: part.volume for name, part in parts.items()}, mass, masses)
    kinds = tuple(kind.strip() for kind in shapes.split(","))
    folder = out or Path(f"{file.stem}_robot")
    with locate_errors(file):
        robot_links = write_robot_urdf(
            parts, mass_properties, attachments, folder, file.stem, triangles, kinds, max_shapes
        )
    urdf = folder / f"{file.stem}.urdf"
    model = load_model(urdf)  # checks that the reader accepts the result
    result = {
        "file": str(urdf),
        "mass": model.mass,
        "links": [
            {
                "link": link.name,
                "mass": link.properties.mass,
                "triangles": len(link.visual.mesh.faces),
                "visual_error": link.visual.error,
                "collision_shapes": len(link.collision.shapes) + len(link.collision.pieces),
                "max_gap": link.collision.max_gap,
                "max_protrusion": link.collision.max_protrusion,
            }
            for link in robot_links
        ],
        "repairs": repairs,
        "warnings": [str(finding) for finding in model.warnings],
    }
    print_result(result, json, _print_robot)


def _print_robot(result: dict[str, Any]) -> None:
    from roboyard.cli.terminal import print_line, print_note, print_table

    _print_repairs(result["repairs"])
    cells = [
        [
            row["link"],
            f"{row['mass']:.4g}",
            f"{row['triangles']} ({format_length(row['visual_error'])})",
            f"{row['collision_shapes']} ({format_length(row['max_gap'])})",
        ]
        for row in result["links"]
    ]
    print_table(["link", "mass [kg]", "triangles (error)", "collision shapes (gap)"], cells, right=["mass [kg]"])
    for finding in result["warnings"]:
        print_note(f"warning: {finding}")
    print_line(f"{result['file']}: {len(result['links'])} links, {result['mass']:.4g} kg")


def _print_repairs(repairs: Sequence[str]) -> None:
    from roboyard.cli.terminal import print_note

    for repair in repairs:
        print_note(f"repaired: {repair}")


def _surface_data(surface: TriangleMesh) -> dict[str, Any]:
    """Return properties of a surface for JSON."""
    low, high = surface.bounds
    return {
        "triangles": len(surface.faces),
        "closed": surface.is_closed,
        "volume": surface.volume if surface.is_closed else None,
        "area": surface.area,
        "min_corner": low,
        "max_corner": high,
    }


def load_surface(file: Path, unit: str) -> TriangleMesh:
    """Read the surface of a mesh file, with gaps from rounding closed."""
    from roboyard.description.meshes.repair import merge_narrow_gaps

    return merge_narrow_gaps(read_surface(file, unit))


def load_closed_surface(file: Path, unit: str, repair: bool) -> tuple[TriangleMesh, tuple[str, ...]]:
    """Read the closed surface of a mesh file; return it and the repairs."""
    from roboyard.description.meshes import repair_mesh

    return repair_mesh(read_surface(file, unit), repair, str(file))


@contextmanager
def locate_errors(file: Path) -> Iterator[None]:
    """Add the file to errors without a location."""
    try:
        yield
    except DescriptionError as error:
        raise DescriptionError(error.message, location=error.location or str(file), valid=error.valid) from error


def read_surface(file: Path, unit: str) -> TriangleMesh:
    """Read the surface of a mesh file; for COLLADA, whose files name their unit, ``unit`` is a factor."""
    from roboyard.description.meshes import read_mesh

    def read_collada(path: Path, max_triangles: int) -> NDArray[np.float64]:
        from roboyard.description.meshes.collada import read_collada_triangles

        return read_collada_triangles(path, max_triangles)

    return read_mesh(file, unit, {".dae": read_collada})


def split_surface(
    surface: TriangleMesh, planes: list[str], boxes: list[str], names: str | None = None
) -> tuple[dict[str, TriangleMesh], str]:
    """Split a surface.

    Returns:
        The parts by name, and the method: "components", "planes" or "boxes".

    Raises:
        InputError: Planes and boxes are given together, or the names do not fit the parts.
    """
    from roboyard.description.meshes import split_by_boxes, split_by_planes, split_components

    if planes and boxes:
        raise InputError("only one of --plane and --box is allowed", valid="one of them; a second call splits further")
    if planes:
        parts, method = split_by_planes(surface, [parse_plane(text) for text in planes]), "planes"
    elif boxes:
        parts, method = split_by_boxes(surface, [parse_box(text) for text in boxes]), "boxes"
    else:
        parts, method = split_components(surface), "components"
    requested_names = [name.strip() for name in names.split(",")] if names else []
    if len(requested_names) > len(parts):
        raise InputError(f"{len(requested_names)} names for {len(parts)} parts", valid="a name for each part, or fewer")
    for name in requested_names:
        if not name or not all(letter.isalnum() or letter in "_-" for letter in name):
            raise InputError(f"invalid name of a part {name!r}", valid="letters, digits, _ and -")
    all_names = requested_names + [f"part_{number}" for number in range(len(requested_names), len(parts))]
    if len(set(all_names)) < len(all_names):
        raise InputError(f"names {names!r} occur twice", valid="a name for each part")
    return dict(zip(all_names, parts, strict=True)), method


def format_length(length: float) -> str:
    """Return a length in millimeters with three digits."""
    return f"{1000.0 * length:.3g} mm"
