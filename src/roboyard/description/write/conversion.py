"""Conversion of a robot or world description into another format, with its mesh files; the result is read back."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from roboyard.config import write_atomic
from roboyard.description.load import load_model, load_world
from roboyard.description.model import Geometry, Mesh, Model, World
from roboyard.errors import DescriptionError, InputError

DescriptionFormat = Literal["urdf", "sdf", "mjcf"]
SUFFIXES: dict[str, str] = {"urdf": ".urdf", "sdf": ".sdf", "mjcf": ".xml"}
_MUJOCO_MESHES = (".stl", ".obj")


@dataclass(slots=True)
class MeshFileWriter:
    """Names mesh files in a document: by a relative path below its folder, else as copies beside it.

    Attributes:
        out: The document.
        to: Its format. MuJoCo reads STL and OBJ; other meshes become STL for it.
        copies: Copies by their originals.
    """

    out: Path
    to: DescriptionFormat
    copies: dict[Path, Path] = field(default_factory=dict)

    def __call__(self, file: Path, uri: str) -> str:
        """Return the path of ``file`` in the document.

        Raises:
            DescriptionError: The mesh cannot be read.
            InputError: The copy cannot be written.
        """
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
        """Write meshes whose points are part of the original into files; return the description with these files."""
        if self.to == "mjcf":  # MJCF holds points, too
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

        key = Path(f"/points/{hash(shape)}")  # a key that no file has
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
    """Result of a conversion.

    Attributes:
        out: The written file.
        copied: Meshes and images copied beside it.
        losses: Parts of the original that the format cannot hold.
        warnings: Parts of the original that were not understood.
        mass: Mass of all models that are not static, before and after [kg].
        repairs: Faults of the original that were repaired.
    """

    out: Path
    copied: tuple[Path, ...]
    losses: tuple[str, ...]
    warnings: tuple[str, ...]
    mass: tuple[float, float]
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DescriptionSource:
    """A description that was loaded, and the file it comes from."""

    description: Model | World
    file: Path


def convert_description(source: DescriptionSource, to: DescriptionFormat, out: Path | None) -> DescriptionConversion:
    """Write a robot or world in another format, and read the result back.

    Args:
        source: The robot or world.
        to: The format.
        out: The new file; None: in the working directory, named after the original.

    Raises:
        DescriptionError: The format cannot hold the description, or the result cannot be read.
        InputError: The file exists already, or cannot be written.
    """
    from roboyard.description.write import write_mjcf, write_sdf, write_urdf

    description = source.description
    out = out or Path(f"{source.file.name.partition('.')[0]}{SUFFIXES[to]}")
    if out.exists():
        raise InputError(f"{out} exists already", valid="another name with --out")
    if not out.absolute().parent.is_dir():
        raise InputError(f"there is no folder {out.parent}", valid="a folder that exists")
    files = MeshFileWriter(out, to)
    try:
        description = files.write_inline_meshes(description)
        if to == "urdf":
            if isinstance(description, World):
                raise DescriptionError(
                    "a world cannot be written as URDF", location=str(source.file), valid="sdf or mjcf"
                )
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
            raise DescriptionError(f"the result cannot be read: {error.message}", location=str(source.file)) from None
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
