"""Linking of large kernels to their callers, instead of numba's copies that are optimized in each caller.

numba adds the code of every called function to the caller's, and LLVM then optimizes and translates all of it once
more: with large kernels this is most of its work.  Here a caller refers to a large kernel by name only; LLVM's
execution engine finds the code, which the process has compiled or read before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import llvmlite.binding as llvm

from roboyard.compute.kernel_key import total_code_size

MIN_LINKED_SIZE = 4000
"""Minimum bytecode size of a kernel and all that it calls [bytes] for linking: about one second of compilation. LLVM
inlines only much smaller functions.
"""


class LinkedCode(NamedTuple):
    """Code of a kernel for argument types, which the code of other kernels calls by its symbol.

    Attributes:
        symbol: Name of the function in LLVM; differs between compilations.
        kernel: `module.qualname` of the kernel.
        signature: Types of its arguments.
    """

    symbol: str
    kernel: str
    signature: tuple[Any, ...]


_linked_code: dict[str, LinkedCode] = {}
"""Code of this process that callers are linked to, by symbol."""


def is_linked(compiled: Any) -> bool:
    """Return whether callers of a kernel are linked to it, instead of containing a copy of its code."""
    return not compiled.targetoptions.get("forceinline") and total_code_size(compiled) >= MIN_LINKED_SIZE


def link_callers(result: Any, kernel: str, signature: tuple[Any, ...]) -> None:
    """Link further compilations to this result by its symbol.

    Args:
        result: The compiled code; it remains loaded.
        kernel: `module.qualname` of the kernel.
        signature: Types of its arguments.
    """
    symbol = result.fndesc.llvm_func_name
    _linked_code[symbol] = LinkedCode(symbol, kernel, signature)
    result.library._shared_module = llvm.parse_assembly("")  # the code that numba adds to a caller


def find_linked_code(result: Any) -> list[LinkedCode]:
    """Return all code that a compilation result is linked to."""
    declared = (function.name for function in result.library._final_module.functions if function.is_declaration)
    return [_linked_code[name] for name in declared if name in _linked_code]


def serialize_result(result: Any) -> tuple[Any, ...]:
    """Return the parts of a result to cache if its callers are linked to it: without the code for callers."""
    description, library = result.fndesc, result.library
    defined = {function.name for function in library.get_defined_functions()}
    names = (description.llvm_func_name, description.llvm_cpython_wrapper_name, description.llvm_cfunc_wrapper_name)
    # numba derives the symbols that the machine code defines from the code for callers
    stubs = "".join(f'define void @"{name}"() {{\n  unreachable\n}}\n' for name in names if name in defined)
    library._shared_module = llvm.parse_assembly(stubs)
    reduced: tuple[Any, ...] = result._reduce()
    return reduced
