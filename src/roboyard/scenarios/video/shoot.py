"""Takes the pictures of a film and writes them: which camera, how fast, what is written over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.errors import ConfigError, RunError
from roboyard.scenarios.video.caption import draw_caption
from roboyard.scenarios.video.chase import Chase
from roboyard.scenarios.video.film import GrowingTake, Take, root_body
from roboyard.scenarios.video.mp4 import Mp4Writer
from roboyard.simulation.render import (
    Camera,
    Renderer,
    open_renderer,
    overview,
    reach_of,
    top_view,
    world_bounds,
)
from roboyard.simulation.render.opening import Backend

Progress = Callable[[int, int], None]
_SPEED_OVER = 0.2  # the caption's speed is the mean over this time [s]


@dataclass(frozen=True, slots=True)
class VideoSettings:
    """How a film looks.

    Attributes:
        width: [px], even.
        height: [px], even.
        fps: Pictures a second.
        speed: Simulated seconds a second of film.
        view: "chase" follows the robot, "overview" sees the whole world from a corner, "top" from above; or a fixed
            ``Camera``.
        backend: Renderer: "rays" looks best and alike on every machine, "gl" is quicker, "auto" takes gl if it works.
        caption: Whether time, robot and speed are written in.
    """

    width: int = 640
    height: int = 360
    fps: float = 20.0
    speed: float = 1.0
    view: Literal["chase", "overview", "top"] | Camera = "chase"
    backend: Backend = "rays"
    caption: bool = True


def write_video(
    path: Path | str,
    takes: Iterable[Take],
    *,
    robot: str | None = None,
    settings: VideoSettings | None = None,
    progress: Progress | None = None,
) -> int:
    """Write an MP4 of a run.

    Args:
        path: File to write; its folder must exist.
        takes: The film, in order of time.
        robot: Model that the camera follows and the caption speaks of; None = a view of the whole world.
        settings: How it looks.
        progress: Called with the number of pictures done and of all.

    Returns:
        Number of pictures.

    Raises:
        ConfigError: Impossible settings, or no ffmpeg on this machine.
        RunError: There is nothing to show, or the file cannot be written.
        UnknownNameError: No such robot.
    """
    settings = settings or VideoSettings()
    with FrameSequence(robot, settings) as frames:
        for take in takes:
            if len(take.times):
                frames.add_take(take)
        if not frames.takes:
            raise RunError("there is nothing to film: no state was kept", location=str(path))
        frames.is_complete = True
        with Mp4Writer(path, settings.width, settings.height, settings.fps) as writer:
            while frames.is_ready():
                writer.add(frames.draw())
                if progress is not None:
                    progress(frames.n_frames, frames.total)
        return frames.n_frames


class FrameSequence:
    """Draws the frames of a film in order, also while its last take still grows; to be closed, or used with ``with``.

    A frame is drawn once no later state can change it, so that the frames do not depend on when the states came.

    Args:
        robot: Model that the camera follows and the caption speaks of; None = a view of the whole world.
        settings: How it looks.

    Attributes:
        takes: With a state at least each; only the last one may grow.
        is_complete: Whoever adds states sets it after the last one.
        n_frames: Number of frames drawn.

    Raises:
        ConfigError: Impossible settings.
    """

    def __init__(self, robot: str | None, settings: VideoSettings) -> None:
        if not settings.speed > 0.0:
            raise ConfigError(f"a film at {settings.speed} simulated seconds a second", valid="more than 0")
        self._settings, self._chase = settings, Chase(robot)
        self._step = settings.speed / settings.fps
        self._current = 0
        self._renderer: Renderer | None = None
        self._shot: _Shot | None = None
        self.takes: list[Take | GrowingTake] = []
        self.is_complete = False
        self.n_frames = 0

    @property
    def total(self) -> int:
        """Number of frames of the states so far."""
        span = float(self.takes[-1].times[-1]) - float(self.takes[0].times[0])
        return math.floor(span / self._step + 1e-9) + 1

    def add_take(self, take: Take | GrowingTake) -> None:
        """Append a take that begins after all states so far."""
        self.takes.append(take)

    def is_ready(self) -> bool:
        """Whether the next frame exists and no later state can change it."""
        if not self.takes:
            return False
        if self.is_complete:
            return self.n_frames < self.total
        time = self._time()
        index = self._segment_index(time)
        if index + 1 < len(self.takes):
            return True
        # A state at the very time may yet turn out to be the last of its take.
        return time < self.takes[index].times[-1] and not self._needs_whole(self.takes[index])

    def draw(self) -> NDArray[np.uint8]:
        """Draw the next frame (height, width, 3); only where it ``is_ready``."""
        time = self._time()
        number = self._segment_index(time)
        if self._shot is None or number != self._current:
            self.close()
            segment, settings = self.takes[number], self._settings
            self._renderer = open_renderer(segment.model, settings.width, settings.height, settings.backend)
            self._shot = _Shot(segment, self._renderer, settings, self._chase)
            self._current = number
        picture = self._shot.picture(time)
        self.n_frames += 1
        return picture

    def close(self) -> None:
        """Free the renderer."""
        if self._renderer is not None:
            self._renderer.close()
        self._renderer = self._shot = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _time(self) -> float:
        """Simulated time of the next frame [s]."""
        return float(self.takes[0].times[0]) + self.n_frames * self._step

    def _segment_index(self, time: float) -> int:
        """Number of the take in which a time lies that is not before the present take."""
        number = self._current
        while number + 1 < len(self.takes) and time >= self.takes[number + 1].times[0]:
            number += 1
        return number

    def _needs_whole(self, segment: Take | GrowingTake) -> bool:
        """Whether the camera depends on all states of a take: a fixed view shows the whole path of the robot."""
        if self._settings.view not in ("overview", "top") or self._chase.robot is None:
            return False
        return _position_slice(segment.model, root_body(segment.model, self._chase.robot)) is not None


class _Shot:
    """Takes pictures of one take."""

    def __init__(self, segment: Take | GrowingTake, renderer: Renderer, settings: VideoSettings, chase: Chase) -> None:
        self._take, self._renderer, self._settings, self._chase = segment, renderer, settings, chase
        self._data = mujoco.MjData(segment.model)
        self._body = self._find(chase.robot)
        self._set(float(segment.times[0]))
        self._fixed = self._fixed_camera()

    def picture(self, time: float) -> NDArray[np.uint8]:
        self._set(time)
        if self._fixed is not None or self._body is None:
            camera = self._fixed or self._whole("overview")
        else:
            camera = self._chase.follow(self._take.model, self._data, self._body, time)
        image = self._renderer.render(self._data, camera)
        if self._settings.caption:
            draw_caption(image, self._chase.robot or "world", self._details(time))
        return image

    def _find(self, robot: str | None) -> int | None:
        return None if robot is None else root_body(self._take.model, robot)

    def _set(self, time: float) -> None:
        self._take.at(time).take(self._take.model, self._data)

    def _fixed_camera(self) -> Camera | None:
        view = self._settings.view
        if isinstance(view, Camera):
            return view
        return None if view == "chase" and self._body is not None else self._whole(view)

    def _whole(self, view: str) -> Camera:
        low, high = world_bounds(self._take.model, self._data)
        track = self._track()
        if track is not None and self._body is not None:  # in an empty world there is nothing else to see
            reach = reach_of(self._take.model, self._data, self._body)
            low, high = np.minimum(low, track.min(0) - reach), np.maximum(high, track.max(0) + reach)
            low[2] = max(low[2], float(track[:, 2].min()) - reach)
        aspect = self._settings.width / self._settings.height
        return top_view(low, high, aspect=aspect) if view == "top" else overview(low, high, aspect=aspect)

    def _details(self, time: float) -> str:
        minutes, seconds = divmod(time + 1e-9, 60.0)
        parts = [f"{int(minutes):02d}:{seconds:04.1f}"]
        if self._body is not None:
            parts.append(f"{self._speed(time):.2f} m/s")
        if self._settings.speed != 1.0:
            parts.append(f"× {self._settings.speed:g}")
        return "   ".join(parts)

    def _speed(self, time: float) -> float:
        """Mean speed [m/s] of the robot's root over the last moments."""
        since = max(time - _SPEED_OVER, float(self._take.times[0]))
        place = self._place()
        if place is None or time - since < 1e-6:
            return 0.0
        moved = self._take.at(time).joints[place] - self._take.at(since).joints[place]
        return float(np.linalg.norm(moved)) / (time - since)

    def _track(self) -> NDArray[np.float64] | None:
        """Positions (n, 3) of the robot's root in all states; None where it cannot move about."""
        place = self._place()
        return None if place is None else np.stack([state[place] for state in self._take.states])

    def _place(self) -> slice | None:
        return None if self._body is None else _position_slice(self._take.model, self._body)


def _position_slice(model: mujoco.MjModel, body: int) -> slice | None:
    """Where the position of a robot's root body stands in a state; None where it cannot move about."""
    joint = int(model.body_jntadr[body])
    if joint < 0 or model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_FREE:
        return None
    first = int(model.jnt_qposadr[joint])
    return slice(first, first + 3)
