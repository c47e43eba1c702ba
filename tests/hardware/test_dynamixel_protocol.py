"""Protocol 1.0: packets read back as they were written, through any noise, and are byte for byte the maker's."""

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


def read(data: bytes) -> list[Packet | None]:
    return list(PacketReader().feed(data))


@given(packets=st.lists(PACKETS, max_size=5), cuts=st.lists(st.integers(0, 1300), max_size=6))
def test_packets_are_read_back_however_they_are_cut(packets: list[Packet], cuts: list[int]) -> None:
    data = b"".join(map(encode, packets))
    reader, found = PacketReader(), []
    ends = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for begin, end in pairwise(ends):
        found += list(reader.feed(data[begin:end]))
    assert found == packets
    assert (reader.broken, reader.lost) == (0, 0)


@given(noise=st.binary(max_size=40).filter(lambda data: b"\xff" not in data), packet=PACKETS)
def test_noise_before_a_packet_is_dropped(noise: bytes, packet: Packet) -> None:
    reader = PacketReader()
    assert list(reader.feed(noise + encode(packet))) == [packet]
    assert reader.lost == len(noise)


@given(data=st.binary(max_size=400))
def test_reader_recovers_from_arbitrary_bytes_after_silence(data: bytes) -> None:
    reader = PacketReader()
    list(reader.feed(data))
    reader.reset()
    assert list(reader.feed(encode(Packet(7, PING)))) == [Packet(7, PING)]


@given(packet=PACKETS, place=st.integers(2, 255), flip=st.integers(1, 255))
def test_packet_with_one_wrong_byte_is_never_accepted(packet: Packet, place: int, flip: int) -> None:
    data = bytearray(encode(packet))
    place = min(place, len(data) - 1)
    data[place] ^= flip
    assert packet not in read(bytes(data))


class Wire:
    """A serial port that only keeps what is written."""

    def __init__(self) -> None:
        self.sent = b""

    def write(self, data: Any) -> int:
        self.sent = bytes(data)
        return len(data)

    def reset_input_buffer(self) -> None:
        """Nothing comes in."""


@given(servo=st.integers(0, 253), address=st.integers(0, 49), data=st.binary(min_size=1, max_size=20))
def test_packets_equal_those_of_dynamixel_sdk(servo: int, address: int, data: bytes) -> None:
    port, wire, sdk = PortHandler("none"), Wire(), Protocol1PacketHandler()
    port.ser = wire
    sdk.writeTxOnly(port, servo, address, len(data), list(data))
    assert wire.sent == encode(Packet(servo, WRITE, bytes([address]) + data))
    sdk.readTx(port, servo, address, len(data))
    assert wire.sent == encode(Packet(servo, READ, bytes([address, len(data)])))
    port.is_using = False
    rows = {servo: data, (servo + 1) % 254: data[::-1]}
    flat = [byte for one, row in rows.items() for byte in (one, *row)]
    sdk.syncWriteTxOnly(port, address, len(data), flat, len(flat))
    assert wire.sent == encode(sync_write(address, rows))
    assert read(wire.sent)[0] == Packet(BROADCAST, SYNC_WRITE, bytes([address, len(data), *flat]))


def test_invalid_packets_are_refused() -> None:
    for packet in (Packet(255, PING), Packet(1, 256), Packet(1, WRITE, bytes(251))):
        with pytest.raises(InputError, match="ids 0 to 254, at most 250"):
            encode(packet)
    with pytest.raises(InputError, match="one length"):
        sync_write(30, {1: b"ab", 2: b"c"})
