"""What a kernel is compiled from beside its own package: kernels of other packages that it calls, and constants."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from roboyard.compute.source_key import owner_of

Source: TypeAlias = tuple[tuple[Path, ...], bool]
"""Folders, and whether their subfolders count."""
_PLAIN = (bool, int, float, complex, str, np.generic)


def referenced(function: Callable[..., Any]) -> tuple[frozenset[Source], str]:
    """Where the compiled functions come from that ``function`` calls, directly or through others, and a hash of the
    constants that numba puts into their code.

    Only what the function's module knows when this is called is found.
    """
    sources: set[Source] = set()
    values: list[tuple[str, bytes]] = []
    seen: set[int] = set()
    left = [function]
    while left:
        here = left.pop()
        if id(here.__code__) in seen:
            continue
        seen.add(id(here.__code__))
        _, folders, recursive = owner_of(here)
        # the file itself counts as well: its functions may be compiled by a decorator of any name
        sources |= {(folders, recursive), ((Path(here.__code__.co_filename),), False)}
        for name, value in _names(here):
            inner = getattr(value, "py_func", None)
            if inner is not None:
                left.append(inner)
            elif (data := _constant(value)) is not None:
                values.append((f"{here.__module__}.{here.__qualname__} {name}", data))
    digest = hashlib.sha256(repr(sorted(values)).encode()).hexdigest()
    return frozenset(sources), digest


def _names(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Globals, attributes of modules and variables of enclosing functions that the code names."""
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
            continue  # not filled yet


def _constant(value: Any) -> bytes | None:
    if isinstance(value, _PLAIN):
        return f"{type(value).__name__} {value!r}".encode()
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"{value.dtype} {value.shape} ".encode() + value.tobytes()
    if isinstance(value, tuple):
        parts = [_constant(item) for item in value]
        return repr(parts).encode() if None not in parts else None
    return None
