"""Plays the script of an actor of an SDF world: poses at given times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roboyard.description.model import ActorScript
from roboyard.geometry import SE2, wrap_angle
from roboyard.geometry.arrays import Array
from roboyard.people.animation_player import AnimationPlayer
from roboyard.people.clip import AnimationClip
from roboyard.people.clip_library import load_builtin_clip
from roboyard.people.skeleton import Skeleton

MAX_STEP_DISTANCE = 0.5
"""Displacement in one step above which the actor jumps instead of walking [m]."""


@dataclass(frozen=True, slots=True)
class _ScriptSegment:
    """Segment between two waypoints: times [s], poses (x, y, yaw) and the animation."""

    start: float
    end: float
    start_pose: tuple[float, float, float]
    end_pose: tuple[float, float, float]
    animation: str


class ActorPlayer:
    """Plays the script of an actor.

    Args:
        skeleton: Skeleton of the actor.
        script: Script of the actor.
        clips: Clips of the script's animations by name.
        pose: x, y and yaw if the script has no waypoints [m, rad].

    Attributes:
        animation_player: Animates the body.
        time: Time since the start of the script [s].
    """

    def __init__(
        self,
        skeleton: Skeleton,
        script: ActorScript,
        clips: Mapping[str, AnimationClip],
        pose: tuple[float, float, float],
    ) -> None:
        self._script, self._clips = script, dict(clips)
        self._idle_clip, self._turning_clip = load_builtin_clip("idle"), load_builtin_clip("turn")
        self._by_distance = {clip.name: clip.by_distance for clip in script.clips}
        self._segments = _make_segments(script)
        self.time = 0.0
        start_pose = self._segments[0].start_pose if self._segments else pose
        self.animation_player = AnimationPlayer(skeleton, self._idle_clip, start_pose)

    def step(self, dt: float) -> tuple[Array, Array]:
        """Advance by ``dt`` [s]; return (17, 3) positions [m] and (17, 4) orientations of the parts in the world."""
        self.time += dt
        script = self._script
        if not script.auto_start:
            return self._stand(dt)
        if not self._segments:
            self._play(self._find_clip(script.clips[0].name) if script.clips else self._idle_clip)
            self.animation_player.phase += dt / self.animation_player.clip.period
            return self.animation_player.update(dt)
        end = self._segments[-1].end
        time = self.time % (script.delay + end) if script.loop else self.time
        time -= script.delay
        if time < 0.0 or (time > end and not script.loop):
            return self._stand(dt)
        segment = next(segment for segment in self._segments if time <= segment.end)
        fraction = min(max((time - segment.start) / max(segment.end - segment.start, 1e-9), 0.0), 1.0)
        x, y = (a + fraction * (b - a) for a, b in zip(segment.start_pose[:2], segment.end_pose[:2], strict=True))
        yaw = wrap_angle(segment.start_pose[2] + fraction * wrap_angle(segment.end_pose[2] - segment.start_pose[2]))
        self._move_to(segment.animation, (x, y, yaw), dt)
        return self.animation_player.update(dt)

    def _stand(self, dt: float) -> tuple[Array, Array]:
        self._play(self._idle_clip)
        self.animation_player.phase += dt / self._idle_clip.period
        return self.animation_player.update(dt)

    def _move_to(self, animation: str, pose: tuple[float, float, float], dt: float) -> None:
        x, y, yaw = self.animation_player.pose
        distance, yaw_change = math.hypot(pose[0] - x, pose[1] - y), wrap_angle(pose[2] - yaw)
        if distance > MAX_STEP_DISTANCE:
            self.animation_player.set_pose(pose)
            distance, yaw_change = 0.0, 0.0
        self.animation_player.pose = pose
        clip = self._find_clip(animation)
        if clip.travel_per_period and distance < 1e-5:  # the actor turns or waits
            self._play(self._turning_clip if abs(yaw_change) > 1e-5 else self._idle_clip)
            clip = self.animation_player.clip
            self.animation_player.phase += yaw_change / clip.yaw_per_period if clip.yaw_per_period else dt / clip.period
            return
        self._play(clip)
        by_distance = clip.travel_per_period and (self._by_distance.get(animation, True) or clip.name == "walk")
        self.animation_player.phase += (
            distance / (clip.travel_per_period * self.animation_player.height) if by_distance else dt / clip.period
        )

    def _find_clip(self, animation: str) -> AnimationClip:
        return self._clips.get(animation) or load_builtin_clip("walk")

    def _play(self, clip: AnimationClip) -> None:
        if self.animation_player.clip is not clip:
            self.animation_player.play(clip)

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        clip_name = next((name for name, clip in self._clips.items() if clip is self.animation_player.clip), "")
        return {
            "time": self.time,
            "clip": clip_name or self.animation_player.clip.name,
            "animation_player": self.animation_player.save_state(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore the state that `save_state` returned."""
        self.time = float(saved["time"])
        clip_name = saved["clip"]
        self.animation_player.load_state(
            saved["animation_player"],
            self._clips[clip_name] if clip_name in self._clips else load_builtin_clip(clip_name),
        )


def _make_segments(script: ActorScript) -> list[_ScriptSegment]:
    """Return the segments of all trajectories in order; one that starts at an earlier time follows the last."""
    segments: list[_ScriptSegment] = []
    time_offset = 0.0
    for trajectory in script.trajectories:
        points = [(time, SE2.from_se3(T)) for time, T in trajectory.waypoints]
        if points and segments and points[0][0] + time_offset < segments[-1].end:
            time_offset = segments[-1].end - points[0][0]
        previous = segments[-1] if segments else None
        for time, waypoint in points:
            end_pose = (waypoint.x, waypoint.y, waypoint.theta)
            start_pose = previous.end_pose if previous else end_pose
            segments.append(
                _ScriptSegment(
                    previous.end if previous else 0.0, time + time_offset, start_pose, end_pose, trajectory.clip
                )
            )
            previous = segments[-1]
    return segments
