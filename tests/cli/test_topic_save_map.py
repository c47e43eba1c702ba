"""Maps that are published on topics, saved as files of ROS's map_server."""

from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command

import roboyard as ry
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry, OccupancyGrid
from roboyard.mapping import load_map
from roboyard.messages.convert.grids import occupancy_grid_to_msg
from roboyard.record import Recorder

FRAME = GridGeometry(0.1, (4, 6), SE2(-1.0, 0.5, 0.3))


class Mapper(ry.Node):
    """Tells a map that grows, and one that never comes."""

    def setup(self) -> None:
        self.maps = self.publisher("map", ry.msg.OccupancyGrid, latched=True)
        self.publisher("silent", ry.msg.OccupancyGrid)
        self.words = self.publisher("words", ry.msg.String)
        self.timer(0.5, self.publish_map)

    def publish_map(self) -> None:
        self.words.publish(ry.msg.String(data="x"))
        self.maps.publish(occupancy_grid_to_msg(grid(round(self.now / 0.5)), "map", self.now_ns))


def grid(step: int) -> OccupancyGrid:
    cells = np.full(FRAME.shape, -1, dtype=np.int8)
    cells.ravel()[:step] = 100
    cells.ravel()[-step:] = 0
    return OccupancyGrid(cells, FRAME)


@pytest.fixture
def map_recording(tmp_path: Path) -> Path:
    path = tmp_path / "told.mcap"
    with ry.Bus() as bus:
        bus.add(Mapper(), "mapper")
        with Recorder(bus, path):
            bus.executor.run_for(2.0)
    return path


@pytest.mark.parametrize("mode", ["trinary", "scale", "raw"])
def test_last_map_of_a_recording_is_saved(command: Command, map_recording: Path, tmp_path: Path, mode: str) -> None:
    result = command("topic", "save_map", str(tmp_path / "hall"), "--file", str(map_recording), "--mode", mode)
    assert result.code == 0
    assert result.out.endswith("hall.yaml: 6 x 4 cells of 0.1 m, /map at 2.000 s\n")
    saved = load_map(tmp_path / "hall.yaml")
    assert np.array_equal(saved.cells, grid(4).cells)
    assert saved.geometry.T_map_grid.distance(FRAME.T_map_grid) < 1e-9


def test_topics_without_map_are_refused(command: Command, map_recording: Path, tmp_path: Path) -> None:
    words = ("topic", "save_map", str(tmp_path / "hall"), "--file", str(map_recording))
    result = command(*words, "--topic", "words")
    assert result.code == 2
    assert "/words has the type std_msgs/msg/String (topics of maps: /map" in result.error
    assert "no topic mop (similar: /map" in command(*words, "--topic", "mop").error
    assert not list(tmp_path.glob("hall*"))
