"""Execution of computations: compiled kernels, worker pools, random generators by name, and settings for reproducible
numbers.

The room is independent of robots. Importing it is cheap; `kernel` imports numba.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.compute.jit import (
        CompilationInterrupted,
        CompiledFunction,
        FirstCall,
        kernel,
        listen_to_first_calls,
        read_only,
        registered_kernels,
    )
    from roboyard.compute.kernel_folders import KernelCacheWarning, cache_root, can_write_cache
    from roboyard.compute.pools import Pool, ProcessPool, ThreadPool, count_usable_cores, limit_blas_threads, open_pool
    from roboyard.compute.precompile import (
        CompilationProgress,
        compile_all_kernels,
        compile_on_demand,
        expect_kernels,
        expected_kernels,
        monitor_compilation,
        wait_for_kernels,
    )
    from roboyard.compute.random import generator_state, make_generator, restore_generator
    from roboyard.compute.ray_cluster import RayPool

__all__ = [
    "CompilationInterrupted",
    "CompilationProgress",
    "CompiledFunction",
    "FirstCall",
    "KernelCacheWarning",
    "Pool",
    "ProcessPool",
    "RayPool",
    "ThreadPool",
    "cache_root",
    "can_write_cache",
    "compile_all_kernels",
    "compile_on_demand",
    "count_usable_cores",
    "expect_kernels",
    "expected_kernels",
    "generator_state",
    "kernel",
    "limit_blas_threads",
    "listen_to_first_calls",
    "make_generator",
    "monitor_compilation",
    "open_pool",
    "read_only",
    "registered_kernels",
    "restore_generator",
    "wait_for_kernels",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "jit": ("CompilationInterrupted", "CompiledFunction", "FirstCall", "kernel", "listen_to_first_calls", "read_only",
        "registered_kernels"),
    "kernel_folders": ("KernelCacheWarning", "cache_root", "can_write_cache"),
    "pools": ("Pool", "ProcessPool", "ThreadPool", "count_usable_cores", "limit_blas_threads", "open_pool"),
    "precompile": ("CompilationProgress", "compile_all_kernels", "compile_on_demand", "expect_kernels",
        "expected_kernels", "monitor_compilation", "wait_for_kernels"),
    "random": ("generator_state", "make_generator", "restore_generator"),
    "ray_cluster": ("RayPool",),
})  # fmt: skip
