"""What node types there are: those that come with the engine, and those that somebody registers.

A package offers its own through the entry point group ``roboyard.tree_nodes``: a function that takes the `Factory`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any

from roboyard.behavior import controls, decorators, leaves, version3
from roboyard.behavior.errors import TreeError, TreeNodeError
from roboyard.behavior.kinds import Action, Condition, Decorator
from roboyard.behavior.leaves import StandIn, TestNode
from roboyard.behavior.matching import matches
from roboyard.behavior.node import TreeNode, TreeNodeConfig
from roboyard.behavior.ports import Port
from roboyard.behavior.status import Kind, Status

_BUILTIN: dict[str, type[TreeNode]] = {
    **{name: getattr(controls, name) for name in controls.__all__ if name[0].isupper() and name != "Switch"},
    **{f"Switch{count}": controls.switch(count) for count in range(2, 7)},
    **{name: getattr(decorators, name) for name in decorators.__all__ if name[0].isupper() and name != "Loop"},
    **{
        f"Loop{name}": decorators.loop(kind, f"Loop{name}")
        for name, kind in (("Int", int), ("Bool", bool), ("Double", float), ("String", str))
    },
    "AlwaysSuccess": leaves.AlwaysSuccess,
    "AlwaysFailure": leaves.AlwaysFailure,
    "Script": leaves.ScriptAction,
    "ScriptCondition": leaves.ScriptCondition,
    "SetBlackboard": leaves.SetBlackboard,
    "UnsetBlackboard": leaves.UnsetBlackboard,
    "Sleep": leaves.Sleep,
}

Rule = str | StandIn


class Factory:
    """Node types by name, names that scripts may use for numbers, and rules that put one node in another's place.

    Args:
        plugins: Also take what installed packages offer.
    """

    def __init__(self, *, plugins: bool = False) -> None:
        self.enums: dict[str, int] = {}
        self._types: dict[str, type[TreeNode]] = dict(_BUILTIN)
        self._rules: dict[str, Rule] = {}
        if plugins:
            for point in sorted(entry_points(group="roboyard.tree_nodes"), key=lambda point: point.name):
                point.load()(self)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all node types, in order."""
        return tuple(sorted(self._types))

    @property
    def builtin(self) -> frozenset[str]:
        """Names of those that come with the engine."""
        return frozenset(_BUILTIN)

    def __contains__(self, name: str) -> bool:
        return name in self._types

    def find(self, name: str, *, version: int = 4) -> type[TreeNode] | None:
        """The class of a node type as a file of this version means it; None if there is none."""
        if version == 3 and (older := version3.TYPES.get(name)) is not None:
            return older
        return self._types.get(name)

    def register(self, node: type[TreeNode], name: str | None = None) -> None:
        """Add a node type.

        Args:
            node: Its class.
            name: Its name in XML; the class's own, if not said.

        Raises:
            TreeError: the name is taken.
        """
        name = name or node.__name__
        if name in self._types:
            raise TreeError(f"ID [{name}] already registered", valid="a name that no other node type has")
        self._types[name] = node

    def replace(self, node: type[TreeNode], name: str) -> None:
        """Put a node type in the place of the one of this name, which does not come with the engine.

        Raises:
            TreeError: it comes with the engine.
        """
        if name in _BUILTIN:
            raise TreeError(f"You can not remove the builtin registration ID [{name}]")
        self._types[name] = node

    def copy(self) -> Factory:
        """Another one with the same types, names and rules."""
        other = Factory()
        other.enums, other._types, other._rules = dict(self.enums), dict(self._types), dict(self._rules)
        return other

    def register_action(
        self, name: str, tick: Callable[[TreeNode], Status], ports: Mapping[str, Port] | None = None
    ) -> None:
        """Add an action that is done at once by a function of the node."""
        self.register(_made(Action, name, tick, ports), name)

    def register_condition(
        self, name: str, tick: Callable[[TreeNode], Status], ports: Mapping[str, Port] | None = None
    ) -> None:
        """Add a condition that a function of the node answers."""
        self.register(_made(Condition, name, tick, ports), name)

    def register_decorator(
        self, name: str, tick: Callable[[Status, TreeNode], Status], ports: Mapping[str, Port] | None = None
    ) -> None:
        """Add a decorator that is a function of its child's answer and of the node."""

        def decorate(node: TreeNode) -> Status:
            return tick(node.children[0].execute(), node)

        self.register(_made(Decorator, name, decorate, ports), name)

    def enum(self, name: str, value: int) -> None:
        """Let scripts use a name for a number.

        Raises:
            TreeError: the name means another number.
        """
        if self.enums.setdefault(name, value) != value:
            raise TreeError(
                f"Registering the enum [{name}] twice with different values, first {self.enums[name]} and later {value}"
            )

    def substitute(self, pattern: str, rule: Rule) -> None:
        """Put something in the place of nodes whose name, type or path is ``pattern``, where ``*`` is any text.

        Args:
            pattern: Which nodes.
            rule: The name of another node type, or what a stand-in does.
        """
        self._rules[pattern] = rule

    def substitute_from_json(self, text: str, source: str = "<text>") -> None:
        """Take substitution rules in BehaviorTree.CPP's JSON.

        Raises:
            TreeError: the text is none.
        """
        try:
            self._take_rules(json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise TreeError(
                f"these are no substitution rules: {error}", where=source, valid="SubstitutionRules and TestNodeConfigs"
            ) from error

    def _take_rules(self, data: Any) -> None:
        stand_ins: dict[str, StandIn] = {}
        for name, said in data.get("TestNodeConfigs", {}).items():
            if not {"return_status", "return_status_script"} & said.keys():
                words = f"TestNodeConfig [{name}] must contain return_status or return_status_script"
                raise TreeError(words)
            stand_ins[name] = StandIn(
                Status[said.get("return_status", "SUCCESS")],
                str(said.get("return_status_script", "")),
                int(said.get("async_delay", 0)),
                *(str(said.get(key, "")) for key in ("success_script", "failure_script", "post_script")),
            )
        for pattern, name in data["SubstitutionRules"].items():
            self.substitute(str(pattern), stand_ins.get(name, str(name)))

    def make(self, name: str, type_name: str, config: TreeNodeConfig, *, version: int = 4) -> TreeNode:
        """A node, or what is put in its place.

        Raises:
            NodeError: the node refuses what it is given; or its type is unknown.
        """
        for pattern, rule in self._rules.items():
            if pattern in (name, type_name) or matches(config.path, pattern):
                if isinstance(rule, StandIn):
                    return TestNode(name, config, rule)
                other = self._types.get(rule)
                if other is None:
                    raise TreeNodeError(f"Substituted Node ID [{rule}] not found")
                return other(name, config)
        found = self.find(type_name, version=version)
        if found is None:
            raise TreeNodeError(f"BehaviorTreeFactory: ID [{type_name}] not registered")
        return found(name, config)

    def kinds(self) -> dict[str, Kind]:
        """What each node type is."""
        return {name: node.kind for name, node in self._types.items()}


def _made(
    base: type[TreeNode], name: str, tick: Callable[[TreeNode], Status], ports: Mapping[str, Port] | None
) -> type[TreeNode]:
    return type(name, (base,), {"tick": tick, "ports": dict(ports or {}), "__module__": tick.__module__})
