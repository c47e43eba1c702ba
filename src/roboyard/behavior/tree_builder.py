"""Builds a tree from a document: creates nodes, checks and connects ports, creates the blackboards of subtrees, and
mocks for unknown node types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from roboyard.behavior.basic_types import BOOL, SUCCESS, NodeStatus, NodeType, parse_float, parse_integer
from roboyard.behavior.blackboard import Blackboard
from roboyard.behavior.bt_version3 import AUTOREMAP_ATTRIBUTE, SHARED_BLACKBOARD_ATTRIBUTE
from roboyard.behavior.controls import SequenceNode
from roboyard.behavior.errors import InvalidTreeError, PortError, TreeNodeError, alternatives, bt_cpp_message
from roboyard.behavior.factory import NodeFactory
from roboyard.behavior.ports import Port, blackboard_pointer, inout_port, remapped_key
from roboyard.behavior.script import Script, parse_script
from roboyard.behavior.tree_file import TAGS_WITH_ID, TreeDocument, is_allowed_port
from roboyard.behavior.tree_node import (
    POSTCONDITIONS,
    PRECONDITIONS,
    ConditionNode,
    DecoratorNode,
    SyncActionNode,
    TimerQueue,
    TreeNode,
    TreeNodeConfig,
    WakeUpSignal,
)
from roboyard.description.xml import XmlNode as Element
from roboyard.errors import RoboyardError

MAX_DEPTH: Final = 200
"""Of nodes in one another, subtrees included."""
MAX_NODES: Final = 65_535
"""In a tree; BehaviorTree.CPP's numbers of nodes have 16 bits."""


@dataclass
class SubtreeInfo:
    """A tree within the tree: its ID, its path, its blackboard, and its nodes in the order of their creation."""

    tree_id: str
    path: str
    blackboard: Blackboard
    nodes: list[TreeNode]


