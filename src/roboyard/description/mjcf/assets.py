"""Meshes, terrains and textures of MJCF: resolved by this reader and given to the compiler as bytes, never opened by
it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from roboyard.description.meshes.files import mesh_problem
from roboyard.description.mjcf.sanitize import find_included_file
from roboyard.description.model import Rgba
from roboyard.description.reader_context import ReaderContext
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import error_at, parse_integer, parse_number, quote

MAX_MESH_BYTES = 64 * 2**20
MAX_TOTAL_MESH_BYTES = 256 * 2**20
"""Limits of one mesh and of all, lower than for other formats: all are in memory while MuJoCo compiles."""
MAX_INLINE_HEIGHTS = 4_200_000
"""Maximum number of terrain heights in a document."""
_COMPILED_SUFFIXES = (".stl", ".obj", ".msh")
_PLACEHOLDER_VERTICES = ".05 0 0 -.05 0 0 0 .05 0 0 -.05 0 0 0 .05 0 0 -.05"
_MAX_MESH_PARAMETER = 100.0
_WHITE: Rgba = (1.0, 1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class MeshSource:
    """Source of a ``<mesh>``. `uri` is empty if its vertices are in the document."""

    uri: str
    file: Path | None


@dataclass(frozen=True, slots=True)
class TextureSource:
    """Texture of a material: an image, or the mean color of a built-in pattern."""

    image_file: Path | None = None
    mean_color: Rgba = _WHITE


@dataclass(slots=True)
class Assets:
    """Content of the document's ``<asset>`` sections, by name.

    Attributes:
        data: Bytes of mesh files by the name that the compiler uses.
        meshes: Sources by mesh name.
        terrains: Image (or None) by height field name, with the URI.
        textures: Textures by material name.
    """

    data: dict[str, bytes] = field(default_factory=dict)
    meshes: dict[str, MeshSource] = field(default_factory=dict)
    terrains: dict[str, MeshSource] = field(default_factory=dict)
    textures: dict[str, TextureSource] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _AssetFolders:
    """File settings of ``<compiler>``: folders, and whether only the last part of file names counts."""

    meshes: str
    textures: str
    strip_path: bool

    def path(self, name: str, folder: str) -> str:
        name = name.strip().replace("\\", "/")
        name = PurePosixPath(name).name if self.strip_path else name
        return f"{folder.rstrip('/')}/{name}" if folder else name


def collect_assets(context: ReaderContext, document: XmlNode, sanitized: XmlNode) -> tuple[XmlNode, Assets]:
    """Make meshes and terrains safe to compile; return the document and the assets.

    Args:
        context: Receives warnings, finds files.
        document: The complete document, includes expanded.
        sanitized: The part of it that is compiled.

    Raises:
        DescriptionError: The meshes are too large in total.
    """
    folders = _read_folders(document)
    assets = Assets(textures=_read_textures(context, document, folders))
    children = []
    for section in sanitized.children:
        if section.tag == "asset":
            elements = []
            for element in section.children:
                if element.tag == "mesh":
                    element = _prepare_mesh(context, element, assets, folders, sanitized.file)
                elif element.tag == "hfield":
                    element = _prepare_terrain(context, element, assets, folders, sanitized.file)
                elements.append(element)
            section = replace(section, children=elements)
        children.append(section)
    return replace(sanitized, children=children), assets


def _read_folders(document: XmlNode) -> _AssetFolders:
    meshes = textures = ""
    strip_path = False
    for node in document.children_with_tag("compiler"):
        asset_folder = node.get("assetdir")
        meshes = node.get("meshdir") or asset_folder or meshes
        textures = node.get("texturedir") or asset_folder or textures
        strip_path = node.get("strippath", "true" if strip_path else "false") == "true"
    return _AssetFolders(meshes, textures, strip_path)


def _asset_name(node: XmlNode) -> str:
    return node.get("name") or PurePosixPath(node.get("file").replace("\\", "/")).stem


def _find_file(context: ReaderContext, node: XmlNode, file_name: str, main_file: str, asset_kind: str) -> Path | None:
    """Return the readable file that `node` names; None with a warning."""
    path = find_included_file(context, file_name, node, main_file)
    problem = path if isinstance(path, str) else context.resources.explain_unreadable(path, MAX_MESH_BYTES)
    if not problem and isinstance(path, Path):
        return path
    context.warn(node, f"{asset_kind} {quote(node.get('file'), 200)}: {problem}; a placeholder is used")
    return None


def _prepare_mesh(
    context: ReaderContext, node: XmlNode, assets: Assets, folders: _AssetFolders, main_file: str
) -> XmlNode:
    attributes = {key: value for key, value in node.attributes.items() if key != "file"}
    if not node.get("file").strip():
        for text in node.get("params").split():
            if abs(parse_number(text, node, "params of <mesh>")) > _MAX_MESH_PARAMETER:
                raise error_at(f"params of <mesh> are {quote(text)}", node, f"at most {_MAX_MESH_PARAMETER:g}")
        assets.meshes[node.get("name")] = MeshSource("", None)
        if not node.get("vertex") and not node.get("builtin"):
            context.warn(node, f"mesh '{node.get('name')[:60]}' has no supported vertices: a placeholder is used")
            return replace(node, attributes={"name": node.get("name"), "vertex": _PLACEHOLDER_VERTICES}, children=[])
        return node
    name = attributes["name"] = _asset_name(node)
    path = _find_file(context, node, folders.path(node.get("file"), folders.meshes), main_file, "mesh")
    if path is not None and path.suffix.lower() != ".msh":
        problem = mesh_problem(path)
        if problem:
            context.warn(node, f"mesh {quote(node.get('file'), 200)}: {problem}; a placeholder is used")
            path = None
    assets.meshes[name] = MeshSource(node.get("file"), path)
    if path is None or path.suffix.lower() not in _COMPILED_SUFFIXES:
        if path is not None:
            context.warn(
                node, f"mesh '{name}': MuJoCo does not support {path.suffix}; it does not contribute to the inertia"
            )
        placeholder_attributes = {key: value for key, value in attributes.items() if key in ("name", "class")}
        return replace(node, attributes={**placeholder_attributes, "vertex": _PLACEHOLDER_VERTICES, "scale": "1 1 1"})
    data_name = f"mesh{len(assets.data)}{path.suffix.lower()}"
    assets.data[data_name] = path.read_bytes()
    if sum(map(len, assets.data.values())) > MAX_TOTAL_MESH_BYTES:
        raise error_at("the meshes are too large", node, f"at most {MAX_TOTAL_MESH_BYTES} bytes in total")
    attributes.pop("content_type", None)
    return replace(node, attributes={**attributes, "file": data_name})


def _prepare_terrain(
    context: ReaderContext, node: XmlNode, assets: Assets, folders: _AssetFolders, main_file: str
) -> XmlNode:
    name = _asset_name(node)
    path = None
    if node.get("file").strip():
        path = _find_file(context, node, folders.path(node.get("file"), folders.meshes), main_file, "terrain")
    assets.terrains[name] = MeshSource(node.get("file"), path)
    if not node.get("file").strip():
        rows, columns = (parse_integer(node.get(key, "0"), node, f"{key} of <hfield>") for key in ("nrow", "ncol"))
        if rows * columns <= MAX_INLINE_HEIGHTS:
            terrain_attributes = {key: node.get(key) for key in ("size", "nrow", "ncol", "elevation") if node.get(key)}
            return replace(node, attributes={"name": name, **terrain_attributes})
        context.warn(node, f"terrain '{name}' has {rows} x {columns} heights, more than {MAX_INLINE_HEIGHTS}: ignored")
        assets.terrains[name] = MeshSource(f"{rows} x {columns}", None)
    terrain_attributes = {"name": name, "size": node.get("size"), "nrow": "2", "ncol": "2"}
    return replace(node, attributes={key: value for key, value in terrain_attributes.items() if value})


def _read_textures(context: ReaderContext, document: XmlNode, folders: _AssetFolders) -> dict[str, TextureSource]:
    elements = [element for section in document.children_with_tag("asset") for element in section.children]
    texture_nodes = {_asset_name(node): node for node in elements if node.tag == "texture"}
    sources: dict[str, TextureSource] = {}
    textures: dict[str, TextureSource] = {}
    for node in elements:
        if node.tag != "material":
            continue
        layer_names = [layer.get("texture") for layer in node.children_with_tag("layer") if layer.get("role") == "rgb"]
        name = node.get("texture") or next(iter(layer_names), "")
        if not name:
            continue
        if name not in texture_nodes:
            context.warn(node, f"material '{node.get('name')}' has the unknown texture {quote(name)}")
            continue
        if name not in sources:
            sources[name] = _read_texture(context, texture_nodes[name], folders, document.file)
        textures[node.get("name")] = sources[name]
    return textures


def _read_texture(context: ReaderContext, node: XmlNode, folders: _AssetFolders, main_file: str) -> TextureSource:
    if node.get("file").strip():
        return TextureSource(
            _find_file(context, node, folders.path(node.get("file"), folders.textures), main_file, "texture")
        )
    if node.get("builtin", "none") == "none":
        return TextureSource()
    context.warn(node, f"the pattern of texture '{_asset_name(node)}' is not drawn: its mean color is used")
    first_color = [parse_number(text, node, "rgb1") for text in node.get("rgb1", "0.8 0.8 0.8").split()]
    second_color = [parse_number(text, node, "rgb2") for text in node.get("rgb2", "0.5 0.5 0.5").split()]
    if node.get("builtin") == "flat":
        second_color = first_color
    if len(first_color) != 3 or len(second_color) != 3:
        raise error_at(f"texture '{_asset_name(node)}' has an invalid color", node, "rgb1 and rgb2 of 3 numbers")
    r, g, b = (min(max((x + y) / 2, 0.0), 1.0) for x, y in zip(first_color, second_color, strict=True))
    return TextureSource(None, (r, g, b, 1.0))
