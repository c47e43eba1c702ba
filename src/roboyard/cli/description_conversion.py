"""Conversion of a robot or world description: source format, files of its meshes, and a check that the result can be
read.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from roboyard.config import write_atomic
from roboyard.description import Model, World, load_model, load_world
from roboyard.description.model import Geometry, Mesh
from roboyard.errors import DescriptionError, InputError

DescriptionFormat = Literal["urdf", "sdf", "mjcf"]
DescriptionKind = Literal["robot", "world"]
SUFFIXES: dict[str, str] = {"urdf": ".urdf", "sdf": ".sdf", "mjcf": ".xml"}
_MUJOCO_MESHES = (".stl", ".obj")


@dataclass(slots=True)
class MeshFileWriter:
    """Names files in a document: relative where they lie below its folder, else as copies beside it.

    Attributes:
        out: The document.
        to: Its format; MuJoCo reads STL and OBJ, so other meshes become STL for it.
        copied: Copies by what they were made of.
    """

    out: Path
    to: DescriptionFormat
    copies: dict[Path, Path] = field(default_factory=dict)

    def __call__(self, file: Path, uri: str) -> str:
        """What the document says for ``file``. Raises DescriptionError when it cannot be converted or copied."""
        from roboyard.description.meshes.files import DESCRIPTION_MESH_SUFFIXES

        document_folder = self.out.absolute().parent
        file = file.absolute()
        suffix = file.suffix.lower()
        is_mesh = suffix in DESCRIPTION_MESH_SUFFIXES
        convert = is_mesh and (suffix == ".gltf" or (self.to == "mjcf" and suffix not in _MUJOCO_MESHES))
        if not convert and file.resolve().is_relative_to(document_folder.resolve()):
            return file.resolve().relative_to(document_folder.resolve()).as_posix()
        if file not in self.copies:
            folder = document_folder / f"{self.out.stem}_meshes"
            target = self._unused_path(folder / (f"{file.stem}.stl" if convert else file.name))
            try:
                folder.mkdir(exist_ok=True)
                if convert:
                    _convert_to_stl(file, target)
                else:
                    shutil.copyfile(file, target)
            except OSError as error:
                raise InputError(f"{target} cannot be written: {error.strerror}") from None
            self.copies[file] = target
        return self.copies[file].relative_to(document_folder).as_posix()

    def write_inline_meshes(self, description: Model | World) -> Model | World:
        """The description with meshes whose points stand in the original as files beside the document."""
        if self.to == "mjcf":  # which can hold them, too
            return description
        if isinstance(description, World):
            models = tuple(
                replace(placed, model=self._write_model_meshes(placed.model)) for placed in description.models
            )
            return replace(description, models=models)
        return self._write_model_meshes(description)

    def _write_model_meshes(self, model: Model) -> Model:
        links = []
        for link in model.links:
            collisions = tuple(replace(one, geometry=self._write_inline_mesh(one.geometry)) for one in link.collisions)
            visuals = tuple(replace(one, geometry=self._write_inline_mesh(one.geometry)) for one in link.visuals)
            links.append(replace(link, collisions=collisions, visuals=visuals))
        return replace(model, links=tuple(links))

    def _write_inline_mesh(self, shape: Geometry) -> Geometry:
        if not isinstance(shape, Mesh) or shape.inline is None:
            return shape
        from roboyard.description.meshes.files import load_mesh

        key = Path(f"/points/{hash(shape)}")  # no file of anybody's
        if key not in self.copies:
            folder = self.out.absolute().parent / f"{self.out.stem}_meshes"
            target = self._unused_path(folder / "points.stl")
            folder.mkdir(exist_ok=True)
            _write_stl(load_mesh(shape), target)
            self.copies[key] = target
        return replace(shape, file=self.copies[key], uri=self.copies[key].name, scale=(1.0, 1.0, 1.0), inline=None)

    def _unused_path(self, target: Path) -> Path:
        used_paths = set(self.copies.values())
        count = 1
        start = target
        while target in used_paths or target.exists():
            count += 1
            target = start.with_stem(f"{start.stem}_{count}")
        return target


def _convert_to_stl(file: Path, target: Path) -> None:
    from roboyard.description.meshes.files import load_mesh_file

    _write_stl(load_mesh_file(file, file.stat().st_mtime_ns), target)


def _write_stl(surface: tuple[Any, Any], target: Path) -> None:
    import trimesh

    vertices, faces = surface
    write_atomic(target, trimesh.Trimesh(vertices, faces, process=False).export(file_type="stl"))


@dataclass(frozen=True, slots=True)
class DescriptionConversion:
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


def convert_description(
    name: str, to: DescriptionFormat, out: Path | None, kind: DescriptionKind | None, *, repair: bool = False
) -> DescriptionConversion:
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

    description, source = _load_description(name, to, kind, repair)
    out = out or Path(f"{source.name.partition('.')[0]}{SUFFIXES[to]}")
    if out.exists():
        raise InputError(f"{out} exists already", valid="another name with --out")
    if not out.absolute().parent.is_dir():
        raise InputError(f"there is no folder {out.parent}", valid="a folder that exists")
    files = MeshFileWriter(out, to)
    try:
        description = files.write_inline_meshes(description)
        if to == "urdf":
            if isinstance(description, World):
                raise DescriptionError("a world cannot be written as URDF", location=str(source), valid="sdf or mjcf")
            written = write_urdf(description, files)
        else:
            written = (write_sdf if to == "sdf" else write_mjcf)(description, files)
        write_atomic(out, written.text)
        read_back = load_world(out) if isinstance(description, World) else load_model(out)
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror}") from None
    except DescriptionError as error:
        _remove_outputs(out, files)
        if error.location and error.location.startswith(str(out)):
            raise DescriptionError(f"the result does not read back: {error.message}", location=str(source)) from None
        raise
    warnings = tuple(map(str, description.warnings))
    connecting_joints = description.joints if isinstance(description, World) and to != "sdf" else ()
    losses = (*written.losses, *(f"joint '{joint.name}' between models" for joint in connecting_joints))
    repairs = tuple(map(str, description.repairs))
    return DescriptionConversion(
        out,
        tuple(files.copies.values()),
        losses,
        warnings,
        (_movable_mass(description), _movable_mass(read_back)),
        repairs,
    )


def _remove_outputs(out: Path, files: MeshFileWriter) -> None:
    out.unlink(missing_ok=True)
    for copy in files.copies.values():
        copy.unlink(missing_ok=True)
    folder = out.absolute().parent / f"{out.stem}_meshes"
    if files.copies and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _movable_mass(description: Model | World) -> float:
    models = [description] if isinstance(description, Model) else [placed.model for placed in description.models]
    return sum(model.mass for model in models if not model.static)


def _load_description(
    name: str, to: DescriptionFormat, kind: DescriptionKind | None, repair: bool
) -> tuple[Model | World, Path]:
    from roboyard.bringup.catalog import ROBOTS, WORLDS

    is_installed = name in ROBOTS or name in WORLDS
    if is_installed:
        kind = "robot" if name in ROBOTS else "world"
    path = (WORLDS if kind == "world" else ROBOTS).resolve(name)
    if path.suffix in (".yaml", ".yml"):
        from roboyard.bringup.robot_loader import load_robot_file

        package = load_robot_file(path)
        model = package.load_model(repair=repair)
        return model, package.description
    if kind is None:
        kind = "robot" if to == "urdf" or not _describes_world(path) else "world"
    return (load_world(path, repair=repair) if kind == "world" else load_model(path, repair=repair)), path


def _describes_world(path: Path) -> bool:
    """Whether a file describes a world: SDF says so; MJCF does where something stands in the world beside one body."""
    from roboyard.description.load import read_file
    from roboyard.description.xml import parse_xml

    root, _ = parse_xml(read_file(path)[1], str(path))
    if root.tag == "mujoco":
        inside = [child.tag for section in root.children_with_tag("worldbody") for child in section.children]
        return inside.count("body") > 1 or "geom" in inside or "light" in inside
    return root.child("world") is not None
