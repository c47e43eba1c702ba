"""Pools return the results of direct calls, pass errors on, replace killed workers, and end with their process."""

import os
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from roboyard.compute import Pool, ProcessPool, ThreadPool, count_usable_cores, open_pool
from roboyard.errors import ConfigError, InputError, RunError


def square(x: float) -> float:
    return x * x


def raise_config_error(location: str) -> None:
    raise ConfigError("no such thing", location=location, valid="this or that")


def kill_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def exit_process() -> None:
    sys.exit(0)


def return_lock() -> object:
    return threading.Lock()


class UnpicklableError(Exception):
    """An exception that can be pickled but not unpickled."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} {second}")


def raise_unpicklable_error() -> None:
    raise UnpicklableError(1, 2)


@pytest.fixture(scope="module")
def processes():
    with ProcessPool(2) as pool:
        yield pool


@pytest.fixture(scope="module", params=["threads", "processes"])
def pool(request, processes):
    if request.param == "processes":
        yield processes
    else:
        with ThreadPool(2) as threads:
            yield threads


def test_results_equal_direct_calls_in_order_of_submission(pool: Pool) -> None:
    futures = [pool.submit(square, x) for x in range(50)]
    assert [future.result() for future in futures] == [square(x) for x in range(50)]


def test_pool_error_keeps_its_type_and_text(pool: Pool) -> None:
    with pytest.raises(ConfigError) as caught:
        pool.submit(raise_config_error, location="file.yaml:3").result()
    assert str(caught.value) == "file.yaml:3: no such thing (this or that)"
    assert pool.submit(square, 3.0).result() == 9.0


def test_process_pool_reuses_its_processes(processes: ProcessPool) -> None:
    process_ids = {processes.submit(os.getpid).result() for _ in range(20)}
    assert len(process_ids) <= 2
    assert os.getpid() not in process_ids


def test_killed_worker_fails_only_its_own_call(processes: ProcessPool) -> None:
    before = [processes.submit(square, x) for x in range(10)]
    killed = processes.submit(kill_process)
    after = [processes.submit(square, x) for x in range(10)]
    with pytest.raises(RunError, match="exit code -9 while running kill_process"):
        killed.result()
    assert [f.result() for f in before + after] == [square(x) for x in range(10)] * 2


def test_sys_exit_in_a_worker_is_an_error_of_the_call() -> None:
    with ProcessPool(1) as pool:
        worker = pool.submit(os.getpid).result()
        with pytest.raises(RunError, match=r"exit_process called sys\.exit\(0\)"):
            pool.submit(exit_process).result()
        assert pool.submit(os.getpid).result() == worker


def test_values_that_cannot_be_pickled_are_reported(processes: ProcessPool) -> None:
    with pytest.raises(RunError, match="cannot send the"):
        processes.submit(return_lock).result()
    with pytest.raises(RunError, match="cannot send the exception of a worker process: UnpicklableError 1 2"):
        processes.submit(raise_unpicklable_error).result()
    with pytest.raises(Exception, match=r"[Pp]ickle"):
        processes.submit(lambda: 1).result()
    assert processes.submit(square, 2.0).result() == 4.0


def test_blas_of_a_worker_has_one_thread(processes: ProcessPool) -> None:
    assert processes.submit(os.getenv, "OPENBLAS_NUM_THREADS").result() == "1"


def test_pool_close_waits_and_close_now_drops_queued_calls() -> None:
    pool = ThreadPool(1)
    gate = threading.Event()
    running = pool.submit(gate.wait)
    queued = pool.submit(square, 1.0)
    queued.add_done_callback(lambda _: gate.set())  # while the pool closes
    pool.close(now=True)
    assert running.result() is True
    assert queued.cancelled()
    with pytest.raises(RunError, match="closed"):
        pool.submit(square, 1.0)

    with open_pool("threads", 1) as pool:
        futures = [pool.submit(square, x) for x in range(5)]
    assert [f.result() for f in futures] == [0, 1, 4, 9, 16]


def test_default_pool_has_one_worker_a_core() -> None:
    with ThreadPool() as pool:
        assert pool.workers == count_usable_cores() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, 10**9, "two"])
@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_open_pool_refuses_invalid_worker_counts_and_kinds(kind: str, workers: object) -> None:
    with pytest.raises(InputError, match=r"workers .* \(an integer from 1 to"):
        open_pool(kind, workers)
    with pytest.raises(InputError, match=r"unknown pool kind 'boats' \(threads or processes\)"):
        open_pool("boats", 1)


@pytest.mark.parametrize("n_killed", [0, 1, 2], ids=["at once", "after one killed worker", "after two killed workers"])
def test_close_now_does_not_wait_for_calls(n_killed: int) -> None:
    """Workers are killed and replaced while the pool closes: a replacement must not start the next long call."""
    pool = ProcessPool(2)
    calls = [(kill_process, ()), (time.sleep, (60,))] * 6
    futures = [pool.submit(function, *arguments) for function, arguments in calls]
    for future in futures[: 2 * n_killed : 2]:
        assert isinstance(future.exception(), RunError)
    pool.close(now=True)
    assert all(future.done() for future in futures)
    assert all(future.cancelled() or future.exception() is not None for future in futures), "a call was completed"


class ReplacementAfterClose:
    """Replaces the lock of a pool: the thread that replaces a worker continues only when the pool has ended all."""

    def __init__(self) -> None:
        self.lock, self.entered, self.closed = threading.Lock(), threading.Event(), threading.Event()

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            self.entered.set()
            assert self.closed.wait(60.0)
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()
        if threading.current_thread() is threading.main_thread():
            self.closed.set()


def test_dead_worker_is_not_replaced_once_the_pool_has_ended() -> None:
    """The pool would not end such a replacement, which would run the call and outlive the pool."""
    pool = ProcessPool(1)
    (worker,) = pool._workers
    pool._workers_lock = lock = ReplacementAfterClose()  # type: ignore[assignment]
    worker.process.kill()
    worker.process.join()
    future = pool.submit(square, 2.0)
    assert lock.entered.wait(60.0)
    pool.close(now=True)
    assert isinstance(future.exception(), RunError)
    assert pool._workers == [worker]


SCRIPT = """
    import os, signal, sys, time
    from roboyard.compute import ProcessPool

    if __name__ == "__main__":
        signal.signal(signal.SIGINT, signal.default_int_handler)  # SIGINT is ignored where tests run in the background
        pool = ProcessPool(2)
        futures = [pool.submit(os.getpid) for _ in range(8)]
        print(*sorted({future.result() for future in futures}), flush=True)
        ENDING
