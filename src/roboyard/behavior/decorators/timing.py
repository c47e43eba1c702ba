"""A child that is begun later, or broken off; by the time that the tree is ticked with."""

from __future__ import annotations

from typing import ClassVar

from roboyard.behavior.errors import PortError, TreeNodeError
from roboyard.behavior.kinds import Decorator
from roboyard.behavior.ports import Port, input_port
from roboyard.behavior.status import FAILURE, RUNNING, SUCCESS, Status
from roboyard.behavior.types import UINT

_MS = 1_000_000


class _Timed(Decorator):
    """A decorator that sets a timer when it begins.

    Attributes:
        port: Says how long [ms].
    """

    port: ClassVar[str]
    state_fields = ("_begun", "_over")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._begun = self._over = False

    def _wait_ms(self) -> int:
        try:
            return int(self.input(self.port))
        except PortError as error:
            # BehaviorTree.CPP's words, with the name of its class
            raise TreeNodeError(
                f"Missing parameter [{self.port}] in {type(self).__name__}Node", valid=error.message
            ) from error

    def _begin(self) -> None:
        self._begun, self._over = True, False
        self.set_status(RUNNING)

    def _alarm_in(self, wait_ms: int) -> None:
        self._timers.add(self.uid, self.now_ns + wait_ms * _MS)

    def _ticked_child(self) -> Status:
        """The child's answer; an end is the decorator's, too."""
        answer = self.children[0].execute()
        if answer is SUCCESS or answer is FAILURE:
            self._begun = False
            self._timers.cancel(self.uid)
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


class Timeout(_Timed):
    """Halts its child and fails if it is not done in time; 0: there is time without end."""

    port = "msec"
    ports: ClassVar[dict[str, Port]] = {
        "msec": input_port(UINT, doc="After a certain amount of time, halt() the child if it is still running.")
    }

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        wait = self._wait_ms()
        if not self._begun:
            self._begin()
            if wait > 0:
                self._alarm_in(wait)
        if self._over:
            self._begun = False
            return FAILURE
        return self._ticked_child()

    def alarm(self) -> None:
        """See `TreeNode.alarm`."""
        if self.children[0].status is RUNNING:
            self.reset_child()
            super().alarm()


class Delay(_Timed):
    """Begins with its child some time later."""

    port = "delay_msec"
    ports: ClassVar[dict[str, Port]] = {"delay_msec": input_port(UINT, doc="Tick the child after a few milliseconds")}

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        wait = self._wait_ms()
        if not self._begun:
            self._begin()
            self._alarm_in(wait)
        return self._ticked_child() if self._over else RUNNING
