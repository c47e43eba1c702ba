"""Movements: files that read back as they were written, and playing that keeps speeds and passes every step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.walking.hexapods import walker_of

from roboyard.errors import DescriptionError, InputError
from roboyard.walking.errors import FootOutOfReach, LegBeyondLimits
from roboyard.walking.movement import Between, Movement, check_movement, feet_of, play
from roboyard.walking.movement_file import load_movement, movement_text

FINITE = st.floats(-1e6, 1e6)


@given(steps=st.tuples(st.integers(1, 7), st.integers(1, 5)).flatmap(lambda s: arrays(float, (*s, 3), elements=FINITE)))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_movement_files_read_back_as_written(steps: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    path.write_text(movement_text(Movement(steps)))
    back = load_movement(path)
    assert back.steps.tobytes() == (steps + 0.0).tobytes() or np.array_equal(back.steps, steps)
    assert back.name == "m"


@given(seed=st.integers(0, 2**32 - 1), ticks=st.integers(1, 12), between=st.sampled_from(["cosine", "spline"]))
@settings(max_examples=25, deadline=None)
def test_played_movement_passes_all_steps_within_speeds(seed: int, ticks: int, between: Between) -> None:
    walker = walker_of("akrobat")
    steps = np.random.default_rng(seed).uniform(-0.02, 0.02, (6, 5, 3))
    movement = Movement(steps)
    played = play(movement, walker, ticks=ticks, between=between)
    feet = walker.feet(played.q)
    at = np.concatenate([[0], np.cumsum(played.ticks)])
    np.testing.assert_allclose(feet[at], feet_of(movement, walker), atol=1e-9)
    assert (np.abs(np.diff(played.q, axis=0)) <= walker.speeds * played.period * (1 + 1e-6)).all()
    assert (played.ticks >= ticks).all()
    assert (played.q >= walker.lower - 1e-9).all()
    assert (played.q <= walker.upper + 1e-9).all()
    assert played.duration == pytest.approx(played.ticks.sum() * 0.02)


def test_cosine_interpolation_is_the_formula_of_the_thesis() -> None:
    walker = walker_of("akrobat")
    steps = np.zeros((6, 2, 3))
    steps[:, 1, 0] = 0.004
    played = play(Movement(steps), walker, ticks=8)
    x = walker.feet(played.q)[:, 0, 0] - walker.stance_feet[0, 0]
    np.testing.assert_allclose(x, 0.004 * (-0.5 * np.cos(np.pi * np.arange(9) / 8) + 0.5), atol=1e-12)


def test_movement_that_cannot_be_played_names_its_step() -> None:
    walker = walker_of("akrobat")
    steps = np.zeros((6, 3, 3))
    steps[2, 1] = (0.0, 0.5, 0.0)
    with pytest.raises(FootOutOfReach, match="step 1: foot .* out of reach"):
        check_movement(Movement(steps), walker)
    steps[2, 1] = (0.17, -0.1, 0.0)
    with pytest.raises(LegBeyondLimits, match="step 1: .* needs m31 at"):
        play(Movement(steps), walker)
    with pytest.raises(InputError, match="4 feet.*6, as akrobat has"):
        check_movement(Movement(np.zeros((4, 3, 3))), walker)
    with pytest.raises(InputError, match="finite"):
        Movement(np.full((6, 1, 3), np.nan))
    with pytest.raises(InputError, match="ticks"):
        play(Movement(np.zeros((6, 2, 3))), walker, ticks=0)


STEP = "<step><x>0</x><y>0</y><z>0</z></step>"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("<walk/>", "root is <walk>.*<movement>"),
        ("<movement/>", "no feet"),
        (f'<movement><foot number="1">{STEP}</foot></movement>', "foot 0 is missing"),
        (f'<movement><foot number="0">{STEP}</foot><foot number="0">{STEP}</foot></movement>', "second foot 0"),
        (f'<movement><foot number="x">{STEP}</foot></movement>', "foot number 'x'"),
        (f'<movement><foot number="0">{STEP}</foot><foot number="1">{STEP * 2}</foot></movement>', "2 steps.*1, as"),
        ('<movement><foot number="0"></foot></movement>', "0 steps"),
        ('<movement><foot number="0"><step><x>0</x><y>0</y></step></foot></movement>', "without <z>"),
        ('<movement><foot number="0"><step><x>nan</x><y>0</y><z>0</z></step></foot></movement>', "<x> is 'nan'"),
        ('<movement><foot number="0"><step><x>1 m</x><y>0</y><z>0</z></step></foot></movement>', "<x> is '1 m'"),
        ('<movement><foot number="0"><jump/></foot></movement>', "<jump> in a foot"),
        ("<movement><leg/></movement>", "<leg> in a movement"),
        ("<movement", "well-formed"),
        ('<!DOCTYPE m [<!ENTITY a "b">]><movement>&a;</movement>', "entit"),
        ("", "empty"),
    ],
)
def test_bad_movement_file_is_refused(tmp_path: Path, text: str, wanted: str) -> None:
    path = tmp_path / "bad.xml"
    path.write_text(text)
    with pytest.raises(DescriptionError, match=wanted) as caught:
        load_movement(path)
    assert "bad.xml" in str(caught.value)


def test_missing_movement_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match="no such file"):
        load_movement(tmp_path / "nothing.xml")
    (tmp_path / "m.txt").write_text("x")
    with pytest.raises(DescriptionError, match="unknown extension"):
        load_movement(tmp_path / "m.txt")