"""


def _start(tmp_path, ending: str) -> subprocess.Popen[str]:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT).replace("ENDING", ending))
    return subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _ends_soon(pid: int) -> bool:
    """Return whether a process ends within 10 s."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 10.0)[0])
    finally:
        os.close(descriptor)


def test_ctrl_c_ends_a_long_call_and_all_workers(tmp_path) -> None:
    ending = """with pool:
            job = pool.submit(time.sleep, 600)
            try:
                print("waiting", flush=True)
                job.result()
            except KeyboardInterrupt:
                print("interrupted", flush=True)
                raise SystemExit(130)"""
    process = _start(tmp_path, ending)
    workers = [int(pid) for pid in process.stdout.readline().split()]
    assert process.stdout.readline() == "waiting\n"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to parent and children
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "interrupted\n", "")
    assert not any(_is_alive(pid) for pid in workers)


@pytest.mark.parametrize("ending", ["pass", "os.kill(os.getpid(), 9)"], ids=["not closed", "killed"])
def test_workers_end_with_their_parent(tmp_path, ending: str) -> None:
    process = _start(tmp_path, ending)
    out, err = process.communicate(timeout=60)
    assert err == ""
    assert all(_ends_soon(int(pid)) for pid in out.split()), "a worker outlived its parent"
