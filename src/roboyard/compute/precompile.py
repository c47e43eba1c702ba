"""Precompilation of kernels ahead of their first call, on all cores, in parallel with the program that will call them.

Objects that will call kernels request them with `expect_kernels` when they are created: a simulation, a costmap, a
planner. Separate processes then compile kernels that are not cached, while the world is still being built.
`wait_for_kernels` waits for them before a clock starts.  This call is optional: a kernel's first call waits for the
process that compiles it. `monitor_compilation` reports the progress of such waits, and lets a stopped run end them.
"""

from __future__ import annotations

import atexit
import multiprocessing
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from roboyard.compute.jit import (
    CompiledFunction,
    Examples,
    add_first_call_hook,
    check_interruption,
    compile_examples,
    get_example_factory,
    has_signature,
    interrupt_compilation,
    is_cached,
    is_compiled_by_other_process,
    kernel_name,
    registered_kernels,
)
from roboyard.compute.kernel_key import called_kernels, total_code_size
from roboyard.compute.kernel_linking import MIN_LINKED_SIZE
from roboyard.compute.pools import count_usable_cores
from roboyard.compute.wall_clock import wall_seconds

_PACKAGE: Final = Path(__file__).resolve().parent.parent
_POLL: Final = 0.05
"""Period of checks on the compiling processes [s]."""
_END: Final = (-1, "", "")
"""Job that ends the thread that receives it."""
_PRIORITY: Final = 1 << 40
"""Subtracted from the size of a kernel whose caller waits: kernels with the smallest numbers are compiled first."""


@dataclass(frozen=True)
class CompilationProgress:
    """Progress of the compilation of expected kernels.

    Attributes:
        n_finished: Number of compiled kernels, of those that were missing.
        total: Number of kernels that were missing.
        name: Kernel that was started last.
        seconds_left: Estimate from the sizes of compiled and remaining kernels [s]; None before the first is compiled.
    """

    n_finished: int
    total: int
    name: str
    seconds_left: float | None

    def __str__(self) -> str:
        left = "" if self.seconds_left is None else f", about {max(1, round(self.seconds_left))} s left"
        return f"{min(self.n_finished + 1, self.total)} of {self.total} ({self.name.removeprefix('roboyard.')}){left}"


Report = Callable[[CompilationProgress], None]

_expected: dict[str, CompiledFunction[..., Any]] = {}
"""Kernels that this process will call and that are not known to be cached, by name."""
_ready: set[str] = set()
"""Names of expected kernels whose code is cached or compiled in this process."""


def expect_kernels(*kernels: CompiledFunction[..., Any]) -> None:
    """Compile kernels that will be called, for the types of their examples, in the background.

    Returns immediately.  Separate processes, one per usable core, compile kernels that are not cached.  In a worker
    process, on one core, or without a writable cache, `wait_for_kernels` or the first call compiles.

    Raises:
        ValueError: A kernel has no examples.
    """
    missing: list[CompiledFunction[..., Any]] = []
    for kernel in kernels:
        if not hasattr(kernel, "py_func"):  # with NUMBA_DISABLE_JIT functions are unchanged
            continue
        name = kernel_name(kernel)
        if name in _ready or name in _expected:
            continue
        if is_cached(kernel, _required_examples(kernel)):
            _ready.add(name)
        else:
            _expected[name] = kernel
            missing.append(kernel)
    if missing and _can_compile_in_background():
        _compilers.submit(missing)


@contextmanager
def compile_on_demand() -> Iterator[None]:
    """Start no processes for kernels that are expected inside the context, for objects that are created but not run."""
    before, _compilers.is_enabled = _compilers.is_enabled, False
    try:
        yield
    finally:
        _compilers.is_enabled = before


def expected_kernels() -> frozenset[str]:
    """Return the names of all kernels that were expected in this process so far."""
    return frozenset(_ready | _expected.keys())


