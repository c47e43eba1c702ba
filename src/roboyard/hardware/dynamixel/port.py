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
"""Reason for a missing reply: timeout, or a received packet was damaged."""
REPLY_FAILURE_TEXT: dict[ReplyFailure, str] = {"timeout": "does not answer", "corrupt": "its replies are damaged"}

_RX_TIMEOUT = -3001
"""The SDK's COMM_RX_TIMEOUT; other errors mean that the reply was not a complete packet."""
_READ_TIMEOUT = 0.002
"""Blocking time of one read [s], so that the SDK's loop does not spin."""
_PORT_LOST = "serial port lost (check the cable)"


@dataclass(slots=True)
class BusStatistics:
    """Statistics of a bus.

    Attributes:
        sent: Number of requests that expect a reply.
        responses: Number of complete replies.
        timeouts: Number of requests without a reply in time.
        corrupt: Number of replies that were not a complete packet.
        total_latency: Sum of the latencies of all replies [s].
        max_latency: Maximum latency of a reply [s].
    """

    sent: int = 0
    responses: int = 0
    timeouts: int = 0
    corrupt: int = 0
    total_latency: float = 0.0
    max_latency: float = 0.0

    @property
    def mean_latency(self) -> float:
        """Mean time from request to reply [s]."""
        return self.total_latency / self.responses if self.responses else 0.0


class ServoPort:
    """Open serial port with servos of protocol 1.0, for exclusive use; a context manager.

    Args:
        path: Device, e.g. /dev/ttyUSB0.
        baud: Baud rate [bit/s].
        reply_timeout: Timeout of a reply [s].
        clock: Time for timeouts [s]; wall time by default.

    Attributes:
        reply_timeout: Timeout of a reply [s]; may be changed.
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
        self._port.getCurrentTime = lambda: clock() * 1e3  # the SDK's own clock jumps when the system time is set
        self._port.setPacketTimeout = lambda _: self._port.setPacketTimeoutMillis(self.reply_timeout * 1e3)
        try:
            self._port.openPort()
            self._port.ser.timeout = _READ_TIMEOUT
            self._port.ser.write_timeout = 1.0
            self._port.ser.exclusive = True
            with suppress(OSError, ValueError, NotImplementedError):  # not a USB converter
                self._port.ser.set_low_latency_mode(True)
        except self._errors as error:
            self.close()
            raise InputError(f"cannot be opened: {_reason(error)}", location=path, valid=_suggest_fix(error)) from error

    # -- requests ------------------------------------------------------------------------------------------------------
    def ping(self, servo: int) -> int | ReplyFailure:
        """Return the model number of a servo, or the reason for a missing reply. Raises PortLostError."""
        model, outcome, _ = self._request(lambda: self._handler.ping(self._port, servo))
        return int(model) if outcome == 0 else _reply_failure(outcome)

    def read_state(self, servo: int) -> ServoState | ReplyFailure:
        """Return the state of a servo, or the reason for a missing reply. Raises PortLostError."""
        data, outcome, errors = self._request(lambda: self._handler.readTxRx(self._port, servo, *STATE_BLOCK))
        if outcome != 0 or len(data) != STATE_BLOCK[1]:
            return _reply_failure(outcome)
        return decode_state(bytes(data), errors)

    def read(self, servo: int, item: ControlItem) -> int | ReplyFailure:
        """Return a value of a servo's control table, or the reason for a missing reply. Raises PortLostError."""
        data, outcome, _ = self._request(lambda: self._handler.readTxRx(self._port, servo, item.address, item.size))
        return (
            int.from_bytes(bytes(data), "little")
            if outcome == 0 and len(data) == item.size
            else _reply_failure(outcome)
        )

    def write(self, servo: int, item: ControlItem, value: int) -> int | ReplyFailure:
        """Set a value of a servo's control table; return error bits or the reason for a missing reply. Raises
        PortLostError.
        """
        data = list(value.to_bytes(item.size, "little"))
        call = self._handler.writeTxRx
        outcome, errors = self._request(lambda: call(self._port, servo, item.address, item.size, data))[-2:]
        return int(errors) if outcome == 0 else _reply_failure(outcome)

    def sync_write(self, items: Sequence[ControlItem], rows: Mapping[int, Sequence[int]]) -> None:
        """Set adjacent values of many servos with one packet, which servos do not acknowledge.

        Args:
            items: Adjacent entries of the control table, in order.
            rows: Their values, by servo id.

        Raises:
            PortLostError: The port is lost.
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
        """Execute a request that expects a reply, and update the statistics."""
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

    # -- closing
    # -----------------------------------------------------------------------------------------------------------
    def close(self) -> None:
        """Close the port; servos hold the last goals sent to them."""
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
    """Import the SDK; return it with the exceptions that failing ports raise."""
    sdk, serial, termios = (
        import_extra(name, "hardware", "a servo port", location="servos")
        for name in ("dynamixel_sdk", "serial", "termios")
    )
    # pyserial raises the last three if the port is lost during a call
    return sdk, (serial.SerialException, OSError, termios.error, ValueError, TypeError, AttributeError)


def _reply_failure(outcome: int) -> ReplyFailure:
    return "timeout" if outcome == _RX_TIMEOUT else "corrupt"


def _reason(error: Exception) -> str:
    number = error.errno if isinstance(error, OSError) else None
    return "not a serial port" if number is None else os.strerror(number)


def _suggest_fix(error: Exception) -> str:
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EACCES:
        return "access may require membership in the group 'dialout'"
    if number in (errno.EAGAIN, errno.EBUSY):
        return "another program uses the port"
    return "--port with the converter's device, e.g. /dev/ttyUSB0"


class PortLostError(RunError):
    """The port is lost: the cable was unplugged, or its driver failed."""
