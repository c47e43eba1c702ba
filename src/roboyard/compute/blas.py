"""One thread for linear algebra.

A BLAS library splits sums among its threads, so `np.linalg.solve` gives other last bits with two threads than with
one. A run that promises identical recordings therefore computes on one; parallel work is done by whole tasks instead
(`roboyard.compute.pools`).
"""

from __future__ import annotations

import os

_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def limit_blas_threads(count: int = 1) -> None:
    """Hold every BLAS library of this process, loaded already or loaded later, to `count` threads.

    Libraries read the environment once, when they are loaded; those that are in memory already (numpy was imported
    first) are told through their own interface. Calling it again is harmless. Child processes inherit the setting.
    """
    for name in _VARIABLES:
        os.environ[name] = str(count)
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=count, user_api="blas")
