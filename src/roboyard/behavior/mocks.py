"""Stand-ins for node types that somebody else's program has: declared in a ``TreeNodesModel``, or only used.

A stand-in has every port that is used, answers `SUCCESS`, or what its child answers; a rule of substitution makes it do
something else.
"""

from __future__ import annotations

from roboyard.behavior.controls import Sequence
from roboyard.behavior.document import BY_ID, Document, allowed_port
from roboyard.behavior.factory import Factory
from roboyard.behavior.kinds import Action, Condition, Decorator
from roboyard.behavior.node import TreeNode
from roboyard.behavior.ports import Port, inout_port
from roboyard.behavior.status import SUCCESS, Kind, Status
from roboyard.description.xml import XmlNode as Element


def _succeed(_node: TreeNode) -> Status:
    return SUCCESS


def _as_child(node: TreeNode) -> Status:
    return node.children[0].execute()


_BASES = {Kind.ACTION: Action, Kind.CONDITION: Condition, Kind.DECORATOR: Decorator, Kind.CONTROL: Sequence}


def with_mocks(factory: Factory, document: Document) -> Factory:
    """A factory that also has a stand-in for each node type that a document uses or declares and nobody registered."""
    used: dict[str, list[Element]] = {name: [] for name in document.declared}
    for tree, version in document.trees.values():
        for element in tree.walk():
            name = element.get("ID") if element.tag in BY_ID else element.tag
            subtree = element.tag in ("BehaviorTree", "SubTree", "SubTreePlus")
            if (
                not subtree
                and not (version == 3 and name in document.trees)
                and factory.find(name, version=version) is None
            ):
                used.setdefault(name, []).append(element)
    made = factory.copy()
    for name, elements in used.items():
        if name not in made:
            made.register(_mocked(name, elements, document.declared.get(name)), name)
    return made


def _mocked(name: str, elements: list[Element], declared: tuple[Kind, dict[str, Port]] | None) -> type[TreeNode]:
    """The class of a stand-in for a node type, by its model, or by how elements use it."""
    ports = {
        port: inout_port(optional=True) for element in elements for port in element.attributes if allowed_port(port)
    }
    if declared is not None:
        kind, models = declared
        ports |= models
    else:
        said = next((Kind(element.tag) for element in elements if element.tag in BY_ID), None)
        children = max(len(element.children) for element in elements)
        kind = said or (Kind.ACTION, Kind.DECORATOR, Kind.CONTROL)[min(children, 2)]
    body: dict[str, object] = {"ports": ports, "__module__": __name__}
    if kind is Kind.DECORATOR:
        body["tick"] = _as_child
    elif kind is not Kind.CONTROL:
        body["tick"] = _succeed
    return type(name, (_BASES[kind],), body)
