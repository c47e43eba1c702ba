"""How work is computed: compiled kernels, worker pools, and the settings that keep numbers reproducible.

Nothing here knows about robots. Importing the room is cheap; numba comes with `kernel`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roboyard.compute.blas import limit_blas_threads
    from roboyard.compute.cluster import RayPool
    from roboyard.compute.jit import (
        FirstCall,
        Kernel,
        kernel,
        listen_to_first_calls,
        read_only,
        registered_kernels,
    )
    from roboyard.compute.kernel_folders import cache_root
    from roboyard.compute.pools import Pool, ProcessPool, ThreadPool, open_pool, usable_cores
    from roboyard.compute.precompile import (
        CompilationProgress,
        compile_on_demand,
        expect_kernels,
        expected_kernels,
        precompile,
        wait_for_kernels,
    )

__all__ = [
    "CompilationProgress",
    "FirstCall",
    "Kernel",
    "Pool",
    "ProcessPool",
    "RayPool",
    "ThreadPool",
    "cache_root",
    "compile_on_demand",
    "expect_kernels",
    "expected_kernels",
    "kernel",
    "limit_blas_threads",
    "listen_to_first_calls",
    "open_pool",
    "precompile",
    "read_only",
    "registered_kernels",
    "usable_cores",
    "wait_for_kernels",
]

_HOMES = {
    "Kernel": "jit",
    "kernel": "jit",
    "FirstCall": "jit",
    "listen_to_first_calls": "jit",
    "read_only": "jit",
    "registered_kernels": "jit",
    "limit_blas_threads": "blas",
    "RayPool": "cluster",
    "Pool": "pools",
    "ProcessPool": "pools",
    "ThreadPool": "pools",
    "open_pool": "pools",
    "usable_cores": "pools",
    "CompilationProgress": "precompile",
    "cache_root": "kernel_folders",
    "compile_on_demand": "precompile",
    "expect_kernels": "precompile",
    "expected_kernels": "precompile",
    "precompile": "precompile",
    "wait_for_kernels": "precompile",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
