"""Frames arrive whole however a stream cuts them, and what is not read is bounded."""

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
def test_frames_arrive_whole_however_they_are_cut(sent: list[tuple[dict[str, int], bytes]], cuts: list[int]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        data, wanted = b"", [({**header, "op": "x"}, payload) for header, payload in sent]
        for header, payload in wanted:
            data += frame(json.dumps(header).encode(), payload)
        reader, got = SocketPacketReader(ours), []
        ours.settimeout(0.0)
        at, turn = 0, 0
        while at < len(data):
            size = cuts[turn % len(cuts)]
            theirs.sendall(data[at : at + size])
            at, turn = at + size, turn + 1
            with suppress(BlockingIOError):  # as a time-out in the middle of a frame
                while True:
                    got.append(reader.read())
        theirs.close()
        assert got == wanted
        assert reader.read() is None


def test_send_queue_of_a_client_that_does_not_read_is_bounded() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        outbox = SendQueue(ours, "out")
        for number in range(200):
            outbox.put_message({"op": "message", "number": number}, bytes(1_000_000))
        for number in range(50):
            outbox.put_response({"op": "done", "id": number})
        assert sum(len(payload) for _, payload, _ in outbox._queue) <= MAX_MESSAGE_BYTES
        outbox.close_after_send()
        theirs.settimeout(10.0)
        reader, answers, numbers = SocketPacketReader(theirs), [], []
        while (got := reader.read()) is not None:
            (answers.append(got[0]["id"]) if got[0]["op"] == "done" else numbers.append(got[0]["number"]))
            if len(answers) == 50 and numbers[-1] == 199:
                break
        assert answers == list(range(50))
        assert numbers == sorted(set(numbers))
        assert len(numbers) + outbox.dropped == 200
        outbox.wait_sent(5.0)


def test_send_queue_closes_when_answers_are_never_read() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        outbox = SendQueue(ours, "out")
        for _ in range(3 * MAX_RESPONSES):
            outbox.put_response({"op": "graph", "graph": "x" * 1000})
        assert outbox.closed
