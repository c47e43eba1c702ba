"""What BehaviorTree.CPP 3.8 means otherwise than version 4, for files of version 3.

Nothing is skipped and no attribute is a script; nobody is interrupted between children that are done at once;
subtrees take names of entries without braces; `Parallel` counts differently.
"""

from __future__ import annotations

from typing import Any

from roboyard.behavior import controls, decorators
from roboyard.behavior.controls.parallel import threshold
from roboyard.behavior.decorators.outcomes import SubTree
from roboyard.behavior.errors import PortError, TreeNodeError
from roboyard.behavior.kinds import Control, Decorator
from roboyard.behavior.node import TreeNode
from roboyard.behavior.ports import input_port
from roboyard.behavior.status import FAILURE, RUNNING, SUCCESS, Status

ONLY_IN_3 = frozenset(
    {"SequenceStar", "SubTreePlus"} | {f"BlackboardCheck{t}" for t in ("Int", "Double", "String", "Bool")}
)
"""Node types that only version 3 has."""
ONLY_IN_4 = frozenset(
    (
        *("SequenceWithMemory", "AsyncSequence", "AsyncFallback", "ParallelAll", "TryCatch", "Precondition", "RunOnce"),
        *("Script", "ScriptCondition", "UnsetBlackboard", "Sleep"),
        *("WasEntryUpdated", "SkipUnlessUpdated", "WaitValueUpdate"),
        *("LoopInt", "LoopBool", "LoopDouble", "LoopString"),
    )
)
"""Node types that only version 4 has."""
SHARED, AUTOREMAP = "__shared_blackboard", "__autoremap"


class Parallel3(Control):
    """Version 3's Parallel: done when exactly so many have succeeded, or failed; its status changes when it answers."""

    ports = {  # noqa: RUF012
        "success_threshold": input_port(int, doc="number of children which need to succeed to trigger a SUCCESS"),
        "failure_threshold": input_port(int, 1, "number of children which need to fail to trigger a FAILURE"),
    }
    state_fields = ("_done",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._done: set[int] = set()

    def _count(self, port: str) -> int:
        try:
            return threshold(int(self.input(port)), len(self.children))
        except PortError as error:
            raise TreeNodeError(f"Missing parameter [{port}] in ParallelNode", valid=error.message) from error

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        enough, too_many = self._count("success_threshold"), self._count("failure_threshold")
        count = len(self.children)
        if count < enough:
            raise TreeNodeError("Number of children is less than threshold. Can never succeed.")
        if count < too_many:
            raise TreeNodeError("Number of children is less than threshold. Can never fail.")
        succeeded = failed = 0
        for index, child in enumerate(self.children):
            answer = child.status if index in self._done else child.execute()
            if answer is SUCCESS:
                self._done.add(index)
                succeeded += 1
                if succeeded == enough:
                    return self._ended(SUCCESS)
            elif answer is FAILURE:
                self._done.add(index)
                failed += 1
                if failed > count - enough or failed == too_many:
                    return self._ended(FAILURE)
            elif answer is not RUNNING:
                raise TreeNodeError("A child node must never return IDLE")
        return RUNNING

    def _ended(self, answer: Status) -> Status:
        self._done.clear()
        self.reset_children()
        return answer

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self._done.clear()
        super().halt()


class _Check(Decorator):
    """Has its child done while two values are equal."""

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        self.set_status(RUNNING)
        try:
            a, b = self.input("value_A"), self.input("value_B")
            same = abs(a - b) <= 1.1920928955078125e-07 if isinstance(a, float) else a == b
        except PortError:
            same = False
        if same:
            return self.children[0].execute()
        if self.children[0].status is RUNNING:
            self.reset_child()
        try:
            return self.input("return_on_mismatch")  # type: ignore[no-any-return]
        except PortError:
            return FAILURE


def _check(kind: Any, name: str) -> type[TreeNode]:
    ports = {"value_A": input_port(kind), "value_B": input_port(kind)}
    ports["return_on_mismatch"] = input_port(Status, optional=True)
    return type(name, (_Check,), {"ports": ports, "__module__": __name__})


class SubTreePlus(SubTree):
    """A subtree with constants and entries in braces, as version 4's SubTree."""


TYPES: dict[str, type[TreeNode]] = {
    "Parallel": Parallel3,
    "SequenceStar": controls.SequenceWithMemory,
    "SubTree": decorators.SubTree,
    "SubTreePlus": SubTreePlus,
    **{
        f"BlackboardCheck{name}": _check(kind, f"BlackboardCheck{name}")
        for name, kind in (("Int", int), ("Double", float), ("String", str), ("Bool", bool))
    },
}
"""Node types that mean something else in files of version 3, or that only these have."""
