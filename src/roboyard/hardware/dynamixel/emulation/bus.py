"""A bus of emulated servos: bytes in, bytes out, and whatever can go wrong on the way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from roboyard.errors import InputError, RoboyardError
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

Trouble = Literal["unplug", "mute", "damage", "lose", "renumber", "heat", "sag", "overload"]
"""The cable is unplugged; a servo falls silent; its answers have wrong checksums; they lack a byte; it has another id;
it overheats; its voltage sags; it is overloaded."""
_SILENCE = 0.05
"""After so long a packet that has begun is given up [s]."""


class UnpluggedError(RoboyardError):
    """Nothing is on the wire any more."""


@dataclass(frozen=True, slots=True)
class Injection:
    """Something that goes wrong.

    Attributes:
        time: From when on [s].
        what: Goes wrong.
        servo: With which; None: all.
    """

    time: float
    what: Trouble
    servo: int | None = None

    @classmethod
    def parse(cls, text: str) -> Injection:
        """Of ``TIME:WHAT`` or ``TIME:WHAT:SERVO``. Raises InputError."""
        time, _, rest = text.partition(":")
        what, _, servo = rest.partition(":")
        kinds: Sequence[Trouble] = get_args(Trouble)
        kind = next((one for one in kinds if one == what), None)
        if kind is None or not time.replace(".", "", 1).isdecimal() or (servo and not servo.isdecimal()):
            raise InputError(f"{text!r}", valid=f"SECONDS:WHAT or SECONDS:WHAT:ID, WHAT one of {', '.join(kinds)}")
        return cls(float(time), kind, int(servo) if servo else None)


class EmulatedBus:
    """Servos on one wire.

    Args:
        servos: All of them, no two with one id.
        troubles: What goes wrong, and when.
        start: Time at which they are as they are [s].

    Attributes:
        servos: By the id that they were made with.
    """

    def __init__(self, servos: Iterable[EmulatedServo], troubles: Iterable[Injection] = (), start: float = 0.0) -> None:
        self.servos = {servo.table[3]: servo for servo in servos}
        self._troubles = sorted(troubles, key=lambda one: one.time)
        for trouble in self._troubles:
            if trouble.servo is not None and trouble.servo not in self.servos:
                raise InputError(f"no servo {trouble.servo}", valid=f"one of {', '.join(map(str, self.servos))}")
        self._reader = PacketReader()
        self._time = self._heard = start
        self._ill: dict[str, set[int]] = {}

    def take(self, data: bytes, time: float) -> list[tuple[float, bytes]]:
        """What is on the wire after ``data`` came at ``time`` [s]: delays [s], and bytes.

        Raises:
            UnpluggedError: nothing is there any more.
        """
        self.advance(time)
        if time - self._heard > _SILENCE:
            self._reader.forget()
        if data:
            self._heard = time
        answers = []
        for packet in self._reader.feed(data):
            for servo in list(self.servos.values()):
                # nobody knows whom a packet was for whose checksum is wrong: as on the real bus, all keep silent
                status = None if packet is None else self._served(servo, packet)
                if status is not None:
                    answers.append((2e-6 * servo.get(RETURN_DELAY), self._on_the_wire(servo, status)))
        return [(delay, sent) for delay, sent in answers if sent]

    def advance(self, time: float) -> None:
        """Go on to ``time`` [s]. Raises UnpluggedError."""
        while self._troubles and self._troubles[0].time <= time:
            self._begin(self._troubles.pop(0))
        if time > self._time:
            for servo in self.servos.values():
                servo.advance(time - self._time)
            self._time = time

    def _begin(self, trouble: Injection) -> None:
        if trouble.what == "unplug":
            raise UnpluggedError("the cable is unplugged")
        whose = self.servos.values() if trouble.servo is None else [self.servos[trouble.servo]]
        for servo in whose:
            if trouble.what == "heat":
                servo.temperature = 95.0
            elif trouble.what == "sag":
                servo.voltage = 9.5
            elif trouble.what == "overload":
                servo.overloaded = True
            elif trouble.what == "renumber":
                servo.table[3] = (servo.table[3] + 100) % 254
            else:
                self._ill.setdefault(trouble.what, set()).add(id(servo))
            servo.advance(0.0)  # its table shows it

    def _served(self, servo: EmulatedServo, packet: Packet) -> Packet | None:
        """Let a servo do what a packet says; its answer, if it gives one."""
        own = servo.table[3]
        if packet.id == BROADCAST:
            self._broadcast(servo, packet)
            return None
        if packet.id != own:
            return None
        errors, found, level = 0, b"", servo.get(STATUS_RETURN)
        given = packet.parameters
        if packet.code == READ and len(given) == 2:
            found, errors = servo.read(given[0], given[1])
        elif packet.code == WRITE and given:
            errors = servo.write(given[0], given[1:])
        elif packet.code == REG_WRITE and given:
            servo.register(given[0], given[1:])
        elif packet.code == ACTION:
            errors = 0 if servo.act() else INSTRUCTION_BIT
        elif packet.code != PING:
            errors = INSTRUCTION_BIT
        answered: tuple[tuple[int, ...], ...] = (PING,), (PING, READ)
        if level < 2 and packet.code not in answered[level]:
            return None
        return Packet(own, errors | servo.errors, found)

    def _broadcast(self, servo: EmulatedServo, packet: Packet) -> None:
        given = packet.parameters
        if packet.code == SYNC_WRITE and len(given) > 2 and (len(given) - 2) % (given[1] + 1) == 0:
            size = given[1] + 1
            for k in range(2, len(given), size):
                if given[k] == servo.table[3]:
                    servo.write(given[0], given[k + 1 : k + size])
        elif packet.code == WRITE and given:
            servo.write(given[0], given[1:])
        elif packet.code == REG_WRITE and given:
            servo.register(given[0], given[1:])
        elif packet.code == ACTION:
            servo.act()

    def _on_the_wire(self, servo: EmulatedServo, status: Packet) -> bytes:
        """The bytes of an answer, as ill as they come."""

        def ill(what: Trouble) -> bool:
            return id(servo) in self._ill.get(what, ())

        if ill("mute"):
            return b""
        sent = encode(status)
        if ill("damage"):
            return sent[:-1] + bytes([sent[-1] ^ 0x55])
        return sent[:4] + sent[5:] if ill("lose") else sent
