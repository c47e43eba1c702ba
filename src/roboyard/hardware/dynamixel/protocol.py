"""Packets of Dynamixel protocol 1.0: encoding, and detection in a byte stream.

``FF FF id length instruction parameters… checksum``; a status packet has its error byte in place of the instruction.
``length`` counts the bytes after it; the checksum is the complement of the sum of all bytes between header and
checksum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from roboyard.errors import InputError

PING, READ, WRITE, REG_WRITE, ACTION, FACTORY_RESET, SYNC_WRITE = 1, 2, 3, 4, 5, 6, 0x83
BROADCAST: Final = 0xFE
MAX_PARAMETERS: Final = 250
_HEADER: Final = b"\xff\xff"


@dataclass(frozen=True, slots=True)
class Packet:
    """Packet of protocol 1.0.

    Attributes:
        id: Id of the servo, or `BROADCAST`.
        code: Instruction, or error bits.
        parameters: Parameter bytes.
    """

    id: int
    code: int
    parameters: bytes = b""


def checksum(body: bytes) -> int:
    """Compute the checksum of the bytes between header and checksum."""
    return ~sum(body) & 0xFF


def encode(packet: Packet) -> bytes:
    """Encode a packet. Raises InputError if it is too long or a number does not fit into a byte."""
    if len(packet.parameters) > MAX_PARAMETERS or not (0 <= packet.id <= BROADCAST and 0 <= packet.code <= 0xFF):
        raise InputError(
            f"invalid packet with id {packet.id}, code {packet.code} and {len(packet.parameters)} parameters",
            valid=f"ids 0 to {BROADCAST}, at most {MAX_PARAMETERS} parameters",
        )
    body = bytes([packet.id, len(packet.parameters) + 2, packet.code]) + packet.parameters
    return _HEADER + body + bytes([checksum(body)])


def sync_write(address: int, rows: Mapping[int, bytes]) -> Packet:
    """Make a packet that sets values of many servos. Raises InputError if the values differ in length."""
    sizes = {len(row) for row in rows.values()}
    if len(sizes) != 1:
        raise InputError(
            f"values of all servos must have the same length, got {sorted(sizes)} bytes",
            valid="one length for all servos",
        )
    data = b"".join(bytes([servo]) + row for servo, row in rows.items())
    return Packet(BROADCAST, SYNC_WRITE, bytes([address, sizes.pop()]) + data)


class PacketReader:
    """Finds packets in a byte stream and resynchronizes after invalid bytes.

    Attributes:
        broken: Number of packets with a wrong checksum so far.
        lost: Number of bytes outside packets so far.
    """

    def __init__(self) -> None:
        self.broken = self.lost = 0
        self._buffer = b""

    def feed(self, data: bytes) -> Iterator[Packet | None]:
        """Iterate over the packets that are complete after `data`, in order; None for one with a wrong checksum."""
        self._buffer += data
        while True:
            start = self._buffer.find(_HEADER)
            if start < 0:
                n_pending = 1 if self._buffer.endswith(b"\xff") else 0
                self._drop(len(self._buffer) - n_pending)
                return
            self._drop(start)
            if len(self._buffer) < 4:
                if self._buffer[2:3] == b"\xff":  # a third FF cannot be an id: the header starts later
                    self._drop(1)
                    continue
                return
            servo, length = self._buffer[2], self._buffer[3]
            if servo > BROADCAST or length < 2 or length > MAX_PARAMETERS + 2:
                self._drop(1)
                continue
            if len(self._buffer) < 4 + length:
                return
            body, received_checksum = self._buffer[2 : 3 + length], self._buffer[3 + length]
            if checksum(body) != received_checksum:
                self.broken += 1
                self._drop(1)
                yield None
                continue
            self._buffer = self._buffer[4 + length :]
            yield Packet(servo, body[2], body[3:])

    def reset(self) -> None:
        """Discard an incomplete packet, after the line was silent for too long."""
        self._drop(len(self._buffer))

    def _drop(self, count: int) -> None:
        self.lost += count
        self._buffer = self._buffer[count:]
