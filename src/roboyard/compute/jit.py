"""`kernel`: a function over numbers and arrays, compiled by numba and cached on disk without ever running stale code.

numba's own `cache=True` checks only the file that contains the function: after a change of a helper in another file the
old machine code still runs. Here the name of the cache folder is a hash of everything that a kernel is compiled from,
in all files: a change starts an empty folder, and all other kernels keep theirs.
"""

from __future__ import annotations

import gc
import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast, overload

import numba
import numba.core.caching
import numba.core.compiler
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import rtsys
from numba.np import linalg
from numpy.typing import NDArray

from roboyard.compute.kernel_folders import KernelCacheWarning, is_locked, kernel_cache_folder, lock_folder
from roboyard.compute.kernel_key import kernel_key
from roboyard.compute.kernel_linking import LinkedCode, find_linked_code, is_linked, link_callers, serialize_result
from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import RunError

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
Examples = Callable[[], Iterable[tuple[Any, ...]]]


def _find_internals() -> tuple[Any, Any]:
    """Return internal classes of numba that store compiled code.

    Raises:
        RunError: This version of numba does not have them, or they lack a required method.
    """
    needed = {
        "codegen.CPUCodeLibrary": ("_get_module_for_linking", "get_defined_functions"),
        "caching.IndexDataCacheFile": ("load", "save", "flush", "_load_index", "_data_path"),
        "compiler.CompileResult": ("_rebuild", "_reduce"),
        "dispatcher.Dispatcher": ("compile", "get_call_template"),
    }
    found, missing = [], []
    for name, methods in needed.items():
        module, _, class_name = name.partition(".")
        internal = getattr(getattr(numba.core, module, None), class_name, None)
        found.append(internal)
        missing += [f"{name}.{method}" for method in methods if not hasattr(internal, method)]
    if missing:
        raise RunError(
            f"numba {numba.__version__} lacks internals that the kernel cache requires: {', '.join(missing)}",
            valid="pip install 'numba>=0.66,<0.69'",
        )
    return found[1], found[2]


IndexDataCacheFile, CompileResult = _find_internals()

# Exceptions of reading a damaged pickle, according to its documentation, besides those of the file system.
_CACHE_ERRORS = (
    OSError,
    pickle.UnpicklingError,
    EOFError,
    ValueError,
    AttributeError,
    ImportError,
    IndexError,
    KeyError,
)


_FORMAT = "linked code, then the result"
"""Content of a cache file; changing this text starts empty folders."""


class CompiledFunction(Protocol, Generic[P, R_co]):
    """Compiled function. `py_func` is its Python function."""

    py_func: Callable[..., Any]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Run the compiled code; compile it first for new argument types."""
        ...


@dataclass(frozen=True)
class FirstCall:
    """First call of a kernel from Python code in this process, or with new types.

    Attributes:
        name: `module.qualname` of the kernel.
        is_cached: Whether its code was read from the cache; else it was compiled, with all kernels that it calls.
        seconds: Wall time of reading or compiling [s].
    """

    name: str
    is_cached: bool
    seconds: float


class CompilationInterrupted(KeyboardInterrupt):
    """The compilation of a kernel was interrupted, so that it has no code; see `interrupt_compilation`."""


_registry: dict[str, tuple[CompiledFunction[..., Any], Examples | None]] = {}
_first_call_listeners: list[Callable[[FirstCall], None]] = []
_compilation_hooks: list[Callable[[CompiledFunction[..., Any], Any], None]] = []
_stop_conditions: list[Callable[[], bool]] = []
_COMPILATION_GC_THRESHOLD = 20_000
"""Number of new objects between two collections of the youngest generation during compilation: saves a tenth of the
time for 40 MB.
"""
_depth = 0
"""Number of nested compilations of this process; guarded by numba's compiler lock."""


def registered_kernels() -> dict[str, tuple[CompiledFunction[..., Any], Examples | None]]:
    """Return all kernels of the modules imported so far, by `module.qualname`, each with its examples."""
    return dict(sorted(_registry.items()))


