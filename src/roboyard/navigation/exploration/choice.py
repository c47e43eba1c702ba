"""Which of the places to look from is next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from roboyard.config import Config, parameter
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


class ChoiceConfig(Config):
    """What a view is worth: gain^``gain_power`` · exp(-``way_decay`` · way), after González-Baños and Latombe 2002."""

    way_decay: float = parameter(
        1.0, unit="1/m", low=0.0, high=100.0, doc="Rate at which the worth falls with the cost of the path."
    )
    gain_power: float = parameter(0.5, low=0.0, high=10.0, doc="Exponent of the gain; 0: only the path counts.")
    hysteresis: float = parameter(
        0.5, low=0.0, high=100.0, doc="Share by which another view must be worth more than the present goal."
    )
    same: float = parameter(0.6, unit="m", low=0.0, high=100.0, doc="Distance within which views are the same place.")
    tries: int = parameter(
        3, low=1, doc="Largest number of failures at a place; after the first one it is a last resort."
    )

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
