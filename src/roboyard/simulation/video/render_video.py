"""Renders sequences of states into a video: cameras, speed, caption."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.errors import ConfigError, RunError
from roboyard.geometry import SE3
from roboyard.rendering import (
    ChaseCamera,
    RenderCamera,
    Renderer,
    body_extent,
    make_visibility_function,
    open_renderer,
    overview,
    top_view,
    world_bounds,
)
from roboyard.rendering.backends import Backend
from roboyard.simulation.video.mp4_writer import Mp4Writer
from roboyard.simulation.video.states import GrowingStateSequence, StateSequence, root_body

FrameProgress = Callable[[int, int], None]
_SPEED_AVERAGING_TIME = 0.2  # the caption's speed is the mean over this time [s]


@dataclass(frozen=True, slots=True)
class VideoSettings:
    """Settings of a video.

    Attributes:
        width: Width of the images [px], even.
        height: Height of the images [px], even.
        fps: Frames per second.
        speed: Simulated seconds per second of the video.
        view: "chase" follows the robot, "overview" sees the whole world from a corner, "top" from above; or a fixed
            `RenderCamera`.
        backend: Renderer: "rays" gives equal images on every machine, "gl" is faster, "auto" takes gl if it works.
        caption: Whether the frames show time, robot and speed.
    """

    width: int = 640
    height: int = 360
    fps: float = 20.0
    speed: float = 1.0
    view: Literal["chase", "overview", "top"] | RenderCamera = "chase"
    backend: Backend = "rays"
    caption: bool = True


def write_video(
    path: Path | str,
    sequences: Iterable[StateSequence],
    *,
    robot: str | None = None,
    settings: VideoSettings | None = None,
    on_progress: FrameProgress | None = None,
) -> int:
    """Write an MP4 of a run.

    Args:
        path: File to write; its folder must exist.
        sequences: Sequences of states in order of time.
        robot: Model that the camera follows and the caption names; None: a view of the whole world.
        settings: Settings of the video.
        on_progress: Called with the number of rendered frames and of all frames.

    Returns:
        Number of frames.

    Raises:
        ConfigError: The settings are invalid, or this machine has no ffmpeg.
        RunError: The sequences have no states, or the file cannot be written.
        UnknownNameError: There is no such robot.
    """
    settings = settings or VideoSettings()
    with FrameSequence(robot, settings) as frames:
        for sequence in sequences:
            if len(sequence.times):
                frames.add_sequence(sequence)
        if not frames.sequences:
            raise RunError("there is the video has no states", location=str(path))
        frames.is_complete = True
        with Mp4Writer(path, settings.width, settings.height, settings.fps) as writer:
            while frames.is_ready():
                writer.add(frames.draw())
                if on_progress is not None:
                    on_progress(frames.n_frames, frames.total)
        return frames.n_frames


class FrameSequence:
    """Renders the frames of a video in order, also while states are added; close it, or use it in a ``with`` block.

    A frame is rendered when no later state can change it, so that frames do not depend on when the states arrive.

    Args:
        robot: Model that the camera follows and the caption names; None: a view of the whole world.
        settings: Settings of the video.

    Attributes:
        sequences: Sequences of at least one state; only the last one may grow.
        is_complete: Whether all states are added; the caller sets it.
        n_frames: Number of rendered frames.

    Raises:
        ConfigError: The settings are invalid.
    """

    def __init__(self, robot: str | None, settings: VideoSettings) -> None:
        if not settings.speed > 0.0:
            raise ConfigError(f"a film at {settings.speed} simulated seconds a second", valid="more than 0")
        self._settings, self._chase_view = settings, ChaseView(robot)
        self._step = settings.speed / settings.fps
        self._current = 0
        self._renderer: Renderer | None = None
        self._sequence_renderer: _SequenceRenderer | None = None
        self.sequences: list[StateSequence | GrowingStateSequence] = []
        self.is_complete = False
        self.n_frames = 0

    @property
    def total(self) -> int:
        """Number of frames of the states so far."""
        span = float(self.sequences[-1].times[-1]) - float(self.sequences[0].times[0])
        return math.floor(span / self._step + 1e-9) + 1

    def add_sequence(self, sequence: StateSequence | GrowingStateSequence) -> None:
        """Append a sequence that starts after all states so far."""
        self.sequences.append(sequence)

    def is_ready(self) -> bool:
        """Whether the next frame exists and no later state can change it."""
        if not self.sequences:
            return False
        if self.is_complete:
            return self.n_frames < self.total
        time = self._time()
        index = self._sequence_index(time)
        if index + 1 < len(self.sequences):
            return True
        # A state at the very time may yet turn out to be the last of its take.
        return time < self.sequences[index].times[-1] and not self._needs_all_states(self.sequences[index])

    def draw(self) -> NDArray[np.uint8]:
        """Render the next frame (height, width, 3); requires ``is_ready``."""
        time = self._time()
        index = self._sequence_index(time)
        if self._sequence_renderer is None or index != self._current:
            self.close()
            sequence, settings = self.sequences[index], self._settings
            self._renderer = open_renderer(sequence.model, settings.width, settings.height, settings.backend)
            self._sequence_renderer = _SequenceRenderer(sequence, self._renderer, settings, self._chase_view)
            self._current = index
        image = self._sequence_renderer.render(time)
        self.n_frames += 1
        return image

    def close(self) -> None:
        """Release the renderer."""
        if self._renderer is not None:
            self._renderer.close()
        self._renderer = self._sequence_renderer = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _time(self) -> float:
        """Simulated time of the next frame [s]."""
        return float(self.sequences[0].times[0]) + self.n_frames * self._step

    def _sequence_index(self, time: float) -> int:
        """Return the index of the sequence of a time that is not before the present sequence."""
        index = self._current
        while index + 1 < len(self.sequences) and time >= self.sequences[index + 1].times[0]:
            index += 1
        return index

    def _needs_all_states(self, sequence: StateSequence | GrowingStateSequence) -> bool:
        """Return whether the camera depends on all states of a sequence: a fixed view shows the robot's whole path."""
        if self._settings.view not in ("overview", "top") or self._chase_view.robot is None:
            return False
        return _position_slice(sequence.model, root_body(sequence.model, self._chase_view.robot)) is not None


