"""From a document to a tree: nodes made, ports checked and connected, subtrees given their blackboards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from roboyard.behavior.blackboard import Blackboard
from roboyard.behavior.document import BY_ID, Document, allowed_port
from roboyard.behavior.errors import PortError, TreeError, TreeNodeError, words_of
from roboyard.behavior.factory import Factory
from roboyard.behavior.matching import choices
from roboyard.behavior.node import POST_CONDITIONS, PRE_CONDITIONS, TreeNode, TreeNodeConfig, WakeUp
from roboyard.behavior.ports import Port, pointer, remapped
from roboyard.behavior.script import Script, parse
from roboyard.behavior.status import Kind
from roboyard.behavior.timers import Timers
from roboyard.behavior.types import TRUTH, parse_integer, parse_real
from roboyard.behavior.version3 import AUTOREMAP, SHARED
from roboyard.description.xml import XmlNode as Element
from roboyard.errors import RoboyardError

MAX_DEPTH: Final = 200
"""Of nodes in one another, subtrees included."""
MAX_NODES: Final = 65_535
"""In a tree; BehaviorTree.CPP's numbers of nodes have 16 bits."""


@dataclass
class SubtreePart:
    """A tree within the tree: its ID, its path, its blackboard and its nodes in the order in which they were made."""

    tree: str
    path: str
    blackboard: Blackboard
    nodes: list[TreeNode]


