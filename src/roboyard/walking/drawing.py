"""Images and animations of step plans and of foot movements."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from roboyard.config import atomic_path, write_atomic
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import U8, Array
from roboyard.walking.foot_movement import FootMovement, MovementPlayback, absolute_foot_positions
from roboyard.walking.free_gait.foothold_map import FootholdMap
from roboyard.walking.free_gait.plan_analysis import (
    FootholdSearchTrace,
    admissible_intervals,
    distance_along_path,
    trace_foothold_searches,
)
from roboyard.walking.free_gait.robot_model import FreeGaitModel
from roboyard.walking.free_gait.step_plan import StepPlan
from roboyard.walking.legged_robot import LeggedRobot
from roboyard.walking.statics import stability_margin, support_polygon, tip_over_stability

_N_POLYGONS = 14
"""Number of support polygons in a drawing."""


def draw_step_plan(
    file: Path, plan: StepPlan, robot_model: FreeGaitModel, foothold_map: FootholdMap, goal: tuple[float, float]
) -> None:
    """Draw a step plan. Raises InputError if the file cannot be written."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    legs = robot_model.legged_robot.legs
    times = np.linspace(0.0, plan.duration, 800)
    feet, is_stance = plan.foot_states(times)
    body = plan.body_positions(times)
    low, top = feet[..., :2].min(axis=(0, 1)) - 0.25, feet[..., :2].max(axis=(0, 1)) + 0.25
    ratio = min(max(float((top - low)[1] / (top - low)[0]), 0.25), 1.2)
    names = ["above", "searches", "gait", "progress", "margin"]
    height_ratios = [9.0 * ratio, 9.0 * ratio, 2.0, 2.0, 2.0]
    search_traces = trace_foothold_searches(plan, foothold_map)
    if not search_traces:
        del names[1], height_ratios[1]
    figure = Figure(figsize=(11.0, 1.5 + sum(height_ratios)), layout="constrained")
    FigureCanvasAgg(figure)
    axes: dict[str, Any] = figure.subplot_mosaic([[name] for name in names], height_ratios=height_ratios)
    top_view, gait_axes, progress_axes, stability_axes = (axes[name] for name in names if name != "searches")
    draw_heights(figure, top_view, foothold_map)
    for k in np.linspace(0, len(times) - 1, _N_POLYGONS).astype(int):
        corners = support_polygon(feet[k, is_stance[k]])
        top_view.fill(*corners.T, facecolor="none", edgecolor="0.25", linewidth=0.6, alpha=0.5)
    for leg, one in enumerate(legs):
        color = f"C{leg}"
        footholds = np.array([plan.start_feet[leg], *(swing.target for swing in plan.swings if swing.leg == leg)])
        top_view.plot(*feet[:, leg, :2].T, color=color, linewidth=0.7, alpha=0.8)
        top_view.plot(*footholds[:, :2].T, "o", color=color, markersize=5, label=one.name)
        whole_time = [(0.0, plan.duration)]
        gait_axes.broken_barh(whole_time, (len(legs) - leg - 0.9, 0.8), facecolor=color)
        swing_intervals = [
            (swing.lift_off_time, swing.touch_down_time - swing.lift_off_time)
            for swing in plan.swings
            if swing.leg == leg
        ]
        gait_axes.broken_barh(swing_intervals, (len(legs) - leg - 0.9, 0.8), facecolor="white")
    top_view.plot(*body[:, :2].T, color="black", linewidth=1.5, label="body")
    top_view.plot(*goal, "*", color="black", markersize=12)
    top_view.set_aspect("equal")
    top_view.set(
        xlim=(low[0], top[0]), ylim=(low[1], top[1]), xlabel="x [m]", ylabel="y [m]",
        title=f"{plan.duration:.1f} s, {len(plan.swings)} steps",
    )  # fmt: skip
    top_view.legend(loc="upper left", fontsize="small", ncols=7)
    if search_traces:
        draw_heights(figure, axes["searches"], foothold_map)
        _draw_foothold_searches(axes["searches"], search_traces)
        axes["searches"].set(xlim=(low[0], top[0]), ylim=(low[1], top[1]), xlabel="x [m]", ylabel="y [m]")
    gait_axes.set(yticks=np.arange(len(legs)) + 0.5, ylabel="stance", xlim=(0.0, plan.duration))
    gait_axes.set_yticklabels([leg.name for leg in reversed(legs)])
    for start, end, first, last in admissible_intervals(plan, robot_model):
        progress_axes.fill_between([start, end], first, last, color="C0", alpha=0.35, linewidth=0.0)
    progress_axes.plot(times, distance_along_path(plan, times), color="black", linewidth=0.9)
    progress_axes.set(ylabel="path [m], admissible interval", xlim=(0.0, plan.duration))
    margins = [stability_margin(feet[k, is_stance[k]], body[k]) for k in range(len(times))]
    angles = [np.degrees(tip_over_stability(feet[k, is_stance[k]], body[k]).angle) for k in range(len(times))]
    stability_axes.plot(times, margins, color="black", linewidth=0.9)
    stability_axes.axhline(robot_model.min_stability_margin, color="C3", linestyle=":")
    stability_axes.set(xlabel="time [s]", ylabel="margin [m]", xlim=(0.0, plan.duration), ylim=(0.0, None))
    tilt = stability_axes.twinx()
    tilt.plot(times, angles, color="C0", linewidth=0.9)
    tilt.set_ylim(0.0, None)
    tilt.set_ylabel("tip-over angle [°]", color="C0")
    try:
        with atomic_path(file, has_target_suffix=True) as temporary:
            figure.savefig(temporary, dpi=90)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", location=str(file), valid="a file in a folder"
        ) from None