class _SequenceRenderer:
    """Renders the frames of one sequence."""

    def __init__(
        self,
        sequence: StateSequence | GrowingStateSequence,
        renderer: Renderer,
        settings: VideoSettings,
        chase_view: ChaseView,
    ) -> None:
        self._sequence, self._renderer, self._settings, self._chase_view = sequence, renderer, settings, chase_view
        self._data = mujoco.MjData(sequence.model)
        self._body = self._find_root_body(chase_view.robot)
        self._apply_state(float(sequence.times[0]))
        self._fixed_view = self._fixed_camera()

    def render(self, time: float) -> NDArray[np.uint8]:
        self._apply_state(time)
        if self._fixed_view is not None or self._body is None:
            camera = self._fixed_view or self._scene_camera("overview")
        else:
            camera = self._chase_view.follow(self._sequence.model, self._data, self._body, time)
        image = self._renderer.render(self._data, camera)
        if self._settings.caption:
            draw_caption(image, self._chase_view.robot or "world", self._caption_details(time))
        return image

    def _find_root_body(self, robot: str | None) -> int | None:
        return None if robot is None else root_body(self._sequence.model, robot)

    def _apply_state(self, time: float) -> None:
        self._sequence.interpolate(time).apply_to(self._sequence.model, self._data)

    def _fixed_camera(self) -> RenderCamera | None:
        view = self._settings.view
        if isinstance(view, RenderCamera):
            return view
        return None if view == "chase" and self._body is not None else self._scene_camera(view)

    def _scene_camera(self, view: str) -> RenderCamera:
        low, high = world_bounds(self._sequence.model, self._data)
        positions = self._root_positions()
        if positions is not None and self._body is not None:  # in an empty world there is nothing else to see
            extent = body_extent(self._sequence.model, self._data, self._body)
            low, high = np.minimum(low, positions.min(0) - extent), np.maximum(high, positions.max(0) + extent)
            low[2] = max(low[2], float(positions[:, 2].min()) - extent)
        aspect = self._settings.width / self._settings.height
        return top_view(low, high, aspect=aspect) if view == "top" else overview(low, high, aspect=aspect)

    def _caption_details(self, time: float) -> str:
        minutes, seconds = divmod(time + 1e-9, 60.0)
        parts = [f"{int(minutes):02d}:{seconds:04.1f}"]
        if self._body is not None:
            parts.append(f"{self._mean_speed(time):.2f} m/s")
        if self._settings.speed != 1.0:
            parts.append(f"× {self._settings.speed:g}")
        return "   ".join(parts)

    def _mean_speed(self, time: float) -> float:
        """Return the mean speed of the robot's root over a short time before [m/s]."""
        start_time = max(time - _SPEED_AVERAGING_TIME, float(self._sequence.times[0]))
        position_slice = self._root_position_slice()
        if position_slice is None or time - start_time < 1e-6:
            return 0.0
        displacement = (
            self._sequence.interpolate(time).joint_positions[position_slice]
            - self._sequence.interpolate(start_time).joint_positions[position_slice]
        )
        return float(np.linalg.norm(displacement)) / (time - start_time)

    def _root_positions(self) -> NDArray[np.float64] | None:
        """Return the positions (n, 3) of the robot's root in all states; None if it cannot move freely."""
        position_slice = self._root_position_slice()
        return None if position_slice is None else np.stack([state[position_slice] for state in self._sequence.states])

    def _root_position_slice(self) -> slice | None:
        return None if self._body is None else _position_slice(self._sequence.model, self._body)


