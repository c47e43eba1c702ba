"""Pictures that descriptions name, textures and terrain: opened with a bound, whatever their header claims."""

from __future__ import annotations

import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from roboyard.errors import DescriptionError

if TYPE_CHECKING:
    from PIL.Image import Image

_BROKEN = (OSError, ValueError, SyntaxError, EOFError, struct.error, zlib.error, MemoryError, OverflowError, TypeError)


@contextmanager
def opened(file: Path, what: str, pixels: int) -> Iterator[Image]:
    """The picture in ``file``; what is done with it inside may raise what Pillow raises for broken ones.

    Args:
        file: Its file.
        what: "texture", "heightmap": for the message.
        pixels: At most so many; a few hundred bytes can claim to be a picture of a billion.

    Raises:
        DescriptionError: no picture, a broken one, or too large.
    """
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ours is the stricter bound
            with Image.open(file) as picture:
                width, height = picture.size
                if width * height > pixels:
                    raise DescriptionError(
                        f"{what} has {width} × {height} pixels", location=str(file), valid=f"at most {pixels} in all"
                    )
                yield picture
    except (*_BROKEN, Image.DecompressionBombError) as error:
        why = str(error).partition("\n")[0][:200] or type(error).__name__
        raise DescriptionError(f"{what} cannot be read: {why}", location=str(file)) from None
