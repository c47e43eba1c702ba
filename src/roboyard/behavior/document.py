"""Trees in XML: read with their includes, and checked as BehaviorTree.CPP checks them, before a node is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from roboyard.behavior.errors import TreeError
from roboyard.behavior.factory import Factory
from roboyard.behavior.matching import choices
from roboyard.behavior.node import POST_CONDITIONS, PRE_CONDITIONS
from roboyard.behavior.ports import INOUT, INPUT, OUTPUT, Port
from roboyard.behavior.status import Kind
from roboyard.behavior.version3 import AUTOREMAP, ONLY_IN_3, ONLY_IN_4, SHARED
from roboyard.description.xml import XmlNode as Element
from roboyard.description.xml import parse_xml
from roboyard.errors import DescriptionError

BY_ID: Final = ("Action", "Condition", "Control", "Decorator", "SubTree")
"""Tags that name their node's type in the attribute ID."""
RESERVED: Final = frozenset({*PRE_CONDITIONS, *POST_CONDITIONS, "name", "ID", "_autoremap"})
_FORBIDDEN: Final = " \t\n\r<>&\"'/\\:*?|."
MAX_FILES: Final = 200
"""Read for one tree."""


@dataclass
class Document:
    """All that was read for a tree.

    Attributes:
        trees: The element of each ``BehaviorTree`` by its ID, and the version of its file.
        models: Ports of subtrees, by ID, where a ``TreeNodesModel`` says them.
        declared: Kind and ports of other nodes that a ``TreeNodesModel`` says.
        main: The tree that the first file wants to be run, or "".
        files: What was read, in order.
    """

    trees: dict[str, tuple[Element, int]] = field(default_factory=dict)
    models: dict[str, dict[str, Port]] = field(default_factory=dict)
    declared: dict[str, tuple[Kind, dict[str, Port]]] = field(default_factory=dict)
    main: str = ""
    files: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    _unnamed: int = 0

    def main_tree(self) -> str:
        """The tree to run.

        Raises:
            TreeError: several come into question.
        """
        if self.main:
            return self.main
        if len(self.trees) == 1:
            return next(iter(self.trees))
        if len(self.own) == 1:
            return self.own[0]
        raise TreeError(
            "[main_tree_to_execute] was not specified correctly",
            where=self.files[0],
            valid='main_tree_to_execute="…" at <root>; ' + choices("", self.trees),
        )


def read_document(text: str | bytes, source: str, folder: Path | None, factory: Factory, *, mock: bool) -> Document:
    """The trees of a text and of what it includes.

    Args:
        text: The XML.
        source: Its name in messages.
        folder: Where included files are; None if it may include none.
        factory: What node types there are.
        mock: Whether node types that are declared or used, and not registered, are let through.

    Raises:
        TreeError: it is no XML, or breaks a rule; says file, line, node and what would be right.
    """
    document = Document()
    _read(document, text, source, folder, factory, mock=mock, above=())
    return document


def _read(
    document: Document,
    text: str | bytes,
    source: str,
    folder: Path | None,
    factory: Factory,
    *,
    mock: bool,
    above: tuple[Path, ...],
) -> None:
    document.files.append(source)
    if len(document.files) > MAX_FILES:
        raise TreeError(f"more than {MAX_FILES} files are included", where=source)
    try:
        root, _findings = parse_xml(text, source)
    except DescriptionError as error:
        words = f"Error parsing the XML: {error.message}"
        raise TreeError(
            error.message, where=error.location, valid="a tree of BehaviorTree.CPP in XML", words=words
        ) from None
    first = not above and len(document.files) == 1
    for include in root.children_with_tag("include"):
        _include(document, include, folder, factory, mock=mock, above=above)
    version = version_of(root)
    opening = text[:200] if isinstance(text, str) else text[:200].decode("latin-1")
    first_line = 2 if opening.lstrip("\ufeff").startswith("<?xml") else 1
    _Check(root, factory, version, set(document.trees), mock=mock, first_line=first_line).run()
    _take_models(document, root)
    trees = root.children_with_tag("BehaviorTree")
    for tree in trees:
        name = tree.get("ID")
        if "ID" not in tree.attributes:
            name = f"BehaviorTree_{document._unnamed}"
            document._unnamed += 1
        document.trees[name] = (tree, version)
        if first:
            document.own.append(name)
    if first:
        document.main = root.get("main_tree_to_execute")
        if not document.main and len(trees) == 1 and "ID" in trees[0].attributes:
            document.main = trees[0].get("ID")