def _draw_foothold_searches(axes: Any, search_traces: list[FootholdSearchTrace]) -> None:
    """Draw for each foothold its sampled position, the rejected cells on the way outward, and the result."""
    for one in search_traces:
        color, (x, y) = f"C{one.leg}", one.foothold
        axes.plot(*one.cells.T, color=color, linewidth=0.4, alpha=0.5)
        axes.plot(*one.cells[one.can_stand].T, ".", color="goldenrod", markersize=2.5)
        axes.plot(*one.cells[~one.can_stand].T, ".", color="C3", markersize=2.5)
        axes.plot((one.sampled[0], x), (one.sampled[1], y), color=color, linewidth=1.0)
        axes.plot(*one.sampled, "x", color=color, markersize=4)
        axes.plot(x, y, "o", color=color, markersize=4)
    axes.set_aspect("equal")
    axes.set_title(
        "searches for footholds, outward from ×; rejected cells: red, no foothold; yellow, out of reach or order",
        fontsize="small",
    )


def draw_heights(figure: Any, axes: Any, foothold_map: FootholdMap) -> None:
    """Draw the ground from above with a color scale of its heights; cells without footholds are marked."""
    arrays = foothold_map.arrays
    high, wide = np.array(arrays.heights.shape) * arrays.cell_size
    extent = (arrays.x, arrays.x + wide, arrays.y, arrays.y + high)
    image = axes.imshow(arrays.heights, origin="lower", extent=extent, cmap="gist_earth", alpha=0.6)
    figure.colorbar(image, ax=axes, label="height [m]", shrink=0.7)
    forbidden = np.where(arrays.can_stand, np.nan, 1.0)
    axes.imshow(forbidden, origin="lower", extent=extent, cmap="Reds", vmin=0.0, vmax=1.6, alpha=0.35)


_JOINT_LABELS = ("first joints", "second joints", "third joints")


