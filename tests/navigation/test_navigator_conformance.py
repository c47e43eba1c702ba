"""Every registered navigation behavior keeps the contract, and `check_behavior` finds one that breaks a promise."""

import math
from dataclasses import dataclass

import pytest
from tests.navigation.task_simulation import TaskSimulation, room_walls

from roboyard.config import load
from roboyard.control import PlanarTwist
from roboyard.errors import ConfigError, InputError, UnknownNameError
from roboyard.geometry import SE2
from roboyard.navigation.errors import NavigationError
from roboyard.navigation.navigator import BEHAVIORS, NavigateTask, RecoveryConfig, WaitTask
from roboyard.navigation.navigator.behavior import MotionBehaviorConfig
from roboyard.navigation.navigator.conformance import check_behavior


@pytest.mark.parametrize("name", BEHAVIORS.names())
def test_registered_behaviors_conform(name: str) -> None:
    check_behavior(name)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("spin", {"angle": -3.0, "speed_ratio": 1.0, "time_allowance": 3.0}),
        ("back_up", {"distance": 1.5, "max_speed": 5.0}),
        ("drive_on_heading", {"distance": 2.0, "max_speed": 5.0}),
        ("escape", {"max_speed": 5.0, "time_allowance": 40.0}),
        ("wait", {"duration": 0.01}),
    ],
)
def test_behaviors_with_other_parameters_conform(name: str, settings: dict) -> None:
    check_behavior(load(BEHAVIORS[name], {"type": name, **settings}, source_name="test"))


def test_unknown_behavior_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'spin'"):
        check_behavior("spinn")


class BrokenBehavior(WaitTask):
    """Standstill that breaks one promise."""

    violation = ""

    def compute_command(self, state):
        found = super().compute_command(state)
        match self.violation:
            case "max_duration":
                return PlanarTwist(0.0, 0.0, 0.0)
            case "limits of the base":
                return found and PlanarTwist(0.0, 0.3, 0.0)
            case "cannot stop":
                return found and PlanarTwist(0.4, 0.0, 0.0)
            case "not a finite":
                return found and PlanarTwist(math.nan, 0.0, 0.0)
            case "costmap of the state":
                state.local_costmap.cells[0, 0] += 1
            case "names no cause":
                raise NavigationError("something")
            case "equal states":
                BrokenConfig.calls += 1
                return found and PlanarTwist(0.0, 0.0, 1e-9 * BrokenConfig.calls)
        return found

    def load_state(self, saved):
        if self.violation != "save_state":
            super().load_state(saved)


@dataclass(frozen=True, kw_only=True)
class BrokenConfig(MotionBehaviorConfig):
    violation: str = ""
    calls = 0

    def make_behavior(self, context):
        if self.violation == "not a Behavior":
            return object()
        behavior = BrokenBehavior(3.0)
        behavior.violation = self.violation
        return behavior


@pytest.mark.parametrize(
    "violation",
    [
        "not a Behavior", "max_duration", "limits of the base", "cannot stop", "not a finite", "costmap of the state",
        "names no cause", "equal states", "save_state",
    ],
)  # fmt: skip
def test_broken_promise_is_named(violation: str) -> None:
    with pytest.raises(InputError, match=violation):
        check_behavior(BrokenConfig(type="broken", time_allowance=4.0, violation=violation))
    check_behavior(BrokenConfig(type="broken", time_allowance=4.0))


@pytest.mark.parametrize(
    ("recovery", "words"),
    [
        ({"steps": ["spinn"]}, "did you mean 'spin'"),
        ({"behaviors": {"spin": {"type": "wait"}}}, "another name"),
        ({"behaviors": {"rest": {"type": "wait"}}}, "no step of the recovery"),
        ({"steps": ["rest"], "behaviors": {"rest": {"type": "nap"}}}, "nap"),
        ({"steps": ["spin"], "behaviors": {"spin": {"type": "spin", "angle": 1e9}}}, "angle"),
    ],
)
def test_invalid_recoveries_are_refused(recovery: dict, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as error:
        load(RecoveryConfig, recovery, source_name="recovery")
    assert "recovery" in str(error.value)


def test_steps_take_the_parameters_that_behaviors_declare() -> None:
    recovery = load(
        RecoveryConfig,
        {"steps": ["wait", "nap"], "behaviors": {"nap": {"type": "wait", "duration": "200 ms"}}},
        source_name="recovery",
    )
    assert [recovery.behavior(name).max_duration for name in recovery.order] == [5.0, 0.2]


def test_canceled_navigation_cancels_its_recovery_step() -> None:
    simulation = TaskSimulation(room_walls(6.0, 6.0), SE2(3.0, 3.0, 0.0), recovery=RecoveryConfig(steps=("wait",)))
    task = NavigateTask(simulation.context, [SE2(3.0, 3.0, 0.0)])
    canceled = []
    behavior = WaitTask(1.0)
    behavior.cancel = lambda: canceled.append(True)  # type: ignore[method-assign]
    task._recovery = ("wait", behavior)
    task.cancel()
    task.cancel()
    assert canceled == [True]
    assert task.activity == "planning"
