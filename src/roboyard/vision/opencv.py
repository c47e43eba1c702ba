"""OpenCV, imported when it is first needed, on one thread.

Several threads share a picture among them as they come, and sums end in other last bits; nor is OpenCV's start free.
"""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def opencv() -> Any:
    """The module ``cv2``."""
    import cv2

    cv2.setNumThreads(1)
    cv2.ocl.setUseOpenCL(False)
    return cv2