def _include(
    document: Document, element: Element, folder: Path | None, factory: Factory, *, mock: bool, above: tuple[Path, ...]
) -> None:
    path = element.attributes.get("path")
    if path is None:
        raise TreeError(
            "Invalid <include> tag: missing 'path' attribute", where=element.location, valid='path="other.xml"'
        )
    if "ros_pkg" in element.attributes and not Path(path).is_absolute():
        raise TreeError(
            "ros_pkg in <include>: there is no ROS here", where=element.location, valid="a path beside this file"
        )
    if folder is None:
        raise TreeError("a text without a file includes another", where=element.location, valid="a tree from a file")
    file = (folder / path).resolve()
    if file in above:
        raise TreeError(
            f"{path} includes itself", where=element.location, valid="files that do not include one another"
        )
    if not file.is_file():
        raise TreeError(f"there is no file {path}", where=element.location, valid=f"a file in {folder}")
    _read(document, file.read_bytes(), str(file), file.parent, factory, mock=mock, above=(*above, file))


def version_of(root: Element) -> int:
    """The version of BehaviorTree.CPP that a file is written for.

    A file that does not say it is one of version 3, unless it uses what only version 4 has.
    """
    said = root.attributes.get("BTCPP_format")
    if said is not None:
        return 3 if said == "3" else 4
    used: set[str] = set()
    attributes: set[str] = set()
    for element in root.walk():
        used.add(element.get("ID") if element.tag in BY_ID else element.tag)
        attributes.update(element.attributes)
    if used & ONLY_IN_3 or attributes & {SHARED, AUTOREMAP}:
        return 3
    return 4 if used & ONLY_IN_4 or attributes & (RESERVED - {"name", "ID"}) else 3


def allowed_port(name: str) -> bool:
    """Whether an attribute is a port."""
    if not name or not (name[0].isascii() and name[0].isalpha()) or name in RESERVED:
        return False
    return forbidden(name) is None


def forbidden(name: str) -> str | None:
    """The first character that a name of a node or port must not have."""
    return next((c for c in name if ord(c) < 32 or ord(c) == 127 or c in _FORBIDDEN), None)


def _take_models(document: Document, root: Element) -> None:
    for models in root.children_with_tag("TreeNodesModel"):
        for model in models.children:
            if model.tag not in BY_ID:
                continue
            name = model.attributes.get("ID")
            if name is None:
                raise TreeError(
                    f"Missing attribute 'ID' in {model.tag} element within TreeNodesModel",
                    where=model.location,
                    valid='ID="…"',
                )
            ports = {}
            for element in model.children_with_tag(INPUT, OUTPUT, INOUT):
                port = element.attributes.get("name")
                if port is None:
                    raise TreeError("Missing attribute [name] in port (SubTree model)", where=element.location)
                if model.tag == "SubTree":
                    _check_port(port, element)
                default, doc = element.attributes.get("default"), element.text.strip()
                ports[port] = Port(element.tag, default=default, doc=doc, optional=True)
            if model.tag == "SubTree":
                document.models.setdefault(name, {}).update(ports)
            else:
                document.declared[name] = (Kind(model.tag), ports)


def _check_port(name: str, element: Element) -> None:
    what = None
    if not name:
        what = "Port name cannot be empty"
    elif name[0].isdigit():
        what = f"Port name '{name}' cannot start with a digit"
    elif (bad := forbidden(name)) is not None:
        what = f"Port name '{name}' contains forbidden character {_shown(bad)}"
    elif name in RESERVED:
        what = f"Port name '{name}' is a reserved attribute name"
    if what is not None:
        raise TreeError(what, where=element.location, words=f"Error at line {element.line}: {what}")


def _shown(character: str) -> str:
    code = ord(character)
    return f"control character (ASCII {code})" if code < 32 or code == 127 else f"'{character}'"