def compile_examples(compiled: CompiledFunction[..., Any], examples: Examples) -> None:
    """Compile a kernel for the types of its examples; cached code is read in some milliseconds."""
    for signature in _signatures(examples):
        compiled.compile(signature)  # type: ignore[attr-defined]


def is_cached(compiled: CompiledFunction[..., Any], examples: Examples) -> bool | None:
    """Return whether compiled code for the example types is cached; None if it cannot be cached."""
    cache: _KernelCache = compiled._cache  # type: ignore[attr-defined]
    return all(map(cache.has, _signatures(examples))) if cache.cache_path else None


def is_compiled_by_other_process(compiled: CompiledFunction[..., Any]) -> bool:
    """Return whether another process is compiling a kernel at this moment."""
    path: str = compiled._cache.cache_path  # type: ignore[attr-defined]
    return bool(path) and is_locked(Path(path))


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of an array.

    numba compiles a kernel separately for writable and read-only arrays; with this function all callers use one of
    them.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def kernel_name(compiled: CompiledFunction[..., Any]) -> str:
    """Return `module.qualname` of a kernel."""
    return f"{compiled.py_func.__module__}.{compiled.py_func.__qualname__}"


def get_example_factory(compiled: CompiledFunction[..., Any]) -> Examples | None:
    """Return the function that makes a kernel's examples, if it has one."""
    return _registry[kernel_name(compiled)][1]


@contextmanager
def listen_to_first_calls(listener: Callable[[FirstCall], None]) -> Iterator[None]:
    """Call `listener` after each first call of a kernel from Python, or with new types, inside the context.

    Kernels that only other kernels call are compiled or read with their callers, and are not reported.
    """
    _first_call_listeners.append(listener)
    try:
        yield
    finally:
        _first_call_listeners.remove(listener)


def add_first_call_hook(hook: Callable[[CompiledFunction[..., Any], Any], None]) -> None:
    """Call `hook` with a kernel and its argument types before each first call, outside of all locks."""
    _compilation_hooks.append(hook)


@contextmanager
def interrupt_compilation(is_stopped: Callable[[], bool]) -> Iterator[None]:
    """Raise `CompilationInterrupted` from a first call inside the context as soon as ``is_stopped()`` is true.

    A call that waits for another process checks several times per second, a call that compiles checks before each of
    numba's compiler passes: no partial result is left there.  The cache stays consistent.
    """
    _stop_conditions.append(is_stopped)
    try:
        with event.install_listener("numba:run_pass", _PassListener()):
            yield
    finally:
        _stop_conditions.remove(is_stopped)


def check_interruption() -> None:
    """Raise `CompilationInterrupted` if a compilation in progress is to be interrupted."""
    if any(is_stopped() for is_stopped in _stop_conditions):
        raise CompilationInterrupted


class _PassListener(event.Listener):  # type: ignore[misc]
    """Checks before each compiler pass whether the compilation is to be interrupted."""

    def on_start(self, event: Any) -> None:
        check_interruption()

    def on_end(self, event: Any) -> None:
        """Do nothing: the next pass checks."""


def has_signature(examples: Examples, types: Any) -> bool:
    """Return whether argument types are those of an example."""
    return types in _signatures(examples)


def _signatures(examples: Examples) -> Iterator[tuple[Any, ...]]:
    """Return the argument types in numba's form."""
    return (tuple(numba.typeof(argument) for argument in arguments) for arguments in examples())


_warned = False


def _warn_once(reason: str) -> None:
    """Issue a `KernelCacheWarning`, once per process."""
    global _warned
    if _warned:
        return
    _warned = True
    warnings.warn(
        f"compiled kernels cannot be cached ({reason}); every process compiles them again. "
        "Set XDG_CACHE_HOME or NUMBA_CACHE_DIR to a writable folder",
        KernelCacheWarning,
        stacklevel=2,
    )


@lru_cache(maxsize=1)
def _prepare_loading(target: Any) -> None:
    """Set up the parts of numba that cached code calls, which are far fewer than `refresh` sets up for compiling.

    Compiling calls `refresh` by itself.  These are all modules of numba that hand symbols to LLVM, besides those that
    ``import numba`` imports.
    """
    rtsys.initialize(target)
    import_module("numba.cpython.hashing")
    # Cached code refers to this module, which imports scipy.linalg only to check whether it can be imported.
    check, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = check


