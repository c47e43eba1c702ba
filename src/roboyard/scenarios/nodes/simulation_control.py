"""Services of simulation_interfaces that control a run: pause, step, reset, and save a snapshot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from roboyard.bus import Node, resource
from roboyard.messages import service_type
from roboyard.scenarios.run_control import RunControl

_OK, _UNSUPPORTED, _INCORRECT_STATE = 1, 0, 3
_STOPPED, _PLAYING, _PAUSED, _QUITTING = 0, 1, 2, 3


class SimulationControlNode(Node):
    """serves: /set_simulation_state /get_simulation_state /step_simulation /reset_simulation /save_state

    ``/save_state``, where there is a folder for it, saves the run's whole state into a new file of it at the end of the
    present instant.
    """

    control: RunControl = resource(RunControl)
    snapshot_folder: Path | None = resource(Path, optional=True)

    def setup(self) -> None:
        """Serve."""
        for name, handler in (
            ("set_simulation_state", self._set_state),
            ("get_simulation_state", self._get_state),
            ("step_simulation", self._step),
            ("reset_simulation", self._reset),
        ):
            kind = service_type(f"simulation_interfaces/srv/{name.title().replace('_', '')}")
            self.service(f"/{name}", kind, self._with_result(handler, kind.Response))
        if self.snapshot_folder is not None:
            self.service("/save_state", service_type("std_srvs/srv/Trigger"), self._save_state)

    def _save_state(self, request: Any) -> Any:
        path = (self.snapshot_folder or Path()).resolve() / f"state-{self.now_ns}.state"
        self.control.request_snapshot(path, is_required=False)
        return service_type("std_srvs/srv/Trigger").Response(success=True, message=str(path))

    def _with_result(
        self, handler: Callable[[Any, Any], None], response_type: Callable[[], Any]
    ) -> Callable[[Any], Any]:
        def respond(request: Any) -> Any:
            response = response_type()
            response.result.result = _OK
            handler(request, response)
            return response

        return respond

    def _set_state(self, request: Any, response: Any) -> None:
        requested = request.state.state
        if requested == _PLAYING:
            self.control.resume()
        elif requested == _PAUSED:
            self.control.pause()
        elif requested in (_STOPPED, _QUITTING):
            self.control.stop()
        else:
            response.result.result = _UNSUPPORTED
            response.result.error_message = f"there is no state {requested}"

    def _get_state(self, request: Any, response: Any) -> None:
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
