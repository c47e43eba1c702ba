"""Files of behavior trees: XML is read with its includes and checked as by BehaviorTree.CPP, before any node is
created."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from roboyard.behavior.basic_types import NodeType
from roboyard.behavior.bt_version3 import (
    AUTOREMAP_ATTRIBUTE,
    SHARED_BLACKBOARD_ATTRIBUTE,
    VERSION_3_TYPES,
    VERSION_4_TYPES,
)
from roboyard.behavior.errors import InvalidTreeError, alternatives
from roboyard.behavior.factory import NodeFactory
from roboyard.behavior.ports import INOUT, INPUT, OUTPUT, Port
from roboyard.behavior.tree_node import POSTCONDITIONS, PRECONDITIONS
from roboyard.description.xml import XmlNode as Element
from roboyard.description.xml import parse_xml
from roboyard.errors import DescriptionError

TAGS_WITH_ID: Final = ("Action", "Condition", "Control", "Decorator", "SubTree")
"""Tags that name their node's type in the attribute ID."""
RESERVED_ATTRIBUTES: Final = frozenset({*PRECONDITIONS, *POSTCONDITIONS, "name", "ID", "_autoremap"})
_FORBIDDEN_CHARACTERS: Final = " \t\n\r<>&\"'/\\:*?|."
MAX_FILES: Final = 200
"""Read for one tree."""


@dataclass
class TreeDocument:
    """The content of the files of a tree.

    Attributes:
        trees: Element of each ``BehaviorTree`` by its ID, and the version of its file.
        models: Ports of subtrees, by ID, from a ``TreeNodesModel``.
        declared: Type and ports of other nodes, from a ``TreeNodesModel``.
        main_tree_id: Tree that the first file executes, or "".
        files: Files that were read, in order.
        local_trees: Trees of the first file.
    """

    trees: dict[str, tuple[Element, int]] = field(default_factory=dict)
    models: dict[str, dict[str, Port]] = field(default_factory=dict)
    declared: dict[str, tuple[NodeType, dict[str, Port]]] = field(default_factory=dict)
    main_tree_id: str = ""
    files: list[str] = field(default_factory=list)
    local_trees: list[str] = field(default_factory=list)
    _unnamed: int = 0

    def main_tree(self) -> str:
        """Return the name of the tree to execute.

        Raises:
            InvalidTreeError: several come into question.
        """
        if self.main_tree_id:
            return self.main_tree_id
        if len(self.trees) == 1:
            return next(iter(self.trees))
        if len(self.local_trees) == 1:
            return self.local_trees[0]
        raise InvalidTreeError(
            "[main_tree_to_execute] was not specified correctly",
            location=self.files[0],
            valid='main_tree_to_execute="…" at <root>; ' + alternatives("", self.trees),
        )


def read_document(
    text: str | bytes, source: str, folder: Path | None, factory: NodeFactory, *, uses_mocks: bool
) -> TreeDocument:
    """Read the trees of a text and of the files that it includes.

    Args:
        text: The XML.
        source: Its name in messages.
        folder: Where included files are; None if it may include none.
        factory: What node types there are.
        uses_mocks: Whether node types that are declared or used, and not registered, are let through.

    Raises:
        InvalidTreeError: it is no XML, or breaks a rule; says file, line, node and what would be right.
    """
    document = TreeDocument()
    _read(document, text, source, folder, factory, uses_mocks=uses_mocks, including_files=())
    return document


