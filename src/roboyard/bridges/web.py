"""What bridges over WebSockets share: a server on the bridge's thread, and peers that may be slow."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from roboyard.bridges.bridge import BridgeError
from roboyard.bridges.gateway import Gateway
from roboyard.bridges.loop import BYTES, MESSAGES, Loop
from roboyard.bridges.web_access import WebAccess

PEERS: Final = 32
LARGEST: Final = 1 << 26
"""What a peer may say at once [bytes]."""
_logger = logging.getLogger("roboyard.bridges")
_logger.addHandler(logging.NullHandler())
_logger.propagate = False


class Peer:
    """One connection; of messages the oldest are dropped if it does not read as fast as the run speaks.

    Args:
        connection: The socket.
        number: Which it is, from 1.
        loop: Where it lives.
        gateway: For counts.
    """

    def __init__(self, connection: ServerConnection, number: int, loop: Loop, gateway: Gateway) -> None:
        self.number = number
        self._connection = connection
        self._loop = loop
        self._gateway = gateway
        self._answers: deque[str | bytes] = deque()
        self._messages: deque[str | bytes] = deque()
        self._bytes = 0
        self._ready = asyncio.Event()

    def answer(self, data: str | bytes) -> None:
        """Queue what must not be lost; on the loop's thread."""
        self._answers.append(data)
        if len(self._answers) > MESSAGES:
            self._gateway.count("not read")
            self._loop.begin(self._connection.close(1008, "too slow"))
            self._answers.clear()
        self._ready.set()

    def message(self, data: str | bytes) -> None:
        """Queue a message; on the loop's thread."""
        self._messages.append(data)
        self._bytes += len(data)
        while len(self._messages) > MESSAGES or (self._bytes > BYTES and len(self._messages) > 1):
            self._bytes -= len(self._messages.popleft())
            self._gateway.count("not read")
        self._gateway.count("sent")
        self._ready.set()

    async def write(self) -> None:
        """Send what waits, for ever."""
        with suppress(ConnectionClosed):
            while True:
                await self._ready.wait()
                self._ready.clear()
                while self._answers or self._messages:
                    if self._answers:
                        data = self._answers.popleft()
                    else:
                        data = self._messages.popleft()
                        self._bytes -= len(data)
                    await self._connection.send(data)


@dataclass(frozen=True, slots=True)
class PeerHandlers:
    """Functions that a server calls on its loop's thread.

    Attributes:
        on_connect: Called with each new peer.
        on_receive: Awaited with a peer and each text or byte string that it sends, in order.
        on_disconnect: Called with each peer whose connection has ended.
    """

    on_connect: Callable[[Peer], None]
    on_receive: Callable[[Peer, str | bytes], Awaitable[None]]
    on_disconnect: Callable[[Peer], None]


class WebServer:
    """Accepts WebSocket connections and serves each peer in a task of its own.

    Args:
        loop: Event loop that the server runs on.
        gateway: Counts refused connections and ended ones, and logs why.
        host: Address to listen on.
        port: Port to listen on; 0: any that is free.
        access: Decides who may connect.
        handlers: Called when a peer connects, sends, and disconnects.
        protocols: Sub-protocols of which a peer must offer one; empty: a peer need not offer any.
    """

    def __init__(
        self,
        loop: Loop,
        gateway: Gateway,
        host: str,
        port: int,
        access: WebAccess,
        handlers: PeerHandlers,
        protocols: Sequence[str] = (),
    ) -> None:
        self.port = port
        self._loop = loop
        self._gateway = gateway
        self._host = host
        self._access = access
        self._handlers = handlers
        self._protocols = [Subprotocol(name) for name in protocols]
        self._server: Server | None = None
        self._peers = 0
        self._count = 0

    async def open(self) -> None:
        """Begin to listen. Raises BridgeError."""
        try:
            self._server = await serve(
                self._attend, self._host, self.port, process_request=self._request, max_size=LARGEST, max_queue=64,
                compression=None, subprotocols=self._protocols or None, select_subprotocol=self._select,
                ping_interval=20.0, ping_timeout=20.0, open_timeout=5.0, close_timeout=0.5, logger=_logger,
                server_header=None,
            )  # fmt: skip
        except OSError as error:
            raise BridgeError(
                f"port {self.port} cannot be served: {error.strerror or error}",
                location=self._host,
                valid="another --bridge-port",
            ) from None
        self.port = next(iter(self._server.sockets)).getsockname()[1]

    async def close(self) -> None:
        """Let all peers go."""
        if self._server is not None:
            self._server.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(2.0):
                    await self._server.wait_closed()

    def _select(self, connection: ServerConnection, offered: Sequence[Subprotocol]) -> Subprotocol | None:
        return next((name for name in self._protocols if name in offered), None)

    def _request(self, connection: ServerConnection, request: Request) -> Response | None:
        headers = request.headers
        refusal = self._access.refusal(headers.get_all("Origin"), headers.get_all("Host"))
        if refusal:
            self._gateway.complain("refused", refusal)
            return connection.respond(HTTPStatus.FORBIDDEN, f"{refusal}\n")
        offered = [name.strip() for line in headers.get_all("Sec-WebSocket-Protocol") for name in line.split(",")]
        if self._protocols and not set(self._protocols) & set(offered):
            self._gateway.complain("refused", f"a peer offers {', '.join(offered)[:80] or 'no sub-protocol'}")
            return connection.respond(HTTPStatus.BAD_REQUEST, f"offer one of: {', '.join(self._protocols)}\n")
        if self._peers >= PEERS:
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, f"{PEERS} are connected already\n")
        return None

    async def _attend(self, connection: ServerConnection) -> None:
        self._count += 1
        self._peers += 1
        peer = Peer(connection, self._count, self._loop, self._gateway)
        writing = self._loop.begin(peer.write())
        try:
            self._handlers.on_connect(peer)
            async for data in connection:
                await self._handlers.on_receive(peer, data)
        except ConnectionClosed:
            self._gateway.count("connections ended")
        finally:
            self._peers -= 1
            writing.cancel()
            self._handlers.on_disconnect(peer)


def json_number(value: Any) -> Any:
    """A value as JSON can have it: what is no number becomes null."""
    if isinstance(value, float) and not -1.7976931348623157e308 <= value <= 1.7976931348623157e308:
        return None
    if isinstance(value, list | tuple):
        return [json_number(item) for item in value]
    if isinstance(value, dict):
        return {str(key): json_number(item) for key, item in value.items()}
    return value
