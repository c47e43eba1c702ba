"""The hand on a live run's clock, from a page: pause, resume, step, pace, begin anew, end."""

from __future__ import annotations

from typing import Any

from roboyard.bus import Bus
from roboyard.errors import InputError
from roboyard.scenarios import RunControl
from roboyard.view.show import Reply
from roboyard.view.wire import ViewMessage, number, text

_LONGEST_STEP, _FASTEST = 60.0, 1000.0


class ClockHand:
    """Does what pages say about the clock.

    Args:
        bus: Of the run.
        control: The hand that the runner looks at; None: nothing can be begun anew or ended.
    """

    ops = frozenset({"pause", "resume", "step", "rate", "reset", "end"})

    def __init__(self, bus: Bus, control: RunControl | None) -> None:
        self._bus, self._control = bus, control

    def command(self, said: dict[str, Any], viewer: int, reply: Reply) -> None:
        """Do it, and say so.

        Raises:
            InputError: it cannot be done.
        """
        op, control = said["op"], self._control
        if control is None:
            raise InputError("the clock of this run is not ours", valid="a run started by `roboyard run`")
        if op == "pause":
            control.pause()
        elif op == "resume":
            control.resume()
        elif op == "step":
            if not self._bus.executor.paused:
                raise InputError("only what stands still makes steps", valid="pause first")
            control.step(number(said, "seconds", 0.0, _LONGEST_STEP, 0.0))
        elif op == "rate":
            rate = number(said, "rate", 0.0, _FASTEST)
            self._bus.inputs.run_on_executor(lambda: setattr(self._bus.executor.pacer, "real_time_factor", rate))
        elif op == "reset":
            control.reset()
        elif op == "end":
            control.stop()
        reply(ViewMessage(text("done", id=said.get("id"), to=op)))