def _position_slice(model: mujoco.MjModel, body: int) -> slice | None:
    """Return where a state has the position of a robot's root body; None if the body cannot move freely."""
    joint = int(model.body_jntadr[body])
    if joint < 0 or model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_FREE:
        return None
    address = int(model.jnt_qposadr[joint])
    return slice(address, address + 3)


class ChaseView:
    """Camera that follows a robot through sequences and states.

    Args:
        robot: Name of the model; None: the camera follows no model.
    """

    def __init__(self, robot: str | None) -> None:
        self.robot = robot
        self.camera: ChaseCamera | None = None

    def follow(self, model: mujoco.MjModel, data: mujoco.MjData, body: int, time: float) -> RenderCamera:
        """Return the camera at a time [s]; ``body`` is the robot's root in the compiled model."""
        if self.camera is None:
            extent = body_extent(model, data, body)
            distance = min(max(5.5 * extent, 0.9), 8.0)
            self.camera = ChaseCamera(distance=distance, height=0.55 * distance, look_ahead=0.2 * distance)
        return self.camera.update(SE3(data.xquat[body], data.xpos[body]), time, make_visibility_function(model, data))


_PANEL, _ACCENT, _BRIGHT, _DIM = (18, 24, 30, 165), (64, 190, 190, 255), (255, 255, 255, 255), (205, 215, 220, 255)


def draw_caption(image: NDArray[np.uint8], title: str, details: str) -> None:
    """Write a title and a line of details into the lower left corner; changes ``image`` (height, width, 3)."""
    from PIL import Image, ImageDraw

    height, width = image.shape[:2]
    unit = max(height / 360.0, 0.5)
    large, small = _font(round(15 * unit)), _font(round(12.5 * unit))
    margin, padding = round(10 * unit), round(9 * unit)
    text_width = max(large.getlength(title), small.getlength(details))
    panel_width, panel_height = min(round(text_width + 3 * padding), width - 2 * margin), round(43 * unit)
    panel_height = min(panel_height, height - 2 * margin)
    if panel_width < 20 or panel_height < 20:
        return  # a thumbnail needs none
    top = height - margin - panel_height
    patch = image[top : top + panel_height, margin : margin + panel_width]
    background = Image.fromarray(patch).convert("RGBA")
    layer = Image.new("RGBA", background.size, (0, 0, 0, 0))
    pen = ImageDraw.Draw(layer)
    pen.rounded_rectangle((0, 0, panel_width - 1, panel_height - 1), radius=round(7 * unit), fill=_PANEL)
    bar = (padding * 0.7, panel_height * 0.2, padding * 0.7 + 3 * unit, panel_height * 0.8)
    pen.rounded_rectangle(bar, radius=round(1.5 * unit), fill=_ACCENT)
    left = round(padding * 0.7 + 3 * unit + padding * 0.8)
    pen.text((left, round(panel_height * 0.29)), title, font=large, fill=_BRIGHT, anchor="lm")
    pen.text((left, round(panel_height * 0.71)), details, font=small, fill=_DIM, anchor="lm")
    patch[:] = np.asarray(Image.alpha_composite(background, layer).convert("RGB"))


@cache
def _font(size: int) -> Any:
    from matplotlib import get_data_path
    from PIL import ImageFont

    # Pillow's own font has no "×"; the one that plots are written in has.
    return ImageFont.truetype(Path(get_data_path(), "fonts", "ttf", "DejaVuSans.ttf"), max(size, 8))
