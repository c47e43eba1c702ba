"""Goals that nobody chose: reachable, with room, the same for the same seed."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from roboyard.geometry import SE2
from roboyard.grids import FREE, OCCUPIED, UNKNOWN, GridGeometry, OccupancyGrid
from roboyard.navigation.costmap.reachability import sample_reachable_poses


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.floats(0.0, 0.15), st.floats(0.05, 0.4))
def test_sampled_poses_have_clearance_and_are_reachable(seed: int, occupied_fraction: float, clearance: float) -> None:
    random = np.random.default_rng(seed)
    cells = np.where(random.random((40, 50)) < occupied_fraction, OCCUPIED, FREE).astype(np.int8)
    cells[:, 45:] = UNKNOWN
    frame = GridGeometry(0.1, cells.shape, SE2(-2.0, 1.0, 0.4))
    start = SE2(*frame.cell_centers([20, 20]), 0.3)
    poses = sample_reachable_poses(
        OccupancyGrid(cells, frame), start, 5, np.random.default_rng(seed), clearance=clearance
    )
    repeated = sample_reachable_poses(
        OccupancyGrid(cells, frame), start, 5, np.random.default_rng(seed), clearance=clearance
    )
    assert poses == repeated
    solid = frame.cell_centers(np.argwhere(cells != FREE))

    def is_clear(cell: tuple[int, int]) -> bool:
        distance = np.hypot(*(solid - frame.cell_centers(cell)).T).min() if len(solid) else np.inf
        assume(abs(distance - clearance) > 1e-9)  # which side of the limit rounding puts it on is not stated
        return bool(distance > clearance)

    if not is_clear((20, 20)):
        assert poses == []
        return
    reached, edge = {(20, 20)}, [(20, 20)]  # an independent flood
    while edge:
        r, c = edge.pop()
        for cell in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
            if 0 <= cell[0] < 40 and 0 <= cell[1] < 50 and cell not in reached and is_clear(cell):
                reached.add(cell)
                edge.append(cell)
    assert len(poses) == 5
    assert {tuple(frame.cells_of_points(pose.xy)) for pose in poses} <= reached
    spread = max(np.hypot(*(frame.cell_centers(cell) - start.xy)) for cell in reached)
    if spread > 3.1:  # from wherever the robot is, something lies 1.5 m away
        assert all(a.distance(b) >= 1.5 - 1e-9 for a, b in zip([start, *poses], poses, strict=False))


def test_no_poses_outside_the_map_or_inside_an_obstacle() -> None:
    frame = GridGeometry(0.1, (20, 20), SE2())
    cells = np.full((20, 20), FREE, dtype=np.int8)
    cells[10, 10] = OCCUPIED
    grid = OccupancyGrid(cells, frame)
    for start in (SE2(1.05, 1.05, 0.0), SE2(9.0, 9.0, 0.0)):
        assert sample_reachable_poses(grid, start, 3, np.random.default_rng(0), clearance=0.1) == []
