"""Worker pool on a Ray cluster, or on a local Ray; requires the extra `roboyard[batch]`."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from concurrent.futures import Future
from importlib import import_module
from typing import Any, Final, ParamSpec, TypeVar

from roboyard.compute.pools import CLOSED_POOL_TEXT, Pool, resolve_worker_count
from roboyard.errors import InputError, RunError, describe_exception, import_extra

P = ParamSpec("P")
R = TypeVar("R")

LOCAL: Final = "local"
"""Address of a Ray that is started on this machine, and stopped with the pool."""
_CONNECT_TIMEOUT: Final = 3.0
"""Timeout of connecting to a cluster's head [s]."""
_MAX_MESSAGE_LENGTH: Final = 300
"""Maximum number of characters quoted from Ray's messages."""
_RESPONSE_TIMEOUT: Final = 60.0
"""Timeout of a machine's response, which may first have to start a process [s]."""


class RayPool(Pool):
    """Pool on a Ray cluster. Functions and values must be picklable, and all machines need this package.

    If a worker dies, Ray repeats its call on another one, at most three times (then RunError).

    Args:
        address: HOST:PORT of a cluster's head, ``ray://HOST:PORT`` of its client server, or ``local``.
        workers: Number of workers with ``local``, by default one per usable core.  A cluster has its own number.

    Raises:
        InputError: Ray is not installed, the cluster does not respond, or the number of workers is invalid.
    """

    has_separate_filesystem = True

    def __init__(self, address: str = LOCAL, workers: int | None = None) -> None:
        if address != LOCAL:
            _check_reachable(address)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # avoids a warning about a future default
        ray = import_extra("ray", "batch", "a Ray cluster", location="cluster")
        count, log_options = resolve_worker_count(workers), {"log_to_driver": False, "logging_level": "ERROR"}
        if address == LOCAL:
            ray.init(num_cpus=count, include_dashboard=False, _node_ip_address="127.0.0.1", **log_options)
        else:
            try:
                ray.init(address=address, **log_options)
            except (ConnectionError, RuntimeError, ValueError) as error:
                message = " ".join(str(error).split())[
                    :_MAX_MESSAGE_LENGTH
                ]  # e.g. incompatible versions, on several lines
                valid = f"{_VALID_ADDRESSES}; with the cluster's RAY_AUTH_MODE and RAY_AUTH_TOKEN"
                raise InputError(
                    f"cannot connect to a Ray cluster at {address}: {message}", location="cluster", valid=valid
                ) from None
        self._ray, self._call = ray, ray.remote(_call)
        self.workers = max(int(ray.cluster_resources().get("CPU", count)), 1)
        self._pending: set[Any] = set()
        self._closed = False

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Submit a call; values from `put_shared` may be among its arguments."""
        if self._closed:
            raise RunError(CLOSED_POOL_TEXT)
        task, future = self._call.remote(function, kwargs, *args), Future[R]()
        self._pending.add(task)
        task.future().add_done_callback(lambda task_future: self._forward_result(task, task_future, future))
        return future

    def run_on_each_machine(self, function: Callable[[], R]) -> dict[str, R | Exception]:
        """Run a call on each machine; return results by machine name, or the exception that it raised."""
        affinity: Any = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
        tasks: dict[str, Any] = {}
        for node in self._ray.nodes():
            if node["Alive"]:
                remote_call = self._call.options(num_cpus=0, scheduling_strategy=affinity(node["NodeID"], soft=False))
                tasks[f"{node['NodeManagerHostname']} {node['NodeID'][:6]}"] = remote_call.remote(function, {})
        results: dict[str, R | Exception] = {}
        for name, task in tasks.items():
            try:
                _, results[name] = self._ray.get(task, timeout=_RESPONSE_TIMEOUT)
            except self._ray.exceptions.RayError as error:
                results[name] = RunError(str(error).strip().split("\n")[-1])
        return results

    def put_shared(self, value: Any) -> Any:
        """Store a value for many calls: it is sent to each machine once. Pass the returned reference as an argument."""
        return self._ray.put(value)

    def _forward_result(self, task: Any, task_future: Future[Any], future: Future[Any]) -> None:
        self._pending.discard(task)
        error = task_future.exception()
        if error is not None:
            message = str(error).strip().split("\n")[-1]
            future.set_exception(RunError(f"a worker of the cluster ended: {message}"))
            return
        is_ok, value = task_future.result()
        if is_ok:
            future.set_result(value)
        else:
            future.set_exception(value)

    def close(self, *, now: bool = False) -> None:
        """Disconnect from the cluster, or stop the local Ray."""
        if self._closed:
            return
        self._closed = True
        pending = list(self._pending)
        if now:
            for task in pending:
                self._ray.cancel(task, force=True)
        elif pending:
            self._ray.wait(pending, num_returns=len(pending))
        self._ray.shutdown()


_VALID_ADDRESSES: Final = "HOST:PORT of its head, ray://HOST:PORT, or local"


def _call(function: Callable[..., Any], kwargs: dict[str, Any], *args: Any) -> tuple[bool, Any]:
    """Run a call on a worker; return whether it succeeded, and its result or error, which Ray would wrap."""
    try:
        return True, function(*args, **kwargs)
    except SystemExit as error:  # it would end the worker
        return False, RunError(f"{getattr(function, '__qualname__', function)} {describe_exception(error)}")
    except Exception as error:  # noqa: BLE001 - whatever a call raises is its caller's
        return False, error


def _check_reachable(address: str) -> None:
    """Raise InputError if no server listens at the address: Ray itself would try for half a minute."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise InputError(f"invalid cluster address {address!r}", valid=_VALID_ADDRESSES)
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_TIMEOUT).close()
    except OSError as error:
        raise InputError(
            f"no response from {address}: {error.strerror or error}", location="cluster", valid=_VALID_ADDRESSES
        ) from None
