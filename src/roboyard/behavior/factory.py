"""Node types by name: the registry `TREE_NODES`, and the factory that creates the nodes of one tree.

A package offers a node type through the entry point group ``roboyard.tree_nodes``: the entry's name is the name of the
type in XML, its value the class. The class is imported when the first tree uses it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from roboyard.behavior import bt_version3, builtin_actions, controls, decorators
from roboyard.behavior.basic_types import NodeStatus
from roboyard.behavior.builtin_actions import MockConfig, TestNode
from roboyard.behavior.errors import InvalidTreeError, TreeNodeError
from roboyard.behavior.ports import Port
from roboyard.behavior.tree_node import ConditionNode, DecoratorNode, SyncActionNode, TreeNode, TreeNodeConfig
from roboyard.config.registry import Registry

_BUILTIN_TYPES: dict[str, type[TreeNode]] = {
    "Sequence": controls.SequenceNode,
    "AsyncSequence": controls.AsyncSequence,
    "SequenceWithMemory": controls.SequenceWithMemory,
    "Fallback": controls.FallbackNode,
    "AsyncFallback": controls.AsyncFallback,
    "ReactiveSequence": controls.ReactiveSequence,
    "ReactiveFallback": controls.ReactiveFallback,
    "Parallel": controls.ParallelNode,
    "ParallelAll": controls.ParallelAllNode,
    "IfThenElse": controls.IfThenElseNode,
    "WhileDoElse": controls.WhileDoElseNode,
    "TryCatch": controls.TryCatchNode,
    **{f"Switch{count}": controls.make_switch_class(count) for count in range(2, 7)},
    "Inverter": decorators.InverterNode,
    "ForceSuccess": decorators.ForceSuccessNode,
    "ForceFailure": decorators.ForceFailureNode,
    "KeepRunningUntilFailure": decorators.KeepRunningUntilFailureNode,
    "RunOnce": decorators.RunOnceNode,
    "Precondition": decorators.PreconditionNode,
    "SubTree": decorators.SubTreeNode,
    "Repeat": decorators.RepeatNode,
    "RetryUntilSuccessful": decorators.RetryNode,
    "Timeout": decorators.TimeoutNode,
    "Delay": decorators.DelayNode,
    "WasEntryUpdated": decorators.EntryUpdatedAction,
    "SkipUnlessUpdated": decorators.SkipUnlessUpdatedNode,
    "WaitValueUpdate": decorators.WaitValueUpdateNode,
    **{
        f"Loop{name}": decorators.make_loop_class(kind, f"Loop{name}")
        for name, kind in (("Int", int), ("Bool", bool), ("Double", float), ("String", str))
    },
    "AlwaysSuccess": builtin_actions.AlwaysSuccessNode,
    "AlwaysFailure": builtin_actions.AlwaysFailureNode,
    "Script": builtin_actions.ScriptNode,
    "ScriptCondition": builtin_actions.ScriptCondition,
    "SetBlackboard": builtin_actions.SetBlackboardNode,
    "UnsetBlackboard": builtin_actions.UnsetBlackboardNode,
    "Sleep": builtin_actions.SleepNode,
}

TREE_NODES: Final[Registry[type[TreeNode]]] = Registry(
    "tree node", group="roboyard.tree_nodes", base=lambda: TreeNode, built_in=_BUILTIN_TYPES
)
"""Node types by their name in XML: those of BehaviorTree.CPP 4, and those that installed packages offer."""

SubstitutionRule = str | MockConfig
"""What replaces a node: the node type of this name, or a mock."""


class NodeFactory:
    """Creates the nodes of trees: node types by name, names of numbers for scripts, and substitution rules.

    Args:
        plugins: Also use the node types of installed packages (`TREE_NODES`); False: those of BehaviorTree.CPP only.
        adapt: Called once for each class that does not belong to BehaviorTree.CPP; returns the class to be used.
    """

    def __init__(
        self, *, plugins: bool = False, adapt: Callable[[type[TreeNode]], type[TreeNode]] | None = None
    ) -> None:
        self.enums: dict[str, int] = {}
        self._uses_plugins = plugins
        self._adapt = adapt
        self._types: dict[str, type[TreeNode]] = dict(_BUILTIN_TYPES)
        self._rules: dict[str, SubstitutionRule] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all node types, in order; no package is imported."""
        return tuple(sorted({*self._types, *(TREE_NODES.names() if self._uses_plugins else ())}))

    @property
    def builtin_names(self) -> frozenset[str]:
        """Names of the node types of BehaviorTree.CPP 4."""
        return frozenset(_BUILTIN_TYPES)

    def __contains__(self, name: str) -> bool:
        return name in self._types or (self._uses_plugins and name in TREE_NODES)

    def find(self, name: str, *, version: int = 4) -> type[TreeNode] | None:
        """Return the class of a node type as a file of this version means it; None if there is none.

        Raises:
            ConfigError: An installed package does not offer the class that its entry point names.
        """
        if version == 3 and (older := bt_version3.NODE_TYPES.get(name)) is not None:
            return older
        if name not in self._types and self._uses_plugins and name in TREE_NODES:
            self._types[name] = self._adapted(TREE_NODES[name])
        return self._types.get(name)

    def _adapted(self, node_class: type[TreeNode]) -> type[TreeNode]:
        return node_class if self._adapt is None else self._adapt(node_class)

    def register(self, node_class: type[TreeNode], name: str | None = None) -> None:
        """Add a node type to this factory.

        Args:
            node_class: Its class.
            name: Its name in XML; by default the name of the class.

        Raises:
            InvalidTreeError: Another node type has the name.
        """
        name = name or node_class.__name__
        if name in self:
            raise InvalidTreeError(f"ID [{name}] already registered", valid="a name that no other node type has")
        self._types[name] = self._adapted(node_class)

    def copy(self) -> NodeFactory:
        """Return another factory with the same types, names and rules."""
        other = NodeFactory(plugins=self._uses_plugins, adapt=self._adapt)
        other.enums, other._types, other._rules = dict(self.enums), dict(self._types), dict(self._rules)
        return other

    def register_action(
        self, name: str, tick: Callable[[TreeNode], NodeStatus], ports: Mapping[str, Port] | None = None
    ) -> None:
        """Register an action that is a function of the node and finishes within its tick."""
        self.register(_make_node_class(SyncActionNode, name, tick, ports), name)

    def register_condition(
        self, name: str, tick: Callable[[TreeNode], NodeStatus], ports: Mapping[str, Port] | None = None
    ) -> None:
        """Register a condition that is a function of the node."""
        self.register(_make_node_class(ConditionNode, name, tick, ports), name)

    def register_decorator(
        self, name: str, tick: Callable[[NodeStatus, TreeNode], NodeStatus], ports: Mapping[str, Port] | None = None
    ) -> None:
        """Register a decorator that is a function of its child's status and of the node."""

        def decorate(node: TreeNode) -> NodeStatus:
            return tick(node.children[0].execute_tick(), node)

        self.register(_make_node_class(DecoratorNode, name, decorate, ports), name)

    def register_enum(self, name: str, value: int) -> None:
        """Let scripts use a name for a number.

        Raises:
            InvalidTreeError: The name stands for another number.
        """
        if self.enums.setdefault(name, value) != value:
            raise InvalidTreeError(
                f"Registering the enum [{name}] twice with different values, first {self.enums[name]} and later {value}"
            )

    def substitute(self, pattern: str, rule: SubstitutionRule) -> None:
        """Put something in the place of nodes whose name, type or path is ``pattern``, where ``*`` is any text.

        Args:
            pattern: Which nodes.
            rule: The name of another node type, or what a stand-in does.
        """
        self._rules[pattern] = rule

    def substitute_from_json(self, text: str, source: str = "<text>") -> None:
        """Take substitution rules in BehaviorTree.CPP's JSON.

        Raises:
            InvalidTreeError: the text is none.
        """
        try:
            self._add_rules(json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidTreeError(
                f"these are no substitution rules: {error}",
                location=source,
                valid="SubstitutionRules and TestNodeConfigs",
            ) from error

    def _add_rules(self, data: Any) -> None:
        mocks: dict[str, MockConfig] = {}
        for name, settings in data.get("TestNodeConfigs", {}).items():
            if not {"return_status", "return_status_script"} & settings.keys():
                message = f"TestNodeConfig [{name}] must contain return_status or return_status_script"
                raise InvalidTreeError(message)
            mocks[name] = MockConfig(
                NodeStatus[settings.get("return_status", "SUCCESS")],
                str(settings.get("return_status_script", "")),
                int(settings.get("async_delay", 0)),
                *(str(settings.get(key, "")) for key in ("success_script", "failure_script", "post_script")),
            )
        for pattern, name in data["SubstitutionRules"].items():
            self.substitute(str(pattern), mocks.get(name, str(name)))

    def create(self, name: str, type_name: str, config: TreeNodeConfig, *, version: int = 4) -> TreeNode:
        """Create a node, or its substitute.

        Raises:
            TreeNodeError: The node rejects its configuration, or its type is unknown.
        """
        for pattern, rule in self._rules.items():
            if pattern in (name, type_name) or matches_pattern(config.path, pattern):
                if isinstance(rule, MockConfig):
                    return TestNode(name, config, rule)
                other = self.find(rule)
                if other is None:
                    raise TreeNodeError(f"Substituted Node ID [{rule}] not found")
                return other(name, config)
        found = self.find(type_name, version=version)
        if found is None:
            raise TreeNodeError(f"BehaviorTreeFactory: ID [{type_name}] not registered")
        return found(name, config)


def _make_node_class(
    base: type[TreeNode], name: str, tick: Callable[[TreeNode], NodeStatus], ports: Mapping[str, Port] | None
) -> type[TreeNode]:
    return type(name, (base,), {"tick": tick, "ports": dict(ports or {}), "__module__": tick.__module__})


def matches_pattern(text: str, pattern: str) -> bool:
    """Whether a text is as a pattern says, in which ``*`` is any text and ``?`` any character."""
    parts = re.split(r"([*?])", re.sub(r"\*+", "*", pattern))
    expression = "".join({"*": "(?s:.*)", "?": "(?s:.)"}.get(part, re.escape(part)) for part in parts)
    return re.fullmatch(expression, text) is not None
