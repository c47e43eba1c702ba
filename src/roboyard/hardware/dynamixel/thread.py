"""Thread that runs the command cycle of servos while the program does other work."""

from __future__ import annotations

from contextlib import suppress
from threading import Event, Thread
from types import TracebackType

from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import RoboyardError
from roboyard.hardware.dynamixel.hardware import DynamixelHardware
from roboyard.hardware.dynamixel.monitor import ServoFaultError
from roboyard.hardware.dynamixel.port import PortLostError


class ServoThread:
    """Thread that calls `run_cycle` at the configured rate; a context manager, at whose end the servos hold their
    positions.

    Args:
        hardware: Started hardware.

    Attributes:
        cycles: Number of cycles so far.
        late: Number of cycles that took longer than their period.
        busy: Total duration of all cycles [s].
    """

    def __init__(self, hardware: DynamixelHardware) -> None:
        self._hardware = hardware
        self.cycles = self.late = 0
        self.busy = 0.0
        self._ending = Event()
        self._thread = Thread(target=self._run, name="servos", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        period = 1.0 / self._hardware.settings.rate
        due = wall_seconds()
        while not self._ending.is_set() and self._hardware.fault is None:
            start = wall_seconds()
            try:
                self._hardware.run_cycle(start)
            except Exception as error:  # noqa: BLE001 - it would be lost in this thread; the run raises it
                message = str(error) if isinstance(error, RoboyardError) else f"{type(error).__name__}: {error}"
                self._hardware.fault = ServoFaultError(
                    message,
                    port=self._hardware.port.path,
                    action="the servos hold the last goals sent to them",
                )
            now = wall_seconds()
            self.cycles += 1
            self.busy += now - start
            due += period
            if now > due:
                self.late += 1
                due = now  # missed cycles are not made up for
            self._ending.wait(due - now)

    def close(self) -> None:
        """Stop the thread; the servos hold their positions."""
        self._ending.set()
        self._thread.join()
        if self._hardware.fault is None:
            with suppress(PortLostError):
                self._hardware.hold_position()

    def __enter__(self) -> ServoThread:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
