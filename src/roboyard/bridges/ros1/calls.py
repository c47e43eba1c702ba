"""Services of ROS 1 that nodes of ours call: the master tells where, TCPROS carries request and response."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from roboyard.bridges.gateway import Gateway
from roboyard.bridges.loop import Loop
from roboyard.bridges.ros1.channels import LOST
from roboyard.bridges.ros1.master import Master
from roboyard.bridges.ros1.types import Ros1Service
from roboyard.bridges.ros1.wire import MESSAGE_LIMIT, encode_header, frame, read_frame, read_header
from roboyard.bridges.ros1.xmlrpc import MasterError, split_uri
from roboyard.errors import InputError, MessageError
from roboyard.messages import deserialize

SOURCE: Final = "/ros1"
"""In whose name it is said that nobody answers."""
LOOK: Final = 0.25
"""Between two looks for a server [wall s]."""


class Asked:
    """One service.

    A call waits until somebody serves it, or it is of no use any more.

    Args:
        name: Its name.
        ours: Its type's name on the bus.
        kind: Its type in ROS 1.
        caller: The node of ours that asks.
        master: Knows who serves.
        loop: Where the connections live.
        gateway: The bus.
    """

    def __init__(
        self, name: str, ours: str, kind: Ros1Service, caller: str, master: Master, loop: Loop, gateway: Gateway
    ) -> None:
        self.name = name
        self._ours = ours
        self._kind = kind
        self._caller = caller
        self._master = master
        self._loop = loop
        self._gateway = gateway

    def ask(self, number: int, request: bytes, until_ns: int) -> None:
        """Take a call with its request as CDR to the other side, until ``until_ns`` is over; on the loop's thread."""
        self._loop.begin(self._call(number, request, until_ns))

    async def _call(self, number: int, request: bytes, until_ns: int) -> None:
        try:
            data = self._kind.request.encode(deserialize(request, f"{self._ours}_Request"))
            while self._gateway.bus.now_ns <= until_ns:
                try:
                    uri = str(await self._master.ask("lookupService", self.name))
                    reader, writer = await asyncio.open_connection(*split_uri(uri, "rosrpc"))
                except (MasterError, InputError, OSError):
                    await asyncio.sleep(LOOK)  # nobody serves it yet, or somebody who has gone
                    continue
                try:
                    self._gateway.count("asked")
                    source, answer = await self._exchange(reader, writer, data)
                    self._gateway.answer(number, source, self._kind.response.decode(answer))
                finally:
                    writer.close()
                    with suppress(*LOST):
                        await writer.wait_closed()
                return
        except MessageError as error:
            self._gateway.complain("malformed", f"{self.name}, called outside: {error}")
            self._gateway.answer(number, SOURCE, error=str(error))
        except InputError as error:
            self._gateway.answer(number, SOURCE, error=str(error))
        except LOST:
            self._gateway.answer(number, SOURCE, error="who served it has gone before the answer came")

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
    ) -> tuple[str, bytes]:
        """The server's name and its response.

        Raises:
            InputError: it refuses the call.
            MessageError: it is of another type, or talks nonsense.
            OSError, TimeoutError, asyncio.IncompleteReadError: the connection ended.
        """
        kind = self._kind
        writer.write(
            encode_header({"callerid": self._caller, "service": self.name, "type": kind.name, "md5sum": kind.md5})
        )
        answer = await read_header(reader)
        source = answer.get("callerid", SOURCE)
        if "error" in answer:
            raise MessageError(f"{source} refuses: {answer['error'][:200]}", valid=f"{kind.name} with {kind.md5}")
        if answer.get("md5sum", kind.md5) not in (kind.md5, "*"):
            raise MessageError(
                f"{source} serves {answer.get('type', '?')[:80]} with md5 {answer['md5sum'][:40]}",
                valid=f"{kind.name} with {kind.md5}",
            )
        writer.write(frame(request))
        good = await reader.readexactly(1)
        data = await read_frame(reader, MESSAGE_LIMIT, f"a response of {self.name}")
        if good != b"\x01":
            raise InputError(f"{source} refuses: {data.decode('utf-8', 'replace')[:500] or 'no reason given'}")
        return source, data
