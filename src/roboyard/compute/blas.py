"""Single-threaded linear algebra.

A BLAS library splits sums among its threads, so the last bits of `np.linalg.solve` differ between one and two threads.
A run that guarantees identical recordings therefore uses one; complete tasks run in parallel instead
(`roboyard.compute.pools`).
"""

from __future__ import annotations

import os

_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def limit_blas_threads(count: int = 1) -> None:
    """Limit all BLAS libraries of this process, loaded already or later, to `count` threads.

    Libraries read the environment once, when they are loaded; libraries that are already loaded (numpy was imported
    first) are set through their own interface. Repeated calls are allowed. Child processes inherit the setting.
    """
    for name in _VARIABLES:
        os.environ[name] = str(count)
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=count, user_api="blas")
