"""Bodies on legs: feet stay where they are while the body moves, and whatever cannot be is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.walking.hexapods import HEXAPODS, model_of, walker_of

from roboyard.errors import ConfigError, InputError, UnknownNameError
from roboyard.geometry import SE3
from roboyard.walking.errors import FootOutOfReach, LegBeyondLimits
from roboyard.walking.walker_file import load_walker

SMALL = st.floats(-0.02, 0.02)
LEAN = st.floats(-0.1, 0.1)


@pytest.mark.parametrize("name", HEXAPODS)
def test_reach_is_the_inverse_of_feet(name: str) -> None:
    walker, rng = walker_of(name), np.random.default_rng(5)
    q = rng.uniform(walker.lower, walker.upper, (20_000, len(walker.legs), 3))
    feet = walker.feet(q)
    np.testing.assert_allclose(walker.feet(walker.reach(feet, q)), feet, atol=1e-12)
    assert walker.reached(feet).all()


@pytest.mark.parametrize("name", HEXAPODS)
@given(x=SMALL, y=SMALL, z=SMALL, roll=LEAN, pitch=LEAN, yaw=LEAN)
@settings(max_examples=40, deadline=None)
def test_posed_body_leaves_its_feet_in_place(
    name: str, x: float, y: float, z: float, roll: float, pitch: float, yaw: float
) -> None:
    walker = walker_of(name)
    T = SE3.from_xyz_rpy((x, y, z), (roll, pitch, yaw))
    feet = walker.feet(walker.posed(T))
    matrix = T.matrix()
    np.testing.assert_allclose(feet @ matrix[:3, :3].T + matrix[:3, 3], walker.stance_feet, atol=1e-12)


def test_akrobat_stance_is_that_of_its_file() -> None:
    walker = walker_of("akrobat")
    for leg, foot in zip(walker.legs, walker.stance_feet, strict=True):
        assert np.hypot(*(foot - leg.hip)[:2]) == pytest.approx(0.199, abs=1e-3)
        assert foot[2] == pytest.approx(-0.137, abs=1e-3)
    np.testing.assert_allclose(walker.reach(walker.stance_feet), walker.stance, atol=1e-12)
    assert sum(link.inertial.mass for link in model_of("akrobat").links if link.inertial) == pytest.approx(3.8)


def test_walker_refuses_unreachable_poses_and_bad_shapes() -> None:
    walker = walker_of("akrobat")
    with pytest.raises(FootOutOfReach, match=r"leg lf of akrobat: foot at .* out of reach"):
        walker.posed(SE3.from_xyz_rpy((0.0, 0.0, 0.4)))
    with pytest.raises(LegBeyondLimits, match=r"leg lf .* needs m11 at -.* rad \(-0.4398 to 1.1414 rad\)") as caught:
        walker.posed(SE3.from_xyz_rpy((0.0, 0.0, 0.0), (0.0, 0.0, 0.35)))
    assert caught.value.joint == "m11"
    assert caught.value.value < -0.4398
    with pytest.raises(InputError, match="shape"):
        walker.reach(np.zeros((5, 3)))
    with pytest.raises(InputError, match="finite"):
        walker.feet(np.full((6, 3), np.nan))
    with pytest.raises(UnknownNameError, match="legs: lf"):
        walker.leg("left")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "body: base_link\nfeet: {lf: nowhere, rf: rf_foot, lm: lm_foot}\nstance_pose: [0,0,0]\nrest_pose: [0,0,0]",
            "nowhere",
        ),
        ("body: base_link\nfeet: {lf: lf_foot}\nstance_pose: [0,0,0]\nrest_pose: [0,0,0]", "three or more"),
        (
            "body: base_link\nfeet: {a: lf_foot, b: lf_foot, c: rf_foot}\nstance_pose: [0,0,0]\nrest_pose: [0,0,0]",
            "in two legs",
        ),
        (
            "body: base_link\nfeet: {a: lf_foot, b: lm_foot, c: rf_foot}\nstance_pose: [0,9,0]\nrest_pose: [0,0,0]",
            "m12 at 9",
        ),
        (
            "body: base_link\nfeet: {a: lf_foot}\nstance_poses: {b: [0, 0, 0]}\nstance_pose: [0,0,0]\n"
            "rest_pose: [0,0,0]",
            "no leg 'b'",
        ),
        ("body: base_link\nstance: [0,0,0]\nrest: [0,0,0]", "feet"),
    ],
)
def test_bad_legs_file_is_refused(tmp_path: Path, text: str, wanted: str) -> None:
    path = tmp_path / "legs.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=wanted) as caught:
        load_walker(path, model_of("akrobat"))
    assert "legs.yaml" in str(caught.value)