def draw_movement(file: Path, legged_robot: LeggedRobot, movement: FootMovement, playback: MovementPlayback) -> None:
    """Draw a foot movement. Raises InputError if the file cannot be written."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    feet, steps = legged_robot.foot_positions(playback.q), absolute_foot_positions(movement, legged_robot)
    time = np.arange(len(playback.q)) * playback.period
    step_times = np.concatenate([[0], np.cumsum(playback.step_ticks)]) * playback.period
    figure = Figure(figsize=(12.0, 8.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes: dict[str, Any] = figure.subplot_mosaic([["above", name, name] for name in ("height", "0", "1", "2")])
    top_view = axes["above"]
    hips = np.array([leg.hip_position for leg in legged_robot.legs])
    hull_order = np.argsort(np.arctan2(hips[:, 1], hips[:, 0]))
    top_view.fill(-hips[hull_order, 1], hips[hull_order, 0], color="0.88")
    for k, leg in enumerate(legged_robot.legs):
        color = f"C{k}"
        top_view.plot(-feet[:, k, 1], feet[:, k, 0], color=color, label=leg.name)
        top_view.plot(-steps[:, k, 1], steps[:, k, 0], ".", color=color)
        top_view.plot(
            [-leg.hip_position[1], -legged_robot.stance_feet[k, 1]],
            [leg.hip_position[0], legged_robot.stance_feet[k, 0]],
            color=color,
            alpha=0.3,
        )
        axes["height"].plot(time, 1e3 * (feet[:, k, 2] - legged_robot.stance_feet[k, 2]), color=color)
        axes["height"].plot(step_times, 1e3 * movement.foot_offsets[k, :, 2], ".", color=color)
        for j in range(3):
            axes[str(j)].plot(time, np.degrees(playback.q[:, k, j]), color=color)
            for limit in (legged_robot.lower[k, j], legged_robot.upper[k, j]):
                axes[str(j)].axhline(np.degrees(limit), color=color, alpha=0.35, linestyle=":", linewidth=0.8)
    top_view.set_aspect("equal")
    top_view.set(xlabel="to the right [m]", ylabel="forward [m]", title="from above")
    top_view.legend(loc="upper right", fontsize="small")
    title = f"{movement.name}: {movement.n_steps} steps, {legged_robot.name}"
    axes["height"].set(ylabel="feet over the stance [mm]", title=title)
    for j, name in enumerate(_JOINT_LABELS):
        axes[str(j)].set(ylabel=f"{name} [°]")
    axes["2"].set_xlabel("time [s]; dotted: limits")
    try:
        with atomic_path(file, has_target_suffix=True) as temporary:
            figure.savefig(temporary, dpi=100)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", location=str(file), valid="a file in a folder"
        ) from None


_FRAME_PERIOD = 0.08
"""Time between two frames [s]; animations have the speed of the plan."""
_MAX_FRAMES = 400
"""Largest number of frames; those of longer plans are farther apart in time."""
_FIGURE_SIZE, _DPI = (9.6, 7.2), 80
"""Size of a frame [inches], and pixels per inch."""
_VIEW_MARGIN = 0.25
"""Margin of the view around the feet [m]."""


def leg_lines(plan: StepPlan, legged_robot: LeggedRobot, times: Array) -> Array:
    """Return (n, l, 4, 3) first axis, second axis, knee and foot of each leg in the world [m] at times (n,) [s].

    Joints come from inverse kinematics, seeded with the previous ones, and positions from the frames of the chains.

    Raises:
        RoboyardError: A leg cannot reach its foot.
    """
    local, body_positions, seed_angles = (
        plan.foot_positions_in_body(times),
        plan.body_positions(times),
        legged_robot.stance_pose,
    )
    rotation = SE3.from_xyz_rpy((0.0, 0.0, 0.0), (0.0, 0.0, plan.heading)).matrix()[:3, :3]
    q = np.empty_like(local)
    for k, feet in enumerate(local):
        seed_angles = q[k] = legged_robot.solve_ik(feet, seed_angles)
    lines = [
        np.concatenate([one.chain.frames(q[:, leg])[:, 1:4, :3, 3], local[:, leg, None]], axis=1)
        for leg, one in enumerate(legged_robot.legs)
    ]
    found: Array = np.stack(lines, axis=1) @ rotation.T + body_positions[:, None, None]
    return found


def animate_step_plan(
    file: Path,
    plan: StepPlan,
    robot_model: FreeGaitModel,
    foothold_map: FootholdMap,
    progress: Callable[[int, int], object] | None = None,
) -> None:
    """Write an animation of a step plan with the speed of the plan.

    Args:
        file: .gif, .mp4 or .html.
        plan: The plan.
        robot_model: The robot.
        foothold_map: The terrain.
        progress: Receives the number of finished frames and of all frames.

    Raises:
        InputError: The file cannot be written.
        ConfigError: There is no ffmpeg for an .mp4.
        RoboyardError: A leg cannot reach its foot.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    count = min(int(np.ceil(plan.duration / _FRAME_PERIOD)) + 1, _MAX_FRAMES)
    times = np.linspace(0.0, plan.duration, count)
    rate = (count - 1) / plan.duration if count > 1 else 1.0 / _FRAME_PERIOD
    figure = Figure(figsize=_FIGURE_SIZE, dpi=_DPI, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    scene = _StepPlanAnimation(
        figure, plan, robot_model, foothold_map, times, leg_lines(plan, robot_model.legged_robot, times)
    )
    canvas.draw()
    static_background = canvas.copy_from_bbox(figure.bbox)

    def render_frames() -> Iterator[U8]:
        for k in range(count):
            canvas.restore_region(static_background)
            for artist in scene.update(k):
                figure.draw_artist(artist)
            if progress is not None:
                progress(k, count)
            yield np.asarray(canvas.buffer_rgba())[..., :3]

    try:
        _ANIMATION_WRITERS[file.suffix.lower()](file, render_frames(), rate)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", location=str(file), valid="a file in a folder"
        ) from None


