"""Children that are under way at the same time."""

from __future__ import annotations

from roboyard.behavior.errors import PortError, TreeNodeError
from roboyard.behavior.kinds import Control
from roboyard.behavior.ports import input_port
from roboyard.behavior.status import FAILURE, IDLE, RUNNING, SKIPPED, SUCCESS, Status


def threshold(count: int, children: int) -> int:
    """How many children a threshold means; a negative one counts from all of them."""
    return max(children + count + 1, 0) if count < 0 else count


class Parallel(Control):
    """Ticks all children; done as soon as so many have succeeded, or failed."""

    ports = {  # noqa: RUF012
        "success_count": input_port(int, -1, "number of children that need to succeed to trigger a SUCCESS"),
        "failure_count": input_port(int, 1, "number of children that need to fail to trigger a FAILURE"),
    }
    state_fields = ("_done", "_succeeded", "_failed")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._clear()

    def _clear(self) -> None:
        self._done: set[int] = set()
        self._succeeded = self._failed = 0

    def _count(self, port: str) -> int:
        try:
            return int(self.input(port))
        except PortError as error:
            raise TreeNodeError(f"Missing parameter [{port}] in ParallelNode", valid=error.message) from error

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        wanted, allowed = self._count("success_count"), self._count("failure_count")
        children = self.children
        count = len(children)
        enough, too_many = threshold(wanted, count), threshold(allowed, count)
        if count < enough:
            raise TreeNodeError("Number of children is less than threshold. Can never succeed.")
        if count < too_many:
            raise TreeNodeError("Number of children is less than threshold. Can never fail.")
        if self.status is not RUNNING:
            self.set_status(RUNNING)
        skipped = 0
        for index, child in enumerate(children):
            if index not in self._done:
                answer = child.execute()
                if answer is SUCCESS:
                    self._done.add(index)
                    self._succeeded += 1
                elif answer is FAILURE:
                    self._done.add(index)
                    self._failed += 1
                elif answer is SKIPPED:
                    skipped += 1
                elif answer is IDLE:
                    raise TreeNodeError(f"[{self.name}]: A children should not return IDLE")
            if self._succeeded >= enough or (wanted < 0 and self._succeeded + skipped >= enough):
                self._clear()
                self.reset_children()
                return SUCCESS
            if count - self._failed < enough or self._failed == too_many:
                self._clear()
                self.reset_children()
                return FAILURE
        return SKIPPED if skipped == count else RUNNING

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self._clear()
        super().halt()


class ParallelAll(Control):
    """Ticks all children until all are done; fails if so many of them have."""

    ports = {  # noqa: RUF012
        "max_failures": input_port(
            int, 1, "If the number of children returning FAILURE exceeds this value, ParallelAll returns FAILURE"
        )
    }
    state_fields = ("_done", "_failed")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._done: set[int] = set()
        self._failed = 0

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        try:
            allowed = self.input("max_failures")
        except PortError as error:
            raise TreeNodeError("Missing parameter [max_failures] in ParallelNode", valid=error.message) from error
        children = self.children
        count = len(children)
        too_many = threshold(allowed, count)
        if count < too_many:
            raise TreeNodeError("Number of children is less than threshold. Can never fail.")
        if self.status is not RUNNING:
            self.set_status(RUNNING)
        skipped = 0
        for index, child in enumerate(children):
            if index in self._done:
                continue
            answer = child.execute()
            if answer is SUCCESS:
                self._done.add(index)
            elif answer is FAILURE:
                self._done.add(index)
                self._failed += 1
            elif answer is SKIPPED:
                skipped += 1
            elif answer is IDLE:
                raise TreeNodeError(f"[{self.name}]: A children should not return IDLE")
        if skipped == count:
            return SKIPPED
        if skipped + len(self._done) >= count:
            self.reset_children()
            failed = self._failed >= too_many
            self._done.clear()
            self._failed = 0
            return FAILURE if failed else SUCCESS
        return RUNNING

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self._done.clear()
        self._failed = 0
        super().halt()
