"""Which of the places to look from is next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from roboyard.errors import ConfigError
from roboyard.geometry import SE2, wrap_angle
from roboyard.navigation.exploration.frontiers import View

_SAME_HEADING = math.pi / 4.0


@dataclass(frozen=True, slots=True)
class Failure:
    """A place from where nothing new was seen.

    Attributes:
        pose: ``T_map_base`` there.
        reached: Whether the robot got there; then other headings are still worth a look.
    """

    pose: SE2
    reached: bool = False

    def concerns(self, view: View, same: float) -> bool:
        """Whether the view is of that place."""
        turned = abs(wrap_angle(view.pose.theta - self.pose.theta))
        return view.pose.distance(self.pose) < same and not (self.reached and turned > _SAME_HEADING)


@dataclass(frozen=True, slots=True)
class ChoiceConfig:
    """What a view is worth: gain^``gain_power`` · exp(-``way_decay`` · way), after González-Baños and Latombe 2002.

    Attributes:
        way_decay: How fast it falls with the way's cost [1/m].
        gain_power: How much gain counts; 0: only the way.
        hysteresis: By which part another must be worth more than the present goal, so that the robot does not waver.
        same: Views nearer than this count as the same place [m].
        tries: How often the robot may fail at a place; after the first time it goes there only when nothing else is
            left.

    Raises:
        ConfigError: a number out of range.
    """

    way_decay: float = 1.0
    gain_power: float = 0.5
    hysteresis: float = 0.5
    same: float = 0.6
    tries: int = 3

    def __post_init__(self) -> None:
        for name, value, high in (
            ("way_decay", self.way_decay, 100.0),
            ("gain_power", self.gain_power, 10.0),
            ("hysteresis", self.hysteresis, 100.0),
            ("same", self.same, 100.0),
        ):
            if not 0.0 <= value <= high:
                raise ConfigError(f"{name} = {value}", location="exploration", valid=f"0 to {high:g}")
        if self.tries < 1:
            raise ConfigError(f"tries = {self.tries}", location="exploration", valid="1 or more")

    def worth(self, view: View) -> float:
        """Of a view."""
        return math.pow(max(view.gain, 1e-3), self.gain_power) * math.exp(-self.way_decay * view.way)


def choose(
    views: Sequence[View], goal: SE2 | None, failures: Sequence[Failure], config: ChoiceConfig | None = None
) -> View | None:
    """The view worth most; None when none is left.

    Args:
        views: To choose from; of equal ones the first is taken.
        goal: Where the robot is going now, if anywhere.
        failures: So far.
        config: What counts.
    """
    config = config or ChoiceConfig()
    fails = [sum(failure.concerns(view, config.same) for failure in failures) for view in views]
    open_views = [view for view, count in zip(views, fails, strict=True) if count < config.tries]
    fresh = [view for view, count in zip(views, fails, strict=True) if count == 0]

    def worth(view: View) -> float:
        bonus = 1.0 + config.hysteresis if goal is not None and view.pose.distance(goal) < config.same else 1.0
        return bonus * config.worth(view)

    return max(fresh or open_views, key=worth, default=None)
