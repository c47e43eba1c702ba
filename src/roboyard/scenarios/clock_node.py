"""The hand on a run's clock as the standard services of simulators: pause, step, reset (simulation_interfaces)."""

from __future__ import annotations

from typing import Any

from roboyard.bus import Node, resource
from roboyard.messages import message_type, service_type
from roboyard.scenarios.control import Control

_OK, _UNSUPPORTED, _INCORRECT_STATE = 1, 0, 3
_STOPPED, _PLAYING, _PAUSED, _QUITTING = 0, 1, 2, 3


class ClockNode(Node):
    """serves: /set_simulation_state /get_simulation_state /step_simulation /reset_simulation"""

    control: Control = resource(Control)

    def setup(self) -> None:
        """Serve."""
        self._state_type = message_type("simulation_interfaces/msg/SimulationState")
        self._result_type = message_type("simulation_interfaces/msg/Result")
        for name, handler in (
            ("SetSimulationState", self._set),
            ("GetSimulationState", self._get),
            ("StepSimulation", self._step),
            ("ResetSimulation", self._reset),
        ):
            kind = service_type(f"simulation_interfaces/srv/{name}")
            setattr(self, f"_{name}", kind.Response)
            self.service("/" + "".join(f"_{c.lower()}" if c.isupper() else c for c in name)[1:], kind, handler)

    def _result(self, code: int = _OK, text: str = "") -> Any:
        return self._result_type(result=code, error_message=text)

    def _set(self, request: Any) -> Any:
        wanted, result = request.state.state, self._result()
        if wanted == _PLAYING:
            self.control.resume()
        elif wanted == _PAUSED:
            self.control.pause()
        elif wanted in (_STOPPED, _QUITTING):
            self.control.stop()
        else:
            result = self._result(_UNSUPPORTED, f"there is no state {wanted}")
        return self._SetSimulationState(result=result)

    def _get(self, request: Any) -> Any:  # noqa: ARG002
        state = _PAUSED if self.bus.executor.paused else _PLAYING
        return self._GetSimulationState(result=self._result(), state=self._state_type(state=state))

    def _step(self, request: Any) -> Any:
        """Each step is an instant that has events."""
        if not self.bus.executor.paused:
            return self._StepSimulation(result=self._result(_INCORRECT_STATE, "pause first"))
        for _ in range(min(int(request.steps), 100_000)):
            self.control.step()
        return self._StepSimulation(result=self._result())

    def _reset(self, request: Any) -> Any:  # noqa: ARG002
        """A reset of any scope ends this run and begins it anew, in a folder of its own."""
        self.control.reset()
        return self._ResetSimulation(result=self._result())
