"""Converting a description: what it is read as, where its meshes go, and whether the result reads back."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from roboyard.config import write_atomic
from roboyard.description import Model, World, load_model, load_world
from roboyard.description.model import Geometry, Mesh
from roboyard.errors import DescriptionError, InputError

Format = Literal["urdf", "sdf", "mjcf"]
Kind = Literal["robot", "world"]
SUFFIXES: dict[str, str] = {"urdf": ".urdf", "sdf": ".sdf", "mjcf": ".xml"}
_MUJOCO_MESHES = (".stl", ".obj")


@dataclass(slots=True)
class Beside:
    """Names files in a document: relative where they lie below its folder, else as copies beside it.

    Attributes:
        out: The document.
        to: Its format; MuJoCo reads STL and OBJ, so other meshes become STL for it.
        copied: Copies by what they were made of.
    """

    out: Path
    to: Format
    copied: dict[Path, Path] = field(default_factory=dict)

    def __call__(self, file: Path, uri: str) -> str:
        """What the document says for ``file``. Raises DescriptionError when it cannot be converted or copied."""
        from roboyard.description.meshes.files import DESCRIPTION_MESH_SUFFIXES

        home = self.out.absolute().parent
        file = file.absolute()
        suffix = file.suffix.lower()
        mesh = suffix in DESCRIPTION_MESH_SUFFIXES
        convert = mesh and (suffix == ".gltf" or (self.to == "mjcf" and suffix not in _MUJOCO_MESHES))
        if not convert and file.resolve().is_relative_to(home.resolve()):
            return file.resolve().relative_to(home.resolve()).as_posix()
        if file not in self.copied:
            folder = home / f"{self.out.stem}_meshes"
            target = self._free(folder / (f"{file.stem}.stl" if convert else file.name))
            try:
                folder.mkdir(exist_ok=True)
                if convert:
                    _as_stl(file, target)
                else:
                    shutil.copyfile(file, target)
            except OSError as error:
                raise InputError(f"{target} cannot be written: {error.strerror}") from None
            self.copied[file] = target
        return self.copied[file].relative_to(home).as_posix()

    def kept(self, thing: Model | World) -> Model | World:
        """The description with meshes whose points stand in the original as files beside the document."""
        if self.to == "mjcf":  # which can hold them, too
            return thing
        if isinstance(thing, World):
            models = tuple(replace(placed, model=self._with_files(placed.model)) for placed in thing.models)
            return replace(thing, models=models)
        return self._with_files(thing)

    def _with_files(self, model: Model) -> Model:
        links = []
        for link in model.links:
            collisions = tuple(replace(one, geometry=self._filed(one.geometry)) for one in link.collisions)
            visuals = tuple(replace(one, geometry=self._filed(one.geometry)) for one in link.visuals)
            links.append(replace(link, collisions=collisions, visuals=visuals))
        return replace(model, links=tuple(links))

    def _filed(self, shape: Geometry) -> Geometry:
        if not isinstance(shape, Mesh) or shape.inline is None:
            return shape
        from roboyard.description.meshes.files import load_mesh

        key = Path(f"/points/{hash(shape)}")  # no file of anybody's
        if key not in self.copied:
            folder = self.out.absolute().parent / f"{self.out.stem}_meshes"
            target = self._free(folder / "points.stl")
            folder.mkdir(exist_ok=True)
            _write_stl(load_mesh(shape), target)
            self.copied[key] = target
        return replace(shape, file=self.copied[key], uri=self.copied[key].name, scale=(1.0, 1.0, 1.0), inline=None)

    def _free(self, target: Path) -> Path:
        taken = set(self.copied.values())
        count = 1
        start = target
        while target in taken or target.exists():
            count += 1
            target = start.with_stem(f"{start.stem}_{count}")
        return target


def _as_stl(file: Path, target: Path) -> None:
    from roboyard.description.meshes.files import load_mesh_file

    _write_stl(load_mesh_file(file, file.stat().st_mtime_ns), target)


def _write_stl(surface: tuple[Any, Any], target: Path) -> None:
    import trimesh

    vertices, faces = surface
    write_atomic(target, trimesh.Trimesh(vertices, faces, process=False).export(file_type="stl"))


@dataclass(frozen=True, slots=True)
class Converted:
    """What became of a description.

    Attributes:
        out: The written file.
        copied: Meshes and pictures copied beside it.
        losses: What its format cannot say.
        warnings: What was not understood in the original.
        mass: Of all that is not static, before and after [kg].
        repairs: Faults of the original that were repaired, if requested.
    """

    out: Path
    copied: tuple[Path, ...]
    losses: tuple[str, ...]
    warnings: tuple[str, ...]
    mass: tuple[float, float]
    repairs: tuple[str, ...] = ()


def convert(name: str, to: Format, out: Path | None, kind: Kind | None, *, repair: bool = False) -> Converted:
    """Write a robot or world in another format, and read the result back.

    Args:
        name: A file, or a name of ``roboyard list``.
        to: The format.
        out: The file; None: in the working directory, called like the original.
        kind: As what to read it; None: as what it is.
        repair: Mend what can be mended, so that a mended file is written.

    Raises:
        InputError and its kinds: it cannot be read, the format cannot hold it, or the file exists already.
    """
    from roboyard.description.write import write_mjcf, write_sdf, write_urdf

    thing, source = _read(name, to, kind, repair)
    out = out or Path(f"{source.name.partition('.')[0]}{SUFFIXES[to]}")
    if out.exists():
        raise InputError(f"{out} exists already", valid="another name with --out")
    if not out.absolute().parent.is_dir():
        raise InputError(f"there is no folder {out.parent}", valid="a folder that exists")
    files = Beside(out, to)
    try:
        thing = files.kept(thing)
        if to == "urdf":
            if isinstance(thing, World):
                raise DescriptionError("a world cannot be written as URDF", location=str(source), valid="sdf or mjcf")
            written = write_urdf(thing, files)
        else:
            written = (write_sdf if to == "sdf" else write_mjcf)(thing, files)
        write_atomic(out, written.text)
        again = load_world(out) if isinstance(thing, World) else load_model(out)
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror}") from None
    except DescriptionError as error:
        _take_back(out, files)
        if error.location and error.location.startswith(str(out)):
            raise DescriptionError(f"the result does not read back: {error.message}", location=str(source)) from None
        raise
    warnings = tuple(map(str, thing.warnings))
    between = thing.joints if isinstance(thing, World) and to != "sdf" else ()
    losses = (*written.losses, *(f"joint '{joint.name}' between models" for joint in between))
    repairs = tuple(map(str, thing.repairs))
    return Converted(out, tuple(files.copied.values()), losses, warnings, (_mass(thing), _mass(again)), repairs)


def _take_back(out: Path, files: Beside) -> None:
    out.unlink(missing_ok=True)
    for copy in files.copied.values():
        copy.unlink(missing_ok=True)
    folder = out.absolute().parent / f"{out.stem}_meshes"
    if files.copied and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _mass(thing: Model | World) -> float:
    models = [thing] if isinstance(thing, Model) else [placed.model for placed in thing.models]
    return sum(model.mass for model in models if not model.static)


def _read(name: str, to: Format, kind: Kind | None, repair: bool) -> tuple[Model | World, Path]:
    from roboyard.scenarios.catalog import find, robots, worlds

    known = name in robots() or name in worlds()
    if known:
        kind = "robot" if name in robots() else "world"
    path = find(kind or "robot", name)
    if path.suffix in (".yaml", ".yml"):
        from roboyard.scenarios.robot_package import load_robot

        package = load_robot(path)
        model = package.load_model(repair=repair)
        return model, package.description
    if kind is None:
        kind = "robot" if to == "urdf" or not _holds_world(path) else "world"
    return (load_world(path, repair=repair) if kind == "world" else load_model(path, repair=repair)), path


def _holds_world(path: Path) -> bool:
    """Whether a file describes a world: SDF says so; MJCF does where something stands in the world beside one body."""
    from roboyard.description.load import read_file
    from roboyard.description.xml import parse_xml

    root, _ = parse_xml(read_file(path)[1], str(path))
    if root.tag == "mujoco":
        inside = [child.tag for section in root.children_with_tag("worldbody") for child in section.children]
        return inside.count("body") > 1 or "geom" in inside or "light" in inside
    return root.child("world") is not None
