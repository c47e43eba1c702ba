"""Somebody who can be told to move somewhere or to show an animation: a machine of four states.

*setup*, once at the start; then *idle*, *movement* or *animation*.  One goal at a time: who is busy refuses another.
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
from roboyard.simulation.people.clip import Clip
from roboyard.simulation.people.movement import ACCELERATION, Asked, Movement, RefusedError
from roboyard.simulation.people.performer import Performer
from roboyard.simulation.people.reaching import REACHED
from roboyard.simulation.people.route import Route
from roboyard.simulation.people.skeleton import Skeleton

Way = Callable[[tuple[float, float], tuple[float, float]], Route]
"""How to walk from one place to another. Raises RefusedError where nobody can."""

NEAR = 0.10
"""Somebody who is so near a target has no way to walk [m]."""
TURN_ACCELERATION = 5.0
"""Of turning on the spot [rad/s²]."""
TURN_RATE = 1.8
"""Of turning on the spot [rad/s]."""
AIMED = math.radians(2.0)
"""Nearer than this to a direction nobody turns."""
_DAWDLES, _FACES = 0.08, 4.0
"""Slower than this somebody who is steered stands; how fast they face where they go [m/s, rad/s]."""


class State(StrEnum):
    """What somebody does."""

    SETUP = "setup"
    IDLE = "idle"
    MOVEMENT = "movement"
    ANIMATION = "animation"


@dataclass(slots=True)
class _Animation:
    clip: Clip
    rate: float


class Person:
    """Somebody.

    Args:
        skeleton: Whose body.
        place: x, y and yaw at the start [m, rad].
        clips: Finds a clip by its name; raises where there is none.
        way: Finds ways; straight ones unless it is said.
        pace: Times the clips' own speed, of all that they do.

    Attributes:
        performer: Shows the clips.
        state: What they do.
        progress: Of an animation, 0 to 1.
        ended: Whether the last step ended a goal.
        lingers: Whether a hand that has reached its place stays there.
        carries: Whether they hold something, so that arms do not hang down while they stand and turn.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        place: tuple[float, float, float],
        clips: Callable[[str], Clip],
        way: Way = lambda start, end: Route(np.array([start, end]), ACCELERATION),
        pace: float = 1.0,
    ) -> None:
        self._clips, self._way, self._pace = clips, way, pace
        self._idles = clips("idle"), clips("carry_idle")
        self._turns = clips("turn"), clips("carry_turn")
        self._walk_clip = clips("walk")
        self.carries = False
        self.performer = Performer(skeleton, self._idle, place)
        self.state, self.progress, self.ended = State.SETUP, 0.0, False
        self.lingers = False
        self._movement: Movement | None = None
        self._animation: _Animation | None = None
        self._steered: tuple[float, float] | None = None

    @property
    def _idle(self) -> Clip:
        return self._idles[self.carries]

    @property
    def _turn(self) -> Clip:
        return self._turns[self.carries]

    @property
    def place(self) -> tuple[float, float, float]:
        """x, y and yaw [m, rad]."""
        return self.performer.place

    @property
    def has_reached(self) -> bool:
        """Whether an animation has come to where its hand is at its place."""
        clip = self.performer.clip
        return self.state is State.ANIMATION and self.performer.phase >= sum(clip.reach) / 2.0 - 1e-9

    @property
    def animation(self) -> str:
        """Name of the clip that is shown."""
        return self.performer.clip.name

    # -- goals ---------------------------------------------------------------------------------------------------------
    def move(
        self, animation: str, distance: float, target: tuple[float, float], yaw: float | None, velocity: float = 0.0
    ) -> None:
        """Begin to walk somewhere.

        Args:
            animation: The clip to walk by.
            distance: One of its rounds covers [m]; 0: as much as it does by itself.
            target: x and y [m].
            yaw: Direction at the end [rad]; None: whichever.
            velocity: Of walking [m/s]; 0: as the clip goes, and their pace.

        Raises:
            RefusedError: busy, no such clip or none to walk by, or the target cannot be reached.
        """
        self.check_free()
        asked = Asked(animation, distance, target, yaw, velocity)
        movement = Movement.of(asked, self._known, self.performer.height, self._pace)
        x, y, _ = self.place
        if math.hypot(target[0] - x, target[1] - y) >= NEAR:
            movement.route = self._way((x, y), target)
        self._movement = movement
        self.state, self.progress = State.MOVEMENT, 0.0

    def animate(self, animation: str, speed: float, target: Array | None = None, hand: str = "") -> None:
        """Begin to show a clip.

        Args:
            animation: Which.
            speed: Times its own.
            target: (3,) where the hand is to go, in the world, of clips that reach [m]; None: nowhere in particular.
            hand: "left" or "right"; empty: the clip's own.

        Raises:
            RefusedError: busy, no such clip, a speed that makes no sense, or a place out of reach.
        """
        self.check_free()
        clip = self._known(animation)
        if not 0.05 <= speed <= 20.0:
            raise RefusedError(f"animation speed {speed:g}", "invalid", "0.05 to 20")
        reach = None
        if target is not None:
            if clip.hand is None:
                raise RefusedError(
                    f"animation {animation!r} reaches for nothing", "invalid", "one that does, as 'reach'"
                )
            if hand not in ("", "left", "right") or not np.isfinite(target).all():
                raise RefusedError(f"a place {target.tolist()} for hand {hand!r}", "invalid", "finite; left or right")
            hand = hand or clip.hand
            reach, missed = self.performer.reaches(clip, np.asarray(target, float), hand)
            if missed > REACHED:
                where = ", ".join(f"{value:.2f}" for value in target)
                raise RefusedError(f"({where}) is {missed:.2f} m out of the {hand} hand's reach", "unreachable")
        self.performer.show(clip)
        self.performer.reach = reach
        self.lingers = False
        self._animation = _Animation(clip, self._pace * speed / clip.period)
        self.state, self.progress = State.ANIMATION, 0.0

    def hand_of(self, animation: str) -> str:
        """Which hand a clip reaches with; empty: none. Raises RefusedError."""
        return self._known(animation).hand or ""

    def steer(self, velocity: tuple[float, float] | None) -> None:
        """Walk on at a velocity in the world [m/s] until told otherwise, as somebody in a crowd; None: stand.

        Raises:
            RefusedError: busy with a goal, or the velocity is no number.
        """
        if self._steered is None:
            if velocity is None:
                return
            self.check_free()
        if velocity is None:
            self._steered = None
            self._stand()
            self.ended = False
            return
        if not all(map(math.isfinite, velocity)):
            raise RefusedError(f"a velocity of {velocity}", "invalid", "finite numbers")
        self._steered, self.state = velocity, State.MOVEMENT

    def cancel(self) -> None:
        """Stop and stand."""
        if self.state in (State.MOVEMENT, State.ANIMATION):
            self._steered = None
            self._stand()
            self.ended = False

    def check_free(self) -> None:
        """Raises RefusedError: busy."""
        if self.state is State.SETUP:
            raise RefusedError("not set up yet", "busy")
        if self.state is not State.IDLE:
            raise RefusedError(f"busy with a goal for {self.state}", "busy", "one goal at a time over both actions")

    def _known(self, animation: str) -> Clip:
        try:
            return self._clips(animation)
        except RoboyardError as error:
            raise RefusedError(f"animation {animation!r}: {error}", "unknown") from None

    # -- time ----------------------------------------------------------------------------------------------------------
    def step(self, dt: float) -> tuple[Array, Array]:
        """Go on by ``dt`` [s]: (17, 3) places [m] and (17, 4) orientations of the parts then, in the world."""
        self.ended = False
        if self.state is State.SETUP:
            self.state = State.IDLE
        if self._steered is not None:
            self._stroll(self._steered, dt)
        elif self.state is State.MOVEMENT and self._movement is not None:
            self._move_on(self._movement, dt)
        elif self.state is State.ANIMATION and self._animation is not None:
            self._animate_on(self._animation, dt)
        else:
            self._show(self._idle)
            self.performer.phase += dt / self._idle.period
        return self.performer.pose(dt)

    def _stand(self) -> None:
        self.lingers = False
        self._movement = self._animation = None
        self.state, self.ended = State.IDLE, True
        self._show(self._idle)

    def _animate_on(self, doing: _Animation, dt: float) -> None:
        self.performer.phase += dt * doing.rate
        if self.lingers:
            self.performer.phase = min(self.performer.phase, sum(doing.clip.reach) / 2.0)
        self.progress = min(self.performer.phase, 1.0)
        if self.performer.phase >= 1.0 - 1e-9:
            if not doing.clip.loop:
                self.performer.phase = 1.0
                self.performer.leave(self._idle)
            self._stand()

    def _move_on(self, doing: Movement, dt: float) -> None:
        route, final = doing.route, doing.asked.yaw
        if doing.stage == "aim":
            if route is None:
                doing.stage = "final"
            elif self._turned(doing, route.facing(0.0), dt):
                doing.stage, doing.speed = "walk", 0.0
                self._show(doing.clip)
        if doing.stage == "walk" and route is not None:
            self._walk(doing, route, dt)
        if doing.stage == "final" and (final is None or self._turned(doing, final, dt)):
            self._stand()

    def _walk(self, doing: Movement, route: Route, dt: float) -> None:
        """Along the way, by rounds of the clip; slower in bends and towards the end."""
        left = route.length - doing.gone
        wanted = min(doing.usual, route.fastest(doing.gone), math.sqrt(2.0 * ACCELERATION * left))
        doing.speed = min(doing.speed + ACCELERATION * dt, max(wanted, 0.05))
        step = min(doing.speed * dt, left)
        doing.gone += step
        self.performer.place = (*route.place(doing.gone), route.facing(doing.gone))
        self.performer.phase += step / doing.distance
        if left - step < 1e-3:
            doing.stage, doing.speed = "final", 0.0

    def _stroll(self, velocity: tuple[float, float], dt: float) -> None:
        """Where the velocity leads, the face turning there."""
        x, y, yaw = self.place
        pace = math.hypot(*velocity)
        if pace < _DAWDLES:
            self._show(self._idle)
            self.performer.phase += dt / self._idle.period
            return
        turn = wrap_angle(math.atan2(velocity[1], velocity[0]) - yaw)
        turn = min(max(turn, -_FACES * dt), _FACES * dt)
        self.performer.place = (x + dt * velocity[0], y + dt * velocity[1], wrap_angle(yaw + turn))
        walk = self._walk_clip
        self._show(walk)
        self.performer.phase += dt * pace / (walk.travel * self.performer.height)

    def _turned(self, doing: Movement, direction: float, dt: float) -> bool:
        """Turn on the spot by steps; whether it is done."""
        x, y, yaw = self.place
        left = wrap_angle(direction - yaw)
        if abs(left) < (1e-6 if self.performer.clip is self._turn else AIMED):
            doing.speed = 0.0
            return True
        self._show(self._turn)
        wanted = min(TURN_RATE, math.sqrt(2.0 * TURN_ACCELERATION * abs(left)))
        doing.speed = min(doing.speed + TURN_ACCELERATION * dt, max(wanted, 0.1))
        step = math.copysign(min(doing.speed * dt, abs(left)), left)
        self.performer.place = (x, y, wrap_angle(yaw + step))
        self.performer.phase += step / self._turn.turning
        return False

    def _show(self, clip: Clip) -> None:
        if self.performer.clip is not clip:
            self.performer.show(clip)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Plain data."""
        moving, showing = self._movement, self._animation
        return {
            "state": self.state.value, "progress": self.progress, "performer": self.performer.save_state(),
            "lingers": self.lingers,
            "steered": None if self._steered is None else list(self._steered),
            "clip": self.animation,
            "movement": None if moving is None else
            [astuple(moving.asked), None if moving.route is None else moving.route.save_state(),
             moving.stage, moving.speed, moving.gone],
            "animation": None if showing is None else [showing.clip.name, showing.rate],
        }  # fmt: skip

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self._movement = self._animation = None
        self.ended, self.lingers = False, saved["lingers"]
        self._steered = None if saved["steered"] is None else (saved["steered"][0], saved["steered"][1])
        shown = None
        if saved["movement"] is not None:
            (animation, distance, (x, y), yaw, velocity), points, stage, speed, gone = saved["movement"]
            asked = Asked(animation, distance, (x, y), yaw, velocity)
            self._movement = Movement.of(asked, self._known, self.performer.height, self._pace)
            self._movement.route = None if points is None else Route(np.array(points), ACCELERATION)
            self._movement.stage, self._movement.speed, self._movement.gone = stage, speed, gone
            shown = self._movement.clip if saved["clip"] == self._movement.clip.name else None
        if saved["animation"] is not None:
            name, rate = saved["animation"]
            self._animation = _Animation(self._clips(name), rate)
        self.state, self.progress = State(saved["state"]), float(saved["progress"])
        self.performer.load_state(saved["performer"], shown or self._clips(saved["clip"]))
