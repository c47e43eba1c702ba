"""``roboyard mesh``: from a robot's exported surface to links that can be simulated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.grammar import JsonOption, group

if TYPE_CHECKING:
    from roboyard.description.meshes import TriangleMesh

app = group("Make links of meshes: split, reduce, weigh, …")

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
    by: Annotated[str | None, typer.Option(metavar="components|planes|boxes", help="How to part.")] = None,
    planes: PlaneOption = None,
    boxes: BoxOption = None,
    names: NamesOption = None,
    out: OutFolder = None,
    unit: UnitOption = "m",
    repair: RepairOption = False,
    json: JsonOption = False,
) -> None:
    """Part a surface: what hangs together, or by cuts."""
    from roboyard.cli.mesh_words import load, load_closed, parted
    from roboyard.cli.terminal import emit, note, say, table
    from roboyard.description.meshes import write_stl
    from roboyard.errors import InputError

    how = by or ("planes" if planes else "boxes" if boxes else "components")
    given = {"components": not planes and not boxes, "planes": bool(planes), "boxes": bool(boxes)}
    if not given.get(how, False):
        raise InputError(f"--by {how}", valid="components alone, planes with --plane, boxes with --box")
    surface, mended = load_closed(file, unit, repair) if how != "components" or repair else (load(file, unit), ())
    parts, how = parted(surface, planes or [], boxes or [], names)
    folder = out or Path(f"{file.stem}_parts")
    rows: list[dict[str, Any]] = []
    for name, part in parts.items():
        target = folder / f"{name}.stl"
        write_stl(target, part)
        rows.append({"part": name, "file": str(target), **_about(part)})
    if json:
        emit({"by": how, "parts": rows, "mended": mended})
        return
    for line in mended:
        note(f"mended: {line}")
    cells = [[r["part"], r["triangles"], "-" if r["volume"] is None else f"{r['volume']:.4g}", r["file"]] for r in rows]
    table(["part", "triangles", "volume [m³]", "file"], cells, right=["triangles", "volume [m³]"])
    if any(row["volume"] is None for row in rows):
        say("parts without a volume are open")


@app.command("reduce")
def reduce(
    file: FileArgument,
    triangles: Annotated[int | None, typer.Option(metavar="N", help="At most about so many.")] = None,
    error: Annotated[float | None, typer.Option(metavar="M", help="Move the surface at most so far [m].")] = None,
    out: OutFile = None,
    unit: UnitOption = "m",
    json: JsonOption = False,
) -> None:
    """Make do with fewer triangles, within an error."""
    from roboyard.cli.mesh_words import load, millimetres
    from roboyard.cli.terminal import emit, fields
    from roboyard.description.meshes import simplify_to_count, simplify_to_error, write_stl
    from roboyard.errors import InputError

    surface = load(file, unit)
    if triangles is not None and error is None:
        made = simplify_to_count(surface, triangles)
    elif error is not None and triangles is None:
        made = simplify_to_error(surface, error)
    else:
        raise InputError("reduce to what?", valid="--triangles N or --error M")
    target = out or Path(f"{file.stem}_reduced.stl")
    write_stl(target, made.mesh)
    before, after = len(surface.faces), len(made.mesh.faces)
    if json:
        emit({"file": str(target), "before": before, **_about(made.mesh), "error": made.error})
        return
    fields(
        [
            ("triangles", f"{before} → {after}"),
            ("moved by at most", f"{millimetres(made.error)}, {made.error / surface.diagonal:.2%} of the size"),
            ("written", target),
        ]
    )


@app.command("origin")
def origin(
    file: FileArgument,
    at: Annotated[str, typer.Option(metavar="com|base|center|x,y,z", help="What becomes the origin.")] = "com",
    rotate: Annotated[str, typer.Option(metavar="R,P,Y", help="Then turn: roll, pitch, yaw [degrees].")] = "0,0,0",
    out: OutFile = None,
    unit: UnitOption = "m",
    repair: RepairOption = False,
    json: JsonOption = False,
) -> None:
    """Give a surface another origin and other axes."""
    import math

    import numpy as np

    from roboyard.cli.mesh_words import load, load_closed, numbers
    from roboyard.cli.terminal import emit, fields, note
    from roboyard.description.meshes import compute_origin_transform, write_stl
    from roboyard.description.meshes.robot_from_meshes import format_origin as as_origin

    roll, pitch, yaw = (math.radians(angle) for angle in numbers(rotate, 3, "rotation"))
    needs_body = at == "com" or repair
    surface, mended = load_closed(file, unit, repair) if needs_body else (load(file, unit), ())
    place = at if at in ("com", "base", "center") else np.array(numbers(at, 3, "origin"))
    T = compute_origin_transform(surface, place, (roll, pitch, yaw))
    target = out or Path(f"{file.stem}_placed.stl")
    write_stl(target, surface.transformed(T))
    back = T.inverse()
    if json:
        emit(
            {
                "file": str(target),
                "T_old_new": {"xyz": back.translation, "rpy": back.rpy},
                "mended": mended,
                **_about(surface.transformed(T)),
            }
        )
        return
    for line in mended:
        note(f"mended: {line}")
    fields([("put back by", as_origin(back)), ("written", target)])


@app.command("collision")
def collision(
    file: FileArgument,
    shapes: Annotated[
        str, typer.Option(metavar="KIND,…", help="box, cylinder, capsule, sphere; or hull; or decompose.")
    ] = "box,cylinder,sphere",
    most: Annotated[int, typer.Option("--max", metavar="N", help="So many shapes or pieces at most.")] = 1,
    out: OutFolder = None,
    unit: UnitOption = "m",
    repair: RepairOption = False,
    dialect: FormatOption = "urdf",
    json: JsonOption = False,
) -> None:
    """Cover a surface by shapes that engines collide quickly.

    Prints them as collision elements, and how far they are from the surface.  Hulls and pieces are written as files.
    """
    from roboyard.cli.mesh_words import about, load, load_closed, millimetres
    from roboyard.cli.terminal import count, emit, note, say
    from roboyard.description.meshes import approximate_collision, write_stl
    from roboyard.description.meshes.robot_from_meshes import PlacedShape, format_collisions
    from roboyard.description.shapes import Mesh
    from roboyard.geometry import SE3

    surface, mended = load_closed(file, unit, repair) if repair else (load(file, unit), ())
    kinds = tuple(kind.strip() for kind in shapes.split(","))
    with about(file):
        found = approximate_collision(surface, kinds, 16 if kinds == ("decompose",) and most == 1 else most)
    folder = out or Path(f"{file.stem}_collision")
    placed: list[PlacedShape] = [*found.shapes]
    for number, piece in enumerate(found.pieces):
        target = folder / f"{file.stem}_{number}.stl"
        write_stl(target, piece)
        placed.append((Mesh(str(target), None), SE3.identity()))
    texts = format_collisions(placed, dialect)
    if json:
        made = [{"kind": type(s).__name__.lower(), "shape": s, "xyz": T.translation, "rpy": T.rpy} for s, T in placed]
        figures = {"excess": found.volume_excess, "gap": found.max_gap, "outside": found.max_protrusion}
        emit({"shapes": made, **figures, "text": texts, "mended": mended})
        return
    for line in mended:
        note(f"mended: {line}")
    for text in texts:
        say(text)
    compared = "the body's" if surface.is_closed else "its hull's (the surface is open)"
    note(
        f"{count(len(placed), 'shape')}, {found.volume_excess:+.1%} of {compared} volume; "
        f"the shapes' surface is at most "
        f"{millimetres(found.max_gap)} from the mesh, the mesh sticks out by {millimetres(found.max_protrusion)}"
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
    from roboyard.cli.mesh_words import load_closed
    from roboyard.cli.terminal import emit, note, say
    from roboyard.description.meshes import compute_mass_properties
    from roboyard.description.meshes.robot_from_meshes import format_inertial

    surface, mended = load_closed(file, unit, repair)
    found = compute_mass_properties(surface, mass, density)
    text = format_inertial(found.to_inertial(), dialect)
    if json:
        numbers = {"mass": found.mass, "volume": found.volume, "density": found.density, "com": found.com}
        emit(
            {
                **numbers,
                "inertia": found.inertia,
                "principal_moments": found.principal_moments,
                "text": text,
                "mended": mended,
            }
        )
        return
    for line in mended:
        note(f"mended: {line}")
    say(text)
    note(f"{found.mass:.4g} kg in {found.volume:.4g} m³: {found.density:.4g} kg/m³")


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
    most: Annotated[int, typer.Option("--max", metavar="N", help="So many collision shapes for each link.")] = 1,
    out: OutFolder = None,
    unit: UnitOption = "m",
    repair: RepairOption = False,
    json: JsonOption = False,
) -> None:
    """All at once: a whole robot's surface becomes a URDF of links.

    Parts become links, the largest or first the base; each gets a light visual, collision shapes, and inertia from its
    share of the mass.  Links are fixed to the base unless --joint says otherwise.
    """
    from roboyard.cli.mesh_words import about, load, masses, millimetres, parted
    from roboyard.cli.mesh_words import joints as joints_of
    from roboyard.cli.terminal import emit, note, say, table
    from roboyard.description import load_model
    from roboyard.description.meshes import distribute_mass, repair_mesh, write_robot_urdf

    total, weighed = masses(mass)
    hung = joints_of(joints or [])
    surface = load(file, unit)
    mended: list[str] = []
    if planes or boxes:
        surface, done = repair_mesh(surface, repair, str(file))
        mended += done
    parts, _ = parted(surface, planes or [], boxes or [], names)
    for name, part in parts.items():
        parts[name], done = repair_mesh(part, repair, f"{file}: {name}")
        mended += [f"{name}: {line}" for line in done]
    shared = distribute_mass({name: part.volume for name, part in parts.items()}, total, weighed)
    kinds = tuple(kind.strip() for kind in shapes.split(","))
    folder = out or Path(f"{file.stem}_robot")
    with about(file):
        made = write_robot_urdf(parts, shared, hung, folder, file.stem, triangles, kinds, most)
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
        for link in made
    ]
    findings = [str(finding) for finding in model.warnings]
    if json:
        emit({"file": str(urdf), "mass": model.mass, "links": rows, "mended": mended, "findings": findings})
        return
    for line in mended:
        note(f"mended: {line}")
    cells = [
        [
            row["link"],
            f"{row['mass']:.4g}",
            f"{row['triangles']} ({millimetres(row['visual_error'])})",
            f"{row['collisions']} ({millimetres(row['gap'])})",
        ]
        for row in rows
    ]
    table(["link", "mass [kg]", "triangles (moved by)", "collision shapes (gap)"], cells, right=["mass [kg]"])
    for finding in findings:
        note(f"warning: {finding}")
    say(f"{urdf}: {len(model.links)} links, {model.mass:.4g} kg")


def _about(surface: TriangleMesh) -> dict[str, Any]:
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
