"""The port to a bus of servos, by the maker's dynamixel-sdk, which is imported when a port is opened."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import InputError, import_extra
from roboyard.hardware.dynamixel.control_table import STATE, Item, ServoState, decode_state
from roboyard.hardware.dynamixel.errors import BusGoneError
from roboyard.hardware.dynamixel.watch import Missing

_SILENT = -3001
"""The SDK's COMM_RX_TIMEOUT; whatever else it says is that an answer was no whole packet."""
_REST = 0.002
"""How long one look for bytes waits [s]; so the SDK's loop rests instead of spinning."""
_GONE = "the port is gone: is the cable plugged in?"


@dataclass(slots=True)
class BusStatistics:
    """What a bus did so far.

    Attributes:
        sent: Packets that asked for an answer.
        answered: Answers that came whole.
        silent: Requests that nobody answered in time.
        damaged: Answers that were no whole packet.
        latency: Of all answers together [s].
        slowest: Of one [s].
    """

    sent: int = 0
    answered: int = 0
    silent: int = 0
    damaged: int = 0
    latency: float = 0.0
    slowest: float = 0.0

    @property
    def mean_latency(self) -> float:
        """From request to answer [s]."""
        return self.latency / self.answered if self.answered else 0.0


class ServoPort:
    """An open serial port with servos of protocol 1.0; a context manager.  Only one at a time can have it.

    Args:
        path: E.g. /dev/ttyUSB0.
        baud: Bits a second.
        patience: How long an answer is waited for [s].
        clock: Gives the time by which that is judged [s]; the wall's unless given.

    Attributes:
        patience: As given; may be changed.
        statistics: Counts so far.

    Raises:
        InputError: dynamixel-sdk is not installed, or the port cannot be opened.
    """

    def __init__(self, path: str, baud: int, patience: float, clock: Callable[[], float] = wall_seconds) -> None:
        self.path, self.patience, self.statistics = path, patience, BusStatistics()
        self._clock = clock
        self._errors: tuple[type[Exception], ...]
        sdk, self._errors = _libraries()
        self._handler = sdk.Protocol1PacketHandler()
        self._port = sdk.PortHandler(path)
        self._port.baudrate = baud
        self._port.getCurrentTime = lambda: clock() * 1e3  # its own follows a clock that people set
        self._port.setPacketTimeout = lambda _: self._port.setPacketTimeoutMillis(self.patience * 1e3)
        try:
            self._port.openPort()
            self._port.ser.timeout = _REST
            self._port.ser.write_timeout = 1.0
            self._port.ser.exclusive = True
            with suppress(OSError, ValueError, NotImplementedError):  # no USB converter
                self._port.ser.set_low_latency_mode(True)
        except self._errors as error:
            self.close()
            raise InputError(f"cannot be opened: {_reason(error)}", where=path, valid=_advice(error)) from error

    # -- what servos are asked and told ------------------------------------------------------------------------------
    def ping(self, servo: int) -> int | Missing:
        """The model number of a servo, or why there is none. Raises BusGoneError."""
        model, outcome, _ = self._asked(lambda: self._handler.ping(self._port, servo))
        return int(model) if outcome == 0 else _missing(outcome)

    def state(self, servo: int) -> ServoState | Missing:
        """What a servo says of itself, or why it says nothing. Raises BusGoneError."""
        data, outcome, errors = self._asked(lambda: self._handler.readTxRx(self._port, servo, *STATE))
        if outcome != 0 or len(data) != STATE[1]:
            return _missing(outcome)
        return decode_state(bytes(data), errors)

    def read(self, servo: int, item: Item) -> int | Missing:
        """A value of a servo's table, or why there is none. Raises BusGoneError."""
        data, outcome, _ = self._asked(lambda: self._handler.readTxRx(self._port, servo, item.address, item.size))
        return int.from_bytes(bytes(data), "little") if outcome == 0 and len(data) == item.size else _missing(outcome)

    def write(self, servo: int, item: Item, value: int) -> int | Missing:
        """Set a value of a servo's table; gives its error bits, or why it did not answer. Raises BusGoneError."""
        data = list(value.to_bytes(item.size, "little"))
        call = self._handler.writeTxRx
        outcome, errors = self._asked(lambda: call(self._port, servo, item.address, item.size, data))[-2:]
        return int(errors) if outcome == 0 else _missing(outcome)

    def write_all(self, items: Sequence[Item], rows: Mapping[int, Sequence[int]]) -> None:
        """Set values that lie side by side, of many servos, with one packet that nobody answers.

        Args:
            items: One after the other in the table.
            rows: Their values, by servo.

        Raises:
            BusGoneError: the port is gone.
        """
        size = sum(item.size for item in items)
        data: list[int] = []
        for servo, values in rows.items():
            data.append(servo)
            for item, value in zip(items, values, strict=True):
                data += value.to_bytes(item.size, "little")
        send = self._handler.syncWriteTxOnly
        self._called(lambda: send(self._port, items[0].address, size, data, len(data)))

    def _asked(self, call: Callable[[], Any]) -> Any:
        """Do something that is answered, and keep count."""
        count = self.statistics
        begun = self._clock()
        found = self._called(call)
        took = self._clock() - begun
        outcome = found[-2] if len(found) == 3 else found[0]
        count.sent += 1
        if outcome == 0:
            count.answered += 1
            count.latency += took
            count.slowest = max(count.slowest, took)
        elif _missing(outcome) == "silent":
            count.silent += 1
        else:
            count.damaged += 1
        return found

    def _called(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except self._errors as error:
            raise BusGoneError(_GONE, where=self.path) from error
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


def _libraries() -> tuple[Any, tuple[type[Exception], ...]]:
    """The SDK, and all that ports fail with."""
    sdk, serial, termios = (
        import_extra(name, "hardware", "a port of servos", where="servos")
        for name in ("dynamixel_sdk", "serial", "termios")
    )
    # pyserial fails with the last three on a port that was lost while it was looked at
    return sdk, (serial.SerialException, OSError, termios.error, ValueError, TypeError, AttributeError)


def _missing(outcome: int) -> Missing:
    return "silent" if outcome == _SILENT else "damaged"


def _reason(error: Exception) -> str:
    number = error.errno if isinstance(error, OSError) else None
    return "it is no serial port" if number is None else os.strerror(number)


def _advice(error: Exception) -> str:
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EACCES:
        return "to use it you may have to join the group 'dialout'"
    if number in (errno.EAGAIN, errno.EBUSY):
        return "another program has it"
    return "--port with the converter's device, e.g. /dev/ttyUSB0"