def _read(
    document: TreeDocument,
    text: str | bytes,
    source: str,
    folder: Path | None,
    factory: NodeFactory,
    *,
    uses_mocks: bool,
    including_files: tuple[Path, ...],
) -> None:
    document.files.append(source)
    if len(document.files) > MAX_FILES:
        raise InvalidTreeError(f"more than {MAX_FILES} files are included", location=source)
    try:
        root, _findings = parse_xml(text, source)
    except DescriptionError as error:
        bt_cpp_message = f"Error parsing the XML: {error.message}"
        raise InvalidTreeError(
            error.message,
            location=error.location,
            valid="a tree of BehaviorTree.CPP in XML",
            bt_cpp_message=bt_cpp_message,
        ) from None
    is_main_file = not including_files and len(document.files) == 1
    for include in root.children_with_tag("include"):
        _include(document, include, folder, factory, uses_mocks=uses_mocks, including_files=including_files)
    version = detect_format_version(root)
    opening = text[:200] if isinstance(text, str) else text[:200].decode("latin-1")
    first_line = 2 if opening.lstrip("\ufeff").startswith("<?xml") else 1
    _DocumentCheck(root, factory, version, set(document.trees), uses_mocks=uses_mocks, first_line=first_line).run()
    _read_models(document, root)
    trees = root.children_with_tag("BehaviorTree")
    for tree in trees:
        name = tree.get("ID")
        if "ID" not in tree.attributes:
            name = f"BehaviorTree_{document._unnamed}"
            document._unnamed += 1
        document.trees[name] = (tree, version)
        if is_main_file:
            document.local_trees.append(name)
    if is_main_file:
        document.main_tree_id = root.get("main_tree_to_execute")
        if not document.main_tree_id and len(trees) == 1 and "ID" in trees[0].attributes:
            document.main_tree_id = trees[0].get("ID")


def _include(
    document: TreeDocument,
    element: Element,
    folder: Path | None,
    factory: NodeFactory,
    *,
    uses_mocks: bool,
    including_files: tuple[Path, ...],
) -> None:
    path = element.attributes.get("path")
    if path is None:
        raise InvalidTreeError(
            "Invalid <include> tag: missing 'path' attribute", location=element.location, valid='path="other.xml"'
        )
    if "ros_pkg" in element.attributes and not Path(path).is_absolute():
        raise InvalidTreeError(
            "ros_pkg in <include>: there is no ROS here", location=element.location, valid="a path beside this file"
        )
    if folder is None:
        raise InvalidTreeError(
            "a text without a file includes another", location=element.location, valid="a tree from a file"
        )
    file = (folder / path).resolve()
    if file in including_files:
        raise InvalidTreeError(
            f"{path} includes itself", location=element.location, valid="files that do not include one another"
        )
    if not file.is_file():
        raise InvalidTreeError(f"there is no file {path}", location=element.location, valid=f"a file in {folder}")
    _read(
        document,
        file.read_bytes(),
        str(file),
        file.parent,
        factory,
        uses_mocks=uses_mocks,
        including_files=(*including_files, file),
    )


def detect_format_version(root: Element) -> int:
    """Return the version of BehaviorTree.CPP that a file is written for.

    A file without this attribute is one of version 3, unless it uses what only version 4 has.
    """
    declared_format = root.attributes.get("BTCPP_format")
    if declared_format is not None:
        return 3 if declared_format == "3" else 4
    node_types: set[str] = set()
    attributes: set[str] = set()
    for element in root.walk():
        node_types.add(element.get("ID") if element.tag in TAGS_WITH_ID else element.tag)
        attributes.update(element.attributes)
    if node_types & VERSION_3_TYPES or attributes & {SHARED_BLACKBOARD_ATTRIBUTE, AUTOREMAP_ATTRIBUTE}:
        return 3
    return 4 if node_types & VERSION_4_TYPES or attributes & (RESERVED_ATTRIBUTES - {"name", "ID"}) else 3


def is_allowed_port(name: str) -> bool:
    """Return whether an attribute is a port."""
    if not name or not (name[0].isascii() and name[0].isalpha()) or name in RESERVED_ATTRIBUTES:
        return False
    return first_forbidden_character(name) is None


def first_forbidden_character(name: str) -> str | None:
    """Return the first forbidden character of the name of a node or port; None without one."""
    return next((c for c in name if ord(c) < 32 or ord(c) == 127 or c in _FORBIDDEN_CHARACTERS), None)