class TreeBuilder:
    """Builds one tree of a document.

    Args:
        document: What was read.
        factory: What node types there are.
    """

    def __init__(self, document: TreeDocument, factory: NodeFactory) -> None:
        self._document = document
        self._factory = factory
        self._uid = 0
        self.timers = TimerQueue()
        self.wake_up = WakeUpSignal()
        self.subtrees: list[SubtreeInfo] = []

    def build(self, name: str, blackboard: Blackboard) -> TreeNode:
        """Return the root node of a tree.

        Raises:
            InvalidTreeError: a node, port, script or subtree is wrong.
        """
        return self._build_subtree(name, "", "", blackboard, (), None, 0)

    def _build_subtree(
        self,
        name: str,
        path: str,
        prefix: str,
        blackboard: Blackboard,
        enclosing_trees: tuple[str, ...],
        subtree_element: Element | None,
        depth: int,
    ) -> TreeNode:
        location = subtree_element.location if subtree_element is not None else self._document.files[0]
        if name in enclosing_trees:
            raise InvalidTreeError(
                f"Recursive behavior tree cycle detected: tree '{name}' references itself (directly or indirectly)",
                location=location,
                valid=" → ".join((*enclosing_trees[enclosing_trees.index(name) :], name)),
            )
        if name not in self._document.trees:
            valid = alternatives(name, self._document.trees)
            raise InvalidTreeError(f"Can't find a tree with name: {name}", location=location, valid=valid)
        element, version = self._document.trees[name]
        subtree = SubtreeInfo(name, path, blackboard, [])
        self.subtrees.append(subtree)
        return self._build_branch(element.children[0], version, subtree, prefix, (*enclosing_trees, name), depth)

    def _build_branch(
        self,
        element: Element,
        version: int,
        subtree: SubtreeInfo,
        prefix: str,
        enclosing_trees: tuple[str, ...],
        depth: int,
    ) -> TreeNode:
        if depth > MAX_DEPTH:
            raise InvalidTreeError(f"nodes are nested more than {MAX_DEPTH} deep", location=element.location)
        node = self._build_node(element, version, subtree, prefix)
        subtree.nodes.append(node)
        if node.node_type is not NodeType.SUBTREE and not self._is_subtree(element, version):
            for child in element.children:
                node.children.append(self._build_branch(child, version, subtree, prefix, enclosing_trees, depth + 1))
            return node
        if type(node).__name__ == "TestNode":
            return node
        node.children.append(self._build_subtree_root(node, element, version, subtree, enclosing_trees, depth))
        return node

    def _is_subtree(self, element: Element, version: int) -> bool:
        if element.tag == "SubTree" or (version == 3 and element.tag == "SubTreePlus"):
            return True
        return version == 3 and element.tag not in self._factory and element.tag in self._document.trees

    def _build_subtree_root(
        self,
        node: TreeNode,
        element: Element,
        version: int,
        subtree: SubtreeInfo,
        enclosing_trees: tuple[str, ...],
        depth: int,
    ) -> TreeNode:
        """Build the root of a subtree."""
        name = element.get("ID") or element.tag
        has_shared_blackboard = (
            version == 3
            and element.tag != "SubTreePlus"
            and _parse_bool(element.get(SHARED_BLACKBOARD_ATTRIBUTE, "false"), element)
        )
        blackboard = subtree.blackboard if has_shared_blackboard else Blackboard(subtree.blackboard)
        if not has_shared_blackboard:
            if version == 3:
                _connect_ports_version_3(blackboard, element)
            else:
                self._connect_ports(blackboard, element, name)
        path = f"{subtree.path}/" if subtree.path else ""
        path += element.attributes.get("name") or f"{name}::{node.uid}"
        if any(other.path == path for other in self.subtrees):
            raise InvalidTreeError(
                f"Duplicate SubTree path detected: '{path}'. Multiple SubTree nodes with the same 'name' attribute "
                "under the same parent are not allowed. Please use unique names or omit the 'name' attribute to "
                "auto-generate unique paths.",
                location=element.location,
            )
        return self._build_subtree(name, path, f"{path}/", blackboard, enclosing_trees, element, depth + 1)

    def _connect_ports(self, blackboard: Blackboard, element: Element, name: str) -> None:
        """Connect the blackboard of a subtree as its element says."""
        connections = {}
        for attribute, text in element.attributes.items():
            if attribute == "_autoremap":
                blackboard.autoremap = _parse_bool(text, element)
            elif is_allowed_port(attribute):
                connections[attribute] = f"{{{attribute}}}" if text == "{=}" else text
        for port, model in self._document.models.get(name, {}).items():
            if port in connections or blackboard.autoremap:
                continue
            if not model.default:
                raise InvalidTreeError(
                    f'In the <TreeNodesModel> the <Subtree ID="{name}"> is defining a mandatory port called [{port}], '
                    "but you are not remapping it",
                    location=element.location,
                    valid=f'{port}="{{key}}" or a constant',
                )
            connections[port] = model.default
        autoremap = blackboard.autoremap
        for internal, text in connections.items():
            external = blackboard_pointer(text)
            if external is not None:
                blackboard.remap(internal, external)
                continue
            blackboard.autoremap = False
            try:
                blackboard.set(internal, _parse_constant(text))
            finally:
                blackboard.autoremap = autoremap

    def _build_node(self, element: Element, version: int, subtree: SubtreeInfo, prefix: str) -> TreeNode:
        """Build one node without its children."""
        is_subtree = self._is_subtree(element, version)
        has_id = element.tag in TAGS_WITH_ID or (is_subtree and "ID" in element.attributes)
        if not has_id and "ID" in element.attributes:
            raise InvalidTreeError(f"Attribute [ID] is not allowed in <{element.tag}>", location=element.location)
        type_name = element.get("ID") if has_id else element.tag
        name = element.attributes.get("name", type_name)
        self._check_name(name, element)
        self._uid += 1
        if self._uid > MAX_NODES:
            raise InvalidTreeError(f"more than {MAX_NODES} nodes", location=element.location)
        path = prefix + name + (f"::{self._uid}" if name == type_name else "")
        registered_name = type_name
        if is_subtree:
            registered_name = element.tag if element.tag in ("SubTree", "SubTreePlus") else "SubTree"
        factory = self._factory
        node_class = factory.find(registered_name, version=version)
        if node_class is None:
            raise InvalidTreeError(
                f"{type_name} is not a registered node",
                location=element.location,
                valid=alternatives(type_name, factory.names),
            )
        ports = {} if is_subtree else self._read_ports(element, node_class)
        if not is_subtree:
            _declare_entries(subtree.blackboard, ports, node_class, element, path)
        inputs = (
            ports if is_subtree else {port: text for port, text in ports.items() if node_class.ports[port].is_input}
        )
        outputs = {} if is_subtree else {port: text for port, text in ports.items() if node_class.ports[port].is_output}
        _add_defaults({} if is_subtree else node_class.ports, inputs, outputs)
        config = TreeNodeConfig(
            registered_name,
            path,
            self._uid,
            element.location,
            subtree.blackboard,
            inputs,
            outputs,
            _parse_scripts(element, path) if version == 4 else {},
            {key: text for key, text in element.attributes.items() if key[:1] == "_"},
            factory.enums,
            self.wake_up if version == 4 else None,
            self.timers,
        )
        try:
            return factory.create(name, registered_name, config, version=version)
        except RoboyardError as error:
            location = f"{element.location}: <{type_name}>" + ("" if name == type_name else f" {path!r}")
            raise InvalidTreeError(
                error.message, location=location, valid=error.valid, bt_cpp_message=bt_cpp_message(error)
            ) from error

    def _read_ports(self, element: Element, node_class: type[TreeNode]) -> dict[str, str]:
        """Return the text of each port in XML, checked."""
        found = {}
        for attribute, text in element.attributes.items():
            if not is_allowed_port(attribute):
                continue
            port = node_class.ports.get(attribute)
            if port is None:
                line = element.line
                raise InvalidTreeError(
                    f"<{element.tag}> has no port [{attribute}]",
                    location=element.location,
                    valid=alternatives(attribute, node_class.ports),
                    bt_cpp_message=f"a port with name [{attribute}] is found in the XML (<{element.tag}>, "
                    f"line {line}) but not "
                    "in the providedPorts() of its registered node type.",
                )
            _check_constant(element, attribute, text, port)
            found[attribute] = text
        return found

    @staticmethod
    def _check_name(name: str, element: Element) -> None:
        character = next((c for c in name if (ord(c) < 32 and c not in "\t\n\r") or ord(c) == 127), None)
        if character is not None:
            message = f"Instance name '{name}' contains invalid control character (ASCII {ord(character)})"
            raise InvalidTreeError(
                message, location=element.location, bt_cpp_message=f"Error at line {element.line}: {message}"
            )


