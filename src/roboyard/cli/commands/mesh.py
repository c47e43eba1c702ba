"""``roboyard mesh``: from a robot's exported surface to links that can be simulated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.app import JsonOption, command_group
from roboyard.cli.arguments import parse_box, parse_plane
from roboyard.errors import DescriptionError, InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from roboyard.description.meshes import TriangleMesh

app = command_group("Make links of meshes: split, simplify, weigh, …")

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="STL, OBJ, PLY, OFF, DAE, GLB or glTF.")]
UnitOption = Annotated[str, typer.Option("--unit", metavar="m|cm|mm|in", help="Of the file's numbers.")]
RepairOption = Annotated[bool, typer.Option("--repair", help="Close holes and turn triangles; each mending is said.")]
OutFolder = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Where to; default: here, named after the file.")
]
OutFile = Annotated[
    Path | None, typer.Option("--out", metavar="STL", help="Where to; default: here, named after the file.")
]
FormatOption = Annotated[str, typer.Option("--format", metavar="urdf|sdf", help="Of what is printed.")]
PlaneOption = Annotated[
    list[str] | None, typer.Option("--plane", metavar="x=D|a,b,c,d", help="Cut where a x + b y + c z = d; repeatable.")
]
BoxOption = Annotated[
    list[str] | None, typer.Option("--box", metavar="x0,y0,z0,x1,y1,z1", help="What is in it is a part; repeatable.")
]
NamesOption = Annotated[str | None, typer.Option("--names", metavar="A,B,…", help="Of the parts, the largest first.")]


@app.command("split")
def split(
    file: FileArgument,
    split_by: Annotated[str | None, typer.Option(metavar="components|planes|boxes", help="How to part.")] = None,
    planes: PlaneOption = None,
    boxes: BoxOption = None,
    names: NamesOption = None,
    out: OutFolder = None,
    unit: UnitOption = "m",
    repair: RepairOption = False,
    json: JsonOption = False,
) -> None:
    """Part a surface: what hangs together, or by cuts."""
    from roboyard.cli.terminal import print_json, print_line, print_note, print_table
    from roboyard.description.meshes import write_stl
    from roboyard.errors import InputError

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
    if json:
        print_json({"by": method, "parts": rows, "mended": repairs})
        return
    for line in repairs:
        print_note(f"mended: {line}")
    cells = [[r["part"], r["triangles"], "-" if r["volume"] is None else f"{r['volume']:.4g}", r["file"]] for r in rows]
    print_table(["part", "triangles", "volume [m³]", "file"], cells, right=["triangles", "volume [m³]"])
    if any(row["volume"] is None for row in rows):
        print_line("parts without a volume are open")


@app.command("simplify")
def simplify(
    file: FileArgument,
    triangles: Annotated[int | None, typer.Option(metavar="N", help="At most about so many.")] = None,
    max_error: Annotated[float | None, typer.Option(metavar="M", help="Move the surface at most so far [m].")] = None,
    out: OutFile = None,
    unit: UnitOption = "m",
    json: JsonOption = False,
) -> None:
    """Make do with fewer triangles, within an error."""
    from roboyard.cli.terminal import print_fields, print_json
    from roboyard.description.meshes import simplify_to_count, simplify_to_error, write_stl
    from roboyard.errors import InputError

    surface = load_surface(file, unit)
    if triangles is not None and max_error is None:
        simplified = simplify_to_count(surface, triangles)
    elif max_error is not None and triangles is None:
        simplified = simplify_to_error(surface, max_error)
    else:
        raise InputError("simplify to what?", valid="--triangles N or --max-error M")
    target = out or Path(f"{file.stem}_reduced.stl")
    write_stl(target, simplified.mesh)
    before, after = len(surface.faces), len(simplified.mesh.faces)
    if json:
        print_json({"file": str(target), "before": before, **_surface_data(simplified.mesh), "error": simplified.error})
        return
    print_fields(
        [
            ("triangles", f"{before} → {after}"),
            (
                "moved by at most",
                f"{format_length(simplified.error)}, {simplified.error / surface.diagonal:.2%} of the size",
            ),
            ("written", target),
        ]
    )


@app.command("recenter")
def recenter(
    file: FileArgument,
    origin: Annotated[str, typer.Option(metavar="com|base|center|x,y,z", help="What becomes the origin.")] = "com",
    rotate: Annotated[str, typer.Option(metavar="R,P,Y", help="Then turn: roll, pitch, yaw [degrees].")] = "0,0,0",
    out: OutFile = None,
    unit: UnitOption = "m",
    repair: RepairOption = False,
    json: JsonOption = False,
) -> None:
    """Give a surface another origin and other axes."""
    import math

    import numpy as np

    from roboyard.cli.arguments import parse_numbers
    from roboyard.cli.terminal import print_fields, print_json, print_note
    from roboyard.description.meshes import compute_origin_transform, write_stl
    from roboyard.description.meshes.robot_from_meshes import format_origin as as_origin

    roll, pitch, yaw = (math.radians(angle) for angle in parse_numbers(rotate, 3, "rotation"))
    needs_body = origin == "com" or repair
    surface, repairs = load_closed_surface(file, unit, repair) if needs_body else (load_surface(file, unit), ())
    target_origin = origin if origin in ("com", "base", "center") else np.array(parse_numbers(origin, 3, "origin"))
    T = compute_origin_transform(surface, target_origin, (roll, pitch, yaw))
    target = out or Path(f"{file.stem}_placed.stl")
    write_stl(target, surface.transformed(T))
    T_old_new = T.inverse()
    if json:
        print_json(
            {
                "file": str(target),
                "T_old_new": {"xyz": T_old_new.translation, "rpy": T_old_new.rpy},
                "mended": repairs,
                **_surface_data(surface.transformed(T)),
            }
        )
        return
    for line in repairs:
        print_note(f"mended: {line}")
    print_fields([("put back by", as_origin(T_old_new)), ("written", target)])


@app.command("collision")
def collision(
    file: FileArgument,
    shapes: Annotated[
        str, typer.Option(metavar="KIND,…", help="box, cylinder, capsule, sphere; or hull; or decompose.")
    ] = "box,cylinder,sphere",
    max_shapes: Annotated[int, typer.Option("--max-shapes", metavar="N", help="So many shapes or pieces at most.")] = 1,
    out: OutFolder = None,
    unit: UnitOption = "m",
    repair: RepairOption = False,
    dialect: FormatOption = "urdf",
    json: JsonOption = False,
) -> None:
    """Cover a surface by shapes that engines collide quickly.

    Prints them as collision elements, and how far they are from the surface.  Hulls and pieces are written as files.
    """
    from roboyard.cli.terminal import format_count, print_json, print_line, print_note
    from roboyard.description.meshes import approximate_collision, write_stl
    from roboyard.description.meshes.robot_from_meshes import PlacedShape, format_collisions
    from roboyard.description.shapes import Mesh
    from roboyard.geometry import SE3

    surface, repairs = load_closed_surface(file, unit, repair) if repair else (load_surface(file, unit), ())
    kinds = tuple(kind.strip() for kind in shapes.split(","))
    with locate_errors(file):
        found = approximate_collision(surface, kinds, 16 if kinds == ("decompose",) and max_shapes == 1 else max_shapes)
    folder = out or Path(f"{file.stem}_collision")
    placed: list[PlacedShape] = [*found.shapes]
    for number, piece in enumerate(found.pieces):
        target = folder / f"{file.stem}_{number}.stl"
        write_stl(target, piece)
        placed.append((Mesh(str(target), None), SE3.identity()))
    texts = format_collisions(placed, dialect)
    if json:
        shape_data = [
            {"kind": type(s).__name__.lower(), "shape": s, "xyz": T.translation, "rpy": T.rpy} for s, T in placed
        ]
        figures = {"excess": found.volume_excess, "gap": found.max_gap, "outside": found.max_protrusion}
        print_json({"shapes": shape_data, **figures, "text": texts, "mended": repairs})
        return
    for line in repairs:
        print_note(f"mended: {line}")
    for text in texts:
        print_line(text)
    reference = "the body's" if surface.is_closed else "its hull's (the surface is open)"
    print_note(
        f"{format_count(len(placed), 'shape')}, {found.volume_excess:+.1%} of {reference} volume; "
        f"the shapes' surface is at most "
        f"{format_length(found.max_gap)} from the mesh, the mesh sticks out by {format_length(found.max_protrusion)}"
    )


@app.command("inertia")
def inertia(
    file: FileArgument,
    mass: Annotated[float | None, typer.Option(metavar="KG", help="Weighed mass.")] = None,
    density: Annotated[float | None, typer.Option(metavar="KG/M³", help="Instead of the mass.")] = None,
    unit: UnitOption = "m",
    repair: RepairOption = False,
    dialect: FormatOption = "urdf",
    json: JsonOption = False,
) -> None:
    """Mass, centre and inertia of a closed surface."""
    from roboyard.cli.terminal import print_json, print_line, print_note
    from roboyard.description.meshes import compute_mass_properties
    from roboyard.description.meshes.robot_from_meshes import format_inertial

    surface, repairs = load_closed_surface(file, unit, repair)
    found = compute_mass_properties(surface, mass, density)
    text = format_inertial(found.to_inertial(), dialect)
    if json:
        values = {"mass": found.mass, "volume": found.volume, "density": found.density, "com": found.com}
        print_json(
            {
                **values,
                "inertia": found.inertia,
                "principal_moments": found.principal_moments,
                "text": text,
                "mended": repairs,
            }
        )
        return
    for line in repairs:
        print_note(f"mended: {line}")
    print_line(text)
    print_note(f"{found.mass:.4g} kg in {found.volume:.4g} m³: {found.density:.4g} kg/m³")


@app.command("robot")
def robot(
    file: FileArgument,
    mass: Annotated[list[str], typer.Option("--mass", metavar="KG|LINK=KG", help="Of the whole; of a link.")],
    joints: Annotated[
        list[str] | None, typer.Option("--joint", metavar="LINK=TYPE[,AXIS[,PARENT]]", help="E.g. wheel=continuous,y.")
    ] = None,
    planes: PlaneOption = None,
    boxes: BoxOption = None,
    names: NamesOption = None,
    triangles: Annotated[int, typer.Option(metavar="N", help="Of each visual at most.")] = 5000,
    shapes: Annotated[str, typer.Option(metavar="KIND,…", help="As of `mesh collision`.")] = "box,cylinder,sphere",
    max_shapes: Annotated[
        int, typer.Option("--max-shapes", metavar="N", help="So many collision shapes for each link.")
    ] = 1,
    out: OutFolder = None,
    unit: UnitOption = "m",
    repair: RepairOption = False,
    json: JsonOption = False,
) -> None:
    """All at once: a whole robot's surface becomes a URDF of links.

    Parts become links, the largest or first the base; each gets a light visual, collision shapes, and inertia from its
    share of the mass.  Links are fixed to the base unless --joint says otherwise.
    """
    from roboyard.cli.arguments import parse_joints as joints_of
    from roboyard.cli.arguments import parse_masses
    from roboyard.cli.terminal import print_json, print_line, print_note, print_table
    from roboyard.description import load_model
    from roboyard.description.meshes import distribute_mass, repair_mesh, write_robot_urdf

    total, link_masses = parse_masses(mass)
    attachments = joints_of(joints or [])
    surface = load_surface(file, unit)
    repairs: list[str] = []
    if planes or boxes:
        surface, part_repairs = repair_mesh(surface, repair, str(file))
        repairs += part_repairs
    parts, _ = split_surface(surface, planes or [], boxes or [], names)
    for name, part in parts.items():
        parts[name], part_repairs = repair_mesh(part, repair, f"{file}: {name}")
        repairs += [f"{name}: {line}" for line in part_repairs]
    mass_properties = distribute_mass({name: part.volume for name, part in parts.items()}, total, link_masses)
    kinds = tuple(kind.strip() for kind in shapes.split(","))
    folder = out or Path(f"{file.stem}_robot")
    with locate_errors(file):
        robot_links = write_robot_urdf(
            parts, mass_properties, attachments, folder, file.stem, triangles, kinds, max_shapes
        )
    urdf = folder / f"{file.stem}.urdf"
    model = load_model(urdf)  # what our own reader refuses is no result
    rows: list[dict[str, Any]] = [
        {
            "link": link.name,
            "mass": link.properties.mass,
            "triangles": len(link.visual.mesh.faces),
            "visual_error": link.visual.error,
            "collisions": len(link.collision.shapes) + len(link.collision.pieces),
            "gap": link.collision.max_gap,
            "outside": link.collision.max_protrusion,
        }
        for link in robot_links
    ]
    findings = [str(finding) for finding in model.warnings]
    if json:
        print_json({"file": str(urdf), "mass": model.mass, "links": rows, "mended": repairs, "findings": findings})
        return
    for line in repairs:
        print_note(f"mended: {line}")
    cells = [
        [
            row["link"],
            f"{row['mass']:.4g}",
            f"{row['triangles']} ({format_length(row['visual_error'])})",
            f"{row['collisions']} ({format_length(row['gap'])})",
        ]
        for row in rows
    ]
    print_table(["link", "mass [kg]", "triangles (moved by)", "collision shapes (gap)"], cells, right=["mass [kg]"])
    for finding in findings:
        print_note(f"warning: {finding}")
    print_line(f"{urdf}: {len(model.links)} links, {model.mass:.4g} kg")


def _surface_data(surface: TriangleMesh) -> dict[str, Any]:
    """What every answer says of a surface."""
    low, high = surface.bounds
    return {
        "triangles": len(surface.faces),
        "closed": surface.is_closed,
        "volume": surface.volume if surface.is_closed else None,
        "area": surface.area,
        "low": low,
        "high": high,
    }


def load_surface(file: Path, unit: str) -> TriangleMesh:
    """A mesh file's surface, gaps by rounding closed."""
    from roboyard.description.meshes.repair import merge_narrow_gaps

    return merge_narrow_gaps(read_surface(file, unit))


