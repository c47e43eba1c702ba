"""Services on DDS, as rmw_cyclonedds carries them: of ours, and of foreign nodes that ours call.

In front of request and response stand 16 octets, who asks (uint64) and the number of the call (int64), which go back as
they came.  (rmw_fastrtps has them in RTPS's headers instead, so that its services do not reach others.)
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Final

from roboyard.bridges.bridge import BridgeError
from roboyard.bridges.gateway import Gateway
from roboyard.bridges.ros2 import names
from roboyard.bridges.ros2.dds import Endpoint, Participant, Quality, Reader
from roboyard.bus import Future
from roboyard.errors import InputError, MessageError, RoboyardError
from roboyard.messages import deserialize, serialize

_HEAD: Final = 16
_SOURCE: Final = "/ros2"
_SETTLING: Final = 6
"""Looks until a server that was found has surely found us too: what it is sent before that is lost."""


class Served:
    """One service.

    Args:
        name: Its name.
        kind: Its type's full name, also of those that carry an action.
        node: The node of ours that serves it.
        participant: Where.
        gateway: The bus.
    """

    def __init__(self, name: str, kind: str, node: str, participant: Participant, gateway: Gateway) -> None:
        self.name = name
        self.kind = kind
        self.node = node
        self._participant = participant
        self._gateway = gateway
        quality, about = Quality(), names.hash_of(kind)
        request, response = names.dds_type(f"{kind}_Request"), names.dds_type(f"{kind}_Response")
        label = names.identity(participant.guid, "serviceid")
        self.writer = participant.writer(names.reply(name), response, quality, label + about)
        self.reader = participant.reader(names.request(name), request, quality, self._came, label + about)

    def _came(self, reader: Reader) -> None:
        """Requests have come; on DDS's thread."""
        for sample in reader.take():
            try:
                self._ask(sample.data)
            except MessageError as error:
                self._gateway.complain("malformed", f"{self.name}: {error}")
            except InputError as error:
                self._gateway.complain("refused", f"{self.name}: {error}")

    def _ask(self, data: bytes) -> None:
        if len(data) < 4 + _HEAD:
            raise MessageError(f"{len(data)} bytes are no request")
        head, request = data[4 : 4 + _HEAD], data[:4] + data[4 + _HEAD :]
        deserialize(request, f"{self.kind}_Request")
        if not self._gateway.call(self.name, self.kind, _SOURCE, request, lambda future: self._answer(head, future)):
            raise InputError("too many inputs wait already")

    def _answer(self, head: bytes, future: Future) -> None:
        """On the executor's thread. ROS 2 has no way to say that a call failed: nothing is answered."""
        try:
            data = serialize(future.result)
            self.writer.write(data[:4] + head + data[4:])
        except RoboyardError as error:
            self._gateway.complain("not answered", f"{self.name}: {error}")

    def close(self) -> None:
        """Serve no more."""
        self._participant.forget(self.reader)
        self.writer.close()


@dataclass(slots=True)
class _Call:
    """A call under way: its bytes, until when it is of use [ns], and the servers that it was sent to."""

    data: bytes
    until_ns: int
    servers: frozenset[int] = frozenset()


class Asked:
    """One service of a foreign node that nodes of ours call.

    A call waits until somebody serves it, or it is of no use any more; when all servers that it was sent to have gone,
    it is answered with an error.

    Args:
        name: Its name.
        kind: Its type's full name, also of those that carry an action.
        participant: Where.
        gateway: The bus.
        source: Gives the name of the node that has the writer of this GUID.
    """

    def __init__(
        self, name: str, kind: str, participant: Participant, gateway: Gateway, source: Callable[[bytes], str]
    ) -> None:
        self.name = name
        self.kind = kind
        self._participant = participant
        self._gateway = gateway
        self._source = source
        self._lock = Lock()
        self._calls: dict[int, _Call] = {}
        self._seen: dict[int, int] = {}  # at how many looks, by server
        quality, about = Quality(), names.hash_of(kind)
        request, response = names.dds_type(f"{kind}_Request"), names.dds_type(f"{kind}_Response")
        label = names.identity(participant.guid, "clientid")
        self.writer = participant.writer(names.request(name), request, quality, label + about)
        self.reader = participant.reader(names.reply(name), response, quality, self._came, label + about)
        self._me = hashlib.sha256(self.writer.guid).digest()[:8]

    def check(self, writers: Iterable[Endpoint]) -> None:
        """Tell people of those who serve something else under this name."""
        wanted = names.dds_type(f"{self.kind}_Response")
        wrong = {writer.type for writer in writers if writer.topic == names.reply(self.name)} - {wanted}
        if wrong:
            self._gateway.complain("another type", f"somebody serves {self.name} as {min(wrong)}, not {self.kind}")

    def ask(self, number: int, request: bytes, until_ns: int) -> None:
        """Take a call to the other side; on the executor's thread.

        Args:
            number: Of the call.
            request: As CDR.
            until_ns: When an answer is of no use any more [simulated ns]; 0: never.
        """
        data = request[:4] + self._me + struct.pack("<q", number) + request[4:]
        with self._lock:
            call = self._calls[number] = _Call(data, until_ns)
        self._send(number, call)

    def look(self) -> None:
        """See who serves, send what waits, and see what will not be answered any more; each 0.1 s, on one thread."""
        present = self.writer.readers if self.reader.matched else frozenset()
        self._seen = {server: self._seen.get(server, 0) + 1 for server in present}
        with self._lock:
            calls = dict(self._calls)
        for number, call in calls.items():
            if call.until_ns and self._gateway.bus.now_ns > call.until_ns:
                self._end(number)
            elif not call.servers:
                self._send(number, call)
            elif not call.servers & present and self._end(number):
                self._gateway.answer(number, _SOURCE, error="who served it has gone before the answer came")

    def _send(self, number: int, call: _Call) -> None:
        """Send a call, if anybody serves it."""
        servers = frozenset(server for server, looks in self._seen.items() if looks > _SETTLING)
        with self._lock:
            if call.servers or not servers:
                return  # sent by another thread meanwhile, or it waits
            call.servers = servers
        try:
            self.writer.write(call.data)
            self._gateway.count("asked")
        except BridgeError as error:
            if self._end(number):
                self._gateway.answer(number, _SOURCE, error=str(error))

    def _end(self, number: int) -> bool:
        """Whether the call was still under way."""
        with self._lock:
            return self._calls.pop(number, None) is not None

    def _came(self, reader: Reader) -> None:
        """Answers have come, to other clients too; on DDS's thread."""
        for sample in reader.take():
            data, source = sample.data, self._source(reader.writer_of(sample))
            if data[4:12] != self._me or len(data) < 4 + _HEAD:
                continue
            (number,) = struct.unpack_from("<q", data, 12)
            if not self._end(number):
                continue  # a second server's
            response = data[:4] + data[4 + _HEAD :]
            try:
                deserialize(response, f"{self.kind}_Response")
            except MessageError as error:
                self._gateway.complain("malformed", f"{self.name} of {source}: {error}")
                self._gateway.answer(number, source, error=f"the answer is malformed: {error}")
            else:
                self._gateway.answer(number, source, response)

    def close(self) -> None:
        """Ask no more."""
        self._participant.forget(self.reader)
        self.writer.close()
