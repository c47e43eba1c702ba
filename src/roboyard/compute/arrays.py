"""What kernels do with arrays, in few instructions and quick to compile."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute.jit import kernel


@kernel(leaf=True, examples=lambda: [(np.zeros(1), np.zeros(1))])
def assign(target: NDArray[Any], source: NDArray[Any]) -> None:
    """Copy (n) values into an array of the same length or a longer one.

    Where ``target[:] = source`` stands in a kernel, numba compiles the text of an error message into it, which takes
    longer than to compile most kernels.
    """
    for i in range(source.shape[0]):
        target[i] = source[i]