def _check_constant(element: Element, name: str, text: str, port: Port) -> None:
    """Check that a constant can be converted to the type of its port."""
    is_pointer = len(text) >= 3 and text[0] == "{" and text[-1] == "}"
    if is_pointer or port.type.parse is None or not port.type.is_strong:
        return
    try:
        port.type.parse(text)
    except (PortError, ValueError) as error:
        cpp_message = f'The port with name "{name}" and value "{text}" can not be converted to {port.type.name}'
        quoted_name = f" {element.get('name')!r}" if element.get("name") else ""
        location = f"{element.location}: <{element.tag}>{quoted_name}, port {name}"
        message = f"{text!r} is no {port.type.name}" + (f": {port.doc.removesuffix('.')}" if port.doc else "")
        raise InvalidTreeError(
            message, location=location, valid=bt_cpp_message(error), bt_cpp_message=cpp_message
        ) from error


def _declare_entries(
    blackboard: Blackboard, ports: dict[str, str], node_class: type[TreeNode], element: Element, path: str
) -> None:
    """Declare the entries that a node's ports refer to, with the ports' types."""
    for name, port in node_class.ports.items():
        text = ports.get(name)
        key = None if text is None else remapped_key(name, text)
        if key is None:
            continue
        entry = blackboard.entry(key)
        if entry is None:
            try:
                blackboard.create(key, port.type)
            except TreeNodeError as error:
                location = f"{element.location}: <{element.tag}> {path!r}, port {name}"
                raise InvalidTreeError(error.message, location=location) from error
        elif (
            entry.type.is_strong
            and port.type.is_strong
            and entry.type is not port.type
            and entry.type.name not in ("std::string", port.type.name)
        ):
            raise InvalidTreeError(
                f"The creation of the tree failed because the port [{key}] was initially created with type "
                f"[{entry.type.name}] and, later type [{port.type.name}] was used somewhere else.",
                location=f"{element.location}: <{element.tag}> {path!r}, port {name}",
                valid=f"an entry of type {port.type.name}",
            )


def _add_defaults(ports: Mapping[str, Port], inputs: dict[str, str], outputs: dict[str, str]) -> None:
    """Add the defaults of ports that XML omits."""
    for name, port in ports.items():
        if not port.default:
            continue
        if port.is_input:
            inputs.setdefault(name, port.default)
        if port.is_output and blackboard_pointer(port.default) is not None:
            outputs.setdefault(name, port.default)


