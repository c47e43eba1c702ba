"""Somebody who follows a script: way points by time, as SDF's actors do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roboyard.description.model import ActorScript
from roboyard.geometry import SE2, wrap_angle
from roboyard.geometry.arrays import Array
from roboyard.simulation.people.clip import Clip
from roboyard.simulation.people.library import own_clip
from roboyard.simulation.people.performer import Performer
from roboyard.simulation.people.skeleton import Skeleton

JUMP = 0.5
"""Who is farther away from one step to the next was put there [m]."""


@dataclass(frozen=True, slots=True)
class _Leg:
    """From one way point to the next: times [s], places (x, y, yaw), and what is shown."""

    start: float
    end: float
    source: tuple[float, float, float]
    target: tuple[float, float, float]
    animation: str


class Scripted:
    """Somebody who does what an actor is to do.

    Args:
        skeleton: Whose body.
        acting: What they do.
        clips: Of its animations, by name.
        place: x, y and yaw where no way point says otherwise [m, rad].

    Attributes:
        performer: Shows the clips.
        time: Since the script began [s].
    """

    def __init__(
        self, skeleton: Skeleton, acting: ActorScript, clips: Mapping[str, Clip], place: tuple[float, float, float]
    ) -> None:
        self._acting, self._clips = acting, dict(clips)
        self._idle, self._turn = own_clip("idle"), own_clip("turn")
        self._distances = {one.name: one.by_distance for one in acting.clips}
        self._legs = _legs(acting)
        self.time = 0.0
        start = self._legs[0].source if self._legs else place
        self.performer = Performer(skeleton, self._idle, start)

    def step(self, dt: float) -> tuple[Array, Array]:
        """Go on by ``dt`` [s]: (17, 3) places [m] and (17, 4) orientations of the parts then, in the world."""
        self.time += dt
        acting = self._acting
        if not acting.auto_start:
            return self._wait(dt)
        if not self._legs:
            self._show(self._clip(acting.clips[0].name) if acting.clips else self._idle)
            self.performer.phase += dt / self.performer.clip.period
            return self.performer.pose(dt)
        end = self._legs[-1].end
        time = self.time % (acting.delay + end) if acting.loop else self.time
        time -= acting.delay
        if time < 0.0 or (time > end and not acting.loop):
            return self._wait(dt)
        leg = next(leg for leg in self._legs if time <= leg.end)
        share = min(max((time - leg.start) / max(leg.end - leg.start, 1e-9), 0.0), 1.0)
        x, y = (a + share * (b - a) for a, b in zip(leg.source[:2], leg.target[:2], strict=True))
        yaw = wrap_angle(leg.source[2] + share * wrap_angle(leg.target[2] - leg.source[2]))
        self._go(leg.animation, (x, y, yaw), dt)
        return self.performer.pose(dt)

    def _wait(self, dt: float) -> tuple[Array, Array]:
        self._show(self._idle)
        self.performer.phase += dt / self._idle.period
        return self.performer.pose(dt)

    def _go(self, animation: str, place: tuple[float, float, float], dt: float) -> None:
        x, y, yaw = self.performer.place
        moved, turned = math.hypot(place[0] - x, place[1] - y), wrap_angle(place[2] - yaw)
        if moved > JUMP:
            self.performer.put(place)
            moved, turned = 0.0, 0.0
        self.performer.place = place
        clip = self._clip(animation)
        if clip.travel and moved < 1e-5:  # turns, or waits
            self._show(self._turn if abs(turned) > 1e-5 else self._idle)
            clip = self.performer.clip
            self.performer.phase += turned / clip.turning if clip.turning else dt / clip.period
            return
        self._show(clip)
        by_distance = clip.travel and (self._distances.get(animation, True) or clip.name == "walk")
        self.performer.phase += moved / (clip.travel * self.performer.height) if by_distance else dt / clip.period

    def _clip(self, animation: str) -> Clip:
        return self._clips.get(animation) or own_clip("walk")

    def _show(self, clip: Clip) -> None:
        if self.performer.clip is not clip:
            self.performer.show(clip)

    def save_state(self) -> dict[str, Any]:
        """Plain data."""
        shown = next((name for name, clip in self._clips.items() if clip is self.performer.clip), "")
        return {"time": self.time, "shown": shown or self.performer.clip.name, "performer": self.performer.save_state()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self.time = float(saved["time"])
        name = saved["shown"]
        self.performer.load_state(saved["performer"], self._clips[name] if name in self._clips else own_clip(name))


def _legs(acting: ActorScript) -> list[_Leg]:
    """All ways, one after the other; the times of a trajectory that begins anew follow those of the one before."""
    legs: list[_Leg] = []
    shift = 0.0
    for one in acting.trajectories:
        points = [(time, SE2.from_se3(T)) for time, T in one.waypoints]
        if points and legs and points[0][0] + shift < legs[-1].end:
            shift = legs[-1].end - points[0][0]
        before = legs[-1] if legs else None
        for time, place in points:
            at = (place.x, place.y, place.theta)
            source = before.target if before else at
            legs.append(_Leg(before.end if before else 0.0, time + shift, source, at, one.clip))
            before = legs[-1]
    return legs
