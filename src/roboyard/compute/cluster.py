"""A pool over the machines of a Ray cluster, or over a Ray of this machine's own: an extra, `roboyard[batch]`."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from concurrent.futures import Future
from importlib import import_module
from typing import Any, Final, ParamSpec, TypeVar

from roboyard.compute.pools import Pool, checked_workers
from roboyard.errors import InputError, RunError, describe_exception, import_extra

P = ParamSpec("P")
R = TypeVar("R")

HERE: Final = "local"
"""Address of a Ray that is started on this machine, and ended with the pool."""
_PATIENCE: Final = 3.0
"""A cluster's head answers within so long [s]."""
_SAID: Final = 300
"""Characters of what Ray says."""
_ANSWER: Final = 60.0
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

    apart = True

    def __init__(self, address: str = HERE, workers: int | None = None) -> None:
        if address != HERE:
            _ask(address)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # it would warn of what will be
        ray = import_extra("ray", "batch", "a Ray cluster", where="cluster")
        count, quiet = checked_workers(workers), {"log_to_driver": False, "logging_level": "ERROR"}
        if address == HERE:
            ray.init(num_cpus=count, include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)
        else:
            try:
                ray.init(address=address, **quiet)
            except (ConnectionError, RuntimeError, ValueError) as error:
                said = " ".join(str(error).split())[:_SAID]  # which versions do not go together, on several lines
                valid = f"{_VALID}; with the cluster's RAY_AUTH_MODE and RAY_AUTH_TOKEN"
                raise InputError(f"no Ray cluster at {address}: {said}", where="cluster", valid=valid) from None
        self._ray, self._call = ray, ray.remote(_call)
        self.workers = max(int(ray.cluster_resources().get("CPU", count)), 1)
        self._open: set[Any] = set()
        self._closed = False

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Queue a call; what `share` gave may be among its arguments."""
        if self._closed:
            raise RunError("work was submitted to a pool that is closed")
        task, out = self._call.remote(function, kwargs, *args), Future[R]()
        self._open.add(task)
        task.future().add_done_callback(lambda done: self._hand_on(task, done, out))
        return out

    def on_each_machine(self, function: Callable[[], R]) -> dict[str, R | Exception]:
        """What a call gives on each machine, by its name; or why it gave nothing."""
        affinity: Any = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
        asked: dict[str, Any] = {}
        for node in self._ray.nodes():
            if node["Alive"]:
                there = self._call.options(num_cpus=0, scheduling_strategy=affinity(node["NodeID"], soft=False))
                asked[f"{node['NodeManagerHostname']} {node['NodeID'][:6]}"] = there.remote(function, {})
        found: dict[str, R | Exception] = {}
        for name, task in asked.items():
            try:
                _, found[name] = self._ray.get(task, timeout=_ANSWER)
            except self._ray.exceptions.RayError as error:
                found[name] = RunError(str(error).strip().split("\n")[-1])
        return found

    def share(self, value: Any) -> Any:
        """A value that many calls take: sent to each machine once. Pass what is returned as an argument."""
        return self._ray.put(value)

    def _hand_on(self, task: Any, done: Future[Any], out: Future[Any]) -> None:
        self._open.discard(task)
        error = done.exception()
        if error is not None:
            said = str(error).strip().split("\n")[-1]
            out.set_exception(RunError(f"a worker of the cluster ended: {said}"))
            return
        good, value = done.result()
        if good:
            out.set_result(value)
        else:
            out.set_exception(value)

    def close(self, *, now: bool = False) -> None:
        """Leave the cluster, or end the Ray of this machine."""
        if self._closed:
            return
        self._closed = True
        open_ = list(self._open)
        if now:
            for task in open_:
                self._ray.cancel(task, force=True)
        elif open_:
            self._ray.wait(open_, num_returns=len(open_))
        self._ray.shutdown()


_VALID: Final = "HOST:PORT of its head, ray://HOST:PORT, or local"


def _call(function: Callable[..., Any], kwargs: dict[str, Any], *args: Any) -> tuple[bool, Any]:
    """A call on a worker: whether it went well, and its result or error, which Ray would wrap."""
    try:
        return True, function(*args, **kwargs)
    except SystemExit as error:  # it would end the worker
        return False, RunError(f"{getattr(function, '__qualname__', function)} {describe_exception(error)}")
    except Exception as error:  # noqa: BLE001 - whatever a call raises is its caller's
        return False, error


def _ask(address: str) -> None:
    """Whether anybody listens there at all: Ray itself would try for half a minute."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise InputError(f"cluster {address!r}", valid=_VALID)
    try:
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
    except OSError as error:
        raise InputError(
            f"nobody answers at {address}: {error.strerror or error}", where="cluster", valid=_VALID
        ) from None
