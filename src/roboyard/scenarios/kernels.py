"""Has compiled what a run will need, before its clock goes: else the first seconds' wall time is the compiler's."""

from __future__ import annotations

from typing import Final

from roboyard.compute import compile_examples, registered_kernels

_READY: Final[set[str]] = set()
"""Names of those that this process has looked after: a batch's runs follow each other."""


def compile_kernels(*, load: bool = False) -> None:
    """Compile all kernels whose modules are imported, for the types of their examples; quick when they are cached.

    Args:
        load: Code that is cached is read, too: a second or more, where no first call may wait for it.
    """
    for name, (kernel, examples) in registered_kernels().items():
        if examples is not None and (load or name not in _READY):
            compile_examples(kernel, examples, load=load)
            _READY.add(name)
