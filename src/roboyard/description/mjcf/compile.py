"""Compilation of MJCF with MuJoCo: assets, mapping of elements to file and line, and isolation of faults.

Meshes, terrains and textures are found and read here; MuJoCo gets their bytes, and opens no file.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

from roboyard.description.meshes.files import mesh_problem
from roboyard.description.mjcf.sanitize import expand_includes, find_included_file, sanitize
from roboyard.description.model import Rgba
from roboyard.description.names import make_unique_name
from roboyard.description.reader_context import ReaderContext
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import error_at, parse_integer, parse_number, quote
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3

if TYPE_CHECKING:
    import mujoco

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


def to_xml_with_lines(root: XmlNode) -> tuple[str, list[XmlNode]]:
    """Convert to text; also return, for each of its lines (from index 0), the node on that line."""
    lines: list[str] = []
    nodes: list[XmlNode] = []

    def append_line(line: str, node: XmlNode) -> None:
        lines.append(line)
        nodes.append(node)

    stack: list[tuple[XmlNode, bool]] = [(root, False)]
    while stack:
        node, closing = stack.pop()
        if closing:
            append_line(f"</{node.tag}>", node)
            continue
        attributes = "".join(f" {key}={quoteattr(value)}" for key, value in node.attributes.items())
        append_line(f"<{node.tag}{attributes}{'>' if node.children else '/>'}", node)
        if node.children:
            stack.append((node, True))
            stack += [(child, False) for child in reversed(node.children)]
    return "\n".join(lines) + "\n", nodes


MAX_FAULTS = 50
"""Maximum number of faults of one document; each costs a compilation."""


class FaultIsolator:
    """Document from which faulty elements are removed one by one.

    Args:
        root: The document; it is changed in place.
    """

    def __init__(self, root: XmlNode) -> None:
        self._root = root
        self._n_remaining = MAX_FAULTS
        self._altered: set[int] = set()
        self._removed_names: set[str] = set()

    def is_consequence(self, node: XmlNode, message: str) -> bool:
        """Return whether a fault at `node` may only follow from removed elements, or from elements that `message`
        names.
        """
        return id(node) in self._altered or any(f"'{name}'" in message for name in self._removed_names)

    def remove(self, node: XmlNode) -> bool:
        """Remove the faulty `node`; of a body first only its inertia. Return False if that is impossible.

        Otherwise the elements below a body would never be checked.
        """
        ancestors = self._ancestors_of(node)
        self._n_remaining -= 1
        if not ancestors or self._n_remaining < 0:
            return False
        if node.tag == "body" and id(node) not in self._altered:
            inertial = XmlNode("inertial", {"pos": "0 0 0", "mass": "1", "diaginertia": "1 1 1"}, node.file, node.line)
            node.children = [inertial, *(child for child in node.children if child.tag != "inertial")]
            self._altered.add(id(node))
            return True
        ancestors[-1].children = [child for child in ancestors[-1].children if child is not node]
        self._altered.update(map(id, ancestors))
        self._removed_names.update(one.get("class" if one.tag == "default" else "name") for one in node.walk())
        self._removed_names.discard("")
        return True

    def _ancestors_of(self, node: XmlNode) -> list[XmlNode]:
        """Return the ancestors of `node` from the root; empty for the root and for nodes outside the document."""
        stack: list[tuple[XmlNode, list[XmlNode]]] = [(self._root, [])]
        while stack:
            current, ancestors = stack.pop()
            if current is node:
                return ancestors
            stack += [(child, [*ancestors, current]) for child in current.children]
        return []


MAX_BODIES = 20_000
_LINE_NUMBER = re.compile(r"line (\d+)\s*$")
_ELEMENT_NAME = re.compile(r"Element name '([^']+)'")
_MAX_COORDINATE = 1e9  # [m]


@dataclass(slots=True)
class CompiledMjcf:
    """Compiled document.

    Attributes:
        root: The ``<mujoco>``, includes expanded.
        spec: MuJoCo's specification.
        model: MuJoCo's compiled model.
        assets: Meshes, terrains, textures.
        bodies: Name of each body; the world is "world".
        joints: Name of each joint.
        body_nodes: Element of each body.
        joint_nodes: Element of each joint.
        geom_nodes: Element of each geom.
        sensor_nodes: Element of each sensor.
        actuator_nodes: Element of each actuator.
        tendon_nodes: Element of each tendon.
        equality_nodes: Element of each equality.
    """

    root: XmlNode
    spec: Any
    model: mujoco.MjModel
    assets: Assets
    bodies: list[str]
    joints: list[str]
    body_nodes: list[XmlNode]
    joint_nodes: list[XmlNode]
    geom_nodes: list[XmlNode]
    sensor_nodes: list[XmlNode]
    actuator_nodes: list[XmlNode]
    tendon_nodes: list[XmlNode]
    equality_nodes: list[XmlNode]

    def pose(self, body: int) -> SE3:
        """Return the pose of a body in its parent, with every joint at the position drawn in the file."""
        return SE3(self.model.body_quat[body], self.model.body_pos[body])

    def joints_of(self, body: int) -> range:
        """Return the indices of the joints that move a body."""
        first, count = int(self.model.body_jntadr[body]), int(self.model.body_jntnum[body])
        return range(first, first + count) if count else range(0)

    def geoms_of(self, body: int) -> range:
        """Return the indices of a body's geoms."""
        first, count = int(self.model.body_geomadr[body]), int(self.model.body_geomnum[body])
        return range(first, first + count) if count else range(0)


