"""A worker process: runs calls it is sent, one after the other, until its pipe closes."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import traceback
import warnings
from collections.abc import Callable
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from roboyard.compute.kernel_folders import KernelCacheWarning, divert_cache_warnings
from roboyard.errors import RunError, describe_exception

# Fresh interpreters: a forked child would inherit threads, locks and graphics contexts in whatever state they are.
_spawn = multiprocessing.get_context("spawn")


def _serve(connection: Connection, preload: tuple[str, ...]) -> None:
    """The child's whole life. Ctrl-C is the parent's to handle; the parent's death closes the pipe and ends us."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    from roboyard.compute.blas import limit_blas_threads

    limit_blas_threads(1)
    cache_warnings: list[str] = []  # the parent issues them, once for all of its workers
    divert_cache_warnings(cache_warnings.append)
    for module in preload:
        import_module(module)
    while True:
        try:
            function, arguments, keywords = connection.recv()
        except (EOFError, OSError):
            return
        except SystemExit as error:  # of a module that the call needs
            response: tuple[bool, Any] = (False, RunError(f"a module of the call {describe_exception(error)}"))
        except Exception as error:  # noqa: BLE001 - e.g. a module that cannot be imported here: the caller's to know
            response = (False, error)
        else:
            response = _call(function, arguments, keywords)
        try:
            while cache_warnings:
                connection.send_bytes(pickle.dumps((None, cache_warnings.pop(0))))
            _send(connection, response)
        except OSError:
            return


def _call(function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[bool, Any]:
    try:
        return True, function(*arguments, **keywords)
    except SystemExit as error:  # it would end this process, and the caller's if it were raised there
        return False, RunError(f"{getattr(function, '__qualname__', function)} {describe_exception(error)}")
    except Exception as error:  # noqa: BLE001 - handed to the caller
        error.add_note("in a worker process:\n" + "".join(traceback.format_exception(error)).rstrip())
        return False, error


def _send(connection: Connection, response: tuple[bool, Any]) -> None:
    is_ok, value = response
    try:
        data = pickle.dumps(response)
        if not is_ok:
            pickle.loads(data)  # noqa: S301 - our own; some exceptions pickle well and fail on the way back
    except Exception as error:  # noqa: BLE001 - an object's own pickling may raise anything
        kind = "result" if is_ok else "exception"
        text = f"the {kind} of a worker process cannot be sent back: {type(value).__name__} {value!s:.200}: {error}"
        data = pickle.dumps((False, RunError(text)))
    connection.send_bytes(data)


class Worker:
    """One child process, as its parent sees it."""

    def __init__(self, preload: tuple[str, ...]) -> None:
        self._connection, child_end = _spawn.Pipe()
        self.process: SpawnProcess = _spawn.Process(target=_serve, args=(child_end, preload), name="roboyard-worker")
        # A child inherits the mask: Ctrl-C while it starts up leaves no traceback of its own.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        child_end.close()  # else a dead child would not be noticed

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Run a call there and wait for it; its exception is raised here.

        Raises:
            RunError: The process ended before it answered (killed, out of memory, or it could not start).
        """
        try:
            self._connection.send((function, arguments, keywords))
            is_ok, value = self._receive()
            while is_ok is None:
                warnings.warn(value, KernelCacheWarning, stacklevel=1)  # from one line: Python shows it once
                is_ok, value = self._receive()
        except (EOFError, ConnectionError) as error:
            self.process.join()
            raise RunError(
                f"a worker process ended with exit code {self.process.exitcode} while it ran "
                f"{getattr(function, '__qualname__', function)}",
                valid="-9 often means that memory ran out; a script that starts workers needs "
                "`if __name__ == '__main__':` round its start",
            ) from error
        if is_ok:
            return value
        raise value

    def _receive(self) -> tuple[bool | None, Any]:
        """What the process sends: None and a warning, or whether the call succeeded and its result or exception."""
        response: tuple[bool | None, Any] = pickle.loads(self._connection.recv_bytes())  # noqa: S301 - our own child
        return response

    @property
    def is_alive(self) -> bool:
        """Whether it can take a call."""
        return self.process.is_alive()

    def stop(self, *, now: bool) -> None:
        """End it: after its present call, or at once."""
        if now:
            self.process.terminate()
        else:
            self._connection.close()
        self.process.join()
        if now:
            self._connection.close()