class _KernelCache:
    """Code cache of a numba dispatcher; file errors never reach the caller of a kernel."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self._is_locked = False

    @cached_property
    def _files(self) -> Any:
        # Computed at the first compilation, not at definition: by then everything that the function refers to exists.
        function = self._compiled.py_func
        try:
            key = f"{kernel_key(self._compiled)} {_FORMAT}"
            folder = kernel_cache_folder(f"{function.__module__}.{function.__qualname__}", key)
        except OSError as error:
            _warn_once(str(error))
            return None
        return IndexDataCacheFile(cache_path=str(folder), filename_base="code", source_stamp="")

    @property
    def cache_path(self) -> str:
        """Path for numba's statistics."""
        return "" if self._files is None else str(self._files._cache_path)

    def has(self, signature: Any) -> bool:
        """Return whether code for argument types is cached."""
        key = _index_key(signature, self._compiled.targetctx.codegen())
        try:
            name = self._files._load_index().get(key)
            return name is not None and Path(self._files._data_path(name)).exists()
        except _CACHE_ERRORS:
            return False

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the code for argument types, or None."""
        if self._files is None:
            return None
        try:
            _prepare_loading(target)
            data = self._files.load(_index_key(signature, target.codegen()))
            if data is None:
                return None
            linked, parts = data
            if not all(map(_is_loaded, linked)):
                return None  # compiled again since then, with another symbol
            result = CompileResult._rebuild(target, *parts)
        except _CACHE_ERRORS:
            # Truncated by a crash or a full disk: start an empty index, and compile again.
            with suppress(OSError):
                self._files.flush()
            return None
        if is_linked(self._compiled):
            link_callers(result, kernel_name(self._compiled), signature)
        return result

    def save_overload(self, signature: Any, result: Any) -> None:
        """Store code, if it does not contain addresses of this process."""
        if result.library.has_dynamic_globals or any(not part.can_cache for part in result.lifted):
            return
        has_linked_callers = is_linked(self._compiled)
        try:
            if self._files is not None:
                parts = serialize_result(result) if has_linked_callers else result._reduce()
                self._files.save(_index_key(signature, result.codegen), (find_linked_code(result), parts))
        except _CACHE_ERRORS as error:
            _warn_once(str(error))
        finally:
            if has_linked_callers:
                link_callers(result, kernel_name(self._compiled), signature)

    @contextmanager
    def lock(self, signature: Any) -> Iterator[None]:
        """Prevent other processes from compiling this kernel inside the context, unless its code is cached."""
        if self._files is None or self._is_locked or self.has(signature):
            yield
            return
        with lock_folder(Path(self.cache_path), check_interruption):
            self._is_locked = True  # a kernel that calls itself with other types
            try:
                yield
            finally:
                self._is_locked = False

    def flush(self) -> None:
        """Discard all code, as `recompile` requests."""
        if self._files is not None:
            self._files.flush()


def _is_loaded(code: LinkedCode) -> bool:
    """Load or compile the code that other code is linked to; return whether it has the symbol that the other code
    calls.
    """
    if code.kernel not in _registry:
        return False
    compiled: Any = _registry[code.kernel][0]
    compiled.compile(code.signature)
    return bool(compiled.overloads[code.signature].fndesc.llvm_func_name == code.symbol)


def _compile_once(compiled: Any, compile_now: Callable[[Any], Any], signature: Any) -> Any:
    """Compile a kernel unless another process is compiling it: then wait for its code and read it.

    numba's lock is acquired before the file's: every process then locks a kernel and the kernels that it calls in the
    order of the calls, so that no two processes wait for each other.
    """
    global _depth
    types = tuple(signature) if isinstance(signature, (tuple, list)) else signature
    existing = compiled.overloads.get(types) if isinstance(types, tuple) else None
    if existing is not None:
        return existing.entry_point
    if not global_compiler_lock.is_locked():  # this thread is not inside the compilation of another kernel
        for hook in _compilation_hooks:
            hook(compiled, types)
    with global_compiler_lock:
        start, misses = wall_seconds(), sum(compiled.stats.cache_misses.values())
        _depth += 1
        try:
            with _rare_collections(), compiled._cache.lock(types):
                entry_point = compile_now(signature)
        finally:
            _depth -= 1
        if _depth == 0 and _first_call_listeners:
            is_cached = sum(compiled.stats.cache_misses.values()) == misses
            event = FirstCall(kernel_name(compiled), is_cached, wall_seconds() - start)
            for listener in tuple(_first_call_listeners):
                listener(event)
    return entry_point


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Collect garbage less often: numba creates many objects that live as long as the compilation."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _COMPILATION_GC_THRESHOLD) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _without_literal_types(template: Callable[..., Any]) -> Callable[..., Any]:
    """Ignore literal types in calls between kernels: numba would compile the callee again for each constant."""

    def for_call(args: Iterable[Any], kws: dict[str, Any]) -> Any:
        keyword_types = {name: numba.types.unliteral(kind) for name, kind in kws.items()}
        return template(tuple(numba.types.unliteral(kind) for kind in args), keyword_types)

    return for_call


def _index_key(signature: Any, codegen: Any) -> tuple[Any, ...]:
    # numba treats named tuples of equal name and types as one type, regardless of their field names
    return signature, codegen.magic_tuple(), repr([_fields(item) for item in signature])


def _fields(item: Any) -> Any:
    inner = getattr(item, "types", ())
    return getattr(item, "fields", ()), [_fields(part) for part in inner]


@overload
def kernel(function: Callable[P, R], /) -> CompiledFunction[P, R]: ...
@overload
def kernel(
    *, examples: Examples | None = None, no_refcount: bool | None = None, **options: Any
) -> Callable[[Callable[P, R]], CompiledFunction[P, R]]: ...
def kernel(
    function: Callable[..., Any] | None = None,
    /,
    *,
    examples: Examples | None = None,
    no_refcount: bool | None = None,
    **options: Any,
) -> Any:
    """Compile a function with numba: no Python objects inside, the GIL released, machine code cached on disk.

    Args:
        function: Function of numbers, arrays and tuples of them.
        examples: Function that returns argument tuples of the types that the kernel is called with. `expect_kernels`
            compiles it for these types ahead of its first call (without running it); otherwise the first call compiles.
        no_refcount: The kernel allocates no arrays, so reference counting is disabled. Otherwise numba counts
            references to each array of every tuple passed on, which takes longer than the work of a short function.
            None: as in the kernel that calls it; so a kernel that allocates arrays, or views memory, and that a kernel
            without reference counting calls, needs False.
        options: Further options of `numba.njit`, e.g. `error_model="numpy"`. ``forceinline=True`` inlines it into every
            kernel that calls it: an array is passed as seven numbers, so that a call with a few tuples of arrays also
            takes longer than the work of a short function.

    Raises:
        ValueError: For `fastmath` or `parallel`, with which results would differ between machines and runs, and for
            `cache` and `nogil`, which are always on.
    """
    for forbidden in ("fastmath", "parallel", "cache", "nogil"):
        if forbidden in options:
            raise ValueError(f"kernel: option {forbidden!r} cannot be set")
    if no_refcount is not None:
        options["_nrt"] = not no_refcount
    options["no_cfunc_wrapper"] = True  # wrapper for calls from C

    def compile_later(function: Callable[P, R]) -> CompiledFunction[P, R]:
        compiled = numba.njit(nogil=True, fastmath=False, parallel=False, **options)(function)
        if compiled is not function:  # with NUMBA_DISABLE_JIT the function is unchanged
            compiled._cache = _KernelCache(compiled)
            compiled.compile = partial(_compile_once, compiled, compiled.compile)
            compiled.get_call_template = _without_literal_types(compiled.get_call_template)
            _registry[f"{function.__module__}.{function.__qualname__}"] = (compiled, examples)
        return cast("CompiledFunction[P, R]", compiled)

    return compile_later if function is None else compile_later(function)