def compile_document(context: ReaderContext, root: XmlNode) -> CompiledMjcf:
    """Compile a document.

    Raises:
        DescriptionError: MuJoCo rejects it; with its reason, file and line.
    """
    import mujoco

    complete_document = expand_includes(context, root)
    sanitized, assets = collect_assets(context, complete_document, sanitize(context, complete_document))
    isolator = FaultIsolator(sanitized)
    while True:
        text, nodes = to_xml_with_lines(sanitized)
        try:
            with _collect_mujoco_warnings(context, root):
                spec, model = _compile_spec(text, assets.data, root)
            break
        except (ValueError, mujoco.FatalError) as error:
            message = str(error)
        rejection, node = _make_rejection_error(message, nodes, root)
        if not context.collect_errors:
            raise rejection
        if not isolator.is_consequence(node, message):
            context.errors.append(rejection)
        if not isolator.remove(node):
            break
    context.raise_collected_error()  # the compiled document differs from the file
    if not (
        abs(model.body_pos).max(initial=0.0) < _MAX_COORDINATE
        and abs(model.geom_pos).max(initial=0.0) < _MAX_COORDINATE
    ):
        raise error_at("a body or geom is too far away", root, f"coordinates below {_MAX_COORDINATE:g} m")
    return CompiledMjcf(
        complete_document,
        spec,
        model,
        assets,
        _unique_names("body", spec.bodies),
        _unique_names("joint", spec.joints),
        _element_nodes(spec.bodies, nodes, root),
        _element_nodes(spec.joints, nodes, root),
        _element_nodes(spec.geoms, nodes, root),
        _element_nodes(spec.sensors, nodes, root),
        _element_nodes(spec.actuators, nodes, root),
        _element_nodes(spec.tendons, nodes, root),
        _element_nodes(spec.equalities, nodes, root),
    )


def _compile_spec(text: str, data: dict[str, bytes], root: XmlNode) -> tuple[Any, mujoco.MjModel]:
    import mujoco

    spec = mujoco.MjSpec.from_string(text, assets=data)
    spec.compiler.fusestatic = False  # links that are fixed to another keep their names
    spec.compiler.discardvisual = False
    spec.compiler.LRopt.mode = mujoco.mjtLRMode.mjLRMODE_NONE  # would simulate each muscle
    if len(spec.bodies) > MAX_BODIES:
        raise error_at(f"the document has {len(spec.bodies)} bodies", root, f"at most {MAX_BODIES}")
    return spec, spec.compile()


@contextmanager
def _collect_mujoco_warnings(context: ReaderContext, root: XmlNode) -> Iterator[None]:
    """Convert MuJoCo's warnings to reader warnings, instead of lines on the terminal and in MUJOCO_LOG.TXT."""
    import mujoco

    previous_config, quiet_config = mujoco.MjLogConfig.get(), mujoco.MjLogConfig.get()
    quiet_config.logto_console, quiet_config.logto_file = 0, 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        quiet_config.set()
        try:
            yield
        finally:
            previous_config.set()
    for message in dict.fromkeys(str(one.message).partition("\n")[0][:300] for one in caught):
        context.warn(root, message)


def _unique_names(kind: str, elements: Sequence[Any]) -> list[str]:
    names = [one.name for one in sorted(elements, key=lambda one: int(one.id))]
    used_names = {name: 0 for name in names if name}
    return [name or make_unique_name(f"{kind}_{index}", used_names) for index, name in enumerate(names)]


def _element_nodes(elements: Sequence[Any], nodes: list[XmlNode], root: XmlNode) -> list[XmlNode]:
    element_nodes = []
    for element in sorted(elements, key=lambda one: int(one.id)):
        match = _LINE_NUMBER.search(element.info or "")
        line = int(match[1]) if match else 0
        element_nodes.append(nodes[line - 1] if 0 < line <= len(nodes) else root)
    return element_nodes


def _make_rejection_error(message: str, nodes: list[XmlNode], root: XmlNode) -> tuple[DescriptionError, XmlNode]:
    """Return MuJoCo's message on one line, and the element that it refers to."""
    match = _LINE_NUMBER.search(message.strip())
    line = int(match[1]) if match else 0
    node = nodes[line - 1] if 0 < line <= len(nodes) else root
    reason, _, details = message.strip().partition("\n")
    for prefix in ("XML Error: ", "Error: "):
        reason = reason.removeprefix(prefix)
    name_match = _ELEMENT_NAME.search(details)
    name = name_match[1] if name_match else node.get("name")
    reason = reason.replace("mjMINVAL", "1e-15").replace("Schema violation: ", "")
    return error_at(f"<{node.tag}>{f' {name!r}' if name else ''}: {reason[:300]}", node), node
