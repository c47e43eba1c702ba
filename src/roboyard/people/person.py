"""A person who executes one goal at a time: walking to a pose, or playing an animation.

The activity is *setup* once at the start, then *idle*, *movement* or *animation*.  A busy person rejects other goals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple, dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from roboyard.errors import RoboyardError
from roboyard.geometry import wrap_angle
from roboyard.geometry.arrays import Array
from roboyard.people.animation_player import REACH_TOLERANCE, AnimationPlayer
from roboyard.people.clip import AnimationClip
from roboyard.people.procedural_gait import make_walk_clip
from roboyard.people.skeleton import Skeleton
from roboyard.people.walking import WALKING_ACCELERATION, PersonGoalError, WalkingPath

_MAX_WALKING_SPEED = 4.0
"""Maximum commanded speed of walking or running [m/s]."""
_MIN_STRIDE, _MAX_STRIDE = 0.25, 0.90
"""Range of the strides for which walking clips are generated [statures]."""


@dataclass(frozen=True, slots=True)
class WalkGoal:
    """A requested walk.

    Attributes:
        animation: Name of the walking clip.
        cycle_distance: Distance that one cycle of the clip covers [m]; 0: that of the clip.
        target: x and y [m].
        yaw: Heading at the end [rad]; None: any.
        velocity: Walking speed [m/s]; 0: that of the clip times the person's speed factor.
    """

    animation: str
    cycle_distance: float
    target: tuple[float, float]
    yaw: float | None
    velocity: float


@dataclass(slots=True)
class WalkProgress:
    """Progress of a walk to a goal; its phases are *turn_to_path*, *walk* and *turn_to_goal*.

    Attributes:
        goal: The requested walk.
        clip: The walking clip.
        cycle_distance: Distance that one cycle of the clip covers [m].
        cruise_speed: Speed on a straight path [m/s].
        path: The path; None: the person only turns.
        phase: Present phase.
        speed: Present speed of walking or turning [m/s or rad/s].
        distance_walked: Distance walked along the path [m].
    """

    goal: WalkGoal
    clip: AnimationClip
    cycle_distance: float
    cruise_speed: float
    path: WalkingPath | None = None
    phase: str = "turn_to_path"
    speed: float = 0.0
    distance_walked: float = 0.0

    @classmethod
    def from_goal(
        cls, goal: WalkGoal, find_clip: Callable[[str], AnimationClip], height: float, speed_factor: float
    ) -> WalkProgress:
        """Return the progress of a walk that has not started, without a path. Raises PersonGoalError."""
        clip, cycle_distance, velocity = find_clip(goal.animation), goal.cycle_distance, goal.velocity
        if not all(map(math.isfinite, (*goal.target, cycle_distance, goal.yaw or 0.0))):
            raise PersonGoalError(
                f"target {goal.target}, yaw {goal.yaw} or distance {cycle_distance} m is not finite",
                "invalid",
                "finite numbers",
            )
        if velocity != 0.0 and not 0.05 <= velocity <= _MAX_WALKING_SPEED:
            raise PersonGoalError(
                f"a velocity of {velocity:g} m/s", "invalid", f"0.05 to {_MAX_WALKING_SPEED:g} m/s, or 0"
            )
        if not clip.loop or not clip.travel_per_period > 0.0:
            raise PersonGoalError(
                f"animation {goal.animation!r} does not travel", "invalid", "a walking clip, such as 'walk' or 'carry'"
            )
        if cycle_distance == 0.0:
            cycle_distance = clip.travel_per_period * height
        low, high = 0.05 * height, 2.0 * height
        if not low <= cycle_distance <= high:
            raise PersonGoalError(
                f"a distance of {cycle_distance:g} m per cycle of {goal.animation!r}",
                "invalid",
                f"{low:.2f} to {high:.2f} m, or 0",
            )
        stride = round(cycle_distance / height, 3)
        if clip.name == "walk" and _MIN_STRIDE <= stride <= _MAX_STRIDE:
            clip = make_walk_clip(stride)
        return cls(goal, clip, cycle_distance, velocity or speed_factor * cycle_distance / clip.period)


PathPlanner = Callable[[tuple[float, float], tuple[float, float]], WalkingPath]
"""Plans a path between two positions. Raises PersonGoalError if there is none."""

MIN_WALKING_DISTANCE = 0.10
"""Distance to the target below which a person only turns [m]."""
ANGULAR_ACCELERATION = 5.0
"""Angular acceleration of turning on the spot [rad/s²]."""
MAX_ANGULAR_SPEED = 1.8
"""Maximum angular speed of turning on the spot [rad/s]."""
HEADING_TOLERANCE = math.radians(2.0)
"""Accepted deviation from a heading [rad]."""
_MIN_WALKING_SPEED, _HEADING_RATE = 0.08, 4.0
"""A person stands below this walking velocity [m/s]; maximum rate of turning to its direction [rad/s]."""


class PersonActivity(StrEnum):
    """Activity of a person."""

    SETUP = "setup"
    IDLE = "idle"
    MOVEMENT = "movement"
    ANIMATION = "animation"


@dataclass(slots=True)
class _PlayedAnimation:
    clip: AnimationClip
    rate: float


class Person:
    """A person who walks to goals and plays animations.

    Args:
        skeleton: Skeleton of the person.
        pose: Initial x, y and yaw [m, rad].
        find_clip: Returns the clip of a name; raises a RoboyardError if there is none.
        plan_path: Plans walking paths; by default straight lines.
        speed_factor: Factor on the speed of all clips.

    Attributes:
        animation_player: Animates the body.
        activity: Present activity.
        progress: Progress of an animation, 0 to 1.
        has_ended_goal: Whether the last step ended a goal.
        is_holding_reach: Whether a hand that has reached its target stays there.
        is_carrying: Whether a hand holds an object: the arms then do not hang down while the person stands and turns.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        pose: tuple[float, float, float],
        find_clip: Callable[[str], AnimationClip],
        plan_path: PathPlanner = lambda start, end: WalkingPath(np.array([start, end]), WALKING_ACCELERATION),
        speed_factor: float = 1.0,
    ) -> None:
        self._find_clip, self._plan_path, self._speed_factor = find_clip, plan_path, speed_factor
        self._idle_clips = find_clip("idle"), find_clip("carry_idle")
        self._turning_clips = find_clip("turn"), find_clip("carry_turn")
        self._walk_clip = find_clip("walk")
        self.is_carrying = False
        self.animation_player = AnimationPlayer(skeleton, self._idle_clip, pose)
        self.activity, self.progress, self.has_ended_goal = PersonActivity.SETUP, 0.0, False
        self.is_holding_reach = False
        self._walk_progress: WalkProgress | None = None
        self._played_animation: _PlayedAnimation | None = None
        self._walking_velocity: tuple[float, float] | None = None

    @property
    def _idle_clip(self) -> AnimationClip:
        return self._idle_clips[self.is_carrying]

    @property
    def _turning_clip(self) -> AnimationClip:
        return self._turning_clips[self.is_carrying]

    @property
    def pose(self) -> tuple[float, float, float]:
        """x, y and yaw [m, rad]."""
        return self.animation_player.pose

    @property
    def has_reached_target(self) -> bool:
        """Whether the hand of the present animation has reached its target."""
        clip = self.animation_player.clip
        return (
            self.activity is PersonActivity.ANIMATION
            and self.animation_player.phase >= sum(clip.reach_interval) / 2.0 - 1e-9
        )

    @property
    def animation_name(self) -> str:
        """Name of the present clip."""
        return self.animation_player.clip.name

    # -- goals ---------------------------------------------------------------------------------------------------------
    def walk(
        self,
        animation: str,
        cycle_distance: float,
        target: tuple[float, float],
        yaw: float | None,
        velocity: float = 0.0,
    ) -> None:
        """Start to walk to a target.

        Args:
            animation: Name of the walking clip.
            cycle_distance: Distance that one cycle of the clip covers [m]; 0: that of the clip.
            target: x and y [m].
            yaw: Heading at the end [rad]; None: any.
            velocity: Walking speed [m/s]; 0: that of the clip times the person's speed factor.

        Raises:
            PersonGoalError: The person is busy, the clip does not exist or does not travel, or the target is
                unreachable.
        """
        self.check_free()
        goal = WalkGoal(animation, cycle_distance, target, yaw, velocity)
        progress = WalkProgress.from_goal(goal, self._find_goal_clip, self.animation_player.height, self._speed_factor)
        x, y, _ = self.pose
        if math.hypot(target[0] - x, target[1] - y) >= MIN_WALKING_DISTANCE:
            progress.path = self._plan_path((x, y), target)
        self._walk_progress = progress
        self.activity, self.progress = PersonActivity.MOVEMENT, 0.0

    def animate(self, animation: str, speed: float, target: Array | None = None, hand: str = "") -> None:
        """Start to play a clip.

        Args:
            animation: Name of the clip.
            speed: Factor on the speed of the clip.
            target: Position (3,) of the hand in the world, for clips that reach [m]; None: that of the clip.
            hand: "left" or "right"; empty: that of the clip.

        Raises:
            PersonGoalError: The person is busy, the clip does not exist, the speed is out of bounds, or the target is
                out of reach.
        """
        self.check_free()
        clip = self._find_goal_clip(animation)
        if not 0.05 <= speed <= 20.0:
            raise PersonGoalError(f"animation speed {speed:g}", "invalid", "0.05 to 20")
        reach = None
        if target is not None:
            if clip.reaching_hand is None:
                raise PersonGoalError(
                    f"animation {animation!r} has no reaching hand",
                    "invalid",
                    "a clip with reaching_hand, such as 'reach'",
                )
            if hand not in ("", "left", "right") or not np.isfinite(target).all():
                raise PersonGoalError(
                    f"target {target.tolist()} for hand {hand!r}", "invalid", "finite coordinates; left or right"
                )
            hand = hand or clip.reaching_hand
            reach, position_error = self.animation_player.plan_reach(clip, np.asarray(target, float), hand)
            if position_error > REACH_TOLERANCE:
                target_text = ", ".join(f"{value:.2f}" for value in target)
                raise PersonGoalError(
                    f"({target_text}) is {position_error:.2f} m out of reach of the {hand} hand", "unreachable"
                )
        self.animation_player.play(clip)
        self.animation_player.reach = reach
        self.is_holding_reach = False
        self._played_animation = _PlayedAnimation(clip, self._speed_factor * speed / clip.period)
        self.activity, self.progress = PersonActivity.ANIMATION, 0.0

    def find_reaching_hand(self, animation: str) -> str:
        """Return the hand with which a clip reaches; empty: none. Raises PersonGoalError."""
        return self._find_goal_clip(animation).reaching_hand or ""

    def set_walking_velocity(self, velocity: tuple[float, float] | None) -> None:
        """Walk at a velocity in the world [m/s] until the next call, as in a crowd; None: stand.

        Raises:
            PersonGoalError: The person executes a goal, or the velocity is not finite.
        """
        if self._walking_velocity is None:
            if velocity is None:
                return
            self.check_free()
        if velocity is None:
            self._walking_velocity = None
            self._return_to_idle()
            self.has_ended_goal = False
            return
        if not all(map(math.isfinite, velocity)):
            raise PersonGoalError(f"velocity {velocity} is not finite", "invalid", "finite numbers")
        self._walking_velocity, self.activity = velocity, PersonActivity.MOVEMENT

    def cancel(self) -> None:
        """End the present goal; the person stands."""
        if self.activity in (PersonActivity.MOVEMENT, PersonActivity.ANIMATION):
            self._walking_velocity = None
            self._return_to_idle()
            self.has_ended_goal = False

    def check_free(self) -> None:
        """Raise PersonGoalError (busy) unless the person is idle."""
        if self.activity is PersonActivity.SETUP:
            raise PersonGoalError("the person is not set up yet", "busy")
        if self.activity is not PersonActivity.IDLE:
            raise PersonGoalError(
                f"the person is busy with a goal of {self.activity}", "busy", "one goal at a time over both actions"
            )

    def _find_goal_clip(self, animation: str) -> AnimationClip:
        try:
            return self._find_clip(animation)
        except RoboyardError as error:
            raise PersonGoalError(f"animation {animation!r}: {error}", "unknown") from None

    # -- time ----------------------------------------------------------------------------------------------------------
    def step(self, dt: float) -> tuple[Array, Array]:
        """Advance by ``dt`` [s]; return (17, 3) positions [m] and (17, 4) orientations of the parts in the world."""
        self.has_ended_goal = False
        if self.activity is PersonActivity.SETUP:
            self.activity = PersonActivity.IDLE
        if self._walking_velocity is not None:
            self._advance_at_velocity(self._walking_velocity, dt)
        elif self.activity is PersonActivity.MOVEMENT and self._walk_progress is not None:
            self._advance_walk(self._walk_progress, dt)
        elif self.activity is PersonActivity.ANIMATION and self._played_animation is not None:
            self._advance_animation(self._played_animation, dt)
        else:
            self._play(self._idle_clip)
            self.animation_player.phase += dt / self._idle_clip.period
        return self.animation_player.update(dt)

    def _return_to_idle(self) -> None:
        self.is_holding_reach = False
        self._walk_progress = self._played_animation = None
        self.activity, self.has_ended_goal = PersonActivity.IDLE, True
        self._play(self._idle_clip)

    def _advance_animation(self, animation: _PlayedAnimation, dt: float) -> None:
        self.animation_player.phase += dt * animation.rate
        if self.is_holding_reach:
            self.animation_player.phase = min(self.animation_player.phase, sum(animation.clip.reach_interval) / 2.0)
        self.progress = min(self.animation_player.phase, 1.0)
        if self.animation_player.phase >= 1.0 - 1e-9:
            if not animation.clip.loop:
                self.animation_player.phase = 1.0
                self.animation_player.play_from_end(self._idle_clip)
            self._return_to_idle()

    def _advance_walk(self, progress: WalkProgress, dt: float) -> None:
        path, goal_yaw = progress.path, progress.goal.yaw
        if progress.phase == "turn_to_path":
            if path is None:
                progress.phase = "turn_to_goal"
            elif self._advance_turning(progress, path.heading_at(0.0), dt):
                progress.phase, progress.speed = "walk", 0.0
                self._play(progress.clip)
        if progress.phase == "walk" and path is not None:
            self._advance_along_path(progress, path, dt)
        if progress.phase == "turn_to_goal" and (goal_yaw is None or self._advance_turning(progress, goal_yaw, dt)):
            self._return_to_idle()

    def _advance_along_path(self, progress: WalkProgress, path: WalkingPath, dt: float) -> None:
        """Advance along the path, and the clip by the distance; slower in bends and towards the end."""
        remaining = path.length - progress.distance_walked
        target_speed = min(
            progress.cruise_speed,
            path.max_speed_at(progress.distance_walked),
            math.sqrt(2.0 * WALKING_ACCELERATION * remaining),
        )
        progress.speed = min(progress.speed + WALKING_ACCELERATION * dt, max(target_speed, 0.05))
        step = min(progress.speed * dt, remaining)
        progress.distance_walked += step
        self.animation_player.pose = (
            *path.position_at(progress.distance_walked),
            path.heading_at(progress.distance_walked),
        )
        self.animation_player.phase += step / progress.cycle_distance
        if remaining - step < 1e-3:
            progress.phase, progress.speed = "turn_to_goal", 0.0

    def _advance_at_velocity(self, velocity: tuple[float, float], dt: float) -> None:
        """Advance at a velocity; the heading turns to its direction."""
        x, y, yaw = self.pose
        speed = math.hypot(*velocity)
        if speed < _MIN_WALKING_SPEED:
            self._play(self._idle_clip)
            self.animation_player.phase += dt / self._idle_clip.period
            return
        yaw_step = wrap_angle(math.atan2(velocity[1], velocity[0]) - yaw)
        yaw_step = min(max(yaw_step, -_HEADING_RATE * dt), _HEADING_RATE * dt)
        self.animation_player.pose = (x + dt * velocity[0], y + dt * velocity[1], wrap_angle(yaw + yaw_step))
        walk = self._walk_clip
        self._play(walk)
        self.animation_player.phase += dt * speed / (walk.travel_per_period * self.animation_player.height)

    def _advance_turning(self, progress: WalkProgress, target_yaw: float, dt: float) -> bool:
        """Turn on the spot; return whether the heading is reached."""
        x, y, yaw = self.pose
        remaining = wrap_angle(target_yaw - yaw)
        if abs(remaining) < (1e-6 if self.animation_player.clip is self._turning_clip else HEADING_TOLERANCE):
            progress.speed = 0.0
            return True
        self._play(self._turning_clip)
        target_speed = min(MAX_ANGULAR_SPEED, math.sqrt(2.0 * ANGULAR_ACCELERATION * abs(remaining)))
        progress.speed = min(progress.speed + ANGULAR_ACCELERATION * dt, max(target_speed, 0.1))
        step = math.copysign(min(progress.speed * dt, abs(remaining)), remaining)
        self.animation_player.pose = (x, y, wrap_angle(yaw + step))
        self.animation_player.phase += step / self._turning_clip.yaw_per_period
        return False

    def _play(self, clip: AnimationClip) -> None:
        if self.animation_player.clip is not clip:
            self.animation_player.play(clip)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        walk, animation = self._walk_progress, self._played_animation
        return {
            "activity": self.activity.value,
            "progress": self.progress,
            "animation_player": self.animation_player.save_state(),
            "is_holding_reach": self.is_holding_reach,
            "walking_velocity": None if self._walking_velocity is None else list(self._walking_velocity),
            "clip": self.animation_name,
            "movement": None
            if walk is None
            else [
                astuple(walk.goal),
                None if walk.path is None else walk.path.save_state(),
                walk.phase,
                walk.speed,
                walk.distance_walked,
            ],
            "animation": None if animation is None else [animation.clip.name, animation.rate],
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore the state that `save_state` returned."""
        self._walk_progress = self._played_animation = None
        self.has_ended_goal, self.is_holding_reach = False, saved["is_holding_reach"]
        self._walking_velocity = (
            None if saved["walking_velocity"] is None else (saved["walking_velocity"][0], saved["walking_velocity"][1])
        )
        walk_clip = None
        if saved["movement"] is not None:
            (animation, cycle_distance, (x, y), yaw, velocity), points, phase, speed, distance_walked = saved[
                "movement"
            ]
            goal = WalkGoal(animation, cycle_distance, (x, y), yaw, velocity)
            self._walk_progress = WalkProgress.from_goal(
                goal, self._find_goal_clip, self.animation_player.height, self._speed_factor
            )
            self._walk_progress.path = None if points is None else WalkingPath(np.array(points), WALKING_ACCELERATION)
            self._walk_progress.phase, self._walk_progress.speed, self._walk_progress.distance_walked = (
                phase,
                speed,
                distance_walked,
            )
            walk_clip = self._walk_progress.clip if saved["clip"] == self._walk_progress.clip.name else None
        if saved["animation"] is not None:
            name, rate = saved["animation"]
            self._played_animation = _PlayedAnimation(self._find_clip(name), rate)
        self.activity, self.progress = PersonActivity(saved["activity"]), float(saved["progress"])
        self.animation_player.load_state(saved["animation_player"], walk_clip or self._find_clip(saved["clip"]))