@contextmanager
def monitor_compilation(
    *, report: Report | None = None, is_stopped: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Report the progress of compilations that first calls inside the context wait for, and allow interrupting them.

    Args:
        report: Function called with the progress when it changes.
        is_stopped: Function called often: True stops the background processes, and the first call that waits, or
            compiles, raises `CompilationInterrupted`.

    Raises:
        CompilationInterrupted: A first call was interrupted.
    """
    before, _compilers.report = _compilers.report, report
    try:
        with interrupt_compilation(is_stopped):
            yield
    except KeyboardInterrupt:
        _compilers.close()
        raise
    finally:
        _compilers.report = before


def wait_for_kernels(
    *, report: Report | None = None, is_stopped: Callable[[], bool] = lambda: False, load: bool = False
) -> None:
    """Wait until all expected kernels are compiled; compile kernels in this process if no background process can.

    Args:
        report: Function called with the progress when it changes.
        is_stopped: Function called often: True ends the wait and the background processes.
        load: Also load the code into this process, so that no first call has to.
    """
    if not _expected and not load:
        return
    _compilers.wait(report, is_stopped)
    missing = {name: kernel for name, kernel in _expected.items() if not is_cached(kernel, _required_examples(kernel))}
    _ready.update(_expected.keys() - missing.keys())
    total, start, sizes = (
        len(missing),
        wall_seconds(),
        {name: total_code_size(kernel) for name, kernel in missing.items()},
    )
    while missing and not is_stopped():
        # Workers of a batch have the same list: each compiles kernels that no other compiles at this moment.
        name = next(
            (name for name, kernel in missing.items() if not is_compiled_by_other_process(kernel)), next(iter(missing))
        )
        if report is not None:
            size_left = sum(sizes[other] for other in missing)
            seconds = _estimate_seconds_left(wall_seconds() - start, sum(sizes.values()) - size_left, size_left)
            report(CompilationProgress(total - len(missing), total, name, seconds))
        kernel = missing.pop(name)
        if not is_cached(kernel, _required_examples(kernel)):
            compile_examples(kernel, _required_examples(kernel))
        _ready.add(name)
    for name in _ready:
        _expected.pop(name, None)
    if load:
        kernels = registered_kernels()
        for name in sorted(_ready):
            kernel, examples = kernels[name]
            if examples is not None and not is_stopped():
                compile_examples(kernel, examples)


def compile_all_kernels(*, report: Report | None = None) -> list[str]:
    """Compile all kernels of the package that have examples, on all cores; return the names of the others."""
    modules = set(kernel_modules())
    for module in sorted(modules):
        import_module(module)
    found = {
        name: (kernel, examples)
        for name, (kernel, examples) in registered_kernels().items()
        if kernel.py_func.__module__ in modules
    }
    expect_kernels(*(kernel for kernel, examples in found.values() if examples is not None))
    wait_for_kernels(report=report)
    return [name for name, (_, examples) in found.items() if examples is None]


def kernel_modules() -> Iterator[str]:
    """Return the names of all modules of the package that define kernels, without importing the others."""
    for path in sorted(_PACKAGE.rglob("*.py")):
        if "\n@kernel" in path.read_text("utf-8"):
            yield ".".join(("roboyard", *path.relative_to(_PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def _estimate_seconds_left(elapsed: float, size_finished: int, size_left: int) -> float | None:
    """Estimate the remaining time from the rate so far [s]; None before the first kernel is compiled."""
    return elapsed * size_left / size_finished if size_finished else None


def _required_examples(kernel: CompiledFunction[..., Any]) -> Examples:
    examples = get_example_factory(kernel)
    if examples is None:
        raise ValueError(f"kernel {kernel_name(kernel)} has no examples of its arguments")
    return examples


def _wait_for_background(kernel: CompiledFunction[..., Any], types: Any) -> None:
    """Wait before a first call until the kernel is compiled in the background, if it is expected with these types."""
    if kernel_name(kernel) in _expected and has_signature(_required_examples(kernel), types):
        _compilers.wait_for(kernel)


add_first_call_hook(_wait_for_background)


def _can_compile_in_background() -> bool:
    """Return False in worker processes, which run in parallel with others, and on a single core."""
    return _compilers.is_enabled and count_usable_cores() > 1 and multiprocessing.parent_process() is None


class _Compilers:
    """Processes that compile kernels by name.

    Attributes:
        is_enabled: Whether expected kernels are compiled in the background; see `compile_on_demand`.
        report: Function called with the progress while a first call waits; see `monitor_compilation`.
    """

    def __init__(self) -> None:
        self.is_enabled = True
        self.report: Report | None = None
        self._change = threading.Condition()
        self._queue: queue.PriorityQueue[tuple[int, str, str]] = queue.PriorityQueue()
        self._sizes: dict[str, int] = {}
        self._started: set[str] = set()
        self._finished: set[str] = set()
        self._reported: tuple[int, str] | None = None
        self._latest = ""
        self._start = 0.0
        self._processes: list[subprocess.Popen[str]] = []

    def submit(self, kernels: Iterable[CompiledFunction[..., Any]]) -> None:
        """Queue kernels and the large kernels that they call; those with few callees come first."""
        with self._change:
            self._processes = [process for process in self._processes if process.poll() is None]
            for kernel in kernels:
                for part in (kernel, *called_kernels(kernel)):
                    self._add(part, is_part=part is not kernel)
            n_missing = len(self._sizes) - len(self._finished)
            while len(self._processes) < min(count_usable_cores(), n_missing):
                self._start_process()

    def _add(self, kernel: CompiledFunction[..., Any], *, is_part: bool) -> None:
        name = kernel_name(kernel)
        if name in self._sizes or not name.startswith("roboyard."):
            return
        examples = get_example_factory(kernel)
        if examples is None:
            return
        size = total_code_size(kernel)
        if is_part and size < MIN_LINKED_SIZE:
            return
        if is_cached(kernel, examples) is not False:
            return  # it is compiled, or there is no folder to transfer the code to this process
        if not self._sizes:
            self._start = wall_seconds()
        self._sizes[name] = size
        self._queue.put((size, kernel.py_func.__module__, name))

    def _start_process(self) -> None:
        command = [sys.executable, "-P", "-m", "roboyard.compute.precompile"]
        process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._processes.append(process)
        arguments = (process, self._queue)
        threading.Thread(target=self._feed, args=arguments, name="roboyard-compile", daemon=True).start()

    def _feed(self, process: subprocess.Popen[str], jobs: queue.PriorityQueue[tuple[int, str, str]]) -> None:
        """Pass one kernel after the other to a process; if it fails at one, the caller in this process compiles it."""
        if process.stdin is None or process.stdout is None:
            return
        with process.stdout, suppress(OSError), process.stdin:  # closing flushes data that an ended process never read
            while True:
                _, module, name = jobs.get()
                if not name:
                    return
                with self._change:
                    if jobs is self._queue and name in self._started:
                        continue  # it was moved ahead, and compiled there
                    self._started.add(name)
                    self._latest = name
                try:
                    process.stdin.write(f"{module} {name}\n")
                    process.stdin.flush()
                    has_response = bool(process.stdout.readline())
                except (OSError, ValueError):  # the process has ended
                    has_response = False
                with self._change:
                    if (
                        jobs is self._queue
                    ):  # otherwise the queue was replaced meanwhile, and may have other kernels by now
                        self._finished.add(name)
                    self._change.notify_all()
                if not has_response:
                    return

    def wait(self, report: Report | None, is_stopped: Callable[[], bool]) -> None:
        """Wait until all queued kernels are compiled or all processes have ended, then stop the processes."""
        try:
            while not is_stopped() and self._wait_briefly(report, lambda: len(self._finished) == len(self._sizes)):
                pass
        finally:
            self.close()

    def wait_for(self, kernel: CompiledFunction[..., Any]) -> None:
        """Wait until a kernel is compiled or all processes have ended; it and its callees are compiled before others.

        Raises:
            CompilationInterrupted: See `monitor_compilation`.
        """
        name = kernel_name(kernel)
        with self._change:
            for part in (kernel, *called_kernels(kernel)):
                part_name = kernel_name(part)
                if part_name in self._sizes and part_name not in self._started:
                    self._queue.put((self._sizes[part_name] - _PRIORITY, part.py_func.__module__, part_name))
        while self._wait_briefly(self.report, lambda: name not in self._sizes or name in self._finished):
            check_interruption()

    def _wait_briefly(self, report: Report | None, is_done: Callable[[], bool]) -> bool:
        """Wait for a change, and report it; return False if the wait is over, or no process works on it."""
        with self._change:
            is_alive = any(process.poll() is None for process in self._processes)
            if not is_alive or is_done():
                return False
            self._change.wait(_POLL)
            progress = self._progress()
        state = progress.n_finished, progress.name
        if report is not None and state != self._reported:
            self._reported = state
            report(progress)
        return True

    def _progress(self) -> CompilationProgress:
        """Compute the progress; the remaining time follows from the kernels' own sizes, as callees count separately."""
        size_finished = sum(self._sizes[name] for name in self._finished)
        size_left = sum(self._sizes.values()) - size_finished
        seconds = _estimate_seconds_left(wall_seconds() - self._start, size_finished, size_left)
        return CompilationProgress(len(self._finished), len(self._sizes), self._latest, seconds)

    def close(self) -> None:
        """Stop the processes; kernels that are being compiled are skipped, and the cache stays consistent."""
        with self._change:
            processes, self._processes = self._processes, []
            for _ in processes:
                self._queue.put(_END)
            self._queue = queue.PriorityQueue()
            self._sizes.clear()
            self._started.clear()
            self._finished.clear()
            self._reported = None
        for process in processes:
            process.terminate()
            process.wait()


_compilers: Final = _Compilers()
atexit.register(_compilers.close)


def _serve() -> None:
    """Compile the kernels whose names arrive, one per line, and respond with a line each; the parent handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        module, name = line.split()
        try:
            import_module(module)
            kernel = registered_kernels()[name][0]
            compile_examples(kernel, _required_examples(kernel))
            response = name
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller meets it when it compiles by itself
            response = f"failed: {name}: {error!r}".replace("\n", " ")
        sys.stdout.write(response + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
