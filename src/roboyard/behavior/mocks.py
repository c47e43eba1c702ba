"""Stand-ins for node types that somebody else's program has: declared in a ``TreeNodesModel``, or only used.

A stand-in has every port that is used, answers `SUCCESS`, or what its child answers; a rule of substitution makes it do
something else.
"""

from __future__ import annotations

from roboyard.behavior.controls import Sequence
from roboyard.behavior.document import BY_ID, allowed_port
from roboyard.behavior.node import Action, Condition, Decorator, TreeNode
from roboyard.behavior.ports import Port, inout_port
from roboyard.behavior.status import SUCCESS, Kind, Status
from roboyard.description.xml import Node as Element


def _succeed(_node: TreeNode) -> Status:
    return SUCCESS


def _as_child(node: TreeNode) -> Status:
    return node.children[0].execute()


_BASES = {Kind.ACTION: Action, Kind.CONDITION: Condition, Kind.DECORATOR: Decorator, Kind.CONTROL: Sequence}


def mocked(element: Element, name: str, declared: tuple[Kind, dict[str, Port]] | None) -> type[TreeNode]:
    """The class of a stand-in for a node type, by its model, or by how an element uses it."""
    if declared is not None:
        kind, ports = declared
    else:
        said = Kind(element.tag) if element.tag in BY_ID else None
        guessed = (Kind.ACTION, Kind.DECORATOR, Kind.CONTROL)[min(len(element.children), 2)]
        kind, ports = said or guessed, {}
    ports = {**{port: inout_port() for port in element.attributes if allowed_port(port)}, **ports}
    body: dict[str, object] = {"ports": ports, "__module__": __name__}
    if kind is Kind.DECORATOR:
        body["tick"] = _as_child
    elif kind is not Kind.CONTROL:
        body["tick"] = _succeed
    return type(name, (_BASES[kind],), body)
