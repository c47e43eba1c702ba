"""A view for as long as a command runs: one server, and one run after the other."""

from __future__ import annotations

from types import TracebackType

from roboyard.scenarios import Run, RunControl
from roboyard.view.live import LiveShow
from roboyard.view.server import Server


class View:
    """Shows runs; a context manager.

    Args:
        port: See `Server`.
        read_only: Nobody may steer.

    Attributes:
        server: What browsers talk to.
    """

    def __init__(self, port: int | None = None, *, read_only: bool = False) -> None:
        self.server = Server(port, read_only=read_only)
        self._show: LiveShow | None = None

    @property
    def url(self) -> str:
        """What to open."""
        return self.server.url

    def begin(self, run: Run, name: str, duration: float, control: RunControl | None = None) -> None:
        """Show a run that has been assembled, from the thread that will run it."""
        self.end()
        self._show = LiveShow(run, self.server.loop, name, duration, control)
        self.server.show(self._show)

    def end(self) -> None:
        """The run is over."""
        if self._show is not None:
            self.server.show(None)
            self._show.close()
            self._show = None

    def close(self) -> None:
        """Let all pages go."""
        self.end()
        self.server.close()

    def __enter__(self) -> View:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
