"""Maps over the bus: what a server shows is what is in the file, and what a saver saves is what was shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.harness.bus import BusHarness

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry, OccupancyGrid
from roboyard.mapping.map_files import MapMode, load_map, save_map
from roboyard.mapping.nodes import MapSaverNode, MapServerNode
from roboyard.messages import msg, srv
from roboyard.messages.convert.grids import occupancy_grid_from_msg, occupancy_grid_to_msg


def some_map(seed: int = 1) -> OccupancyGrid:
    cells = np.random.default_rng(seed).choice(np.array([-1, 0, 100], np.int8), (8, 11))
    return OccupancyGrid(cells, GridGeometry(0.05, (8, 11), SE2(-1.5, 2.0, 0.25)))


def same(one: OccupancyGrid, other: OccupancyGrid) -> bool:
    return (
        np.array_equal(one.cells, other.cells)
        and one.geometry.resolution == other.geometry.resolution
        and one.geometry.T_map_grid.almost_equal(other.geometry.T_map_grid, 1e-12)
    )


def test_map_survives_its_message() -> None:
    assert same(occupancy_grid_from_msg(occupancy_grid_to_msg(some_map(), "map", 5)), some_map())


def test_map_server_publishes_latched_and_answers_services(tmp_path: Path) -> None:
    path = save_map(tmp_path / "hall", some_map())
    with BusHarness() as harness:
        server = harness.add(MapServerNode(map_file=str(path)), "map_server")
        harness.run_for(1.0)
        maps = harness.record("/map", msg.OccupancyGrid)
        metadata = harness.record("/map_metadata", msg.MapMetaData)
        harness.run_for(0.1)
        assert same(occupancy_grid_from_msg(maps[0].message), some_map())
        assert (metadata.last.width, metadata.last.height, maps.last.header.frame_id) == (11, 8, "map")
        for name in ("/static_map", "/map_server/map"):
            assert same(occupancy_grid_from_msg(harness.call(name, srv.GetMap).map), some_map())
        assert server.health is not None
        assert "11 x 8 cells" in server.health.text


def test_map_server_loads_maps_and_keeps_the_old_on_errors(tmp_path: Path) -> None:
    save_map(tmp_path / "other", some_map(2))
    (tmp_path / "bad.yaml").write_text("image: [")
    (tmp_path / "no_picture.yaml").write_text((tmp_path / "other.yaml").read_text().replace("other.pgm", "gone.pgm"))
    (tmp_path / "broken.yaml").write_text((tmp_path / "other.yaml").read_text().replace("other.pgm", "broken.pgm"))
    (tmp_path / "broken.pgm").write_bytes(b"P5 1")
    kind = srv.nav2_msgs.LoadMap
    with BusHarness() as harness:
        server = harness.add(MapServerNode(), "map_server")
        with pytest.raises(InputError, match="there is no map yet"):
            harness.call("/static_map", srv.GetMap)
        found = harness.call("/map_server/load_map", kind, map_url=f"file://{tmp_path}/other.yaml")
        assert found.result == kind.Response.RESULT_SUCCESS
        assert same(occupancy_grid_from_msg(found.map), some_map(2))
        for name, result in (("none", 1), ("bad", 3), ("no_picture", 3), ("broken", 2)):
            assert harness.call("/map_server/load_map", kind, map_url=f"{tmp_path}/{name}.yaml").result == result
        assert harness.call("/map_server/load_map", kind, map_url="http://there/m.yaml").result == 3
        assert same(occupancy_grid_from_msg(harness.call("/static_map", srv.GetMap).map), some_map(2))
        state = server.save_state()
    with BusHarness() as harness:
        restored = harness.add(MapServerNode(), "map_server")
        restored.load_state(state)
        assert same(occupancy_grid_from_msg(harness.call("/static_map", srv.GetMap).map), some_map(2))


@pytest.mark.parametrize("mode", ["", "trinary", "scale", "raw"])
def test_map_saver_saves_the_published_map(tmp_path: Path, mode: str) -> None:
    kind = srv.nav2_msgs.SaveMap
    with BusHarness() as harness:
        harness.add(MapSaverNode(), "map_saver")
        harness.publish("/there/map", occupancy_grid_to_msg(some_map(), "map", 0), source="/slam", latched=True)
        request = {"map_topic": "/there/map", "map_url": str(tmp_path / "m"), "map_mode": mode}
        assert harness.call("/map_saver/save_map", kind, **request).result
        assert harness.call("/map_saver/save_map", kind, **request, free_thresh=0.25, occupied_thresh=0.65).result
        assert not harness.call("/map_saver/save_map", kind, map_url=str(tmp_path / "n")).result  # nobody shows /map
        assert not harness.call("/map_saver/save_map", kind, **request | {"map_mode": "triangle"}).result
        assert not harness.call("/map_saver/save_map", kind, **request | {"map_url": str(tmp_path / "no" / "m")}).result
        with pytest.raises(InputError, match="is no file"):
            harness.call("/map_saver/save_map", kind, map_url="")
    assert same(load_map(tmp_path / "m.yaml"), some_map())
    assert mode == "" or MapMode(mode).value in (tmp_path / "m.yaml").read_text()
