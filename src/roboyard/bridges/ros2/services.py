"""Services of ours on DDS, as rmw_cyclonedds carries them.

In front of request and response stand 16 octets, who asks (uint64) and the number of the call (int64), which go back as
they came.  (rmw_fastrtps has them in RTPS's headers instead, so that its services do not reach others.)
"""

from __future__ import annotations

from typing import Final

from roboyard.bridges.gateway import Gateway
from roboyard.bridges.ros2 import names
from roboyard.bridges.ros2.dds import Participant, Quality, Reader
from roboyard.bus import Future
from roboyard.errors import InputError, MessageError, RoboyardError
from roboyard.messages import deserialize, serialize

_HEAD: Final = 16
_SOURCE: Final = "/ros2"


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
