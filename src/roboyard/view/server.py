"""Serves the page and its socket, on a thread of its own.

Nothing of a run is touched here: what is shown is asked for (see `Show`), and what is sent waits for slow pages, never
for the run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from http import HTTPStatus
from threading import Thread
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import Server as SocketServer
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from roboyard.errors import InputError, RoboyardError
from roboyard.view.access import Access
from roboyard.view.holder import Holder
from roboyard.view.pages import HEADERS, page_file
from roboyard.view.show import Show
from roboyard.view.viewer import Viewer
from roboyard.view.wire import LARGEST_MESSAGE, ViewMessage, read, text, word

USUAL_PORT = 8711
CLIENT_LIMIT = 16
PERIOD = 1.0 / 34.0
"""Of updates [wall s]."""
_AFTER_FAULT = 1.0
_HOST = "127.0.0.1"
_logger = logging.getLogger("roboyard.view")
_logger.addHandler(logging.NullHandler())
_logger.propagate = False


class Server:
    """Shows something to browsers on this machine until `close`.

    Args:
        port: Where; None: the usual one, or any that is free.
        read_only: Nobody may steer.
        access: None: a new token.

    Attributes:
        url: What to open in a browser; it carries the token.

    Raises:
        InputError: the port is taken.
    """

    def __init__(self, port: int | None = None, *, read_only: bool = False, access: Access | None = None) -> None:
        self.access = access or Access()
        self.holder = Holder(read_only=read_only)
        self._viewers: dict[int, Viewer] = {}
        self._count = 0
        self._show: Show | None = None
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        bound: Future[int] = Future()
        self._thread = Thread(target=self._run, args=(port, bound), name="roboyard-view", daemon=True)
        self._thread.start()
        try:
            self.port = bound.result()
        except OSError as error:
            raise InputError(
                f"port {port} cannot be served: {error.strerror or error}", location="--view-port", valid="a free port"
            ) from None
        self.url = f"http://{_HOST}:{self.port}/#{self.access.token}"

    # -- from other threads --------------------------------------------------------------------------------------------
    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Of the server's thread."""
        return self._loop

    def show(self, show: Show | None) -> None:
        """Show this from now on; None: nothing."""
        self._call(lambda: self._begin(show))

    def tell(self, frame: ViewMessage) -> None:
        """Send a frame to all."""
        self._call(lambda: self._send(frame))

    def close(self) -> None:
        """Let all pages go."""
        self._call(self._stop.set)
        self._thread.join(5.0)

    def _call(self, what: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(what)

    # -- the thread ----------------------------------------------------------------------------------------------------
    def _run(self, port: int | None, bound: Future[int]) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve(port, bound))
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    async def _open(self, port: int) -> SocketServer:
        return await serve(
            self._attend, _HOST, port, process_request=self._request, max_size=LARGEST_MESSAGE, max_queue=32,
            compression=None, ping_interval=10.0, ping_timeout=20.0, open_timeout=5.0, close_timeout=1.0,
            logger=_logger, server_header=None,
        )  # fmt: skip

    async def _serve(self, port: int | None, bound: Future[int]) -> None:
        try:
            try:
                server = await self._open(USUAL_PORT if port is None else port)
            except OSError:
                if port is not None:
                    raise
                server = await self._open(0)
        except OSError as error:
            bound.set_exception(error)
            return
        bound.set_result(next(iter(server.sockets)).getsockname()[1])
        beat = self._loop.create_task(self._beat())
        await self._stop.wait()
        beat.cancel()
        with suppress(asyncio.CancelledError):
            await beat
        server.close()
        await server.wait_closed()

    async def _beat(self) -> None:
        """Send what is new, at an even rate."""
        due = self._loop.time()
        while True:
            show = self._show
            if show is not None and self._viewers:
                wants = set().union(*(viewer.wants for viewer in self._viewers.values()))
                for frame in await self._news(show, wants):
                    self._send(frame)
            now = self._loop.time()
            due = max(due + PERIOD, now - PERIOD)
            await asyncio.sleep(max(due - now, 0.001))

    async def _news(self, show: Show, wants: set[str]) -> list[ViewMessage]:
        """What is new; a fault is told to the pages and ends neither the run nor the view."""
        try:
            frames = await show.news(wants)
        except Exception as error:  # noqa: BLE001 - whatever it is, the pages shall know
            frames = [ViewMessage(text("refused", what=f"{type(error).__name__}: {error}"), "fault")]
            await asyncio.sleep(_AFTER_FAULT)
        return frames if show is self._show else []

    def _begin(self, show: Show | None) -> None:
        self._show = show
        self._send(ViewMessage(text("show", there=show is not None)))
        for frame in show.greeting() if show is not None else ():
            self._send(frame)

    def _send(self, frame: ViewMessage) -> None:
        for viewer in self._viewers.values():
            viewer.put(frame)

    # -- requests ------------------------------------------------------------------------------------------------------
    def _request(self, connection: ServerConnection, request: Request) -> Response | None:
        target = urlsplit(request.path)
        host = request.headers.get("Host")
        if target.path == "/socket":
            token = parse_qs(target.query).get("token", [""])[0]
            why = self.access.refusal(host, request.headers.get("Origin"), token)
            if not why and len(self._viewers) >= CLIENT_LIMIT:
                return _answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{CLIENT_LIMIT} pages look already")
            return _answer(HTTPStatus.FORBIDDEN, why) if why else None
        why = self.access.refusal_of_page(host)
        if why:
            return _answer(HTTPStatus.FORBIDDEN, why)
        found = page_file(target.path)
        if found is None:
            return _answer(HTTPStatus.NOT_FOUND, "there is no such file")
        return _answer(HTTPStatus.OK, *found)

    async def _attend(self, connection: ServerConnection) -> None:
        if len(self._viewers) >= CLIENT_LIMIT:  # others came while this one shook hands
            await connection.close(1013, "too many pages")
            return
        self._count += 1
        viewer = self._viewers[self._count] = Viewer(self._count, connection.send)
        sending = self._loop.create_task(viewer.send_forever())
        viewer.put(ViewMessage(text("welcome", viewer=viewer.number, read_only=self.holder.read_only)))
        viewer.put(ViewMessage(text("show", there=self._show is not None)))
        for frame in self._show.greeting() if self._show is not None else ():
            viewer.put(frame)
        self.holder.came(viewer.number)
        self._tell_control()
        try:
            async for message in connection:
                self._hear(viewer, message)
                if viewer.is_flood:
                    await connection.close(1008, "too many messages")
        except ConnectionClosed:
            pass
        finally:
            sending.cancel()
            del self._viewers[viewer.number]
            self.holder.left(viewer.number)
            if self._show is not None:
                self._show.lost(viewer.number)
                self._show.gone(viewer.number)
            self._tell_control()

    # -- what pages say ------------------------------------------------------------------------------------------------
    def _hear(self, viewer: Viewer, message: str | bytes) -> None:
        if not viewer.may_speak(self._loop.time()):
            if viewer.dropped % 100 == 1:
                viewer.put(ViewMessage(text("refused", what="too many messages"), key="throttled"))
            return
        said: dict[str, object] = {}
        try:
            said = read(message)
            self._obey(viewer, said)
        except RoboyardError as error:
            viewer.put(ViewMessage(text("refused", what=str(error), to=said.get("op"), id=said.get("id"))))

    def _obey(self, viewer: Viewer, said: dict[str, object]) -> None:
        op, show, holder = said["op"], self._show, self.holder
        if op in ("take", "give", "keep"):
            before = holder.number
            {"take": holder.take, "give": holder.give, "keep": holder.keep}[op](viewer.number)
            if show is not None and before is not None and before != holder.number:
                show.lost(before)
            self._tell_control()
        elif op == "want":
            self._want(viewer, word(said, "topic"), bool(said.get("on")))
        elif op == "ping":
            viewer.put(ViewMessage(text("pong", id=said.get("id"))))
        elif show is None:
            raise InputError("nothing is shown now", valid="wait for the next run")
        else:
            if op not in show.free:
                holder.check(viewer.number)
            show.command(said, viewer.number, lambda frame: self._call(lambda: viewer.put(frame)))

    def _want(self, viewer: Viewer, topic: str, on: bool) -> None:
        if not on:
            viewer.wants.discard(topic)
        elif len(viewer.wants) < 1000:
            viewer.wants.add(topic)
            frame = self._show.shown(topic) if self._show is not None else None
            if frame is not None:
                viewer.put(frame)

    def _tell_control(self) -> None:
        told = text("control", holder=self.holder.number, asking=self.holder.asking, viewers=sorted(self._viewers))
        self._send(ViewMessage(told))


def _answer(status: HTTPStatus, body: bytes | str, kind: str = "text/plain; charset=utf-8") -> Response:
    data = body.encode() if isinstance(body, str) else body
    headers = Headers({**HEADERS, "Content-Type": kind, "Content-Length": str(len(data)), "Connection": "close"})
    return Response(status.value, status.phrase, headers, data)
