"""Meshes, terrains and textures: found by our rules, handed to the compiler as bytes, never opened by it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from roboyard.description.meshes import mesh_problem
from roboyard.description.mjcf.includes import find
from roboyard.description.model import Rgba
from roboyard.description.reading import Reading
from roboyard.description.values import fault, integer, number, shown
from roboyard.description.xml import Node

MESH_BYTES = 64 * 2**20
ALL_BYTES = 256 * 2**20
MAX_HEIGHTS = 4_200_000
"""Of a terrain whose heights stand in the document."""
_COMPILED = (".stl", ".obj", ".msh")
_STAND_IN = ".05 0 0 -.05 0 0 0 .05 0 0 -.05 0 0 0 .05 0 0 -.05"
_MAX_PARAMETER = 100.0
_GREY: Rgba = (1.0, 1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class MeshSource:
    """A ``<mesh>``: where it came from. ``uri`` is empty for one whose points stand in the document."""

    uri: str
    file: Path | None


@dataclass(frozen=True, slots=True)
class Skin:
    """What a texture does to a material: a picture, or the mean of a built-in pattern's colours."""

    picture: Path | None = None
    colour: Rgba = _GREY


@dataclass(slots=True)
class Assets:
    """What the document's ``<asset>`` sections bring, by name.

    Attributes:
        data: Bytes of mesh files by the name that the compiler sees.
        meshes: By mesh name.
        terrains: Picture (or None) by height field name, with the URI.
        skins: By material name.
    """

    data: dict[str, bytes] = field(default_factory=dict)
    meshes: dict[str, MeshSource] = field(default_factory=dict)
    terrains: dict[str, MeshSource] = field(default_factory=dict)
    skins: dict[str, Skin] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Folders:
    """What ``<compiler>`` says of files: their folders, and whether only the last part of their names counts."""

    meshes: str
    textures: str
    bare: bool

    def path(self, name: str, folder: str) -> str:
        name = name.strip().replace("\\", "/")
        name = PurePosixPath(name).name if self.bare else name
        return f"{folder.rstrip('/')}/{name}" if folder else name


def gather(reading: Reading, document: Node, clean: Node) -> tuple[Node, Assets]:
    """``clean`` with its meshes and terrains made safe to compile, and what they stand for.

    Args:
        reading: Takes findings, finds files.
        document: The whole document, includes expanded.
        clean: What is to be compiled of it.

    Raises:
        DescriptionError: the meshes are too large together.
    """
    folders = _folders(document)
    assets = Assets(skins=_skins(reading, document, folders))
    children = []
    for section in clean.children:
        if section.tag == "asset":
            parts = []
            for part in section.children:
                if part.tag == "mesh":
                    part = _mesh(reading, part, assets, folders, clean.file)
                elif part.tag == "hfield":
                    part = _terrain(reading, part, assets, folders, clean.file)
                parts.append(part)
            section = replace(section, children=parts)
        children.append(section)
    return replace(clean, children=children), assets


def _folders(document: Node) -> _Folders:
    meshes = textures = ""
    bare = False
    for node in document.all("compiler"):
        common = node.get("assetdir")
        meshes = node.get("meshdir") or common or meshes
        textures = node.get("texturedir") or common or textures
        bare = node.get("strippath", "true" if bare else "false") == "true"
    return _Folders(meshes, textures, bare)


def _name(node: Node) -> str:
    return node.get("name") or PurePosixPath(node.get("file").replace("\\", "/")).stem


def _file(reading: Reading, node: Node, asked: str, main: str, what: str) -> Path | None:
    """The readable file that ``node`` names; None with a finding."""
    path = find(reading, asked, node, main)
    problem = path if isinstance(path, str) else reading.resources.unreadable(path, MESH_BYTES)
    if not problem and isinstance(path, Path):
        return path
    reading.note(node, f"{what} {shown(node.get('file'), 200)}: {problem}; a placeholder stands for it")
    return None


