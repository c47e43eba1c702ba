"""What an SDF ``<actor>`` is to do: animations of its own, and where it is when."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from roboyard.geometry import SE3


@dataclass(frozen=True, slots=True)
class ActorClip:
    """An animation of an actor.

    Attributes:
        name: That trajectories call it by.
        uri: As the file has it.
        file: Where that is; None where it was not found.
        by_distance: Whether it goes on with the way instead of time (``<interpolate_x>``).
    """

    name: str
    uri: str
    file: Path | None
    by_distance: bool = False


@dataclass(frozen=True, slots=True)
class ActorTrajectory:
    """One way of an actor.

    Attributes:
        clip: Name of what it shows on it.
        waypoints: When it is where, in the world, by rising time [s].
    """

    clip: str
    waypoints: tuple[tuple[float, SE3], ...]


@dataclass(frozen=True, slots=True)
class ActorScript:
    """What an actor does.

    Attributes:
        clips: Those it knows.
        trajectories: One after the other.
        loop: Whether it then begins again.
        delay: Before it begins, each time [s].
        auto_start: Whether it begins by itself.
    """

    clips: tuple[ActorClip, ...] = ()
    trajectories: tuple[ActorTrajectory, ...] = ()
    loop: bool = True
    delay: float = 0.0
    auto_start: bool = True