class _Check:
    """The rules that a file's elements obey."""

    def __init__(
        self, root: Element, factory: Factory, version: int, trees: set[str], *, mock: bool, first_line: int
    ) -> None:
        self._root = root
        self._factory = factory
        self._version = version
        self._mock = mock
        self._trees = trees
        self._kinds = factory.kinds()
        self._line = first_line
        self._lines: dict[int, int] = {}

    def run(self) -> None:
        """Check the whole file."""
        root = self._root
        if root.tag != "root":
            raise TreeError(
                "The XML must have a root node called <root>", where=root.location, valid='<root BTCPP_format="4">'
            )
        self._count_lines(root)
        models = root.children_with_tag("TreeNodesModel")
        if len(models) > 1:
            self._refuse(models[1], " Only a single node <TreeNodesModel> is supported")
        several = len(root.children) > 1
        trees = root.children_with_tag("BehaviorTree")
        if self._version == 3:
            for name in self._trees | {tree.get("ID") for tree in trees}:
                self._kinds.setdefault(name, Kind.SUBTREE)
            self._kinds.update(dict.fromkeys(ONLY_IN_3, Kind.DECORATOR) | {"SequenceStar": Kind.CONTROL})
        for tree in trees:
            self._tree(tree, several=several)
            for child in tree.children:
                self._node(child)

    def _count_lines(self, element: Element) -> None:
        """Note on which line BehaviorTree.CPP would see each element: it prints the file before it checks it."""
        self._lines[id(element)] = self._line
        for child in element.children:
            self._line += 1
            self._count_lines(child)
        if element.children:
            self._line += 1

    def _refuse(self, element: Element, what: str, valid: str | None = None) -> None:
        words = f"Error at line {self._lines[id(element)]}: -> {what}"[:511]
        raise TreeError(what.strip(), where=element.location, valid=valid, words=words)

    def _model_name(self, name: str, element: Element) -> None:
        what = None
        if not name:
            what = "Model/Node type name cannot be empty"
        elif name in ("Root", "root"):
            what = "'Root' is a reserved name and cannot be used as a node type"
        elif (bad := forbidden(name)) is not None:
            what = f"Model name '{name}' contains forbidden character {_shown(bad)}"
        if what is not None:
            raise TreeError(what, where=element.location, words=f"Error at line {self._lines[id(element)]}: {what}")

    def _tree(self, element: Element, *, several: bool) -> None:
        name = element.get("ID")
        if not name and several:
            self._refuse(element, "The tag <BehaviorTree> must have the attribute [ID]")
        if name:
            self._model_name(name, element)
        if name in self._factory:
            what = "The attribute [ID] of tag <BehaviorTree> must not use the name of a registered Node"
            self._refuse(element, what)
        if len(element.children) != 1:
            self._refuse(element, f"The tag <BehaviorTree> with ID '{name}' must have exactly 1 child")

    def _node(self, element: Element) -> None:
        tag, name = element.tag, element.get("ID")
        if tag in BY_ID and not name:
            self._refuse(element, f"The tag <{tag}> must have the attribute [ID]")
        if tag == "BehaviorTree":
            self._tree(element, several=True)
        elif tag == "SubTree" or (tag == "SubTreePlus" and self._version == 3):
            if element.children:
                self._refuse(element, f"<SubTree> with ID '{name}' should not have any child")
            self._model_name(name, element)
            if name in self._factory:
                self._refuse(element, "The attribute [ID] of tag <SubTree> must not use the name of a registered Node")
        else:
            self._plain(element, name if tag in BY_ID else tag)
        for child in element.children:
            self._node(child)

    def _plain(self, element: Element, name: str) -> None:
        if element.tag not in BY_ID:
            self._model_name(name, element)
        kind = self._kinds.get(name)
        if kind is None:
            if self._mock:
                return
            self._refuse(element, f"Node not recognized: {name}", choices(name, self._kinds))
        count = len(element.children)
        if kind is Kind.DECORATOR and count != 1:
            self._refuse(element, f"The node '{name}' must have exactly 1 child", f"it has {count}")
        elif kind is Kind.CONTROL:
            if count == 0:
                self._refuse(element, f"The node '{name}' must have 1 or more children")
            if name == "TryCatch" and count < 2:
                self._refuse(element, "The node 'TryCatch' must have at least 2 children")
            if name == "ReactiveSequence" and self._version == 4:
                self._reactive(element)
        elif kind in (Kind.ACTION, Kind.CONDITION) and count:
            self._refuse(element, f"The node '{name}' must not have any child")

    def _reactive(self, element: Element) -> None:
        running = 0
        for child in element.children:
            if child.tag not in self._kinds:
                if self._mock:
                    continue
                self._refuse(child, f"Unknown node type: {child.tag}", choices(child.tag, self._kinds))
            running += child.tag == "AsyncSequence"
            if running > 1:
                self._refuse(element, "A ReactiveSequence cannot have more than one async child.")
