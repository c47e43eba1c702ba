"""Every controller keeps the contract, those that break it are found out, and a user's own is known by its name."""

import math

import pytest
from tests.navigation.task_simulation import BODY

from roboyard.control import STANDSTILL, PlanarTwist
from roboyard.errors import InputError, UnknownNameError
from roboyard.navigation.controllers import (
    PursuitConfig,
    RegulatedPursuit,
    Tolerance,
    check_controller,
    controller_named,
    controller_names,
)
from roboyard.navigation.driving import Part, make_controller


@pytest.mark.parametrize("name", ["mppi", "pursuit", "rollout", "window"])
def test_registered_controllers_conform(name: str) -> None:
    assert name in controller_names()
    few = {"batch": 200} if name == "mppi" else {}
    check_controller(lambda *given: controller_named(name)(*given[:-1], few))


class Broken(RegulatedPursuit):
    """Keeps everything but one promise."""

    how = ""

    def command(self, pose, twist, costmap):
        if self._path is None:
            return STANDSTILL if self.how == "before it has a path" else super().command(pose, twist, costmap)
        if self.how == "nothing" or (self.how == "does not drive on" and self._slow is None and self._was_slow):
            return STANDSTILL
        if self.how == "changes the costmap":
            costmap.cells[0, 0] = 7
        if self.how == "could not stop":
            costmap = type(costmap)(costmap.cells * 0, costmap.frame)
        found = super().command(pose, twist, costmap)
        if self.how == "limits":
            return PlanarTwist(0.6, 0.0, 0.0)
        if self.how == "acceleration":
            return PlanarTwist(0.5, 0.0, found.wz)
        if self.how == "finite":
            return PlanarTwist(math.nan, 0.0, 0.0)
        if self.how == "the same again":
            Broken.calls += 1
            return PlanarTwist(found.vx * (1.0 - 1e-9 * Broken.calls), 0.0, found.wz)
        if self.how == "saved and loaded":
            self.count = getattr(self, "count", 0) + 1
            return PlanarTwist(found.vx * (1.0 - 1e-9 * self.count), 0.0, found.wz)
        return found

    calls = 0
    _was_slow = False

    def limit_speed(self, speed):
        if self.how == "takes a speed limit" and not (speed is None or speed >= 0.0):
            return
        self._was_slow = True
        if self.how != "faster than a limit":
            super().limit_speed(speed)

    def arrived(self, pose):
        if self.how == "in the middle":
            return self._path is not None and pose.distance(self._path.pose(-1)) < 2.0
        return super().arrived(pose)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("before it has a path", "before it has a path"), ("nothing", "has not come along"),
        ("changes the costmap", "changes the costmap"), ("could not stop", "could not stop"),
        ("limits", "beyond the base's limits"), ("acceleration", "acceleration"), ("finite", "not a finite"),
        ("the same again", "the same again"), ("saved and loaded", "saved and loaded"),
        ("takes a speed limit", "takes a speed limit"), ("faster than a limit", "faster than a limit"),
        ("does not drive on", "does not drive on"), ("in the middle", "where it has not"),
    ],
)  # fmt: skip
def test_controller_check_finds_each_violation(how: str, said: str) -> None:
    def make(footprint, limits, period, tolerance, settings):
        controller = Broken(footprint, limits, PursuitConfig(period=period), tolerance)
        controller.how = how
        return controller

    with pytest.raises(InputError, match=said):
        check_controller(make)


PACKAGE = """
from roboyard.control import PlanarTwist
from roboyard.navigation.controllers import PursuitConfig, RegulatedPursuit

class Slowly(RegulatedPursuit):
    def __init__(self, footprint, limits, period, tolerance, share):
        super().__init__(footprint, limits.slowed(share * limits.forward), PursuitConfig(period=period), tolerance)

def slowly(footprint, limits, period, tolerance, settings):
    return Slowly(footprint, limits, period, tolerance, settings.get("share", 0.6))
"""


def test_controller_of_another_package_is_found_by_name(tmp_path, monkeypatch) -> None:
    about = tmp_path / "their_robot-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: their-robot\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[roboyard.controllers]\nslowly = their_robot:slowly\nbroken = their_robot:missing\n"
    )
    (tmp_path / "their_robot.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "slowly" in controller_names()
    check_controller(controller_named("slowly"))
    made = make_controller(Part("slowly", {"share": 0.5}), BODY, Tolerance(), reverse=False)
    assert made._base.forward == pytest.approx(0.5 * BODY.limits.forward)
    with pytest.raises(InputError, match="broken"):
        controller_named("broken")
    with pytest.raises(UnknownNameError, match="slowly"):
        controller_named("slowli")
