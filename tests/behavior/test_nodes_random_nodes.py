"""WeightedRandom draws by its weights, the same with the same seed."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tests.harness.missions import MissionHarness

from roboyard.errors import RunError


def draw_counts(folder: Path, weights: str, seed: int, rounds: int = 400) -> list[int]:
    body = f"""<Sequence><Script code="a := 0; b := 0; c := 0"/><Repeat num_cycles="{rounds}">
      <WeightedRandom weights="{weights}">
        <Script code="a += 1"/><Script code="b += 1"/><Script code="c += 1"/>
      </WeightedRandom></Repeat></Sequence>"""
    mission = MissionHarness(folder, body, seed=seed, rate=1000.0)
    assert mission.run_to_end(1.0) == "SUCCESS"
    return [int(mission.entry(name)) for name in "abc"]


def test_weighted_random_follows_weights_and_repeats_by_seed(tmp_path: Path) -> None:
    found = draw_counts(tmp_path, "6;3;0", 3)
    assert sum(found) == 400
    assert found[2] == 0
    assert abs(found[0] - 400 * 6 / 9) < 4 * math.sqrt(400 * 6 / 9 * 3 / 9)
    assert draw_counts(tmp_path, "6;3;0", 3) == found
    assert draw_counts(tmp_path, "6;3;0", 4) != found


@pytest.mark.parametrize("weights", ["1;1", "1;-1;1", "0;0;0", "1;nan;1"])
def test_invalid_weights_are_refused(tmp_path: Path, weights: str) -> None:
    with pytest.raises(RunError, match="weights"):
        draw_counts(tmp_path, weights, 1)