def load_closed_surface(file: Path, unit: str, repair: bool) -> tuple[TriangleMesh, tuple[str, ...]]:
    """A mesh file's closed surface, and what was mended."""
    from roboyard.description.meshes import repair_mesh

    return repair_mesh(read_surface(file, unit), repair, str(file))


@contextmanager
def locate_errors(file: Path) -> Iterator[None]:
    """Errors inside that do not say where are about this file."""
    try:
        yield
    except DescriptionError as error:
        raise DescriptionError(error.message, location=error.location or str(file), valid=error.valid) from error


def read_surface(file: Path, unit: str) -> TriangleMesh:
    """A mesh file's surface; COLLADA says its unit itself, to which ``unit`` then is a factor."""
    from roboyard.description.meshes import read_mesh

    def read_collada(path: Path, max_triangles: int) -> NDArray[np.float64]:
        from roboyard.description.meshes.collada import read_collada_triangles

        return read_collada_triangles(path, max_triangles)

    return read_mesh(file, unit, {".dae": read_collada})


def split_surface(
    surface: TriangleMesh, planes: list[str], boxes: list[str], names: str | None = None
) -> tuple[dict[str, TriangleMesh], str]:
    """Parts of a surface by name, and how they were found: by components, planes or boxes. Raises InputError."""
    from roboyard.description.meshes import split_by_boxes, split_by_planes, split_components

    if planes and boxes:
        raise InputError("planes and boxes together", valid="one of them; a second call splits further")
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
            raise InputError(f"a part named {name!r}", valid="letters, digits, _ and -")
    all_names = requested_names + [f"part_{number}" for number in range(len(requested_names), len(parts))]
    if len(set(all_names)) < len(all_names):
        raise InputError(f"names {names!r} occur twice", valid="a name for each part")
    return dict(zip(all_names, parts, strict=True)), method


def format_length(length: float) -> str:
    """A small length as people read it."""
    return f"{1000.0 * length:.3g} mm"
