"""An event loop on a thread of its own, where a bridge's connections live."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from threading import Lock, Thread
from typing import Any, Final, TypeVar

from roboyard.errors import RunError

T = TypeVar("T")
MESSAGES: Final = 1000
BYTES: Final = 64 * 1024 * 1024
"""What may wait for one peer before its oldest messages are dropped."""
_BUFFERED: Final = 1 << 20
_RETRY: Final = 0.002


class Loop:
    """Runs coroutines beside the run.

    Args:
        name: Of its thread.
    """

    def __init__(self, name: str) -> None:
        self.asyncio = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._waiting: deque[Callable[[], None]] = deque()
        self._woken = False
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.asyncio)
        self.asyncio.run_forever()
        self.asyncio.close()

    def wait(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """Run ``work`` and wait for its result; from another thread.

        Raises:
            RunError: it took longer.
        """
        future = asyncio.run_coroutine_threadsafe(work, self.asyncio)
        try:
            return future.result(seconds)
        except TimeoutError as error:
            if not future.cancel():
                raise
            raise RunError(f"no answer within {seconds:g} s") from error

    def begin(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Let ``work`` go on by itself until it ends or the loop stops; from the loop's thread."""
        task = self.asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def post(self, action: Callable[[], None]) -> None:
        """Have ``action`` done on the loop's thread; from any thread, cheap when many come at once."""
        self._waiting.append(action)
        if not self._woken:
            self._woken = True
            with suppress(RuntimeError):  # the loop has stopped
                self.asyncio.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        self._woken = False
        while self._waiting:
            self._waiting.popleft()()

    def stop(self) -> None:
        """End all that still goes on, then the thread."""

        async def cancel() -> None:
            mine = asyncio.current_task()
            tasks = [task for task in asyncio.all_tasks() if task is not mine]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(_RETRY)  # connections that were let go are closed in the loop's next rounds

        with suppress(RunError, RuntimeError):
            self.wait(cancel(), 2.0)
        with suppress(RuntimeError):
            self.asyncio.call_soon_threadsafe(self.asyncio.stop)
        self._thread.join(2.0)


class Outlet:
    """What waits to be sent to one peer; the oldest is dropped when the peer does not read as fast as the run speaks.

    Args:
        loop: Where the connection lives.
        writer: The connection.
        dropped: Called for each message dropped.
    """

    __slots__ = ("_bytes", "_closed", "_dirty", "_dropped", "_lock", "_loop", "_queue", "_writer")

    def __init__(self, loop: Loop, writer: asyncio.StreamWriter, dropped: Callable[[], None]) -> None:
        self._loop = loop
        self._writer = writer
        self._dropped = dropped
        self._lock = Lock()
        self._queue: deque[bytes] = deque()
        self._bytes = 0
        self._dirty = False
        self._closed = False

    def send(self, data: bytes) -> None:
        """Queue ``data``; from any thread."""
        with self._lock:
            if self._closed:
                return
            queue, dropped = self._queue, 0
            queue.append(data)
            self._bytes += len(data)
            while len(queue) > MESSAGES or (self._bytes > BYTES and len(queue) > 1):
                self._bytes -= len(queue.popleft())
                dropped += 1
            wake, self._dirty = not self._dirty, True
        if wake:
            self._loop.post(self._flush)
        for _ in range(dropped):
            self._dropped()

    def _flush(self) -> None:
        transport = self._writer.transport
        if transport.is_closing():
            self.close()
            return
        if transport.get_write_buffer_size() > _BUFFERED:
            self._loop.asyncio.call_later(_RETRY, self._flush)
            return
        chunks, size = [], 0
        with self._lock:
            while self._queue and size < _BUFFERED:
                chunks.append(self._queue.popleft())
                size += len(chunks[-1])
            self._bytes -= size
            again = self._dirty = bool(self._queue)
        if chunks:
            self._writer.write(chunks[0] if len(chunks) == 1 else b"".join(chunks))
        if again:
            self._loop.asyncio.call_soon(self._flush)

    def close(self) -> None:
        """Send nothing more."""
        with self._lock:
            self._closed = True
            self._queue.clear()
            self._bytes = 0
