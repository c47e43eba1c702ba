"""What a child answers, turned into something else."""

from __future__ import annotations

from roboyard.behavior.errors import PortError, TreeNodeError
from roboyard.behavior.kinds import Decorator
from roboyard.behavior.ports import input_port
from roboyard.behavior.script import Script, parse
from roboyard.behavior.status import FAILURE, IDLE, RUNNING, SKIPPED, SUCCESS, Status
from roboyard.behavior.types import to_truth


class Inverter(Decorator):
    """Fails where its child succeeds, and the other way round."""

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        if self.status is not RUNNING:
            self.set_status(RUNNING)
        answer = self.children[0].execute()
        if answer is SUCCESS:
            self.reset_child()
            return FAILURE
        if answer is FAILURE:
            self.reset_child()
            return SUCCESS
        if answer is IDLE:
            raise TreeNodeError(f"[{self.name}]: A children should not return IDLE")
        return answer


class _Forced(Decorator):
    _answer: Status = SUCCESS

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        if self.status is not RUNNING:
            self.set_status(RUNNING)
        answer = self.children[0].execute()
        if answer is SUCCESS or answer is FAILURE:
            self.reset_child()
            return self._answer
        return answer


class ForceSuccess(_Forced):
    """Succeeds when its child is done, however that ended."""


class ForceFailure(_Forced):
    """Fails when its child is done, however that ended."""

    _answer = FAILURE


class KeepRunningUntilFailure(Decorator):
    """Has its child done again and again, until it fails."""

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        if self.status is not RUNNING:
            self.set_status(RUNNING)
        answer = self.children[0].execute()
        if answer is FAILURE:
            self.reset_child()
            return FAILURE
        if answer is SUCCESS:
            self.reset_child()
        return RUNNING


class RunOnce(Decorator):
    """Has its child done once; later it is skipped, or answers the same again."""

    ports = {  # noqa: RUF012
        "then_skip": input_port(
            bool,
            True,
            "If true, skip after the first execution, otherwise return the same NodeStatus returned once by the child.",
        )
    }
    state_fields = ("_answer",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._answer: Status | None = None

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        try:
            skip = bool(self.input("then_skip"))
        except PortError:
            skip = True
        if self._answer is not None:
            return SKIPPED if skip else self._answer
        if self.status is not RUNNING:
            self.set_status(RUNNING)
        answer = self.children[0].execute()
        if answer is SUCCESS or answer is FAILURE:
            self._answer = answer
            self.reset_child()
        return answer


class Precondition(Decorator):
    """Has its child done if a script says so at the beginning; else it answers something else."""

    ports = {  # noqa: RUF012
        "if": input_port(str),
        "else": input_port(Status, FAILURE, "Return status if condition is false"),
    }
    state_fields = ("_begun",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._begun = False
        self._load()

    def _load(self) -> Script:
        try:
            return parse(self.input("if"))
        except PortError as error:
            raise TreeNodeError("Missing parameter [if] in Precondition", valid=error.message) from error

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        script = self._load()
        try:
            otherwise: Status = self.input("else")
        except PortError as error:
            raise TreeNodeError("Missing parameter [else] in Precondition", valid=error.message) from error
        self._begun = self._begun or to_truth(script.run(self._env))
        if not self._begun:
            return otherwise
        answer = self.children[0].execute()
        if answer is SUCCESS or answer is FAILURE:
            self.reset_child()
            self._begun = False
        return answer


class SubTree(Decorator):
    """Another tree, with a blackboard of its own."""

    ports = {"_autoremap": input_port(bool, False, "If true, all the ports with the same name will be remapped")}  # noqa: RUF012

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        if self.status is IDLE:
            self.set_status(RUNNING)
        answer = self.children[0].execute()
        if answer is SUCCESS or answer is FAILURE:
            self.reset_child()
        return answer