class Builder:
    """Makes one tree of a document.

    Args:
        document: What was read.
        factory: What node types there are.
    """

    def __init__(self, document: Document, factory: Factory) -> None:
        self._document = document
        self._factory = factory
        self._uid = 0
        self.timers = Timers()
        self.wake_up = WakeUp()
        self.parts: list[SubtreePart] = []

    def build(self, name: str, blackboard: Blackboard) -> TreeNode:
        """The root node of a tree.

        Raises:
            TreeError: a node, port, script or subtree is wrong.
        """
        return self._subtree(name, "", "", blackboard, (), None, 0)

    def _subtree(
        self,
        name: str,
        path: str,
        prefix: str,
        blackboard: Blackboard,
        above: tuple[str, ...],
        asker: Element | None,
        depth: int,
    ) -> TreeNode:
        where = asker.location if asker is not None else self._document.files[0]
        if name in above:
            raise TreeError(
                f"Recursive behavior tree cycle detected: tree '{name}' references itself (directly or indirectly)",
                where=where,
                valid=" → ".join((*above[above.index(name) :], name)),
            )
        if name not in self._document.trees:
            valid = choices(name, self._document.trees)
            raise TreeError(f"Can't find a tree with name: {name}", where=where, valid=valid)
        element, version = self._document.trees[name]
        part = SubtreePart(name, path, blackboard, [])
        self.parts.append(part)
        return self._branch(element.children[0], version, part, prefix, (*above, name), depth)

    def _branch(
        self, element: Element, version: int, part: SubtreePart, prefix: str, above: tuple[str, ...], depth: int
    ) -> TreeNode:
        if depth > MAX_DEPTH:
            raise TreeError(f"nodes are nested more than {MAX_DEPTH} deep", where=element.location)
        node = self._node(element, version, part, prefix)
        part.nodes.append(node)
        if node.kind is not Kind.SUBTREE and not self._is_subtree(element, version):
            for child in element.children:
                node.children.append(self._branch(child, version, part, prefix, above, depth + 1))
            return node
        if type(node).__name__ == "TestNode":
            return node
        node.children.append(self._inner(node, element, version, part, above, depth))
        return node

    def _is_subtree(self, element: Element, version: int) -> bool:
        if element.tag == "SubTree" or (version == 3 and element.tag == "SubTreePlus"):
            return True
        return version == 3 and element.tag not in self._factory and element.tag in self._document.trees

    def _inner(
        self, node: TreeNode, element: Element, version: int, part: SubtreePart, above: tuple[str, ...], depth: int
    ) -> TreeNode:
        """The root of a subtree."""
        name = element.get("ID") or element.tag
        shared = version == 3 and element.tag != "SubTreePlus" and _truth(element.get(SHARED, "false"), element)
        board = part.blackboard if shared else Blackboard(part.blackboard)
        if not shared:
            if version == 3:
                _connect_3(board, element)
            else:
                self._connect(board, element, name)
        path = f"{part.path}/" if part.path else ""
        path += element.attributes.get("name") or f"{name}::{node.uid}"
        if any(other.path == path for other in self.parts):
            raise TreeError(
                f"Duplicate SubTree path detected: '{path}'. Multiple SubTree nodes with the same 'name' attribute "
                "under the same parent are not allowed. Please use unique names or omit the 'name' attribute to "
                "auto-generate unique paths.",
                where=element.location,
            )
        return self._subtree(name, path, f"{path}/", board, above, element, depth + 1)

    def _connect(self, board: Blackboard, element: Element, name: str) -> None:
        """Give a subtree's blackboard what its element says."""
        connections = {}
        for attribute, text in element.attributes.items():
            if attribute == "_autoremap":
                board.autoremap = _truth(text, element)
            elif allowed_port(attribute):
                connections[attribute] = f"{{{attribute}}}" if text == "{=}" else text
        for port, model in self._document.models.get(name, {}).items():
            if port in connections or board.autoremap:
                continue
            if not model.default:
                raise TreeError(
                    f'In the <TreeNodesModel> the <Subtree ID="{name}"> is defining a mandatory port called [{port}], '
                    "but you are not remapping it",
                    where=element.location,
                    valid=f'{port}="{{key}}" or a constant',
                )
            connections[port] = model.default
        autoremap = board.autoremap
        for inside, text in connections.items():
            outside = pointer(text)
            if outside is not None:
                board.remap(inside, outside)
                continue
            board.autoremap = False
            try:
                board.set(inside, _constant(text))
            finally:
                board.autoremap = autoremap

    def _node(self, element: Element, version: int, part: SubtreePart, prefix: str) -> TreeNode:
        """One node, without its children."""
        subtree = self._is_subtree(element, version)
        by_id = element.tag in BY_ID or (subtree and "ID" in element.attributes)
        if not by_id and "ID" in element.attributes:
            raise TreeError(f"Attribute [ID] is not allowed in <{element.tag}>", where=element.location)
        type_name = element.get("ID") if by_id else element.tag
        name = element.attributes.get("name", type_name)
        self._check_name(name, element)
        self._uid += 1
        if self._uid > MAX_NODES:
            raise TreeError(f"more than {MAX_NODES} nodes", where=element.location)
        path = prefix + name + (f"::{self._uid}" if name == type_name else "")
        registered = type_name
        if subtree:
            registered = element.tag if element.tag in ("SubTree", "SubTreePlus") else "SubTree"
        factory = self._factory
        kind = factory.find(registered, version=version)
        if kind is None:
            raise TreeError(
                f"{type_name} is not a registered node", where=element.location, valid=choices(type_name, factory.names)
            )
        ports = {} if subtree else self._ports(element, kind)
        if not subtree:
            _declare(part.blackboard, ports, kind, element, path)
        inputs = ports if subtree else {port: text for port, text in ports.items() if kind.ports[port].reads}
        outputs = {} if subtree else {port: text for port, text in ports.items() if kind.ports[port].writes}
        _defaults({} if subtree else kind.ports, inputs, outputs)
        config = TreeNodeConfig(
            registered,
            path,
            self._uid,
            element.location,
            part.blackboard,
            inputs,
            outputs,
            _scripts(element, path) if version == 4 else {},
            {key: text for key, text in element.attributes.items() if key[:1] == "_"},
            factory.enums,
            self.wake_up if version == 4 else None,
            self.timers,
        )
        try:
            return factory.make(name, registered, config, version=version)
        except RoboyardError as error:
            where = f"{element.location}: <{type_name}>" + ("" if name == type_name else f" {path!r}")
            raise TreeError(error.message, where=where, valid=error.valid, words=words_of(error)) from error

    def _ports(self, element: Element, kind: type[TreeNode]) -> dict[str, str]:
        """The text of each port in XML, checked."""
        found = {}
        for attribute, text in element.attributes.items():
            if not allowed_port(attribute):
                continue
            port = kind.ports.get(attribute)
            if port is None:
                line = element.line
                raise TreeError(
                    f"<{element.tag}> has no port [{attribute}]",
                    where=element.location,
                    valid=choices(attribute, kind.ports),
                    words=f"a port with name [{attribute}] is found in the XML (<{element.tag}>, line {line}) but not "
                    "in the providedPorts() of its registered node type.",
                )
            _check_constant(element, attribute, text, port)
            found[attribute] = text
        return found

    @staticmethod
    def _check_name(name: str, element: Element) -> None:
        bad = next((c for c in name if (ord(c) < 32 and c not in "\t\n\r") or ord(c) == 127), None)
        if bad is not None:
            what = f"Instance name '{name}' contains invalid control character (ASCII {ord(bad)})"
            raise TreeError(what, where=element.location, words=f"Error at line {element.line}: {what}")


