"""Worlds of the BARN benchmark: those of its files, and generated ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import label

from roboyard.description import load_world
from roboyard.errors import InputError
from roboyard.scenarios.loading import load_scenario
from roboyard.scenarios.world.barn import (
    CELL_SIZE,
    GOAL,
    START,
    barn_world_ids,
    barn_world_sdf,
    generate_barn_world,
    load_barn_world,
)


def test_world_number_determines_the_world():
    one, repeated, other = generate_barn_world(7), generate_barn_world(7), generate_barn_world(8)
    assert np.array_equal(one.cylinders, repeated.cylinders)
    assert one.cylinders.shape != other.cylinders.shape or not np.array_equal(one.cylinders, other.cylinders)


@pytest.mark.parametrize("number", range(12))
def test_generated_worlds_have_a_path_with_clearance(number):
    world = generate_barn_world(number)
    steps = np.hypot(*np.diff(world.reference_path, axis=0).T)
    dense = np.concatenate(
        [np.linspace(a, b, 20) for a, b in zip(world.reference_path[:-1], world.reference_path[1:], strict=True)]
    )
    gaps = np.hypot(*(dense[:, None] - world.cylinders).transpose(2, 0, 1)) - CELL_SIZE / 2.0
    assert gaps.min() > 0.2  # half the robot's width, and a bit
    assert 5.0 <= world.optimal_time == pytest.approx(steps.sum() / 2.0)
    assert np.allclose(world.reference_path[[0, -1]], [START.xy, GOAL.xy])
    assert len(world.cylinders) > 100


def test_generated_fields_are_neither_empty_nor_noise():
    filled = []
    for number in range(12):
        inside = generate_barn_world(number).cylinders
        cells = np.round((inside - [-4.425, 5.175]) / CELL_SIZE).astype(int)
        field = np.zeros((30, 30), dtype=bool)
        cells = cells[((cells >= 0) & (cells < 30)).all(axis=1)]
        field[cells[:, 1], cells[:, 0]] = True
        filled.append(field[:, 1:-1].sum())
        pieces = label(field, np.ones((3, 3)))[1]
        assert pieces < 0.5 * field.sum()  # grown together
    assert max(filled) > 60
    assert len(set(filled)) > 6


def test_score_is_that_of_the_benchmark():
    world = generate_barn_world(0)
    best = world.optimal_time
    assert world.score(True, best) == world.score(True, 2.0 * best) == 0.5
    assert world.score(True, 4.0 * best) == pytest.approx(0.25)
    assert world.score(True, 100.0 * best) == pytest.approx(0.125)
    assert world.score(False, best) == 0.0


def test_worlds_are_read_from_a_file(tmp_path):
    path = tmp_path / "worlds.npz"
    cylinders = np.array([[-3.0, 6.0], [-1.0, 7.0]], dtype=np.float32)
    np.savez(path, cyl_12=cylinders, path_12=np.array([[15, 0], [15, 29]], dtype=np.int16), cyl_9=cylinders)
    assert barn_world_ids(path) == [12]
    world = load_barn_world(f"{path}#12")
    assert np.allclose(world.cylinders, cylinders)
    assert np.allclose(world.reference_path[1], [15 * 0.15 - 4.575, 5.075])
    file = barn_world_sdf("worlds.npz#12", tmp_path)
    assert file == barn_world_sdf(f"{path}#12")
    assert file.read_text().count("<collision") == 3  # the ground and two cylinders
    assert load_world(file).models
    with pytest.raises(InputError, match="no world 9"):
        load_barn_world(f"{path}#9")


def test_invalid_world_files_are_refused(tmp_path):
    broken = tmp_path / "broken.npz"
    broken.write_bytes(b"no archive")
    empty = tmp_path / "empty.npz"
    np.savez(empty, other=np.zeros(3))
    for name in (f"{broken}#1", f"{empty}#1", f"{tmp_path}/missing.npz#1", "barn", "barn#x"):
        with pytest.raises(InputError):
            load_barn_world(name)


def test_scenario_takes_a_world_by_number():
    assert load_scenario("barn", overrides=["world=barn#3"]).config.world == "barn#3"
