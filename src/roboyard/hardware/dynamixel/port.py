"""Serial port of a Dynamixel servo bus (dynamixel-sdk, imported when a port is opened)."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import InputError, RunError, import_extra
from roboyard.hardware.dynamixel.control_table import STATE_BLOCK, ControlItem, ServoState, decode_state

ReplyFailure = Literal["timeout", "corrupt"]
"""Why there is no answer: none came, or what came was no packet."""
REPLY_FAILURE_TEXT: dict[ReplyFailure, str] = {"timeout": "does not answer", "corrupt": "its answers are damaged"}

_RX_TIMEOUT = -3001
"""The SDK's COMM_RX_TIMEOUT; whatever else it says is that an answer was no whole packet."""
_READ_TIMEOUT = 0.002
"""How long one look for bytes waits [s]; so the SDK's loop rests instead of spinning."""
_PORT_LOST = "the port is gone: is the cable plugged in?"


@dataclass(slots=True)
class BusStatistics:
    """What a bus did so far.

    Attributes:
        sent: Packets that asked for an answer.
        responses: Answers that came whole.
        timeouts: Requests that nobody answered in time.
        corrupt: Answers that were no whole packet.
        total_latency: Of all answers together [s].
        max_latency: Of one [s].
    """

    sent: int = 0
    responses: int = 0
    timeouts: int = 0
    corrupt: int = 0
    total_latency: float = 0.0
    max_latency: float = 0.0

    @property
    def mean_latency(self) -> float:
        """From request to answer [s]."""
        return self.total_latency / self.responses if self.responses else 0.0


class ServoPort:
    """An open serial port with servos of protocol 1.0; a context manager.  Only one at a time can have it.

    Args:
        path: E.g. /dev/ttyUSB0.
        baud: Bits a second.
        reply_timeout: How long an answer is waited for [s].
        clock: Gives the time by which that is judged [s]; the wall's unless given.

    Attributes:
        reply_timeout: As given; may be changed.
        statistics: Counts so far.

    Raises:
        InputError: dynamixel-sdk is not installed, or the port cannot be opened.
    """

    def __init__(self, path: str, baud: int, reply_timeout: float, clock: Callable[[], float] = wall_seconds) -> None:
        self.path, self.reply_timeout, self.statistics = path, reply_timeout, BusStatistics()
        self._clock = clock
        self._errors: tuple[type[Exception], ...]
        sdk, self._errors = _import_libraries()
        self._handler = sdk.Protocol1PacketHandler()
        self._port = sdk.PortHandler(path)
        self._port.baudrate = baud
        self._port.getCurrentTime = lambda: clock() * 1e3  # its own follows a clock that people set
        self._port.setPacketTimeout = lambda _: self._port.setPacketTimeoutMillis(self.reply_timeout * 1e3)
        try:
            self._port.openPort()
            self._port.ser.timeout = _READ_TIMEOUT
            self._port.ser.write_timeout = 1.0
            self._port.ser.exclusive = True
            with suppress(OSError, ValueError, NotImplementedError):  # no USB converter
                self._port.ser.set_low_latency_mode(True)
        except self._errors as error:
            self.close()
            raise InputError(f"cannot be opened: {_reason(error)}", location=path, valid=_suggest_fix(error)) from error

    # -- what servos are asked and told ------------------------------------------------------------------------------
    def ping(self, servo: int) -> int | ReplyFailure:
        """The model number of a servo, or why there is none. Raises PortLostError."""
        model, outcome, _ = self._request(lambda: self._handler.ping(self._port, servo))
        return int(model) if outcome == 0 else _reply_failure(outcome)

    def read_state(self, servo: int) -> ServoState | ReplyFailure:
        """What a servo says of itself, or why it says nothing. Raises PortLostError."""
        data, outcome, errors = self._request(lambda: self._handler.readTxRx(self._port, servo, *STATE_BLOCK))
        if outcome != 0 or len(data) != STATE_BLOCK[1]:
            return _reply_failure(outcome)
        return decode_state(bytes(data), errors)

    def read(self, servo: int, item: ControlItem) -> int | ReplyFailure:
        """A value of a servo's table, or why there is none. Raises PortLostError."""
        data, outcome, _ = self._request(lambda: self._handler.readTxRx(self._port, servo, item.address, item.size))
        return (
            int.from_bytes(bytes(data), "little")
            if outcome == 0 and len(data) == item.size
            else _reply_failure(outcome)
        )

    def write(self, servo: int, item: ControlItem, value: int) -> int | ReplyFailure:
        """Set a value of a servo's table; gives its error bits, or why it did not answer. Raises PortLostError."""
        data = list(value.to_bytes(item.size, "little"))
        call = self._handler.writeTxRx
        outcome, errors = self._request(lambda: call(self._port, servo, item.address, item.size, data))[-2:]
        return int(errors) if outcome == 0 else _reply_failure(outcome)

    def sync_write(self, items: Sequence[ControlItem], rows: Mapping[int, Sequence[int]]) -> None:
        """Set values that lie side by side, of many servos, with one packet that nobody answers.

        Args:
            items: One after the other in the table.
            rows: Their values, by servo.

        Raises:
            PortLostError: the port is gone.
        """
        size = sum(item.size for item in items)
        data: list[int] = []
        for servo, values in rows.items():
            data.append(servo)
            for item, value in zip(items, values, strict=True):
                data += value.to_bytes(item.size, "little")
        send = self._handler.syncWriteTxOnly
        self._call(lambda: send(self._port, items[0].address, size, data, len(data)))

    def _request(self, call: Callable[[], Any]) -> Any:
        """Do something that is answered, and keep count."""
        count = self.statistics
        start = self._clock()
        reply = self._call(call)
        latency = self._clock() - start
        outcome = reply[-2] if len(reply) == 3 else reply[0]
        count.sent += 1
        if outcome == 0:
            count.responses += 1
            count.total_latency += latency
            count.max_latency = max(count.max_latency, latency)
        elif _reply_failure(outcome) == "timeout":
            count.timeouts += 1
        else:
            count.corrupt += 1
        return reply

    def _call(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except self._errors as error:
            raise PortLostError(_PORT_LOST, location=self.path) from error
        finally:
            self._port.is_using = False

    # -- end -----------------------------------------------------------------------------------------------------------
    def close(self) -> None:
        """Let go of the port; servos go on with what they were told last."""
        if self._port.ser is not None:
            with suppress(*self._errors):
                self._port.closePort()

    def __enter__(self) -> ServoPort:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _import_libraries() -> tuple[Any, tuple[type[Exception], ...]]:
    """The SDK, and all that ports fail with."""
    sdk, serial, termios = (
        import_extra(name, "hardware", "a port of servos", location="servos")
        for name in ("dynamixel_sdk", "serial", "termios")
    )
    # pyserial fails with the last three on a port that was lost while it was looked at
    return sdk, (serial.SerialException, OSError, termios.error, ValueError, TypeError, AttributeError)


def _reply_failure(outcome: int) -> ReplyFailure:
    return "timeout" if outcome == _RX_TIMEOUT else "corrupt"


def _reason(error: Exception) -> str:
    number = error.errno if isinstance(error, OSError) else None
    return "it is no serial port" if number is None else os.strerror(number)


def _suggest_fix(error: Exception) -> str:
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EACCES:
        return "to use it you may have to join the group 'dialout'"
    if number in (errno.EAGAIN, errno.EBUSY):
        return "another program has it"
    return "--port with the converter's device, e.g. /dev/ttyUSB0"


class PortLostError(RunError):
    """The port itself is gone: the cable was unplugged, or its driver gave up."""
