"""Takes the pictures of a film and writes them: which camera, how fast, what is written over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.errors import ConfigError, RunError
from roboyard.scenarios.video.caption import draw_caption
from roboyard.scenarios.video.chase import Chase
from roboyard.scenarios.video.film import Take, root_body
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
    if not settings.speed > 0.0:
        raise ConfigError(f"a film at {settings.speed} simulated seconds a second", valid="more than 0")
    film = [take for take in takes if len(take.times)]
    if not film:
        raise RunError("there is nothing to film: no state was kept", where=str(path))
    step = settings.speed / settings.fps
    start, end = float(film[0].times[0]), float(film[-1].times[-1])
    total = math.floor((end - start) / step + 1e-9) + 1
    done = 0
    with Mp4Writer(path, settings.width, settings.height, settings.fps) as writer, ExitStack() as stack:
        chase = Chase(robot)
        for number, take in enumerate(film):
            stop = float(film[number + 1].times[0]) if number + 1 < len(film) else math.inf
            renderer = open_renderer(take.model, settings.width, settings.height, settings.backend)
            stack.enter_context(renderer)
            shot = _Shot(take, renderer, settings, chase)
            while done < total and start + done * step < stop:
                writer.add(shot.picture(start + done * step))
                done += 1
                if progress is not None:
                    progress(done, total)
            renderer.close()
    return done


class _Shot:
    """Takes pictures of one take."""

    def __init__(self, take: Take, renderer: Renderer, settings: VideoSettings, chase: Chase) -> None:
        self._take, self._renderer, self._settings, self._chase = take, renderer, settings, chase
        self._data = mujoco.MjData(take.model)
        self._body = self._find(chase.robot)
        self._set(float(take.times[0]))
        self._fixed = self._fixed_camera()

    def picture(self, time: float) -> NDArray[np.uint8]:
        self._set(time)
        if self._fixed is not None or self._body is None:
            camera = self._fixed or self._whole("overview")
        else:
            camera = self._chase.follow(self._take.model, self._data, self._body, time)
        picture = self._renderer.render(self._data, camera)
        if self._settings.caption:
            draw_caption(picture, self._chase.robot or "world", self._details(time))
        return picture

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
        return None if place is None else self._take.states[:, place]

    def _place(self) -> slice | None:
        """Where the robot's position stands in a state."""
        joint = -1 if self._body is None else int(self._take.model.body_jntadr[self._body])
        if joint < 0 or self._take.model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_FREE:
            return None
        first = int(self._take.model.jnt_qposadr[joint])
        return slice(first, first + 3)
