"""Differences of BehaviorTree.CPP 3.8, for files of version 3.

There is no skipping, and no attribute is a script; there are no interruptions between children that finish within
one tick; subtrees take names of entries without braces; `Parallel` counts differently.
"""

from __future__ import annotations

from typing import Any

from roboyard.behavior import controls, decorators
from roboyard.behavior.basic_types import FAILURE, RUNNING, SUCCESS, NodeStatus
from roboyard.behavior.controls import resolve_threshold
from roboyard.behavior.decorators import SubTreeNode
from roboyard.behavior.errors import PortError, TreeNodeError
from roboyard.behavior.ports import input_port
from roboyard.behavior.tree_node import ControlNode, DecoratorNode, TreeNode

VERSION_3_TYPES = frozenset(
    {"SequenceStar", "SubTreePlus"} | {f"BlackboardCheck{t}" for t in ("Int", "Double", "String", "Bool")}
)
"""Node types that only version 3 has."""
VERSION_4_TYPES = frozenset(
    (
        *("SequenceWithMemory", "AsyncSequence", "AsyncFallback", "ParallelAll", "TryCatch", "Precondition", "RunOnce"),
        *("Script", "ScriptCondition", "UnsetBlackboard", "Sleep"),
        *("WasEntryUpdated", "SkipUnlessUpdated", "WaitValueUpdate"),
        *("LoopInt", "LoopBool", "LoopDouble", "LoopString"),
    )
)
"""Node types that only version 4 has."""
SHARED_BLACKBOARD_ATTRIBUTE, AUTOREMAP_ATTRIBUTE = "__shared_blackboard", "__autoremap"


class ParallelNodeVersion3(ControlNode):
    """Parallel of version 3: finished when exactly the threshold of children has succeeded or failed; its status
    changes only then."""

    ports = {  # noqa: RUF012
        "success_threshold": input_port(int, doc="Number of children whose success is the success of the node."),
        "failure_threshold": input_port(int, 1, "Number of children whose failure is the failure of the node."),
    }
    state_fields = ("_finished_children",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._finished_children: set[int] = set()

    def _read_threshold(self, port: str) -> int:
        try:
            return resolve_threshold(int(self.get_input(port)), len(self.children))
        except PortError as error:
            raise TreeNodeError(f"Missing parameter [{port}] in ParallelNode", valid=error.message) from error

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        success_threshold, failure_threshold = (
            self._read_threshold("success_threshold"),
            self._read_threshold("failure_threshold"),
        )
        count = len(self.children)
        if count < success_threshold:
            raise TreeNodeError("Number of children is less than threshold. Can never succeed.")
        if count < failure_threshold:
            raise TreeNodeError("Number of children is less than threshold. Can never fail.")
        succeeded = failed = 0
        for index, child in enumerate(self.children):
            child_status = child.status if index in self._finished_children else child.execute_tick()
            if child_status is SUCCESS:
                self._finished_children.add(index)
                succeeded += 1
                if succeeded == success_threshold:
                    return self._finish(SUCCESS)
            elif child_status is FAILURE:
                self._finished_children.add(index)
                failed += 1
                if failed > count - success_threshold or failed == failure_threshold:
                    return self._finish(FAILURE)
            elif child_status is not RUNNING:
                raise TreeNodeError("A child node must never return IDLE")
        return RUNNING

    def _finish(self, status: NodeStatus) -> NodeStatus:
        self._finished_children.clear()
        self.reset_children()
        return status

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self._finished_children.clear()
        super().halt()


class BlackboardPreconditionNode(DecoratorNode):
    """Ticks its child while two values are equal."""

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        self.set_status(RUNNING)
        try:
            a, b = self.get_input("value_A"), self.get_input("value_B")
            same = abs(a - b) <= 1.1920928955078125e-07 if isinstance(a, float) else a == b
        except PortError:
            same = False
        if same:
            return self.children[0].execute_tick()
        if self.children[0].status is RUNNING:
            self.reset_child()
        try:
            return self.get_input("return_on_mismatch")  # type: ignore[no-any-return]
        except PortError:
            return FAILURE


def _make_check_class(value_type: Any, name: str) -> type[TreeNode]:
    ports = {
        "value_A": input_port(value_type, doc="First value."),
        "value_B": input_port(value_type, doc="Second value."),
    }
    ports["return_on_mismatch"] = input_port(
        NodeStatus, doc="Status while the values differ; by default FAILURE.", optional=True
    )
    return type(name, (BlackboardPreconditionNode,), {"ports": ports, "__module__": __name__})


class SubTreePlusNode(SubTreeNode):
    """A subtree with constants and entries in braces, as SubTree of version 4."""


NODE_TYPES: dict[str, type[TreeNode]] = {
    "Parallel": ParallelNodeVersion3,
    "SequenceStar": controls.SequenceWithMemory,
    "SubTree": decorators.SubTreeNode,
    "SubTreePlus": SubTreePlusNode,
    **{
        f"BlackboardCheck{name}": _make_check_class(kind, f"BlackboardCheck{name}")
        for name, kind in (("Int", int), ("Double", float), ("String", str), ("Bool", bool))
    },
}
"""Node types that mean something else in files of version 3, or that only these have."""
