"""How work is computed: compiled kernels, worker pools, and the settings that keep numbers reproducible.

Nothing here knows about robots. Importing the room is cheap; numba comes with `kernel`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roboyard.compute.blas import limit_blas_threads
    from roboyard.compute.cluster import RayPool
    from roboyard.compute.jit import Kernel, compile_examples, is_kept, kernel, registered_kernels
    from roboyard.compute.pools import Pool, ProcessPool, ThreadPool, open_pool, usable_cores

__all__ = [
    "Kernel",
    "Pool",
    "ProcessPool",
    "RayPool",
    "ThreadPool",
    "compile_examples",
    "is_kept",
    "kernel",
    "limit_blas_threads",
    "open_pool",
    "registered_kernels",
    "usable_cores",
]

_HOMES = {
    "Kernel": "jit",
    "kernel": "jit",
    "compile_examples": "jit",
    "is_kept": "jit",
    "registered_kernels": "jit",
    "limit_blas_threads": "blas",
    "RayPool": "cluster",
    "Pool": "pools",
    "ProcessPool": "pools",
    "ThreadPool": "pools",
    "open_pool": "pools",
    "usable_cores": "pools",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