def _read_models(document: TreeDocument, root: Element) -> None:
    for models in root.children_with_tag("TreeNodesModel"):
        for model in models.children:
            if model.tag not in TAGS_WITH_ID:
                continue
            name = model.attributes.get("ID")
            if name is None:
                raise InvalidTreeError(
                    f"Missing attribute 'ID' in {model.tag} element within TreeNodesModel",
                    location=model.location,
                    valid='ID="…"',
                )
            ports = {}
            for element in model.children_with_tag(INPUT, OUTPUT, INOUT):
                port = element.attributes.get("name")
                if port is None:
                    raise InvalidTreeError(
                        "Missing attribute [name] in port (SubTree model)", location=element.location
                    )
                if model.tag == "SubTree":
                    _check_port_name(port, element)
                default, doc = element.attributes.get("default"), element.text.strip()
                ports[port] = Port(element.tag, default=default, doc=doc, optional=True)
            if model.tag == "SubTree":
                document.models.setdefault(name, {}).update(ports)
            else:
                document.declared[name] = (NodeType(model.tag), ports)


def _check_port_name(name: str, element: Element) -> None:
    message = None
    if not name:
        message = "Port name cannot be empty"
    elif name[0].isdigit():
        message = f"Port name '{name}' cannot start with a digit"
    elif (character := first_forbidden_character(name)) is not None:
        message = f"Port name '{name}' contains forbidden character {_describe_character(character)}"
    elif name in RESERVED_ATTRIBUTES:
        message = f"Port name '{name}' is a reserved attribute name"
    if message is not None:
        raise InvalidTreeError(
            message, location=element.location, bt_cpp_message=f"Error at line {element.line}: {message}"
        )


def _describe_character(character: str) -> str:
    code = ord(character)
    return f"control character (ASCII {code})" if code < 32 or code == 127 else f"'{character}'"