def _mesh(reading: Reading, node: Node, assets: Assets, folders: _Folders, main: str) -> Node:
    attributes = {key: value for key, value in node.attributes.items() if key != "file"}
    if not node.get("file").strip():
        for text in node.get("params").split():
            if abs(number(text, node, "params of <mesh>")) > _MAX_PARAMETER:
                raise fault(f"params of <mesh> hold {shown(text)}", node, f"at most {_MAX_PARAMETER:g}")
        assets.meshes[node.get("name")] = MeshSource("", None)
        if not node.get("vertex") and not node.get("builtin"):
            reading.note(
                node, f"mesh '{node.get('name')[:60]}' has no points that are read: a placeholder stands for it"
            )
            return replace(node, attributes={"name": node.get("name"), "vertex": _STAND_IN}, children=[])
        return node
    name = attributes["name"] = _name(node)
    path = _file(reading, node, folders.path(node.get("file"), folders.meshes), main, "mesh")
    if path is not None and path.suffix.lower() != ".msh":
        problem = mesh_problem(path)
        if problem:
            reading.note(node, f"mesh {shown(node.get('file'), 200)}: {problem}; a placeholder stands for it")
            path = None
    assets.meshes[name] = MeshSource(node.get("file"), path)
    if path is None or path.suffix.lower() not in _COMPILED:
        if path is not None:
            reading.note(node, f"mesh '{name}': MuJoCo reads no {path.suffix}; inertia is not taken from it")
        kept = {key: value for key, value in attributes.items() if key in ("name", "class")}
        return replace(node, attributes={**kept, "vertex": _STAND_IN, "scale": "1 1 1"})
    called = f"mesh{len(assets.data)}{path.suffix.lower()}"
    assets.data[called] = path.read_bytes()
    if sum(map(len, assets.data.values())) > ALL_BYTES:
        raise fault("the meshes are too large", node, f"at most {ALL_BYTES} bytes in all")
    attributes.pop("content_type", None)
    return replace(node, attributes={**attributes, "file": called})


def _terrain(reading: Reading, node: Node, assets: Assets, folders: _Folders, main: str) -> Node:
    name = _name(node)
    path = None
    if node.get("file").strip():
        path = _file(reading, node, folders.path(node.get("file"), folders.meshes), main, "terrain")
    assets.terrains[name] = MeshSource(node.get("file"), path)
    if not node.get("file").strip():
        rows, columns = (integer(node.get(key, "0"), node, f"{key} of <hfield>") for key in ("nrow", "ncol"))
        if rows * columns <= MAX_HEIGHTS:
            kept = {key: node.get(key) for key in ("size", "nrow", "ncol", "elevation") if node.get(key)}
            return replace(node, attributes={"name": name, **kept})
        reading.note(node, f"terrain '{name}' has {rows} x {columns} heights, more than {MAX_HEIGHTS}: left out")
        assets.terrains[name] = MeshSource(f"{rows} x {columns}", None)
    kept = {"name": name, "size": node.get("size"), "nrow": "2", "ncol": "2"}
    return replace(node, attributes={key: value for key, value in kept.items() if value})


def _skins(reading: Reading, document: Node, folders: _Folders) -> dict[str, Skin]:
    parts = [part for section in document.all("asset") for part in section.children]
    textures = {_name(node): node for node in parts if node.tag == "texture"}
    read: dict[str, Skin] = {}
    skins: dict[str, Skin] = {}
    for node in parts:
        if node.tag != "material":
            continue
        layers = [layer.get("texture") for layer in node.all("layer") if layer.get("role") == "rgb"]
        name = node.get("texture") or next(iter(layers), "")
        if not name:
            continue
        if name not in textures:
            reading.note(node, f"material '{node.get('name')}' names the texture {shown(name)}, which is not there")
            continue
        if name not in read:
            read[name] = _skin(reading, textures[name], folders, document.file)
        skins[node.get("name")] = read[name]
    return skins


def _skin(reading: Reading, node: Node, folders: _Folders, main: str) -> Skin:
    if node.get("file").strip():
        return Skin(_file(reading, node, folders.path(node.get("file"), folders.textures), main, "texture"))
    if node.get("builtin", "none") == "none":
        return Skin()
    reading.note(node, f"the pattern of texture '{_name(node)}' is not drawn: its mean colour taken")
    first = [number(text, node, "rgb1") for text in node.get("rgb1", "0.8 0.8 0.8").split()]
    second = [number(text, node, "rgb2") for text in node.get("rgb2", "0.5 0.5 0.5").split()]
    if node.get("builtin") == "flat":
        second = first
    if len(first) != 3 or len(second) != 3:
        raise fault(f"texture '{_name(node)}' has a colour that is none", node, "rgb1 and rgb2 of 3 numbers")
    r, g, b = (min(max((x + y) / 2, 0.0), 1.0) for x, y in zip(first, second, strict=True))
    return Skin(None, (r, g, b, 1.0))
