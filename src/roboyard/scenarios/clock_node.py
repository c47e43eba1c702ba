"""The hand on a run's clock as the standard services of simulators: pause, step, reset (simulation_interfaces)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from roboyard.bus import Node, resource
from roboyard.messages import service_type
from roboyard.scenarios.control import Control

_OK, _UNSUPPORTED, _INCORRECT_STATE = 1, 0, 3
_STOPPED, _PLAYING, _PAUSED, _QUITTING = 0, 1, 2, 3


class ClockNode(Node):
    """serves: /set_simulation_state /get_simulation_state /step_simulation /reset_simulation /save_state

    ``/save_state``, where there is a folder for it, saves the run's whole state into a new file of it at the end of the
    present instant.
    """

    control: Control = resource(Control)
    states: Path | None = resource(Path, optional=True)

    def setup(self) -> None:
        """Serve."""
        for name, handler in (
            ("set_simulation_state", self._set),
            ("get_simulation_state", self._get),
            ("step_simulation", self._step),
            ("reset_simulation", self._reset),
        ):
            kind = service_type(f"simulation_interfaces/srv/{name.title().replace('_', '')}")
            self.service(f"/{name}", kind, self._answering(handler, kind.Response))
        if self.states is not None:
            self.service("/save_state", service_type("std_srvs/srv/Trigger"), self._save_state)

    def _save_state(self, request: Any) -> Any:
        path = (self.states or Path()).resolve() / f"state-{self.now_ns}.state"
        self.control.save(path, must=False)
        return service_type("std_srvs/srv/Trigger").Response(success=True, message=str(path))

    def _answering(self, handler: Callable[[Any, Any], None], response_type: Callable[[], Any]) -> Callable[[Any], Any]:
        def answer(request: Any) -> Any:
            response = response_type()
            response.result.result = _OK
            handler(request, response)
            return response

        return answer

    def _set(self, request: Any, response: Any) -> None:
        wanted = request.state.state
        if wanted == _PLAYING:
            self.control.resume()
        elif wanted == _PAUSED:
            self.control.pause()
        elif wanted in (_STOPPED, _QUITTING):
            self.control.stop()
        else:
            response.result.result = _UNSUPPORTED
            response.result.error_message = f"there is no state {wanted}"

    def _get(self, request: Any, response: Any) -> None:
        response.state.state = _PAUSED if self.bus.executor.paused else _PLAYING

    def _step(self, request: Any, response: Any) -> None:
        """Each step is an instant that has events."""
        if not self.bus.executor.paused:
            response.result.result = _INCORRECT_STATE
            response.result.error_message = "pause first"
            return
        for _ in range(min(int(request.steps), 100_000)):
            self.control.step()

    def _reset(self, request: Any, response: Any) -> None:
        """A reset of any scope ends this run and begins it anew, in a folder of its own."""
        self.control.reset()
