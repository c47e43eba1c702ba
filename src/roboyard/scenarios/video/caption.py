"""The caption in a film's corner: whose, when, how fast."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_PANEL, _ACCENT, _BRIGHT, _DIM = (18, 24, 30, 165), (64, 190, 190, 255), (255, 255, 255, 255), (205, 215, 220, 255)


def draw_caption(picture: NDArray[np.uint8], title: str, details: str) -> None:
    """Write a title and a line of details into the lower left corner; changes ``picture`` (height, width, 3)."""
    from PIL import Image, ImageDraw

    height, width = picture.shape[:2]
    unit = max(height / 360.0, 0.5)
    large, small = _font(round(15 * unit)), _font(round(12.5 * unit))
    edge, inner = round(10 * unit), round(9 * unit)
    wide = max(large.getlength(title), small.getlength(details))
    panel_width, panel_height = min(round(wide + 3 * inner), width - 2 * edge), round(43 * unit)
    panel_height = min(panel_height, height - 2 * edge)
    if panel_width < 20 or panel_height < 20:
        return  # a thumbnail needs none
    top = height - edge - panel_height
    patch = picture[top : top + panel_height, edge : edge + panel_width]
    below = Image.fromarray(patch).convert("RGBA")
    layer = Image.new("RGBA", below.size, (0, 0, 0, 0))
    pen = ImageDraw.Draw(layer)
    pen.rounded_rectangle((0, 0, panel_width - 1, panel_height - 1), radius=round(7 * unit), fill=_PANEL)
    bar = (inner * 0.7, panel_height * 0.2, inner * 0.7 + 3 * unit, panel_height * 0.8)
    pen.rounded_rectangle(bar, radius=round(1.5 * unit), fill=_ACCENT)
    left = round(inner * 0.7 + 3 * unit + inner * 0.8)
    pen.text((left, round(panel_height * 0.29)), title, font=large, fill=_BRIGHT, anchor="lm")
    pen.text((left, round(panel_height * 0.71)), details, font=small, fill=_DIM, anchor="lm")
    patch[:] = np.asarray(Image.alpha_composite(below, layer).convert("RGB"))


@cache
def _font(size: int) -> Any:
    from matplotlib import get_data_path
    from PIL import ImageFont

    # Pillow's own font has no "×"; the one that plots are written in has.
    return ImageFont.truetype(Path(get_data_path(), "fonts", "ttf", "DejaVuSans.ttf"), max(size, 8))