class _DocumentCheck:
    """Checks the elements of a file by the rules of BehaviorTree.CPP."""

    def __init__(
        self, root: Element, factory: NodeFactory, version: int, trees: set[str], *, uses_mocks: bool, first_line: int
    ) -> None:
        self._root = root
        self._factory = factory
        self._version = version
        self._uses_mocks = uses_mocks
        self._trees = trees
        self._version_3_types: dict[str, NodeType] = {}
        self._line = first_line
        self._lines: dict[int, int] = {}

    def run(self) -> None:
        """Check the whole file."""
        root = self._root
        if root.tag != "root":
            raise InvalidTreeError(
                "The XML must have a root node called <root>", location=root.location, valid='<root BTCPP_format="4">'
            )
        self._count_lines(root)
        models = root.children_with_tag("TreeNodesModel")
        if len(models) > 1:
            self._reject(models[1], " Only a single node <TreeNodesModel> is supported")
        has_several_elements = len(root.children) > 1
        trees = root.children_with_tag("BehaviorTree")
        if self._version == 3:
            names = self._trees | {tree.get("ID") for tree in trees}
            self._version_3_types = {name: NodeType.SUBTREE for name in names if name not in self._factory}
            self._version_3_types |= dict.fromkeys(VERSION_3_TYPES, NodeType.DECORATOR)
            self._version_3_types["SequenceStar"] = NodeType.CONTROL
        for tree in trees:
            self._check_tree(tree, several=has_several_elements)
            for child in tree.children:
                self._check_node(child)

    def _count_lines(self, element: Element) -> None:
        """Note on which line BehaviorTree.CPP would see each element: it prints the file before it checks it."""
        self._lines[id(element)] = self._line
        for child in element.children:
            self._line += 1
            self._count_lines(child)
        if element.children:
            self._line += 1

    def _reject(self, element: Element, message: str, valid: str | None = None) -> None:
        bt_cpp_message = f"Error at line {self._lines[id(element)]}: -> {message}"[:511]
        raise InvalidTreeError(message.strip(), location=element.location, valid=valid, bt_cpp_message=bt_cpp_message)

    def _check_model_name(self, name: str, element: Element) -> None:
        message = None
        if not name:
            message = "Model/Node type name cannot be empty"
        elif name in ("Root", "root"):
            message = "'Root' is a reserved name and cannot be used as a node type"
        elif (character := first_forbidden_character(name)) is not None:
            message = f"Model name '{name}' contains forbidden character {_describe_character(character)}"
        if message is not None:
            raise InvalidTreeError(
                message,
                location=element.location,
                bt_cpp_message=f"Error at line {self._lines[id(element)]}: {message}",
            )

    def _check_tree(self, element: Element, *, several: bool) -> None:
        name = element.get("ID")
        if not name and several:
            self._reject(element, "The tag <BehaviorTree> must have the attribute [ID]")
        if name:
            self._check_model_name(name, element)
        if name in self._factory:
            message = "The attribute [ID] of tag <BehaviorTree> must not use the name of a registered Node"
            self._reject(element, message)
        if len(element.children) != 1:
            self._reject(element, f"The tag <BehaviorTree> with ID '{name}' must have exactly 1 child")

    def _check_node(self, element: Element) -> None:
        tag, name = element.tag, element.get("ID")
        if tag in TAGS_WITH_ID and not name:
            self._reject(element, f"The tag <{tag}> must have the attribute [ID]")
        if tag == "BehaviorTree":
            self._check_tree(element, several=True)
        elif tag == "SubTree" or (tag == "SubTreePlus" and self._version == 3):
            if element.children:
                self._reject(element, f"<SubTree> with ID '{name}' should not have any child")
            self._check_model_name(name, element)
            if name in self._factory:
                self._reject(element, "The attribute [ID] of tag <SubTree> must not use the name of a registered Node")
        else:
            self._check_registered_node(element, name if tag in TAGS_WITH_ID else tag)
        for child in element.children:
            self._check_node(child)

    def _check_registered_node(self, element: Element, name: str) -> None:
        if element.tag not in TAGS_WITH_ID:
            self._check_model_name(name, element)
        node_type = self._node_type(name)
        if node_type is None:
            if self._uses_mocks:
                return
            self._reject(element, f"Node not recognized: {name}", alternatives(name, self._names()))
        count = len(element.children)
        if node_type is NodeType.DECORATOR and count != 1:
            self._reject(element, f"The node '{name}' must have exactly 1 child", f"it has {count}")
        elif node_type is NodeType.CONTROL:
            if count == 0:
                self._reject(element, f"The node '{name}' must have 1 or more children")
            if name == "TryCatch" and count < 2:
                self._reject(element, "The node 'TryCatch' must have at least 2 children")
            if name == "ReactiveSequence" and self._version == 4:
                self._check_reactive_sequence(element)
        elif node_type in (NodeType.ACTION, NodeType.CONDITION) and count:
            self._reject(element, f"The node '{name}' must not have any child")

    def _node_type(self, name: str) -> NodeType | None:
        """Return the type of a registered node, or of a tree of version 3; None if there is none of this name."""
        if name in self._version_3_types:
            return self._version_3_types[name]
        node_class = self._factory.find(name)
        return None if node_class is None else node_class.node_type

    def _names(self) -> set[str]:
        return {*self._factory.names, *self._version_3_types}

    def _check_reactive_sequence(self, element: Element) -> None:
        n_async_children = 0
        for child in element.children:
            if self._node_type(child.tag) is None:
                if self._uses_mocks:
                    continue
                self._reject(child, f"Unknown node type: {child.tag}", alternatives(child.tag, self._names()))
            n_async_children += child.tag == "AsyncSequence"
            if n_async_children > 1:
                self._reject(element, "A ReactiveSequence cannot have more than one async child.")
