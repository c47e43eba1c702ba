"""A child that is begun later, or broken off; by the time that the tree is ticked with."""

from __future__ import annotations

from roboyard.behavior.errors import NodeError, PortError
from roboyard.behavior.kinds import Decorator
from roboyard.behavior.ports import input_port
from roboyard.behavior.status import FAILURE, RUNNING, SUCCESS, Status
from roboyard.behavior.types import UINT

_MS = 1_000_000


class Timeout(Decorator):
    """Halts its child and fails if it is not done in time."""

    ports = {  # noqa: RUF012
        "msec": input_port(UINT, doc="After a certain amount of time, halt() the child if it is still running.")
    }
    fields = ("_begun", "_expired")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._begun = self._expired = False

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        try:
            wait = self.input("msec")
        except PortError as error:
            raise NodeError("Missing parameter [msec] in TimeoutNode", valid=error.what) from error
        if not self._begun:
            self._begun = True
            self.set_status(RUNNING)
            self._expired = False
            if wait > 0:
                self._timers.add(self.uid, self.now_ns + wait * _MS)
        if self._expired:
            self._begun = False
            return FAILURE
        answer = self.children[0].execute()
        if answer is SUCCESS or answer is FAILURE:
            self._begun = False
            self._timers.cancel(self.uid)
            self.reset_child()
        return answer

    def alarm(self) -> None:
        """See `TreeNode.alarm`."""
        if self.children[0].status is RUNNING:
            self._expired = True
            self.reset_child()
            if self._wake_up is not None:
                self._wake_up.asked = True

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self._begun = False
        self._timers.cancel(self.uid)
        super().halt()


class Delay(Decorator):
    """Begins with its child some time later."""

    ports = {"delay_msec": input_port(UINT, doc="Tick the child after a few milliseconds")}  # noqa: RUF012
    fields = ("_begun", "_over")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._begun = self._over = False

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        try:
            wait = self.input("delay_msec")
        except PortError as error:
            raise NodeError("Missing parameter [delay_msec] in DelayNode", valid=error.what) from error
        if not self._begun:
            self._over = False
            self._begun = True
            self.set_status(RUNNING)
            self._timers.add(self.uid, self.now_ns + wait * _MS)
        if not self._over:
            return RUNNING
        answer = self.children[0].execute()
        if answer is SUCCESS or answer is FAILURE:
            self._begun = False
            self.reset_child()
        return answer

    def alarm(self) -> None:
        """See `TreeNode.alarm`."""
        self._over = True
        if self._wake_up is not None:
            self._wake_up.asked = True

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self._begun = False
        self._timers.cancel(self.uid)
        super().halt()