def _write_gif(file: Path, images: Iterator[U8], rate: float) -> None:
    from PIL import Image

    first, *others = (Image.fromarray(image).quantize(128, dither=Image.Dither.NONE) for image in images)
    # the format stores hundredths of a second, to which Pillow would round down
    with atomic_path(file, has_target_suffix=True) as temporary:
        first.save(temporary, save_all=True, append_images=others, duration=10 * round(100.0 / rate), loop=0)


def _write_mp4(file: Path, images: Iterator[U8], rate: float) -> None:
    from roboyard.simulation.video.mp4_writer import Mp4Writer

    size = round(_DPI * _FIGURE_SIZE[0]), round(_DPI * _FIGURE_SIZE[1])
    with atomic_path(file, has_target_suffix=True) as temporary, Mp4Writer(temporary, *size, rate) as writer:
        for image in images:
            writer.add(image)


def _write_html(file: Path, images: Iterator[U8], rate: float) -> None:
    """Write a page that contains the video, so that it can be paused and searched."""
    import base64
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        video_file = Path(folder) / "film.mp4"
        _write_mp4(video_file, images, rate)
        encoded = base64.b64encode(video_file.read_bytes()).decode()
    video = f'<video controls autoplay loop muted src="data:video/mp4;base64,{encoded}"></video>'
    write_atomic(file, f'<!doctype html>\n<meta charset="utf-8">\n<title>{html.escape(file.stem)}</title>\n{video}\n')


_ANIMATION_WRITERS = {".gif": _write_gif, ".mp4": _write_mp4, ".html": _write_html}
ANIMATION_SUFFIXES = tuple(_ANIMATION_WRITERS)


