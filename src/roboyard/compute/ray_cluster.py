"""Pool on a Ray cluster, or on a Ray of this machine: an extra, `roboyard[batch]`."""

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
"""Address of a Ray that is started on this machine, and ended with the pool."""
_CONNECT_TIMEOUT: Final = 3.0
"""A cluster's head answers within so long [s]."""
_MAX_MESSAGE_LENGTH: Final = 300
"""Characters of what Ray says."""
_RESPONSE_TIMEOUT: Final = 60.0
"""A machine of it, which may first have to start a process, within so long [s]."""


class RayPool(Pool):
    """Tasks of Ray: functions and values must pickle, and Roboyard must be installed on all machines.

    A worker that dies takes nothing with it: Ray begins its call anew elsewhere, three times at most (then RunError).

    Args:
        address: HOST:PORT of a cluster's head, ``ray://HOST:PORT`` of its server for clients, or ``local``.
        workers: How many at once with ``local``: one for each usable core if not given.  A cluster has its own number.

    Raises:
        InputError: Ray is not installed, nobody answers at the address, or there is no sensible number of workers.
    """

    has_separate_filesystem = True

    def __init__(self, address: str = LOCAL, workers: int | None = None) -> None:
        if address != LOCAL:
            _check_reachable(address)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # it would warn of what will be
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
                ]  # which versions do not go together, on several lines
                valid = f"{_VALID_ADDRESSES}; with the cluster's RAY_AUTH_MODE and RAY_AUTH_TOKEN"
                raise InputError(f"no Ray cluster at {address}: {message}", location="cluster", valid=valid) from None
        self._ray, self._call = ray, ray.remote(_call)
        self.workers = max(int(ray.cluster_resources().get("CPU", count)), 1)
        self._pending: set[Any] = set()
        self._closed = False

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Queue a call; what `put_shared` gave may be among its arguments."""
        if self._closed:
            raise RunError(CLOSED_POOL_TEXT)
        task, future = self._call.remote(function, kwargs, *args), Future[R]()
        self._pending.add(task)
        task.future().add_done_callback(lambda task_future: self._forward_result(task, task_future, future))
        return future

    def run_on_each_machine(self, function: Callable[[], R]) -> dict[str, R | Exception]:
        """What a call gives on each machine, by its name; or why it gave nothing."""
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
        """A value that many calls take: sent to each machine once. Pass what is returned as an argument."""
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
        """Leave the cluster, or end the Ray of this machine."""
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
    """A call on a worker: whether it went well, and its result or error, which Ray would wrap."""
    try:
        return True, function(*args, **kwargs)
    except SystemExit as error:  # it would end the worker
        return False, RunError(f"{getattr(function, '__qualname__', function)} {describe_exception(error)}")
    except Exception as error:  # noqa: BLE001 - whatever a call raises is its caller's
        return False, error


def _check_reachable(address: str) -> None:
    """Whether anybody listens there at all: Ray itself would try for half a minute."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise InputError(f"cluster {address!r}", valid=_VALID_ADDRESSES)
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_TIMEOUT).close()
    except OSError as error:
        raise InputError(
            f"nobody answers at {address}: {error.strerror or error}", location="cluster", valid=_VALID_ADDRESSES
        ) from None
