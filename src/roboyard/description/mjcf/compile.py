"""Compilation of MJCF with MuJoCo: mapping of elements to file and line, and isolation of faults."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

from roboyard.description.mjcf.assets import Assets, collect_assets
from roboyard.description.mjcf.sanitize import expand_includes, sanitize
from roboyard.description.names import make_unique_name
from roboyard.description.reader_context import ReaderContext
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import error_at
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3

if TYPE_CHECKING:
    import mujoco


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
