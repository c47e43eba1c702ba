"""Has compiled what a run will need, before its clock goes: else the first seconds' wall time is the compiler's."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from roboyard.compute import compile_examples, is_kept, registered_kernels, usable_cores

_READY: Final[set[str]] = set()
"""Names of those that this process has looked after: a batch's runs follow each other."""
_MANY: Final = 8
"""Kernels that are quicker compiled on all cores, in programs that have to start first."""


def compile_kernels(
    *, load: bool = False, tell: Callable[[str], None] | None = None, stopped: Callable[[], bool] = lambda: False
) -> None:
    """Compile all kernels whose modules are imported, for the types of their examples; quick when they are cached.

    Args:
        load: Code that is cached is read, too: a second or more, where no first call may wait for it.
        tell: Called with a few words before what takes minutes.
        stopped: Whether it shall be left, since nobody wants the run any more.
    """
    kernels = {
        name: (kernel, examples)
        for name, (kernel, examples) in registered_kernels().items()
        if examples is not None and (load or name not in _READY)
    }
    kept = {name: is_kept(kernel, examples) for name, (kernel, examples) in kernels.items()}
    missing = [name for name in kernels if not kept[name]]
    if len(missing) >= _MANY:
        if tell is not None:
            tell(f"compiling {len(missing)} kernels, once on this machine")
        _compile_beside({kernels[name][0].py_func.__module__ for name in missing if kept[name] is not None}, stopped)
    for name in kernels if load else missing:
        if stopped():
            return
        if load or not is_kept(*kernels[name]):  # what was compiled beside need not be read
            compile_examples(*kernels[name])
    _READY.update(kernels)


def _compile_beside(modules: set[str], stopped: Callable[[], bool]) -> None:
    """Compile the package's own on all cores; what fails is compiled, and told of, by whoever called.

    A program of its own starts the workers: a pool of this process would run scripts without a guard of their main part
    once more.  A worker of a batch has others beside it that do the same, so it does nothing here.
    """
    own = sorted(module for module in modules if module.startswith("roboyard."))
    if not own or usable_cores() < 2 or multiprocessing.parent_process() is not None:
        return
    command, nothing = [sys.executable, "-P", "-m", "roboyard.compute.warm", *own], subprocess.DEVNULL
    with subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing) as program:  # noqa: S603
        while program.poll() is None:
            if stopped():
                program.terminate()
            with suppress(subprocess.TimeoutExpired):
                program.wait(0.1)
