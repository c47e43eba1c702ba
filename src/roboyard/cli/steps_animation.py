"""A plan of steps that moves: body, legs, feet and support polygon over the ground, from above and from the side."""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from roboyard.walking.steps.ground import Ground
    from roboyard.walking.steps.plan import StepPlan
    from roboyard.walking.steps.rig import Rig
    from roboyard.walking.walker import Walker

    Array = NDArray[np.float64]
from roboyard.config import atomic_path, write_atomic

_PERIOD = 0.08
"""Between two pictures [s]; what is shown is as fast as it is walked."""
_MOST = 400
"""Pictures; of longer plans they are farther apart in time."""
_SIZE, _DPI = (9.6, 7.2), 80
"""Of a picture [inches], and points an inch."""
_ROOM = 0.25
"""Beside the feet [m]."""


def leg_lines(plan: StepPlan, walker: Walker, times: Array) -> Array:
    """(n, l, 4, 3) first axis, second axis, knee and foot of each leg in the world [m] at times (n,) [s].

    Joints come from inverse kinematics, near to those before, and places from the chains' frames.

    Raises:
        RoboyardError: a leg cannot reach its foot.
    """
    import numpy as np

    from roboyard.geometry import SE3

    local, where, near = plan.local_feet(times), plan.body(times), walker.stance
    turn = SE3.from_xyz_rpy((0.0, 0.0, 0.0), (0.0, 0.0, plan.heading)).matrix()[:3, :3]
    q = np.empty_like(local)
    for k, feet in enumerate(local):
        near = q[k] = walker.reach(feet, near)
    lines = [
        np.concatenate([one.chain.frames(q[:, leg])[:, 1:4, :3, 3], local[:, leg, None]], axis=1)
        for leg, one in enumerate(walker.legs)
    ]
    found: Array = np.stack(lines, axis=1) @ turn.T + where[:, None, None]
    return found


def animate_steps(
    file: Path, plan: StepPlan, rig: Rig, ground: Ground, told: Callable[[int, int], object] | None = None
) -> None:
    """Write it, in the time that the walk takes.

    Args:
        file: .gif, .mp4 or .html.
        plan: Whose.
        rig: The robot.
        ground: What it walks on.
        told: How many pictures of how many are drawn.

    Raises:
        InputError: the file cannot be written.
        ConfigError: there is no ffmpeg for an .mp4.
        RoboyardError: a leg cannot reach its foot.
    """
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from roboyard.errors import InputError

    count = min(int(np.ceil(plan.duration / _PERIOD)) + 1, _MOST)
    times = np.linspace(0.0, plan.duration, count)
    rate = (count - 1) / plan.duration if count > 1 else 1.0 / _PERIOD
    figure = Figure(figsize=_SIZE, dpi=_DPI, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    scene = _Scene(figure, plan, rig, ground, times, leg_lines(plan, rig.walker, times))
    canvas.draw()
    still = canvas.copy_from_bbox(figure.bbox)

    def pictures() -> Iterator[NDArray[np.uint8]]:
        for k in range(count):
            canvas.restore_region(still)
            for artist in scene.show(k):
                figure.draw_artist(artist)
            if told is not None:
                told(k, count)
            yield np.asarray(canvas.buffer_rgba())[..., :3]

    try:
        _WRITERS[file.suffix.lower()](file, pictures(), rate)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", location=str(file), valid="a file in a folder"
        ) from None


def _write_gif(file: Path, pictures: Iterator[NDArray[np.uint8]], rate: float) -> None:
    from PIL import Image

    first, *others = (Image.fromarray(picture).quantize(128, dither=Image.Dither.NONE) for picture in pictures)
    # whole hundredths of a second, as the format has it, which Pillow cuts off
    with atomic_path(file, has_target_suffix=True) as temporary:
        first.save(temporary, save_all=True, append_images=others, duration=10 * round(100.0 / rate), loop=0)


def _write_mp4(file: Path, pictures: Iterator[NDArray[np.uint8]], rate: float) -> None:
    from roboyard.scenarios.video.mp4 import Mp4Writer

    size = round(_DPI * _SIZE[0]), round(_DPI * _SIZE[1])
    with atomic_path(file, has_target_suffix=True) as temporary, Mp4Writer(temporary, *size, rate) as film:
        for picture in pictures:
            film.add(picture)


def _write_html(file: Path, pictures: Iterator[NDArray[np.uint8]], rate: float) -> None:
    """A page that holds the film, so that it can be stopped and looked through."""
    import base64
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        film = Path(folder) / "film.mp4"
        _write_mp4(film, pictures, rate)
        said = base64.b64encode(film.read_bytes()).decode()
    video = f'<video controls autoplay loop muted src="data:video/mp4;base64,{said}"></video>'
    write_atomic(file, f'<!doctype html>\n<meta charset="utf-8">\n<title>{html.escape(file.stem)}</title>\n{video}\n')


_WRITERS = {".gif": _write_gif, ".mp4": _write_mp4, ".html": _write_html}
ENDINGS = tuple(_WRITERS)


