"""Import of OpenCV at its first use, restricted to one thread.

With several threads the order of sums, and so their last bits, would vary from run to run; and OpenCV's import is slow.
"""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def opencv() -> Any:
    """Return the module ``cv2``."""
    import cv2

    cv2.setNumThreads(1)
    cv2.ocl.setUseOpenCL(False)
    return cv2
