"""Conformance test for navigation behaviors, Roboyard's own and those of other packages: `check_behavior`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from roboyard.config import load
from roboyard.control import ZERO_TWIST, PlanarTwist
from roboyard.errors import InputError
from roboyard.geometry import SE2, polygons
from roboyard.grids import FREE, OCCUPIED, GridGeometry, OccupancyGrid
from roboyard.navigation.controllers import CostmapWindow, MotionLimits
from roboyard.navigation.costmap import LETHAL, CostmapConfig, Observation
from roboyard.navigation.errors import NavigationError
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.navigator.behavior import (
    BEHAVIORS,
    Behavior,
    BehaviorConfig,
    BehaviorContext,
    MobileBase,
)
from roboyard.navigation.navigator.costmaps import NavigationCostmaps
from roboyard.navigation.navigator.task import NavigationState

_PERIOD = 0.1
_CELL = 0.05
_ROOM_CELLS = 120
_FOOTPRINT = Footprint(polygons.rectangle(0.5, 0.4))
_PADDED_FOOTPRINT = Footprint(polygons.rectangle(0.54, 0.44))
_LIMITS = MotionLimits(
    max_forward_speed=0.6,
    max_backward_speed=0.2,
    max_angular_speed=1.5,
    max_acceleration=1.5,
    max_angular_acceleration=4.0,
)
_BASE = MobileBase(_PADDED_FOOTPRINT, _FOOTPRINT, _LIMITS, _PERIOD)
_SAVED_STEPS = (1, 5, 20)
"""Control periods after which a behavior is saved and restored."""
_EPSILON = 1e-6


def check_behavior(behavior_type: BehaviorConfig | type[BehaviorConfig] | str) -> None:
    """Execute a type of behavior in small rooms, with and without space to move: every promise of `Behavior`.

    Args:
        behavior_type: Configuration of the behavior, or a class of configurations or its registered name; then all
            parameters have their default values.

    Raises:
        InputError: The behavior breaks a promise; the message says which.
        UnknownNameError: No behavior has this name.
    """
    if isinstance(behavior_type, BehaviorConfig):
        config = behavior_type
    else:
        name = behavior_type if isinstance(behavior_type, str) else "checked"
        config_class = BEHAVIORS[behavior_type] if isinstance(behavior_type, str) else behavior_type
        config = load(config_class, {"type": name}, source_name=f"behavior {config_class.__name__}")
    check = _BehaviorCheck(config)
    for walls, start in _make_scenes():
        for mobile_base in (_BASE, replace(_BASE, limits=replace(_LIMITS, max_backward_speed=0.0))):
            check.run(walls, start, mobile_base)
    check.run_immobile()


def _make_scenes() -> list[tuple[NDArray[np.bool_], SE2]]:
    """Return rooms (rows, columns; True is solid) with the pose of the robot."""
    walls = np.zeros((_ROOM_CELLS, _ROOM_CELLS), dtype=np.bool_)
    walls[[0, -1]] = walls[:, [0, -1]] = True
    dead_end = walls.copy()
    dead_end[:, 70:] = True
    dead_end[55:65, 70:90] = False
    pillars = walls.copy()
    pillars[48:52, 70:74] = pillars[66:70, 46:50] = pillars[50:54, 44:48] = True
    enclosed = walls.copy()
    enclosed[44:76, 44:76] = True
    enclosed[54:66, 53:67] = False
    return [
        (walls, SE2(3.0, 3.0, 0.4)),
        (walls, SE2(5.55, 3.0, 0.0)),  # a wall ahead
        (walls, SE2(0.45, 3.0, 0.0)),  # a wall behind
        (walls, SE2(3.0, 0.36, 0.0)),  # along a wall
        (dead_end, SE2(3.9, 3.0, 0.0)),
        (pillars, SE2(3.0, 3.0, 2.0)),
        (enclosed, SE2(3.0, 3.0, 0.0)),
    ]


class _RobotSimulation:
    """Costmaps of a room, and a robot without physics that follows commands as fast as its base can."""

    def __init__(self, walls: NDArray[np.bool_], start: SE2, mobile_base: MobileBase) -> None:
        self.costmaps = NavigationCostmaps(
            CostmapConfig(local_layers=("static", "obstacles")), mobile_base.footprint, _FOOTPRINT.corners
        )
        self._geometry = GridGeometry(_CELL, walls.shape)
        self.costmaps.set_map(OccupancyGrid(np.where(walls, OCCUPIED, FREE).astype(np.int8), self._geometry))
        points = np.array([[4.5, 1.5, 0.2], [1.5, 4.5, 0.2]])  # observed obstacles, which may be cleared
        observation = Observation(np.array([3.0, 3.0, 0.2]), points, np.ones(2, dtype=np.bool_))
        self.costmaps.add_observations({"obstacles": [observation]}, SE2.identity())
        self.pose, self.time, self._twist, self._mobile_base = start, 10.0, ZERO_TWIST, mobile_base

    def state(self) -> NavigationState:
        self.costmaps.update(self.pose, SE2.identity())
        local_costmap = self.costmaps.local_costmap_in_map(SE2.identity())
        return NavigationState(self.time, self.pose, self._twist, local_costmap)

    def drive(self, twist: PlanarTwist, *, is_immobile: bool) -> None:
        limits = self._mobile_base.limits
        steps = (limits.max_acceleration, limits.max_acceleration, limits.max_angular_acceleration)
        self._twist = PlanarTwist(*(
            old + min(max(new - old, -step * _PERIOD), step * _PERIOD)
            for old, new, step in zip(self._twist, twist, steps, strict=True)
        ))  # fmt: skip
        if not is_immobile:
            self.pose = self.pose @ SE2.exp([_PERIOD * value for value in self._twist])
        self.time += _PERIOD


class _BehaviorCheck:
    """Test of one type of behavior."""

    def __init__(self, config: BehaviorConfig) -> None:
        self._config = config
        if not (math.isfinite(config.max_duration) and config.max_duration >= 0.0):
            self._report_violation(f"max_duration is {config.max_duration}, not a finite time of 0 or more")

    def run(self, walls: NDArray[np.bool_], start: SE2, mobile_base: MobileBase) -> None:
        """Execute the behavior in a room, again, and again with a restored state."""
        commands, error = self._execute(walls, start, mobile_base)
        if self._execute(walls, start, mobile_base) != (commands, error):
            self._report_violation("gives other commands in equal states")
        for step in _SAVED_STEPS:
            if step < len(commands) and self._execute(walls, start, mobile_base, saved_step=step) != (commands, error):
                self._report_violation("goes on otherwise after save_state and load_state")

    def run_immobile(self) -> None:
        """Execute the behavior with a robot whose wheels are blocked."""
        walls, start = _make_scenes()[0]
        self._execute(walls, start, _BASE, is_immobile=True)

    def _make(self, simulation: _RobotSimulation, mobile_base: MobileBase) -> Behavior:
        behavior: object = self._config.make_behavior(BehaviorContext(mobile_base, simulation.costmaps))
        if not isinstance(behavior, Behavior):
            self._report_violation(f"makes {type(behavior).__name__}, not a Behavior")
        return behavior

    def _execute(
        self,
        walls: NDArray[np.bool_],
        start: SE2,
        mobile_base: MobileBase,
        *,
        saved_step: int | None = None,
        is_immobile: bool = False,
    ) -> tuple[list[PlanarTwist], str]:
        """Return the commands of the behavior and the cause of its failure; empty if it finished."""
        simulation = _RobotSimulation(walls, start, mobile_base)
        behavior = self._make(simulation, mobile_base)
        commands: list[PlanarTwist] = []
        start_time = simulation.time
        try:
            is_running = behavior.start(simulation.state())
            while is_running:
                if simulation.time - start_time > self._config.max_duration + 2.5 * _PERIOD:
                    self._report_violation(f"has not ended after its max_duration of {self._config.max_duration:g} s")
                if saved_step is not None and len(commands) == saved_step:
                    saved, behavior = behavior.save_state(), self._make(simulation, mobile_base)
                    behavior.load_state(saved)
                state = simulation.state()
                cells = state.local_costmap.cells.copy()
                twist = behavior.compute_command(state)
                if (state.local_costmap.cells != cells).any():
                    self._report_violation("changes the costmap of the state that it was given")
                if twist is None:
                    break
                self._check_command(twist, state, mobile_base)
                commands.append(twist)
                simulation.drive(twist, is_immobile=is_immobile)
        except NavigationError as error:
            if error.cause == NavigationError.cause:
                self._report_violation(f"raises {type(error).__name__}, which names no cause")
            return commands, error.cause
        behavior.cancel()
        if (simulation.costmaps.get_global_costmap().cells[walls] != LETHAL).any():
            self._report_violation("removes obstacles of the map")
        return commands, ""

    def _check_command(self, twist: object, state: NavigationState, mobile_base: MobileBase) -> None:
        if not isinstance(twist, PlanarTwist) or not all(math.isfinite(value) for value in twist):
            self._report_violation(f"commands {twist!r}, not a finite PlanarTwist")
        limits = mobile_base.limits
        is_within_limits = (
            -limits.max_backward_speed - _EPSILON <= twist.vx <= limits.max_forward_speed + _EPSILON
            and abs(twist.vy) <= limits.max_lateral_speed + _EPSILON
            and abs(twist.wz) <= limits.max_angular_speed + _EPSILON
        )
        if not is_within_limits:
            self._report_violation(f"commands {tuple(twist)}, which exceeds the limits of the base")
        window = CostmapWindow.around(state.pose, state.local_costmap, _FOOTPRINT, 1.0)
        braking = PlanarTwist(limits.max_acceleration, limits.max_acceleration, limits.max_angular_acceleration)
        if not window.can_stop_safely(twist, braking, _PERIOD):
            self._report_violation("commands a velocity from which the base cannot stop before it collides")

    def _report_violation(self, violation: str) -> NoReturn:
        raise InputError(violation, location=type(self._config).__name__, valid="what Behavior promises")
