"""How long numba takes to compile each kernel of the package, with type inference and LLVM apart.

One process with an empty cache compiles all kernels, one after the other, those that are called before those that call
them.  A kernel's time is its own: without kernels that it calls, with what numba compiles of NumPy for it, and with
LLVM's work on what is put into it.  Times are processor time, so that other programs on the machine count little.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from roboyard.compute.jit import compile_examples, registered_kernels
from roboyard.compute.kernel_key import called_kernels
from roboyard.compute.precompile import kernel_modules
from roboyard.errors import RunError

DEAREST = 30
INFERENCE, LLVM, LOWERING, REST = "type inference", "LLVM", "lowering", "the rest"
PHASES = {"nopython_type_inference": INFERENCE, "native_lowering": LOWERING}
"""Phase of each of numba's passes that takes long; LLVM is called from lowering and counts apart."""


class Stopwatch:
    """Adds up processor time by kernel and phase, of what was entered last and has not been left."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[str, str], float] = defaultdict(float)
        self._stack = [("", REST)]
        self._last = time.process_time()

    @contextmanager
    def measure(self, *, kernel: str = "", phase: str = "") -> Iterator[None]:
        """Count time inside the context for a kernel or a phase; what is not given stays as it is."""
        self._count()
        outer_kernel, outer_phase = self._stack[-1]
        self._stack.append((kernel, REST) if kernel else (outer_kernel, phase or outer_phase))
        try:
            yield
        finally:
            self._count()
            self._stack.pop()

    def _count(self) -> None:
        now = time.process_time()
        self.seconds[self._stack[-1]] += now - self._last
        self._last = now


def measured(method: Callable[..., None], watch: Stopwatch) -> Callable[..., None]:
    """The same method, whose time counts as LLVM's."""

    def call(*arguments: Any) -> None:
        with watch.measure(phase=LLVM):
            method(*arguments)

    return call


def compile_all() -> list[dict[str, Any]]:
    """Compile all kernels in this process; return the seconds of each kernel's phases, the dearest kernel first."""
    from numba.core import codegen, event

    watch = Stopwatch()

    class Listener(event.Listener):
        """Enters what numba begins, leaves what it ends."""

        def __init__(self) -> None:
            self.open: list[Any] = []

        def on_start(self, event: Any) -> None:
            if event.kind == "numba:compile":
                function = event.data["dispatcher"].py_func
                context = watch.measure(kernel=f"{function.__module__}.{function.__qualname__}")
            else:
                context = watch.measure(phase=PHASES.get(event.data["name"].partition(" ")[0], REST))
            context.__enter__()
            self.open.append(context)

        def on_end(self, event: Any) -> None:
            self.open.pop().__exit__(None, None, None)

    for name in ("add_llvm_module", "finalize"):
        setattr(codegen.CPUCodeLibrary, name, measured(getattr(codegen.CPUCodeLibrary, name), watch))
    listener = Listener()
    for kind in ("numba:compile", "numba:run_pass"):
        event.register(kind, listener)
    for module in sorted(set(kernel_modules())):
        import_module(module)
    kernels = registered_kernels()
    for _, (kernel, examples) in sorted(kernels.items(), key=lambda item: len(called_kernels(item[1][0]))):
        if examples is not None:
            compile_examples(kernel, examples)
    table: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys((INFERENCE, LOWERING, LLVM, REST), 0.0))
    for (name, phase), seconds in watch.seconds.items():
        if name:
            table[name][phase] += seconds
    rows = [{"kernel": name, "seconds": sum(phases.values()), **phases} for name, phases in table.items()]
    return sorted(rows, key=lambda row: (-row["seconds"], row["kernel"]))


def run(nightly: bool) -> dict[str, Any]:
    """Compile in a process of its own, with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        process = subprocess.run(
            [sys.executable, __file__],
            env=os.environ | {"NUMBA_CACHE_DIR": cache},
            capture_output=True,
            text=True,
            check=False,
        )
    if process.returncode:
        raise RunError(f"exit code {process.returncode}: {process.stderr[-500:]}", location="compiling all kernels")
    rows = json.loads(process.stdout)
    total = sum(row["seconds"] for row in rows)
    figures = [
        {"name": f"all {len(rows)} kernels", "value": total, "unit": "s"},
        {"name": f"the {DEAREST} dearest", "value": sum(row["seconds"] for row in rows[:DEAREST]), "unit": "s"},
        *({"name": f"{phase} of all", "value": sum(row[phase] for row in rows), "unit": "s"}
          for phase in (INFERENCE, LOWERING, LLVM, REST)),
    ]  # fmt: skip
    details = [
        f"{row['kernel'].removeprefix('roboyard.')}: {row['seconds']:.1f} s "
        f"({INFERENCE} {row[INFERENCE]:.1f}, {LOWERING} {row[LOWERING]:.1f}, {LLVM} {row[LLVM]:.1f})"
        for row in rows[:DEAREST]
    ]
    return {"figures": figures, "details": details}


if __name__ == "__main__":
    print(json.dumps(compile_all()))
