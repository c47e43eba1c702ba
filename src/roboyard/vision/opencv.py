"""Import of OpenCV at its first use, restricted to one thread, and the checks of images that it gets.

With several threads the order of sums, and so their last bits, would vary from run to run; and OpenCV's import is slow.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry.arrays import U8


@cache
def opencv() -> Any:
    """Return the module ``cv2``."""
    import cv2

    cv2.setNumThreads(1)
    cv2.ocl.setUseOpenCL(False)
    return cv2


def check_image(image: U8) -> None:
    """Raise InputError unless an image is of bytes, (h, w, 3) or (h, w)."""
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] != 3):
        raise InputError(f"an image of {image.dtype} {image.shape}", valid="bytes (h, w) or (h, w, 3)")


def to_gray(image: U8) -> U8:
    """Return the luminance of an image (h, w); a gray image is returned unchanged, as a contiguous array.

    Args:
        image: (h, w, 3) in RGB, or (h, w).

    Raises:
        InputError: The image has another type or shape.
    """
    check_image(image)
    if image.ndim == 2:
        return np.ascontiguousarray(image)
    cv2 = opencv()
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY))