class _Scene:
    """What is drawn once, and what moves."""

    def __init__(self, figure: Any, plan: StepPlan, rig: Rig, ground: Ground, times: Array, lines: Array) -> None:
        import numpy as np

        from roboyard.cli.steps_picture import draw_heights

        self._plan, self._rig, self._times, self._lines = plan, rig, times, lines
        c, s = np.cos(plan.heading), np.sin(plan.heading)
        self._turn = np.array([[c, -s], [s, c]])
        self._body, (_, self._down) = plan.body(times), plan.feet_at(times)
        above, side = figure.subplots(2, 1, height_ratios=(2.2, 1.0))
        draw_heights(figure, above, ground)
        above.plot(*self._body[:, :2].T, color="black", linewidth=0.8, linestyle=":")
        low, high = lines[..., :2].min(axis=(0, 1, 2)) - _ROOM, lines[..., :2].max(axis=(0, 1, 2)) + _ROOM
        above.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xlabel="x [m]", ylabel="y [m]", aspect="equal")
        along = lines[..., :2] @ self._turn[:, 0]
        reach = (float(along.min()) - _ROOM, float(along.max()) + _ROOM)
        self._ground(side, ground, reach, float(self._lines[..., 2].min()))
        top = max(float(lines[..., 2].max()), float(self._body[:, 2].max() + rig.body[1, 2])) + 0.03
        side.set(xlim=reach, ylim=(None, top), xlabel="ahead [m]", ylabel="height [m]", aspect="equal")
        colors = [f"C{leg}" for leg in range(lines.shape[1])]
        (self._polygon,) = above.fill([0.0], [0.0], facecolor="gold", edgecolor="0.3", alpha=0.45, zorder=3)
        (self._hull,) = above.fill([0.0], [0.0], facecolor="0.35", edgecolor="black", alpha=0.8, zorder=4)
        (self._middle,) = above.plot([], [], "+", color="white", zorder=6)
        (self._box,) = side.fill([0.0], [0.0], facecolor="0.35", edgecolor="black", zorder=4)
        self._legs = [[axes.plot([], [], color=color, zorder=5)[0] for axes in (above, side)] for color in colors]
        self._feet = [[axes.plot([], [], "o", color=color, zorder=6)[0] for axes in (above, side)] for color in colors]
        self._title = above.set_title(" ")
        drawn = [line for both in (*self._legs, *self._feet) for line in both]
        self._moving = [self._polygon, self._hull, self._box, *drawn, self._middle, self._title]
        for artist in self._moving:
            artist.set_animated(True)

    def _ground(self, side: Any, ground: Ground, reach: tuple[float, float], low: float) -> None:
        """The highest and the lowest ground beside the way, seen from the right."""
        import numpy as np

        rows = ground.rows
        r, c = np.indices(rows.heights.shape)
        places = np.stack([rows.x + (c + 0.5) * rows.cell, rows.y + (r + 0.5) * rows.cell], axis=-1)
        along, across = np.moveaxis(places @ self._turn, -1, 0)
        wide = self._lines[..., :2] @ self._turn[:, 1]
        near = (across >= wide.min()) & (across <= wide.max()) & ~np.isnan(rows.heights)
        near &= (along >= reach[0]) & (along <= reach[1])
        if not near.any():
            return
        first = float(along[near].min())
        bins = np.round((along[near] - first) / rows.cell).astype(int)
        top, bottom = np.full(bins.max() + 1, -np.inf), np.full(bins.max() + 1, np.inf)
        np.maximum.at(top, bins, rows.heights[near])
        np.minimum.at(bottom, bins, rows.heights[near])
        at, seen = first + np.arange(len(top)) * rows.cell, np.isfinite(top)
        floor = max(min(low, float(bottom[seen].min())), low - 0.3) - 0.05
        side.set_ylim(bottom=floor)
        for heights, color in ((top, "0.82"), (bottom, "0.62")):
            side.fill_between(at[seen], floor, heights[seen], color=color, step="mid", linewidth=0.0)

    def show(self, k: int) -> list[Any]:
        """What moves, as it is in picture ``k``."""
        import numpy as np

        from roboyard.walking.stability import stability_margin, support_polygon, tip_over

        lines, body, box = self._lines[k], self._body[k], self._rig.body
        down = self._down[k]
        feet = lines[:, -1]
        corners = np.array([[box[a, 0], box[b, 1]] for a, b in ((0, 0), (1, 0), (1, 1), (0, 1))]) @ self._turn.T
        self._polygon.set_xy(support_polygon(feet[down]))
        self._hull.set_xy(corners + body[:2])
        self._middle.set_data([body[0]], [body[1]])
        ahead, (low, high) = float(body[:2] @ self._turn[:, 0]), box[:, 2] + body[2]
        near, far = box[:, 0] + ahead
        self._box.set_xy([(near, low), (far, low), (far, high), (near, high)])
        for leg, (line, stands) in enumerate(zip(lines, down, strict=True)):
            sides = line[:, :2].T, np.stack([line[:, :2] @ self._turn[:, 0], line[:, 2]])
            for points, drawn, foot in zip(sides, self._legs[leg], self._feet[leg], strict=True):
                drawn.set_data(*points)
                drawn.set_linewidth(2.4 if stands else 1.2)
                foot.set_data(points[0, -1:], points[1, -1:])
                foot.set_fillstyle("full" if stands else "none")
        margin, angle = stability_margin(feet[down], body), np.degrees(tip_over(feet[down], body).angle)
        firm = f"margin {1e3 * margin:.0f} mm, {angle:.0f}° until it tips"
        self._title.set_text(f"{self._times[k]:.1f} of {self._plan.duration:.1f} s: {firm}")
        return self._moving
