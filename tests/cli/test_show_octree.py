"""``roboyard show octree``: what a map of space is, in words, as one JSON object, as a picture; or why it is none."""

from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command

from roboyard.mapping.map_files import read_image
from roboyard.mapping.octree import OctreeMap, OctreeMapConfig, write_octree


def _make_cells(name: str, *, color: bool = True) -> str:
    """A wall a metre wide and high, seen from 2 m."""
    octree = OctreeMap(OctreeMapConfig(resolution=0.1))
    y, z = np.meshgrid(np.arange(10) * 0.1 - 0.45, np.arange(10) * 0.1 + 0.05)
    wall = np.column_stack([np.full(100, 2.05), y.ravel(), z.ravel()])
    octree.insert(wall, (0.05, 0.05, 0.55), np.full((100, 3), (200, 40, 40)) if color else None)
    write_octree(name, octree, color=color)
    return name


@pytest.mark.parametrize(("name", "color"), [("a.ot", True), ("b.ot", False), ("c.bt", False)])
def test_octree_is_described_and_drawn(command: Command, name: str, color: bool) -> None:
    file = _make_cells(name, color=color)
    found = command("show", "octree", file, "--json").json
    assert (found["type"], found["binary"]) == ("ColorOcTree" if color else "OcTree", name == "c.bt")
    assert found["resolution"] == pytest.approx(0.1)
    assert found["occupied_volume"] == pytest.approx(0.1)
    assert found["occupied_leaves"] == 100
    assert found["free_volume"] > 0.1
    assert found["max_corner"][0] == pytest.approx(2.1)
    assert found["nodes"] > found["leaves"] > 100
    result = command("show", "octree", file, "--picture", "map.png")
    assert result.code == 0, result
    assert "0.100 m³, 100 leaves" in result.out
    image = read_image(Path("map.png"))
    assert image.pixels.shape[0] > 400
    assert command("show", "octree", file, "--picture", "map.svg").code == 0


def test_empty_octree_is_shown(command: Command) -> None:
    write_octree("empty.bt", OctreeMap())
    found = command("show", "octree", "empty.bt", "--picture", "empty.png", "--json")
    assert found.code == 0, found
    assert found.json["leaves"] == 0
    assert Path("empty.png").is_file()


def test_bad_octree_files_are_one_error(command: Command) -> None:
    file = Path(_make_cells("a.ot"))
    Path("torn.ot").write_bytes(file.read_bytes()[:-5])
    Path("text.bt").write_text("hello\n")
    for arguments, words in (
        (("torn.ot",), "ends within a node"),
        (("text.bt",), "first line"),
        (("none.ot",), "No such file"),
        (("a.ot", "--picture", "map.bmp"), ".png or .svg"),
        (("a.ot", "--picture", "no/map.png"), "cannot be written"),
    ):
        result = command("show", "octree", *arguments)
        assert result.code == 2
        assert words in result.error
        assert "Traceback" not in result.error