def _parse_scripts(element: Element, path: str) -> dict[str, Script]:
    """Parse the pre- and postconditions of an element."""
    found = {}
    for attribute in (*PRECONDITIONS, *POSTCONDITIONS):
        text = element.attributes.get(attribute)
        if text is None:
            continue
        try:
            found[attribute] = parse_script(text)
        except TreeNodeError as error:
            raise InvalidTreeError(
                f"in the script {text!r}: {error.message}",
                location=f"{element.location}: <{element.tag}> {path!r}, {attribute}",
                bt_cpp_message=f'Error in the script "{text}"\n{error.bt_cpp_message}',
            ) from error
    return found


def _parse_bool(text: str, element: Element) -> bool:
    try:
        return bool(BOOL.read(text))
    except PortError as error:
        raise InvalidTreeError(
            f"{text!r} is not true or false", location=element.location, bt_cpp_message=error.bt_cpp_message
        ) from error


def _parse_constant(text: str) -> int | float | str:
    """Parse the constant of a subtree's port: a number if the whole text is one."""
    if not set(text) & set(".eE"):
        integer = parse_integer(text, full_match=True)
        if integer is not None:
            return integer
    number = parse_float(text, full_match=True)
    return text if number is None else number


def _connect_ports_version_3(blackboard: Blackboard, element: Element) -> None:
    """Connect the blackboard of a subtree as its element says in a file of version 3."""
    for attribute, text in element.attributes.items():
        if attribute in ("ID", "name", "_description", SHARED_BLACKBOARD_ATTRIBUTE):
            continue
        if element.tag != "SubTreePlus":
            blackboard.remap(attribute, text)
        elif attribute == AUTOREMAP_ATTRIBUTE:
            blackboard.autoremap = _parse_bool(text, element)
        elif (external := blackboard_pointer(text)) is not None:
            blackboard.remap(attribute, external)
        else:
            autoremap, blackboard.autoremap = blackboard.autoremap, False
            blackboard.set(attribute, text)
            blackboard.autoremap = autoremap


def _return_success(_node: TreeNode) -> NodeStatus:
    return SUCCESS


def _execute_child(node: TreeNode) -> NodeStatus:
    return node.children[0].execute_tick()


_BASE_CLASSES = {
    NodeType.ACTION: SyncActionNode,
    NodeType.CONDITION: ConditionNode,
    NodeType.DECORATOR: DecoratorNode,
    NodeType.CONTROL: SequenceNode,
}


def add_mocks(factory: NodeFactory, document: TreeDocument) -> NodeFactory:
    """Return a factory that also has a mock of each node type that a document uses or declares and that is not
    registered."""
    used: dict[str, list[Element]] = {name: [] for name in document.declared}
    for tree, version in document.trees.values():
        for element in tree.walk():
            name = element.get("ID") if element.tag in TAGS_WITH_ID else element.tag
            is_subtree = element.tag in ("BehaviorTree", "SubTree", "SubTreePlus")
            if (
                not is_subtree
                and not (version == 3 and name in document.trees)
                and factory.find(name, version=version) is None
            ):
                used.setdefault(name, []).append(element)
    result = factory.copy()
    for name, elements in used.items():
        if name not in result:
            result.register(_mock_class(name, elements, document.declared.get(name)), name)
    return result


def _mock_class(
    name: str, elements: list[Element], declared: tuple[NodeType, dict[str, Port]] | None
) -> type[TreeNode]:
    """Create the class of a mock of a node type, from its model or from its use."""
    ports = {
        port: inout_port(optional=True) for element in elements for port in element.attributes if is_allowed_port(port)
    }
    if declared is not None:
        node_type, model_ports = declared
        ports |= model_ports
    else:
        tagged_type = next((NodeType(element.tag) for element in elements if element.tag in TAGS_WITH_ID), None)
        max_children = max(len(element.children) for element in elements)
        node_type = tagged_type or (NodeType.ACTION, NodeType.DECORATOR, NodeType.CONTROL)[min(max_children, 2)]
    body: dict[str, object] = {"ports": ports, "__module__": __name__}
    if node_type is NodeType.DECORATOR:
        body["tick"] = _execute_child
    elif node_type is not NodeType.CONTROL:
        body["tick"] = _return_success
    return type(name, (_BASE_CLASSES[node_type],), body)
