"""Links large kernels to those that call them, where numba would put a copy into each caller and optimize it there.

numba adds the code of every function that is called to the caller's, and LLVM then optimizes and translates all of it
once more: with large kernels this is most of its work.  Here a caller keeps only the name of a large kernel; LLVM's
execution engine finds the code, which the process has compiled or read before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import llvmlite.binding as llvm

from roboyard.compute.kernel_key import total_code_size

MIN_LINKED_SIZE = 4000
"""Bytecode of a kernel and of all that it calls [bytes] from which its callers are linked to it: about a second's work
of the compiler. LLVM inlines much smaller functions only."""


class LinkedCode(NamedTuple):
    """Code of a kernel for argument types, which other kernels' code calls by its symbol.

    Attributes:
        symbol: Name of the function in LLVM; differs from compilation to compilation.
        kernel: `module.qualname`.
        signature: The types of its arguments.
    """

    symbol: str
    kernel: str
    signature: tuple[Any, ...]


_linked_code: dict[str, LinkedCode] = {}
"""All code of this process that callers are linked to, by its symbol."""


def is_linked(compiled: Any) -> bool:
    """Return whether callers of a kernel are linked to it, instead of getting a copy of its code."""
    return not compiled.targetoptions.get("forceinline") and total_code_size(compiled) >= MIN_LINKED_SIZE


def link_callers(result: Any, kernel: str, signature: tuple[Any, ...]) -> None:
    """Have all that is compiled from now on call this result of a compilation by its symbol.

    Args:
        result: The code; it stays in the process for good.
        kernel: `module.qualname` of the kernel.
        signature: The types of its arguments.
    """
    symbol = result.fndesc.llvm_func_name
    _linked_code[symbol] = LinkedCode(symbol, kernel, signature)
    result.library._shared_module = llvm.parse_assembly("")  # what numba adds to a caller


def find_linked_code(result: Any) -> list[LinkedCode]:
    """Return all code that a result of a compilation is linked to."""
    declared = (function.name for function in result.library._final_module.functions if function.is_declaration)
    return [_linked_code[name] for name in declared if name in _linked_code]


def serialize_result(result: Any) -> tuple[Any, ...]:
    """Return what is to be kept of a result whose callers are linked to it: without the code for callers."""
    description, library = result.fndesc, result.library
    defined = {function.name for function in library.get_defined_functions()}
    names = (description.llvm_func_name, description.llvm_cpython_wrapper_name, description.llvm_cfunc_wrapper_name)
    # numba takes the names of what the machine code defines from the code for callers
    stubs = "".join(f'define void @"{name}"() {{\n  unreachable\n}}\n' for name in names if name in defined)
    library._shared_module = llvm.parse_assembly(stubs)
    reduced: tuple[Any, ...] = result._reduce()
    return reduced
