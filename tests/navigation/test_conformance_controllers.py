"""Every registered controller keeps the contract, broken ones are found out, and packages add their own by name."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.navigation.task_simulation import BASE

from roboyard.control import ZERO_TWIST, PlanarTwist
from roboyard.errors import ConfigError, InputError, UnknownNameError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.navigation import Costmap, Path
from roboyard.navigation.conformance import check_controller
from roboyard.navigation.controllers import GoalTolerance, RegulatedPurePursuitController
from roboyard.navigation.navigator import PluginConfig
from roboyard.navigation.plugins import CONTROLLER_CONFIGS, CONTROLLERS, make_controller


@pytest.mark.parametrize("name", CONTROLLERS.names())
def test_registered_controllers_conform(name: str) -> None:
    check_controller(CONTROLLERS[name], {"batch_size": 200} if name == "mppi" else None)


def test_all_controllers_of_the_package_are_registered() -> None:
    assert set(CONTROLLERS.names()) >= {"dwa", "mppi", "regulated_pure_pursuit", "trajectory_rollout"}
    assert set(CONTROLLER_CONFIGS) == {"dwa", "mppi", "regulated_pure_pursuit", "trajectory_rollout"}


class BrokenController(RegulatedPurePursuitController):
    """Keeps everything but one promise."""

    violation = ""
    calls = 0
    _was_limited = False

    def set_path(self, path):
        if self.violation == "without poses" and not len(path):
            return
        if self.violation == "new path" and self._path is not None and not self._was_limited:
            return
        if self.violation == "changes the path":
            path.poses[0, 2] += 0.1
        super().set_path(path)

    def compute_velocity(self, pose, twist, costmap):
        if self._path is None:
            return ZERO_TWIST if self.violation == "without a path" else super().compute_velocity(pose, twist, costmap)
        if self.violation == "not reached" or (
            self.violation == "end of a speed limit" and self._speed_limit is None and self._was_limited
        ):
            return ZERO_TWIST
        if self.violation == "velocity of" and not math.isfinite(twist.vx):
            return ZERO_TWIST
        if self.violation == "changes the costmap":
            costmap.cells[0, 0] = 7
        if self.violation == "cannot stop":
            costmap = type(costmap)(costmap.cells * 0, costmap.geometry)
        found = super().compute_velocity(pose, twist, costmap)
        if self.violation == "motion limits":
            return PlanarTwist(0.6, 0.0, 0.0)
        if self.violation == "backward" and self._base_limits.max_backward_speed == 0.0:
            return PlanarTwist(-0.1, 0.0, 0.0)
        if self.violation == "sideways" and self._base_limits.max_lateral_speed == 0.0:
            return PlanarTwist(found.vx, 0.05, found.wz)
        if self.violation == "accelerations":
            return PlanarTwist(0.5, 0.0, found.wz)
        if self.violation == "finite":
            return PlanarTwist(math.nan, 0.0, 0.0)
        if self.violation == "same calls":
            BrokenController.calls += 1
            return PlanarTwist(found.vx * (1.0 - 1e-9 * BrokenController.calls), 0.0, found.wz)
        if self.violation == "saved and loaded":
            self.count = getattr(self, "count", 0) + 1
            return PlanarTwist(found.vx * (1.0 - 1e-9 * self.count), 0.0, found.wz)
        return found

    def save_state(self):
        return super().save_state() | ({"controller": self} if self.violation == "plain data" else {})

    def set_speed_limit(self, speed):
        if self.violation == "speed limit of -1" and not (speed is None or speed >= 0.0):
            return
        self._was_limited = True
        if self.violation != "faster than a speed limit":
            super().set_speed_limit(speed)

    def is_goal_reached(self, pose):
        if self.violation == "before it has a path" and self._path is None:
            return True
        if self.violation == "where it is not":
            return self._path is not None and pose.distance(self._path.pose(-1)) < 2.0
        if self.violation == "in the middle" and self._path is not None and self._path.pose(30).distance(pose) < 1e-9:
            return not hasattr(self, "_has_started") or self._has_started
        return super().is_goal_reached(pose)


@pytest.mark.parametrize(
    ("violation", "message"),
    [
        ("without a path", "without a path"), ("without poses", "a path without poses"),
        ("velocity of", "accepts a velocity"), ("not reached", "has not reached the end"),
        ("changes the costmap", "changes the costmap"), ("changes the path", "changes the path"),
        ("cannot stop", "cannot stop without a collision"), ("motion limits", "exceeds the motion limits"),
        ("backward", "exceeds the motion limits"), ("sideways", "exceeds the motion limits"),
        ("accelerations", "accelerations of the base"), ("finite", "not a finite"), ("same calls", "the same calls"),
        ("saved and loaded", "saved and loaded"), ("plain data", "not plain data"), ("new path", "a new path"),
        ("speed limit of -1", "accepts a speed limit of -1"),
        ("faster than a speed limit", "faster than a speed limit"),
        ("end of a speed limit", "after the end of a speed limit"), ("where it is not", "where it is not"),
        ("before it has a path", "before it has a path"), ("in the middle", "in the middle"),
    ],
)  # fmt: skip
def test_controller_check_finds_each_violation(violation: str, message: str) -> None:
    def make(footprint, limits, period, tolerance, settings):
        controller = BrokenController(footprint, limits, None, tolerance, period=period)
        controller.violation = violation
        return controller

    with pytest.raises(InputError, match=message):
        check_controller(make)


@pytest.mark.parametrize("name", CONTROLLERS.names())
@pytest.mark.parametrize("period", [0.02, 0.1])
def test_controllers_take_their_period_from_the_navigator(name: str, period: float) -> None:
    """The first command from a stand is what the base reaches within one period, whatever that is."""
    settings = {"batch_size": 200} if name == "mppi" else {}
    base = replace(BASE, control_period=period)
    controller = make_controller(PluginConfig(name, settings), base, GoalTolerance(), allow_reverse=False)
    points = np.linspace(1.0, 4.0, 61)
    controller.set_path(Path(np.column_stack([points, np.full(61, 3.0), np.zeros(61)])))
    costmap = Costmap(np.zeros((120, 120), dtype=np.uint8), GridGeometry(0.05, (120, 120)))
    command = controller.compute_velocity(SE2(1.0, 3.0, 0.0), ZERO_TWIST, costmap)
    assert 0.0 < command.vx <= base.limits.max_acceleration * period + 1e-9
    with pytest.raises(ConfigError):
        CONTROLLERS[name](BASE.footprint, BASE.limits, period, GoalTolerance(), {"period": 0.05})


PACKAGE = """
from roboyard.control import PlanarTwist
from roboyard.navigation.controllers import RegulatedPurePursuitController

class Slowly(RegulatedPurePursuitController):
    def __init__(self, footprint, limits, period, tolerance, ratio):
        super().__init__(footprint, limits.with_max_speed(ratio * limits.max_forward_speed), None, tolerance,
        period=period)

def slowly(footprint, limits, period, tolerance, settings):
    return Slowly(footprint, limits, period, tolerance, settings.get("ratio", 0.6))
"""


def test_controller_of_another_package_is_found_by_name(tmp_path, monkeypatch) -> None:
    metadata = tmp_path / "their_robot-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: their-robot\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[roboyard.controllers]\nslowly = their_robot:slowly\nbroken = their_robot:missing\n"
    )
    (tmp_path / "their_robot.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "slowly" in CONTROLLERS.names()
    check_controller(CONTROLLERS["slowly"])
    controller = make_controller(PluginConfig("slowly", {"ratio": 0.5}), BASE, GoalTolerance(), allow_reverse=False)
    assert controller._base_limits.max_forward_speed == pytest.approx(0.5 * BASE.limits.max_forward_speed)
    with pytest.raises(InputError, match="broken"):
        CONTROLLERS["broken"]
    with pytest.raises(UnknownNameError, match="slowly"):
        CONTROLLERS["slowli"]
