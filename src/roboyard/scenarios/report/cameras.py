"""The report's part about depth cameras: the truth, an ideal camera and the one that erred, side by side."""

from __future__ import annotations

import base64
import io

from roboyard.scenarios.depth_looks import Look

_DEPTHS = "turbo"


def cameras_picture(looks: list[Look]) -> str:
    """All of them in rows, as the source of an ``<img>``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 1.75 * len(looks)), layout="constrained")
    grid = figure.subplots(len(looks), 4, squeeze=False)
    for row, look in zip(grid, looks, strict=True):
        row[0].set_title(f"{look.robot}: {look.camera}", fontsize=8)
        if look.colour is not None:
            row[0].imshow(look.colour, cmap="gray")
        parts = (("truth", look.truth), ("ideal", look.ideal), ("measured", look.measured))
        for axes, (name, depth) in zip(row[1:], parts, strict=True):
            axes.imshow(depth, cmap=_DEPTHS, vmin=0.0, vmax=look.far, interpolation="nearest")
            axes.set_title(name, fontsize=8)
        for axes in row:
            axes.set_axis_off()
    data = io.BytesIO()
    figure.savefig(data, format="jpeg", dpi=120, facecolor="white", pil_kwargs={"quality": 88})
    return "data:image/jpeg;base64," + base64.b64encode(data.getvalue()).decode()
