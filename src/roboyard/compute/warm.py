"""Compile all kernels once, or those of some modules: `python -m roboyard.compute.warm [MODULE …]`.

Test workers and batch workers that start at the same moment then read machine code instead of each compiling it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

from roboyard.compute.jit import compile_examples, is_kept, registered_kernels
from roboyard.compute.pools import ProcessPool, usable_cores

_PACKAGE = Path(__file__).resolve().parent.parent


def kernel_modules() -> Iterator[str]:
    """Names of all modules of the package whose text uses `@kernel`, found without importing the others."""
    for path in sorted(_PACKAGE.rglob("*.py")):
        if "\n@kernel" in path.read_text("utf-8"):
            yield ".".join(("roboyard", *path.relative_to(_PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def compile_kernels_of(module: str) -> tuple[int, list[str]]:
    """Compile every kernel of a module for the types of its examples; how many, and the names without examples."""
    import_module(module)
    compiled, without = 0, []
    for name, (kernel, examples) in registered_kernels().items():
        if getattr(kernel, "__module__", "") != module:
            continue
        if examples is None:
            without.append(name)
            continue
        if not is_kept(kernel, examples):
            compile_examples(kernel, examples)
        compiled += 1
    return compiled, without


def warm(modules: Iterable[str] = ()) -> tuple[int, list[str]]:
    """Compile all kernels, or those of ``modules``, on all cores; how many, and the names without examples."""
    with ProcessPool(usable_cores()) as pool:
        futures = [pool.submit(compile_kernels_of, module) for module in modules or kernel_modules()]
        found = [future.result() for future in futures]
    return sum(compiled for compiled, _ in found), [name for _, without in found for name in without]


def main() -> None:
    """Compile, and say what was done."""
    compiled, without = warm(sys.argv[1:])
    sys.stdout.write(f"{compiled} kernels ready\n")
    if without:
        sys.stdout.write(f"compiled at first use, having no examples: {', '.join(without)}\n")


if __name__ == "__main__":
    main()
