"""A bus of emulated servos: bytes in, bytes out, and the faults of a bus.

On a pseudo-terminal, which a thread or a process serves, drivers find it as they find a serial port.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Event, Thread
from types import TracebackType
from typing import Literal, get_args

from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import InputError, RoboyardError, RunError
from roboyard.hardware.dynamixel.control_table import INSTRUCTION_BIT, RETURN_DELAY, STATUS_RETURN
from roboyard.hardware.dynamixel.emulation.servo import EmulatedServo
from roboyard.hardware.dynamixel.protocol import (
    ACTION,
    BROADCAST,
    PING,
    READ,
    REG_WRITE,
    SYNC_WRITE,
    WRITE,
    Packet,
    PacketReader,
    encode,
)

EmulatedFault = Literal["unplug", "mute", "corrupt", "drop_byte", "change_id", "overheat", "undervoltage", "overload"]
"""Faults: the cable is unplugged; a servo stops answering; its status packets have wrong checksums; they lack a byte;
it has another id; it overheats; its voltage drops; it is overloaded.
"""
_PACKET_TIMEOUT = 0.05
"""Time after which an incomplete packet is discarded [s]."""


class UnpluggedError(RoboyardError):
    """The emulated cable is unplugged."""


@dataclass(frozen=True, slots=True)
class FaultInjection:
    """Scheduled fault of the emulated bus.

    Attributes:
        time: Start of the fault [s].
        fault: Type of the fault.
        servo: Id of the affected servo; None for all.
    """

    time: float
    fault: EmulatedFault
    servo: int | None = None

    @classmethod
    def parse(cls, text: str) -> FaultInjection:
        """Parse ``SECONDS:FAULT`` or ``SECONDS:FAULT:ID``. Raises InputError."""
        time, _, remainder = text.partition(":")
        name, _, servo = remainder.partition(":")
        faults: Sequence[EmulatedFault] = get_args(EmulatedFault)
        fault = next((one for one in faults if one == name), None)
        if fault is None or not time.replace(".", "", 1).isdecimal() or (servo and not servo.isdecimal()):
            raise InputError(
                f"invalid fault {text!r}", valid=f"SECONDS:FAULT or SECONDS:FAULT:ID, FAULT one of {', '.join(faults)}"
            )
        return cls(float(time), fault, int(servo) if servo else None)


class EmulatedBus:
    """Emulated servos on one bus.

    Args:
        servos: All servos, with different ids.
        faults: Scheduled faults.
        start: Time of the servos' initial state [s].

    Attributes:
        servos: Servos by their original id.
    """

    def __init__(
        self, servos: Iterable[EmulatedServo], faults: Iterable[FaultInjection] = (), start: float = 0.0
    ) -> None:
        self.servos = {servo.table[3]: servo for servo in servos}
        self._pending_faults = sorted(faults, key=lambda one: one.time)
        for injection in self._pending_faults:
            if injection.servo is not None and injection.servo not in self.servos:
                raise InputError(f"unknown servo {injection.servo}", valid=f"one of {', '.join(map(str, self.servos))}")
        self._reader = PacketReader()
        self._time = self._last_received = start
        self._line_faults: dict[str, set[int]] = {}

    def receive(self, data: bytes, time: float) -> list[tuple[float, bytes]]:
        """Return the replies to the bytes `data` that arrive at `time` [s], as (delay [s], bytes).

        Raises:
            UnpluggedError: The cable is unplugged.
        """
        self.advance(time)
        if time - self._last_received > _PACKET_TIMEOUT:
            self._reader.reset()
        if data:
            self._last_received = time
        responses = []
        for packet in self._reader.feed(data):
            for servo in list(self.servos.values()):
                # A packet with a wrong checksum has no reliable receiver: no servo answers, as on the real bus.
                status = None if packet is None else self._execute(servo, packet)
                if status is not None:
                    responses.append((2e-6 * servo.get(RETURN_DELAY), self._apply_line_faults(servo, status)))
        return [(delay, sent) for delay, sent in responses if sent]

    def advance(self, time: float) -> None:
        """Advance the servos to `time` [s]. Raises UnpluggedError."""
        while self._pending_faults and self._pending_faults[0].time <= time:
            self._start_fault(self._pending_faults.pop(0))
        if time > self._time:
            for servo in self.servos.values():
                servo.advance(time - self._time)
            self._time = time

    def _start_fault(self, injection: FaultInjection) -> None:
        if injection.fault == "unplug":
            raise UnpluggedError("the cable is unplugged")
        affected = self.servos.values() if injection.servo is None else [self.servos[injection.servo]]
        for servo in affected:
            if injection.fault == "overheat":
                servo.temperature = 95.0
            elif injection.fault == "undervoltage":
                servo.voltage = 9.5
            elif injection.fault == "overload":
                servo.overloaded = True
            elif injection.fault == "change_id":
                servo.table[3] = (servo.table[3] + 100) % 254
            else:
                self._line_faults.setdefault(injection.fault, set()).add(id(servo))
            servo.advance(0.0)  # updates its control table

    def _execute(self, servo: EmulatedServo, packet: Packet) -> Packet | None:
        """Let a servo execute a packet; return its status packet, if it sends one."""
        servo_id = servo.table[3]
        if packet.id == BROADCAST:
            self._execute_broadcast(servo, packet)
            return None
        if packet.id != servo_id:
            return None
        errors, data, level = 0, b"", servo.get(STATUS_RETURN)
        parameters = packet.parameters
        if packet.code == READ and len(parameters) == 2:
            data, errors = servo.read(parameters[0], parameters[1])
        elif packet.code == WRITE and parameters:
            errors = servo.write(parameters[0], parameters[1:])
        elif packet.code == REG_WRITE and parameters:
            servo.register(parameters[0], parameters[1:])
        elif packet.code == ACTION:
            errors = 0 if servo.execute_registered() else INSTRUCTION_BIT
        elif packet.code != PING:
            errors = INSTRUCTION_BIT
        codes_with_status: tuple[tuple[int, ...], ...] = (PING,), (PING, READ)
        if level < 2 and packet.code not in codes_with_status[level]:
            return None
        return Packet(servo_id, errors | servo.errors, data)

    def _execute_broadcast(self, servo: EmulatedServo, packet: Packet) -> None:
        parameters = packet.parameters
        if packet.code == SYNC_WRITE and len(parameters) > 2 and (len(parameters) - 2) % (parameters[1] + 1) == 0:
            size = parameters[1] + 1
            for k in range(2, len(parameters), size):
                if parameters[k] == servo.table[3]:
                    servo.write(parameters[0], parameters[k + 1 : k + size])
        elif packet.code == WRITE and parameters:
            servo.write(parameters[0], parameters[1:])
        elif packet.code == REG_WRITE and parameters:
            servo.register(parameters[0], parameters[1:])
        elif packet.code == ACTION:
            servo.execute_registered()

    def _apply_line_faults(self, servo: EmulatedServo, status: Packet) -> bytes:
        """Encode a status packet and apply the active line faults."""

        def has_fault(fault: EmulatedFault) -> bool:
            return id(servo) in self._line_faults.get(fault, ())

        if has_fault("mute"):
            return b""
        data = encode(status)
        if has_fault("corrupt"):
            return data[:-1] + bytes([data[-1] ^ 0x55])
        return data[:4] + data[5:] if has_fault("drop_byte") else data


_POLL_INTERVAL = 0.02
"""Period at which the thread checks for its end and advances the servos [s]."""


_STARTUP_TIMEOUT = 60.0
"""Startup timeout of the process [s]."""


class PseudoTerminal:
    """Thread that serves an emulated bus on a pseudo-terminal; a context manager.

    Args:
        bus: The servos; no other thread may access them meanwhile.
        clock: Time of the bus [s]; by default wall time since the first byte.

    Attributes:
        path: Path of the port.

    Raises:
        InputError: The system has no pseudo-terminals.
    """

    def __init__(self, bus: EmulatedBus, clock: Callable[[], float] | None = None) -> None:
        self._bus, self._clock = bus, clock
        try:
            from pty import openpty
            from tty import setraw
        except ImportError as error:
            raise InputError("this system has no pseudo-terminals", valid="Linux or macOS") from error
        self._server_fd, self._client_fd = openpty()
        setraw(self._client_fd)
        self.path = os.ttyname(self._client_fd)
        self._ending = Event()
        self._thread = Thread(target=self._serve, name="emulated-servos", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        start = None
        try:
            while not self._ending.is_set():
                ready = select.select([self._server_fd], [], [], _POLL_INTERVAL)[0]
                data = os.read(self._server_fd, 4096) if ready else b""
                if data and start is None:
                    start = wall_seconds()
                time_s = self._clock() if self._clock else 0.0 if start is None else wall_seconds() - start
                for delay, response in self._bus.receive(data, time_s):
                    if delay:
                        time.sleep(delay)
                    os.write(self._server_fd, response)
        except (UnpluggedError, OSError):
            pass
        finally:
            for fd in (self._client_fd, self._server_fd):
                with suppress(OSError):
                    os.close(fd)

    def close(self) -> None:
        """Close the port, like unplugging the cable."""
        self._ending.set()
        self._thread.join(timeout=5.0)

    def __enter__(self) -> PseudoTerminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class PseudoTerminalProcess:
    """Process that serves an emulated bus on a pseudo-terminal; it answers in time when this process is busy.

    A context manager.

    Args:
        bus: The servos; copied into the process.

    Attributes:
        path: Path of the port.

    Raises:
        InputError: The system has no pseudo-terminals.
        RunError: The process does not start in time.
    """

    def __init__(self, bus: EmulatedBus) -> None:
        context = get_context("spawn")  # a forked process would inherit locks in an undefined state
        self._pipe, child_end = context.Pipe()
        self._process = context.Process(
            target=_serve_process, args=(bus, child_end), name="emulated-servos", daemon=True
        )
        self._process.start()
        child_end.close()
        try:
            reply = self._pipe.recv() if self._pipe.poll(_STARTUP_TIMEOUT) else None
        except EOFError:
            reply = None
        if isinstance(reply, InputError):
            raise reply
        if reply is None:
            raise RunError(
                "the process of the emulated servos did not start in time", valid="a machine that is less busy"
            )
        self.path: str = reply

    def close(self) -> None:
        """Close the port, like unplugging the cable."""
        self._pipe.close()
        self._process.join(timeout=5.0)

    def __enter__(self) -> PseudoTerminalProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _serve_process(bus: EmulatedBus, pipe: Connection) -> None:
    """Serve until the other end of the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C stops the driver; the servos must answer until then
    try:
        with PseudoTerminal(bus) as terminal:
            pipe.send(terminal.path)
            with suppress(EOFError):
                pipe.recv()
    except InputError as error:
        pipe.send(error)