def _check_constant(element: Element, name: str, text: str, port: Port) -> None:
    """Whether a constant can be converted to its port's type."""
    entry = len(text) >= 3 and text[0] == "{" and text[-1] == "}"
    if entry or port.type.parse is None or not port.type.strong:
        return
    try:
        port.type.parse(text)
    except (PortError, ValueError) as error:
        words = f'The port with name "{name}" and value "{text}" can not be converted to {port.type.name}'
        called = f" {element.get('name')!r}" if element.get("name") else ""
        where = f"{element.location}: <{element.tag}>{called}, port {name}"
        what = f"{text!r} is no {port.type.name}" + (f", {port.doc}" if port.doc else "")
        raise TreeError(what, where=where, valid=words_of(error), words=words) from error


def _declare(board: Blackboard, ports: dict[str, str], kind: type[TreeNode], element: Element, path: str) -> None:
    """Declare the entries that a node's ports name, with the ports' types."""
    for name, port in kind.ports.items():
        text = ports.get(name)
        key = None if text is None else remapped(name, text)
        if key is None:
            continue
        entry = board.entry(key)
        if entry is None:
            try:
                board.create(key, port.type)
            except TreeNodeError as error:
                where = f"{element.location}: <{element.tag}> {path!r}, port {name}"
                raise TreeError(error.message, where=where) from error
        elif (
            entry.type.strong
            and port.type.strong
            and entry.type is not port.type
            and entry.type.name not in ("std::string", port.type.name)
        ):
            raise TreeError(
                f"The creation of the tree failed because the port [{key}] was initially created with type "
                f"[{entry.type.name}] and, later type [{port.type.name}] was used somewhere else.",
                where=f"{element.location}: <{element.tag}> {path!r}, port {name}",
                valid=f"an entry of type {port.type.name}",
            )


def _defaults(ports: Mapping[str, Port], inputs: dict[str, str], outputs: dict[str, str]) -> None:
    """Fill in what XML leaves out."""
    for name, port in ports.items():
        if not port.default:
            continue
        if port.reads:
            inputs.setdefault(name, port.default)
        if port.writes and pointer(port.default) is not None:
            outputs.setdefault(name, port.default)


def _scripts(element: Element, path: str) -> dict[str, Script]:
    """The pre- and post-conditions of an element."""
    found = {}
    for attribute in (*PRE_CONDITIONS, *POST_CONDITIONS):
        text = element.attributes.get(attribute)
        if text is None:
            continue
        try:
            found[attribute] = parse(text)
        except TreeNodeError as error:
            raise TreeError(
                f"in the script {text!r}: {error.message}",
                where=f"{element.location}: <{element.tag}> {path!r}, {attribute}",
                words=f'Error in the script "{text}"\n{error.words}',
            ) from error
    return found


def _truth(text: str, element: Element) -> bool:
    try:
        return bool(TRUTH.read(text))
    except PortError as error:
        raise TreeError(f"{text!r} is not true or false", where=element.location, words=error.words) from error


def _constant(text: str) -> int | float | str:
    """A subtree's constant: a number if it is one all over."""
    if not set(text) & set(".eE"):
        whole = parse_integer(text, whole=True)
        if whole is not None:
            return whole
    number = parse_real(text, whole=True)
    return text if number is None else number


def _connect_3(board: Blackboard, element: Element) -> None:
    """Give a subtree's blackboard what its element says in a file of version 3."""
    for attribute, text in element.attributes.items():
        if attribute in ("ID", "name", "_description", SHARED):
            continue
        if element.tag != "SubTreePlus":
            board.remap(attribute, text)
        elif attribute == AUTOREMAP:
            board.autoremap = _truth(text, element)
        elif (outside := pointer(text)) is not None:
            board.remap(attribute, outside)
        else:
            autoremap, board.autoremap = board.autoremap, False
            board.set(attribute, text)
            board.autoremap = autoremap
