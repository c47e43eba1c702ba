"""Operator scripts and the pilot that plays them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.scenarios.pilot import Pilot
from roboyard.scenarios.script import Follow, Hold, actions, load_script


def unicycle(pose: SE2, twist: tuple[float, float], dt: float) -> SE2:
    return pose @ SE2.exp((twist[0] * dt, 0.0, twist[1] * dt))


def test_steps_become_actions() -> None:
    script = load_script(
        [
            {"drive": {"v": "50 cm/s", "w": "30 deg/s", "for": "2 s"}},
            {"keys": {"press": ["w", "wa", "x", "sd"], "each": 0.25, "speed": 0.4, "turn": 1.0}},
            {"wait": 1},
            {"silence": 5},
            {"repeat": {"times": 2, "steps": [{"goto": [1, 2]}, {"repeat": {"times": 2, "steps": [{"wait": 0.5}]}}]}},
        ]
    )
    plan = actions(script)
    assert plan[0] == Hold((0.5, math.radians(30)), 2.0)
    assert plan[1:5] == (
        Hold((0.4, 0.0), 0.25), Hold((0.4, 1.0), 0.25), Hold((0.0, 0.0), 0.25), Hold((-0.4, -1.0), 0.25),
    )  # fmt: skip
    assert plan[5:7] == (Hold((0.0, 0.0), 1.0), Hold(None, 5.0))
    assert plan[7] == Follow(((1.0, 2.0),))
    assert len(plan) == 7 + 2 * 3
    assert load_script({"rate": "10 Hz", "steps": []}).rate == 10.0


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([{"drive": {"v": "1 rad/s"}}], "angular speed"),
        ([{"drive": {"v": 1}, "wait": 2}], "drive and wait"),
        ([{}], "empty step"),
        ([{"keys": {"press": ["q"]}}], "key 'q'"),
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
        actions(load_script([inner]))


@given(
    durations=st.lists(st.floats(0, 3), min_size=1, max_size=8),
    rate=st.floats(1, 50),
)
def test_open_loop_steps_keep_the_time_of_the_script(durations: list[float], rate: float) -> None:
    """However often it is asked, the pilot is in the step that the script's clock says."""
    plan = tuple(Hold((float(i), 0.0), seconds) for i, seconds in enumerate(durations))
    ends = np.cumsum(durations)
    pilot = Pilot(plan)
    for k in range(int((ends[-1] + 1) * rate) + 1):
        time = 10.0 + k / rate
        output = pilot.update(time, None)
        elapsed = time - 10.0
        if np.min(np.abs(ends - elapsed)) < 1e-6:
            continue
        step = int(np.searchsorted(ends, elapsed, side="right"))
        assert output.over is (step == len(plan))
        if not output.over:
            assert output.twist == (float(step), 0.0)


@given(
    points=st.lists(st.tuples(st.floats(-4, 4), st.floats(-4, 4)), min_size=1, max_size=4),
    theta=st.floats(-3, 3),
)
def test_following_reaches_the_last_point(points: list[tuple[float, float]], theta: float) -> None:
    pilot = Pilot((Follow(tuple(points), speed=0.8, turn=1.5, tolerance=0.15, timeout=300.0),))
    pose, time = SE2(0.0, 0.0, theta), 0.0
    while time < 200.0:
        output = pilot.update(time, pose)
        if output.over:
            break
        assert output.twist is not None
        assert abs(output.twist[0]) <= 0.8 + 1e-9
        assert abs(output.twist[1]) <= 1.5 + 1e-9
        pose, time = unicycle(pose, output.twist, 0.05), time + 0.05
    assert output.over
    assert math.hypot(pose.x - points[-1][0], pose.y - points[-1][1]) <= 0.15 + 1e-9


def test_pilot_is_saved_and_restored() -> None:
    plan = actions(load_script([{"drive": {"v": 1, "for": 1}}, {"follow": {"points": [[1, 0], [2, 1]]}}]))
    one, two = Pilot(plan), Pilot(plan)
    pose = SE2()
    for k in range(40):
        output = one.update(k * 0.05, pose)
        pose = unicycle(pose, output.twist or (0.0, 0.0), 0.05)
    two.load_state(one.save_state())
    for k in range(40, 120):
        assert one.update(k * 0.05, pose) == two.update(k * 0.05, pose)


def test_unreachable_point_times_out() -> None:
    pilot = Pilot((Follow(((5.0, 0.0),), timeout=2.0),))
    assert not pilot.update(0.0, SE2()).over
    assert pilot.update(2.5, SE2()).over
    assert Pilot((Follow(((5.0, 0.0),)),)).update(0.0, None).twist == (0.0, 0.0)
