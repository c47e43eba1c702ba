"""Operator scripts and the pilot that plays them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.scenarios.operator import FollowStep, HoldTwist, OperatorController, flatten_script, load_script


def unicycle(pose: SE2, twist: tuple[float, float], dt: float) -> SE2:
    return pose @ SE2.exp((twist[0] * dt, 0.0, twist[1] * dt))


def test_steps_become_actions() -> None:
    script = load_script(
        [
            {"drive": {"linear": "50 cm/s", "angular": "30 deg/s", "duration": "2 s"}},
            {"keys": {"sequence": ["w", "wa", "x", "sd"], "key_duration": 0.25, "speed": 0.4, "angular": 1.0}},
            {"wait": 1},
            {"link_loss": 5},
            {"repeat": {"times": 2, "steps": [{"goto": [1, 2]}, {"repeat": {"times": 2, "steps": [{"wait": 0.5}]}}]}},
        ]
    )
    plan = flatten_script(script)
    assert plan[0] == HoldTwist((0.5, math.radians(30)), 2.0)
    assert plan[1:5] == (
        HoldTwist((0.4, 0.0), 0.25),
        HoldTwist((0.4, 1.0), 0.25),
        HoldTwist((0.0, 0.0), 0.25),
        HoldTwist((-0.4, -1.0), 0.25),
    )
    assert plan[5:7] == (HoldTwist((0.0, 0.0), 1.0), HoldTwist(None, 5.0))
    assert plan[7] == FollowStep(((1.0, 2.0),))
    assert len(plan) == 7 + 2 * 3
    assert load_script({"rate": "10 Hz", "steps": []}).rate == 10.0


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([{"drive": {"linear": "1 rad/s"}}], "angular speed"),
        ([{"drive": {"linear": 1}, "wait": 2}], "drive and wait"),
        ([{}], "empty step"),
        ([{"keys": {"sequence": ["q"]}}], "key 'q'"),
        ([{"jump": 1}], "unknown key 'jump'"),
        ([{"follow": {"points": []}}], "no point"),
        ([{"wait": -1}], "below 0"),
        ([{"goto": [1]}], "goto"),
        ("nothing.yaml", "cannot be read"),
    ],
)
def test_invalid_scripts_are_refused(steps: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_script(steps)  # type: ignore[arg-type]


def test_script_with_too_many_steps_is_refused() -> None:
    inner: dict[str, object] = {"wait": 0.1}
    for _ in range(5):
        inner = {"repeat": {"times": 1000, "steps": [inner]}}
    with pytest.raises(ConfigError, match="more than"):
        flatten_script(load_script([inner]))


@given(
    durations=st.lists(st.floats(0, 3), min_size=1, max_size=8),
    rate=st.floats(1, 50),
)
def test_open_loop_steps_keep_the_time_of_the_script(durations: list[float], rate: float) -> None:
    """However often it is asked, the pilot is in the step that the script's clock says."""
    plan = tuple(HoldTwist((float(i), 0.0), seconds) for i, seconds in enumerate(durations))
    ends = np.cumsum(durations)
    pilot = OperatorController(plan)
    for k in range(int((ends[-1] + 1) * rate) + 1):
        time = 10.0 + k / rate
        output = pilot.update(time, None)
        elapsed = time - 10.0
        if np.min(np.abs(ends - elapsed)) < 1e-6:
            continue
        step = int(np.searchsorted(ends, elapsed, side="right"))
        assert output.is_finished is (step == len(plan))
        if not output.is_finished:
            assert output.twist == (float(step), 0.0)


@given(
    points=st.lists(st.tuples(st.floats(-4, 4), st.floats(-4, 4)), min_size=1, max_size=4),
    theta=st.floats(-3, 3),
)
def test_following_reaches_the_last_point(points: list[tuple[float, float]], theta: float) -> None:
    pilot = OperatorController((FollowStep(tuple(points), speed=0.8, angular=1.5, tolerance=0.15, timeout=300.0),))
    pose, time = SE2(0.0, 0.0, theta), 0.0
    while time < 200.0:
        output = pilot.update(time, pose)
        if output.is_finished:
            break
        assert output.twist is not None
        assert abs(output.twist[0]) <= 0.8 + 1e-9
        assert abs(output.twist[1]) <= 1.5 + 1e-9
        pose, time = unicycle(pose, output.twist, 0.05), time + 0.05
    assert output.is_finished
    assert math.hypot(pose.x - points[-1][0], pose.y - points[-1][1]) <= 0.15 + 1e-9


def test_pilot_is_saved_and_restored() -> None:
    plan = flatten_script(
        load_script([{"drive": {"linear": 1, "duration": 1}}, {"follow": {"points": [[1, 0], [2, 1]]}}])
    )
    one, two = OperatorController(plan), OperatorController(plan)
    pose = SE2()
    for k in range(40):
        output = one.update(k * 0.05, pose)
        pose = unicycle(pose, output.twist or (0.0, 0.0), 0.05)
    two.load_state(one.save_state())
    for k in range(40, 120):
        assert one.update(k * 0.05, pose) == two.update(k * 0.05, pose)


def test_unreachable_point_times_out() -> None:
    pilot = OperatorController((FollowStep(((5.0, 0.0),), timeout=2.0),))
    assert not pilot.update(0.0, SE2()).is_finished
    assert pilot.update(2.5, SE2()).is_finished
    assert OperatorController((FollowStep(((5.0, 0.0),)),)).update(0.0, None).twist == (0.0, 0.0)
