"""The socket protocol reassembles frames from any chunks of a stream, and its send queue is bounded."""

from __future__ import annotations

import json
import socket
import struct
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from roboyard.bus.socket.protocol import MAX_MESSAGE_BYTES, MAX_RESPONSES, SendQueue, SocketPacketReader


def frame(header: bytes, payload: bytes = b"") -> bytes:
    return struct.pack("!II", len(header), len(payload)) + header + payload


@given(st.lists(st.tuples(st.dictionaries(st.text(max_size=3), st.integers(), max_size=3), st.binary(max_size=50))),
       st.lists(st.integers(1, 40), min_size=1))  # fmt: skip
def test_frames_are_reassembled_from_any_chunks(
    sent: list[tuple[dict[str, int], bytes]], chunk_sizes: list[int]
) -> None:
    receiving_socket, sending_socket = socket.socketpair()
    with receiving_socket, sending_socket:
        data, expected = b"", [({**header, "op": "x"}, payload) for header, payload in sent]
        for header, payload in expected:
            data += frame(json.dumps(header).encode(), payload)
        reader, received = SocketPacketReader(receiving_socket), []
        receiving_socket.settimeout(0.0)
        offset, n_sent = 0, 0
        while offset < len(data):
            size = chunk_sizes[n_sent % len(chunk_sizes)]
            sending_socket.sendall(data[offset : offset + size])
            offset, n_sent = offset + size, n_sent + 1
            with suppress(BlockingIOError):  # no more data, possibly in the middle of a frame
                while True:
                    received.append(reader.read())
        sending_socket.close()
        assert received == expected
        assert reader.read() is None


def test_send_queue_of_a_client_that_does_not_read_is_bounded() -> None:
    server_socket, client_socket = socket.socketpair()
    with server_socket, client_socket:
        send_queue = SendQueue(server_socket, "out")
        for number in range(200):
            send_queue.put_message({"op": "message", "number": number}, bytes(1_000_000))
        for number in range(50):
            send_queue.put_response({"op": "done", "id": number})
        assert sum(len(payload) for _, payload, _ in send_queue._queue) <= MAX_MESSAGE_BYTES
        send_queue.close_after_send()
        client_socket.settimeout(10.0)
        reader, response_ids, numbers = SocketPacketReader(client_socket), [], []
        while (packet := reader.read()) is not None:
            (response_ids.append(packet[0]["id"]) if packet[0]["op"] == "done" else numbers.append(packet[0]["number"]))
            if len(response_ids) == 50 and numbers[-1] == 199:
                break
        assert response_ids == list(range(50))
        assert numbers == sorted(set(numbers))
        assert len(numbers) + send_queue.dropped == 200
        send_queue.wait_sent(5.0)


def test_send_queue_closes_when_responses_are_never_read() -> None:
    server_socket, client_socket = socket.socketpair()
    with server_socket, client_socket:
        send_queue = SendQueue(server_socket, "out")
        for _ in range(3 * MAX_RESPONSES):
            send_queue.put_response({"op": "graph", "graph": "x" * 1000})
        assert send_queue.closed
