"""Protocol 1.0: packets survive a round trip and noise, and equal those of dynamixel_sdk byte for byte."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from dynamixel_sdk import PortHandler, Protocol1PacketHandler
from hypothesis import given
from hypothesis import strategies as st

from roboyard.errors import InputError
from roboyard.hardware.dynamixel.protocol import (
    BROADCAST,
    PING,
    READ,
    SYNC_WRITE,
    WRITE,
    Packet,
    PacketReader,
    encode,
    sync_write,
)

PACKETS = st.builds(Packet, st.integers(0, BROADCAST), st.integers(0, 255), st.binary(max_size=250))


def read_packets(data: bytes) -> list[Packet | None]:
    return list(PacketReader().feed(data))


@given(packets=st.lists(PACKETS, max_size=5), boundaries=st.lists(st.integers(0, 1300), max_size=6))
def test_packets_are_reassembled_from_any_chunks(packets: list[Packet], boundaries: list[int]) -> None:
    data = b"".join(map(encode, packets))
    reader, received = PacketReader(), []
    ends = [0, *sorted(min(boundary, len(data)) for boundary in boundaries), len(data)]
    for start, end in pairwise(ends):
        received += list(reader.feed(data[start:end]))
    assert received == packets
    assert (reader.broken, reader.lost) == (0, 0)


@given(noise=st.binary(max_size=40).filter(lambda data: b"\xff" not in data), packet=PACKETS)
def test_noise_before_a_packet_is_dropped(noise: bytes, packet: Packet) -> None:
    reader = PacketReader()
    assert list(reader.feed(noise + encode(packet))) == [packet]
    assert reader.lost == len(noise)


@given(data=st.binary(max_size=400))
def test_reset_reader_reads_packets_after_arbitrary_bytes(data: bytes) -> None:
    reader = PacketReader()
    list(reader.feed(data))
    reader.reset()
    assert list(reader.feed(encode(Packet(7, PING)))) == [Packet(7, PING)]


@given(packet=PACKETS, index=st.integers(2, 255), mask=st.integers(1, 255))
def test_packet_with_one_wrong_byte_is_never_accepted(packet: Packet, index: int, mask: int) -> None:
    data = bytearray(encode(packet))
    index = min(index, len(data) - 1)
    data[index] ^= mask
    assert packet not in read_packets(bytes(data))


class RecordingPort:
    """A serial port that stores the bytes of the last write."""

    def __init__(self) -> None:
        self.sent = b""

    def write(self, data: Any) -> int:
        self.sent = bytes(data)
        return len(data)

    def reset_input_buffer(self) -> None:
        """Do nothing: this port receives no bytes."""


@given(servo=st.integers(0, 253), address=st.integers(0, 49), data=st.binary(min_size=1, max_size=20))
def test_packets_equal_those_of_dynamixel_sdk(servo: int, address: int, data: bytes) -> None:
    port, recording_port, sdk = PortHandler("none"), RecordingPort(), Protocol1PacketHandler()
    port.ser = recording_port
    sdk.writeTxOnly(port, servo, address, len(data), list(data))
    assert recording_port.sent == encode(Packet(servo, WRITE, bytes([address]) + data))
    sdk.readTx(port, servo, address, len(data))
    assert recording_port.sent == encode(Packet(servo, READ, bytes([address, len(data)])))
    port.is_using = False
    rows = {servo: data, (servo + 1) % 254: data[::-1]}
    flat = [byte for servo_id, row in rows.items() for byte in (servo_id, *row)]
    sdk.syncWriteTxOnly(port, address, len(data), flat, len(flat))
    assert recording_port.sent == encode(sync_write(address, rows))
    assert read_packets(recording_port.sent)[0] == Packet(BROADCAST, SYNC_WRITE, bytes([address, len(data), *flat]))


def test_invalid_packets_are_refused() -> None:
    for packet in (Packet(255, PING), Packet(1, 256), Packet(1, WRITE, bytes(251))):
        with pytest.raises(InputError, match="ids 0 to 254, at most 250"):
            encode(packet)
    with pytest.raises(InputError, match="one length"):
        sync_write(30, {1: b"ab", 2: b"c"})
