"""Every controller keeps the contract, those that break it are found out, and a user's own is known by its name."""

import math

import pytest
from tests.navigation.task_simulation import BASE

from roboyard.control import ZERO_TWIST, PlanarTwist
from roboyard.errors import InputError, UnknownNameError
from roboyard.navigation.conformance import check_controller
from roboyard.navigation.controllers import GoalTolerance, RegulatedPurePursuitController
from roboyard.navigation.navigator import PluginConfig
from roboyard.navigation.plugins import CONTROLLERS, make_controller


@pytest.mark.parametrize("name", ["dwa", "mppi", "regulated_pure_pursuit", "trajectory_rollout"])
def test_registered_controllers_conform(name: str) -> None:
    assert name in CONTROLLERS.names()
    settings = {"batch_size": 200} if name == "mppi" else {}
    check_controller(lambda *arguments: CONTROLLERS[name](*arguments[:-1], settings))


class BrokenController(RegulatedPurePursuitController):
    """Keeps everything but one promise."""

    violation = ""

    def compute_velocity(self, pose, twist, costmap):
        if self._path is None:
            return (
                ZERO_TWIST
                if self.violation == "before it has a path"
                else super().compute_velocity(pose, twist, costmap)
            )
        if self.violation == "nothing" or (
            self.violation == "does not drive on" and self._speed_limit is None and self._was_slow
        ):
            return ZERO_TWIST
        if self.violation == "changes the costmap":
            costmap.cells[0, 0] = 7
        if self.violation == "could not stop":
            costmap = type(costmap)(costmap.cells * 0, costmap.geometry)
        found = super().compute_velocity(pose, twist, costmap)
        if self.violation == "limits":
            return PlanarTwist(0.6, 0.0, 0.0)
        if self.violation == "acceleration":
            return PlanarTwist(0.5, 0.0, found.wz)
        if self.violation == "finite":
            return PlanarTwist(math.nan, 0.0, 0.0)
        if self.violation == "the same again":
            BrokenController.calls += 1
            return PlanarTwist(found.vx * (1.0 - 1e-9 * BrokenController.calls), 0.0, found.wz)
        if self.violation == "saved and loaded":
            self.count = getattr(self, "count", 0) + 1
            return PlanarTwist(found.vx * (1.0 - 1e-9 * self.count), 0.0, found.wz)
        return found

    calls = 0
    _was_slow = False

    def set_speed_limit(self, speed):
        if self.violation == "takes a speed limit" and not (speed is None or speed >= 0.0):
            return
        self._was_slow = True
        if self.violation != "faster than a limit":
            super().set_speed_limit(speed)

    def is_goal_reached(self, pose):
        if self.violation == "in the middle":
            return self._path is not None and pose.distance(self._path.pose(-1)) < 2.0
        return super().is_goal_reached(pose)


@pytest.mark.parametrize(
    ("violation", "message"),
    [
        ("before it has a path", "before it has a path"), ("nothing", "has not come along"),
        ("changes the costmap", "changes the costmap"), ("could not stop", "could not stop"),
        ("limits", "beyond the base's limits"), ("acceleration", "acceleration"), ("finite", "not a finite"),
        ("the same again", "the same again"), ("saved and loaded", "saved and loaded"),
        ("takes a speed limit", "takes a speed limit"), ("faster than a limit", "faster than a limit"),
        ("does not drive on", "does not drive on"), ("in the middle", "where it has not"),
    ],
)  # fmt: skip
def test_controller_check_finds_each_violation(violation: str, message: str) -> None:
    def make(footprint, limits, period, tolerance, settings):
        controller = BrokenController(footprint, limits, None, tolerance, period=period)
        controller.violation = violation
        return controller

    with pytest.raises(InputError, match=message):
        check_controller(make)


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
