"""`kernel`: a function over numbers and arrays, compiled by numba and kept on disk without ever running stale code.

numba's own `cache=True` looks only at the file that holds the function: change a helper in another file and the old
machine code goes on running. Here the cache folder's name is a hash of all files of the package that speak of kernels,
so any change in one of them starts an empty one, and so does a change in another package whose kernels it calls, and of
a constant from wherever it comes. Nothing is written once the source on disk differs from what this process began with.
"""

from __future__ import annotations

import hashlib
import pickle
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast, overload

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, InTreeCacheLocator

from roboyard.compute.references import Source, referenced
from roboyard.compute.source_key import cache_base, keyed_folder, owner_of, source_digest

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
Examples = Callable[[], Iterable[tuple[Any, ...]]]

_OURS = (Path(__file__).resolve().parent.parent,)
# Taken now, before any module with a kernel can have been imported: what they are read from later must match it.
_OUR_DIGEST = source_digest(_OURS)


# What reading a damaged pickle may raise, says its documentation, beside the file system's own errors.
_FILE_TROUBLE = (
    OSError,
    pickle.UnpicklingError,
    EOFError,
    ValueError,
    AttributeError,
    ImportError,
    IndexError,
    KeyError,
)


class Kernel(Protocol, Generic[P, R_co]):
    """A compiled function. `py_func` is the Python function it came from."""

    py_func: Callable[..., Any]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Run the compiled code, compiling it first for argument types not seen before."""
        ...


_registry: dict[str, tuple[Kernel[..., Any], Examples | None]] = {}


def registered_kernels() -> dict[str, tuple[Kernel[..., Any], Examples | None]]:
    """All kernels of the modules imported so far, by `module.qualname`, each with its examples."""
    return dict(sorted(_registry.items()))


def compile_examples(compiled: Kernel[..., Any], examples: Examples) -> None:
    """Compile a kernel for the types of its examples; quick where that is cached."""
    import numba

    for arguments in examples():
        compiled.compile(tuple(numba.typeof(argument) for argument in arguments))  # type: ignore[attr-defined]


_warned = False


def _warn_once(reason: str) -> None:
    global _warned
    if _warned:
        return
    _warned = True
    warnings.warn(
        f"compiled kernels cannot be kept ({reason}); they are compiled anew in every process. "
        "XDG_CACHE_HOME or NUMBA_CACHE_DIR may name a folder that can be written",
        RuntimeWarning,
        stacklevel=2,
    )


@lru_cache(maxsize=64)
def _first_digest(folders: tuple[Path, ...], recursive: bool) -> str:
    return source_digest(folders, recursive=recursive)


def _digest_now(folders: tuple[Path, ...], recursive: bool) -> str:
    return source_digest(folders, recursive=recursive)


class _KeyedLocator(InTreeCacheLocator):  # type: ignore[misc]
    """Tells numba to keep a function's code in the folder keyed by its package's source."""

    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        self._py_file = py_file
        self._lineno = py_func.__code__.co_firstlineno
        name, folders, recursive = owner_of(py_func)
        self._own: Source = (folders, recursive)
        self._sources, constants = referenced(py_func)
        folder = keyed_folder(name, f"{_first_digest(*self._own)}-{_OUR_DIGEST[:8]}", cache_base())
        inside = hashlib.sha256(f"{self._key(_first_digest)} {constants}".encode()).hexdigest()[:8]
        self._cache_path = str(folder / inside / self.get_suitable_cache_subpath(py_file))

    def is_current(self) -> bool:
        """Whether the source on disk is still what this process began with."""
        return source_digest(_OURS) == _OUR_DIGEST and self._key(_digest_now) == self._key(_first_digest)

    def _key(self, digest: Callable[[tuple[Path, ...], bool], str]) -> str:
        """All source that the function is compiled from, as hashes."""
        return " ".join(sorted(digest(folders, recursive) for folders, recursive in self._sources))

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _KeyedLocator | None:
        if not Path(py_file).exists():
            return None  # typed at a prompt: compiled in memory
        try:
            locator = cls(py_func, py_file)
            locator.ensure_cache_path()
        except OSError as error:
            _warn_once(str(error))
            return None
        return locator


class _KeyedImplementation(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_KeyedLocator,)


class _KeyedCache(FunctionCache):  # type: ignore[misc]
    """numba's function cache, except that trouble with its files never reaches the caller of a kernel."""

    _impl_class = _KeyedImplementation

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except _FILE_TROUBLE:
            # Cut short by a crash or a full disk: begin an empty index, and compile again.
            with suppress(OSError):
                self._cache_file.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        if not self._impl.locator.is_current():
            return
        try:
            super().save_overload(sig, data)
        except _FILE_TROUBLE as error:
            _warn_once(str(error))


@overload
def kernel(function: Callable[P, R], /) -> Kernel[P, R]: ...
@overload
def kernel(*, examples: Examples | None = None, **options: Any) -> Callable[[Callable[P, R]], Kernel[P, R]]: ...
def kernel(function: Callable[..., Any] | None = None, /, *, examples: Examples | None = None, **options: Any) -> Any:
    """Compile a function with numba: no Python objects inside, the GIL released, machine code kept on disk.

    Args:
        function: Takes and gives numbers, arrays and tuples of them.
        examples: Returns argument tuples of the types the kernel will meet. `python -m roboyard.compute.warm` compiles
            for these types beforehand (nothing is run); without it the first call compiles.
        options: Further options of `numba.njit`, e.g. `inline="always"` or `error_model="numpy"`.

    Raises:
        ValueError: For `fastmath` or `parallel`, with which results would differ from machine to machine and from run
            to run, and for `cache` and `nogil`, which are always on.
    """
    for forbidden in ("fastmath", "parallel", "cache", "nogil"):
        if forbidden in options:
            raise ValueError(f"kernel: option {forbidden!r} is not to be chosen")

    def compile_later(function: Callable[P, R]) -> Kernel[P, R]:
        compiled = numba.njit(nogil=True, fastmath=False, parallel=False, **options)(function)
        if compiled is not function:  # NUMBA_DISABLE_JIT leaves the function as it is
            # numba raises RuntimeError when it finds no folder; said so already where that is the user's concern.
            with suppress(RuntimeError):
                compiled._cache = _KeyedCache(function)
            _registry[f"{function.__module__}.{function.__qualname__}"] = (compiled, examples)
        return cast("Kernel[P, R]", compiled)

    return compile_later if function is None else compile_later(function)