class _StepPlanAnimation:
    """Artists that are drawn once, and artists that move."""

    def __init__(
        self,
        figure: Any,
        plan: StepPlan,
        robot_model: FreeGaitModel,
        foothold_map: FootholdMap,
        times: Array,
        lines: Array,
    ) -> None:
        import numpy as np

        self._plan, self._robot_model, self._times, self._leg_lines = plan, robot_model, times, lines
        c, s = np.cos(plan.heading), np.sin(plan.heading)
        self._rotation = np.array([[c, -s], [s, c]])
        self._body, (_, self._is_stance) = plan.body_positions(times), plan.foot_states(times)
        top_view, side_view = figure.subplots(2, 1, height_ratios=(2.2, 1.0))
        draw_heights(figure, top_view, foothold_map)
        top_view.plot(*self._body[:, :2].T, color="black", linewidth=0.8, linestyle=":")
        low, high = lines[..., :2].min(axis=(0, 1, 2)) - _VIEW_MARGIN, lines[..., :2].max(axis=(0, 1, 2)) + _VIEW_MARGIN
        top_view.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xlabel="x [m]", ylabel="y [m]", aspect="equal")
        along = lines[..., :2] @ self._rotation[:, 0]
        reach = (float(along.min()) - _VIEW_MARGIN, float(along.max()) + _VIEW_MARGIN)
        self._draw_ground_profile(side_view, foothold_map, reach, float(self._leg_lines[..., 2].min()))
        top = max(float(lines[..., 2].max()), float(self._body[:, 2].max() + robot_model.body_box[1, 2])) + 0.03
        side_view.set(xlim=reach, ylim=(None, top), xlabel="forward [m]", ylabel="height [m]", aspect="equal")
        colors = [f"C{leg}" for leg in range(lines.shape[1])]
        (self._polygon,) = top_view.fill([0.0], [0.0], facecolor="gold", edgecolor="0.3", alpha=0.45, zorder=3)
        (self._hull,) = top_view.fill([0.0], [0.0], facecolor="0.35", edgecolor="black", alpha=0.8, zorder=4)
        (self._body_marker,) = top_view.plot([], [], "+", color="white", zorder=6)
        (self._side_hull,) = side_view.fill([0.0], [0.0], facecolor="0.35", edgecolor="black", zorder=4)
        self._leg_artists = [
            [axes.plot([], [], color=color, zorder=5)[0] for axes in (top_view, side_view)] for color in colors
        ]
        self._foot_artists = [
            [axes.plot([], [], "o", color=color, zorder=6)[0] for axes in (top_view, side_view)] for color in colors
        ]
        self._title = top_view.set_title(" ")
        leg_artists = [line for both in (*self._leg_artists, *self._foot_artists) for line in both]
        self._moving = [self._polygon, self._hull, self._side_hull, *leg_artists, self._body_marker, self._title]
        for artist in self._moving:
            artist.set_animated(True)

    def _draw_ground_profile(
        self, side_view: Any, foothold_map: FootholdMap, reach: tuple[float, float], low: float
    ) -> None:
        """Draw the highest and the lowest ground beside the path, seen from the right."""
        import numpy as np

        arrays = foothold_map.arrays
        r, c = np.indices(arrays.heights.shape)
        cell_centers = np.stack(
            [arrays.x + (c + 0.5) * arrays.cell_size, arrays.y + (r + 0.5) * arrays.cell_size], axis=-1
        )
        along, across = np.moveaxis(cell_centers @ self._rotation, -1, 0)
        lateral_extent = self._leg_lines[..., :2] @ self._rotation[:, 1]
        is_along_path = (across >= lateral_extent.min()) & (across <= lateral_extent.max()) & ~np.isnan(arrays.heights)
        is_along_path &= (along >= reach[0]) & (along <= reach[1])
        if not is_along_path.any():
            return
        first = float(along[is_along_path].min())
        bins = np.round((along[is_along_path] - first) / arrays.cell_size).astype(int)
        top, bottom = np.full(bins.max() + 1, -np.inf), np.full(bins.max() + 1, np.inf)
        np.maximum.at(top, bins, arrays.heights[is_along_path])
        np.minimum.at(bottom, bins, arrays.heights[is_along_path])
        bin_positions, has_ground = first + np.arange(len(top)) * arrays.cell_size, np.isfinite(top)
        floor = max(min(low, float(bottom[has_ground].min())), low - 0.3) - 0.05
        side_view.set_ylim(bottom=floor)
        for heights, color in ((top, "0.82"), (bottom, "0.62")):
            side_view.fill_between(
                bin_positions[has_ground], floor, heights[has_ground], color=color, step="mid", linewidth=0.0
            )

    def update(self, k: int) -> list[Any]:
        """Move the artists to frame ``k``, and return them."""
        import numpy as np

        from roboyard.walking.statics import stability_margin, support_polygon, tip_over_stability

        lines, body, box = self._leg_lines[k], self._body[k], self._robot_model.body_box
        stance = self._is_stance[k]
        feet = lines[:, -1]
        corners = np.array([[box[a, 0], box[b, 1]] for a, b in ((0, 0), (1, 0), (1, 1), (0, 1))]) @ self._rotation.T
        self._polygon.set_xy(support_polygon(feet[stance]))
        self._hull.set_xy(corners + body[:2])
        self._body_marker.set_data([body[0]], [body[1]])
        body_along, (low, high) = float(body[:2] @ self._rotation[:, 0]), box[:, 2] + body[2]
        back, front = box[:, 0] + body_along
        self._side_hull.set_xy([(back, low), (front, low), (front, high), (back, high)])
        for leg, (line, is_stance) in enumerate(zip(lines, stance, strict=True)):
            sides = line[:, :2].T, np.stack([line[:, :2] @ self._rotation[:, 0], line[:, 2]])
            for points, leg_line, foot in zip(sides, self._leg_artists[leg], self._foot_artists[leg], strict=True):
                leg_line.set_data(*points)
                leg_line.set_linewidth(2.4 if is_stance else 1.2)
                foot.set_data(points[0, -1:], points[1, -1:])
                foot.set_fillstyle("full" if is_stance else "none")
        margin, angle = stability_margin(feet[stance], body), np.degrees(tip_over_stability(feet[stance], body).angle)
        stability_text = f"margin {1e3 * margin:.0f} mm, {angle:.0f}° until it tips"
        self._title.set_text(f"{self._times[k]:.1f} of {self._plan.duration:.1f} s: {stability_text}")
        return self._moving
