"""Cache key of a kernel: hash of the bytecode of a kernel and its callees, constants and options.

Files and their times do not count: numba compiles the bytecode in memory, which a worktree, a clone and an installed
package with the same kernels share.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from enum import Enum
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

_LITERAL_TYPES = (bool, int, float, complex, str, np.generic)


def kernel_key(compiled: Any) -> str:
    """Return the hash of everything that `compiled`, a function jitted by numba, is compiled from, directly or through
    callees.

    Call it just before compilation, when everything that the function refers to exists. Functions registered by
    `numba.extending.overload` are not included.
    """
    parts: list[str] = []
    visited: set[int] = set()
    pending = [compiled]
    while pending:
        current = pending.pop()
        if id(current) in visited:
            continue
        visited.add(id(current))
        function = current.py_func
        # compiler options of a called function, e.g. its error model, affect the caller's code too
        options = sorted(getattr(current, "targetoptions", {}).items(), key=lambda item: item[0])
        parts.append(f"{_qualified_name(function)} {options!r} {_describe_function(function)}")
        for name, value in _find_references(function):
            if hasattr(value, "py_func"):
                pending.append(value)
                parts.append(f"{_qualified_name(function)} {name} is {_qualified_name(value.py_func)}")
            else:
                parts.append(f"{_qualified_name(function)} {name} is {_describe_value(value)}")
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()


def called_kernels(compiled: Any) -> list[Any]:
    """Return all kernels that a kernel calls, directly or indirectly."""
    found: dict[int, Any] = {}
    pending = [compiled]
    while pending:
        for _, value in _find_references(pending.pop().py_func):
            if hasattr(value, "py_func") and id(value) not in found:
                found[id(value)] = value
                pending.append(value)
    return list(found.values())


def code_size(compiled: Any) -> int:
    """Return the bytecode size of a kernel, without the kernels it calls [bytes]."""
    return len(compiled.py_func.__code__.co_code)


def total_code_size(compiled: Any) -> int:
    """Return the bytecode size of a kernel and all kernels that it calls [bytes]."""
    return code_size(compiled) + sum(map(code_size, called_kernels(compiled)))


def _qualified_name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"


def _describe_function(function: Callable[..., Any]) -> str:
    defaults = (function.__defaults__ or (), sorted((function.__kwdefaults__ or {}).items()))
    return f"{_describe_code(function.__code__)} {defaults!r}"


def _describe_code(code: CodeType) -> str:
    """Describe a code object as text, without its file and line."""
    constants = [
        _describe_code(item) if isinstance(item, CodeType) else _describe_value(item) for item in code.co_consts
    ]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    return repr((code.co_code.hex(), code.co_exceptiontable.hex(), constants, names, counts))


def _find_references(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Iterate over globals, module attributes and variables of enclosing functions that the code refers to."""
    code = function.__code__
    for name in code.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType):
            if value.__name__.partition(".")[0] != "numpy":
                yield from ((f"{name}.{part}", vars(value)[part]) for part in code.co_names if part in vars(value))
        elif isinstance(value, type) and issubclass(value, Enum):
            yield from ((f"{name}.{member.name}", member.value) for member in value)
        elif value is not None:
            yield name, value
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue  # not assigned yet


def _describe_value(value: Any) -> str:
    """Describe a value that numba writes into the code; of other objects, describe their names and contents."""
    if value is None or isinstance(value, _LITERAL_TYPES):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, tuple):
        return f"{_qualified_name(type(value))} {[_describe_value(item) for item in value]}"
    if isinstance(value, frozenset):
        return f"{sorted(_describe_value(item) for item in value)}"
    if isinstance(value, type):
        return f"{_qualified_name(value)} {getattr(value, '_fields', ())}"
    if isinstance(value, FunctionType):
        return f"{_qualified_name(value)} {_describe_function(value)}"
    inner = getattr(value, "_defn", None)  # numba's intrinsics: the function that generates the instructions
    if isinstance(inner, FunctionType):
        return f"{_qualified_name(inner)} {_describe_function(inner)}"
    symbol = getattr(value, "symbol", None)  # numba's external functions
    return f"{_qualified_name(value)} {symbol} {value.sig}" if symbol is not None else _qualified_name(value)
