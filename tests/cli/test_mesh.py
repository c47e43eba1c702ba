"""`roboyard mesh`: every verb from a file to its answer, and what it refuses."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import trimesh
from tests.cli.conftest import Command

from roboyard.description import load_model
from roboyard.description.meshes import read_mesh


@pytest.fixture
def cart() -> Path:
    """A box on two wheels, in millimetres, as somebody's drawing program exports it."""
    body = trimesh.creation.box((400, 300, 100))
    wheels = []
    for y in (-180, 180):
        wheel = trimesh.creation.cylinder(80, 40, sections=32)
        wheel.apply_transform(trimesh.transformations.rotation_matrix(np.pi / 2, [1, 0, 0], [0, 0, 0]))
        wheel.apply_translation((100, y, 0))
        wheels.append(wheel)
    file = Path("cart.stl")
    trimesh.util.concatenate([body, *wheels]).export(file)
    return file


def test_split_separates_parts_or_cuts(command: Command, cart: Path) -> None:
    result = command("mesh", "split", cart, "--unit", "mm", "--names", "body", "--json")
    parts = result.json["parts"]
    assert [part["part"] for part in parts] == ["body", "part_1", "part_2"]
    assert parts[0]["volume"] == pytest.approx(0.012)
    assert read_mesh(Path(parts[1]["file"])).volume == pytest.approx(parts[1]["volume"], rel=1e-5)
    result = command("mesh", "split", "cart_parts/body.stl", "--plane", "x=0.1", "--out", "cut", "--json")
    assert [part["volume"] for part in result.json["parts"]] == pytest.approx([0.009, 0.003])
    assert all(part["closed"] for part in result.json["parts"])
    result = command("mesh", "split", "cart_parts/body.stl", "--box", "0,0,0,1,1,1", "--json")
    assert [part["volume"] for part in result.json["parts"]] == pytest.approx([0.0015, 0.0105])
    assert "part_0" in command("mesh", "split", "cart_parts/body.stl").out


@pytest.mark.slow
def test_reduce_prints_distance_of_the_surfaces(command: Command) -> None:
    trimesh.creation.icosphere(subdivisions=3).export("ball.stl")
    result = command("mesh", "simplify", "ball.stl", "--triangles", 200, "--json").json
    assert result["triangles_before"] == 1280
    assert result["triangles"] <= 200
    assert 0.0 < result["error"] < 0.1
    assert (
        command("mesh", "simplify", "ball.stl", "--max-error", 0.05, "--out", "b.stl", "--json").json["error"] <= 0.05
    )
    assert "mm" in command("mesh", "simplify", "ball.stl", "--triangles", 200).out


def test_origin_and_inertia_are_computed(command: Command, cart: Path) -> None:
    command("mesh", "split", cart, "--unit", "mm", "--names", "body")
    result = command(
        "mesh", "recenter", "cart_parts/part_1.stl", "--rotate", "90,0,0", "--out", "wheel.stl", "--json"
    ).json
    assert result["T_old_new"]["xyz"] == pytest.approx([0.1, -0.18, 0.0], abs=1e-6)
    np.testing.assert_allclose(result["min_corner"], [-0.08, -0.08, -0.02], atol=1e-6)
    result = command("mesh", "inertia", "wheel.stl", "--mass", 0.6, "--json").json
    np.testing.assert_allclose(np.diag(result["inertia"])[2], 0.6 * 0.08**2 / 2, rtol=0.03)
    element = ElementTree.fromstring(command("mesh", "inertia", "wheel.stl", "--density", 1000).out)
    assert float(element.find("mass").get("value")) == pytest.approx(result["volume"] * 1000)  # type: ignore[union-attr]
    element = ElementTree.fromstring(command("mesh", "inertia", "wheel.stl", "--mass", 2, "--format", "sdf").out)
    assert element.findtext("mass") == "2"
    assert "origin in the original" in command("mesh", "recenter", "wheel.stl", "--origin", "base").out
    assert command("mesh", "recenter", "wheel.stl", "--origin", "0,0,-0.1", "--json").json["min_corner"][
        2
    ] == pytest.approx(0.08)


def test_collision_prints_shapes_and_their_fit(command: Command, cart: Path) -> None:
    result = command("mesh", "collision", cart, "--unit", "mm", "--max-shapes", 3, "--json").json
    assert [shape["type"] for shape in result["shapes"]] == ["box", "cylinder", "cylinder"]
    assert result["max_protrusion"] < 1e-6
    assert abs(result["volume_excess"]) < 0.01
    for dialect, tag in (("urdf", "cylinder"), ("sdf", "capsule")):
        output = command("mesh", "collision", cart, "--shapes", "capsule", "--format", dialect)
        element = ElementTree.fromstring(f"<link>{output.out}</link>")
        assert element.findall(f"collision/geometry/{tag}")
        assert "protrusion" in output.err
    hull = command("mesh", "collision", cart, "--shapes", "hull", "--json").json
    assert read_mesh(Path(hull["elements"][0].split('"')[5])).is_closed


@pytest.mark.slow
def test_robot_mesh_becomes_links(command: Command, cart: Path) -> None:
    words = ["--unit", "mm", "--mass", 4, "--link-mass", "left=0.5", "--names", "body,right,left", "--triangles", 100]
    joints = ["--joint", "left=continuous,y", "--joint", "right=continuous,y"]
    result = command("mesh", "robot", cart, *words, *joints, "--json")
    model = load_model(result.json["file"])
    assert model.mass == pytest.approx(4.0)
    assert {joint.name: joint.type for joint in model.joints} == dict.fromkeys(
        ["left_joint", "right_joint"], "continuous"
    )
    assert "3 links" in command("mesh", "robot", cart, *words).out
    cut = command("mesh", "robot", cart, "--unit", "mm", "--mass", 2, "--plane", "x=0", "--out", "cut", "--json")
    assert len(cut.json["links"]) == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["inertia", "none.stl", "--mass", "1"], "does not exist"),
        (["inertia", "cart.stl"], "mass and density is required"),
        (["inertia", "cart.stl", "--mass", "1", "--unit", "furlong"], "unit 'furlong'"),
        (["inertia", "cart.stl", "--mass", "1", "--format", "mjcf"], "urdf, sdf"),
        (["inertia", "open.stl", "--mass", "1"], "--repair"),
        (["inertia", "noise.stl", "--mass", "1"], "noise.stl"),
        (["simplify", "cart.stl"], "--triangles N or --max-error METERS"),
        (["simplify", "cart.stl", "--triangles", "1"], "at least 4"),
        (["split", "cart.stl", "--split-by", "planes"], "--plane"),
        (["split", "cart.stl", "--plane", "w=1"], "plane"),
        (["split", "cart.stl", "--plane", "0,0,0,1"], "no direction"),
        (["split", "cart.stl", "--box", "0,0,0,0,1,1"], "empty"),
        (["split", "cart.stl", "--box", "0,0,0,1,1,1", "--plane", "x=0"], "components alone|one of them"),
        (["split", "cart.stl", "--names", "../a"], "letters"),
        (["split", "cart.stl", "--names", "a,b,c,d"], "4 names for 3 parts"),
        (["recenter", "cart.stl", "--origin", "1,2"], "3 finite numbers"),
        (["recenter", "cart.stl", "--rotate", "nan,0,0"], "3 finite numbers"),
        (["collision", "cart.stl", "--shapes", "cone"], "unknown shape 'cone'"),
        (["collision", "cart.stl", "--max-shapes", "0"], "1 or more"),
        (["robot", "cart.stl", "--mass", "x"], "--mass"),
        (["robot", "cart.stl", "--link-mass", "2"], "LINK=KG"),
        (["robot", "cart.stl", "--mass", "1", "--joint", "part_1"], "LINK=TYPE"),
        (["robot", "cart.stl", "--mass", "1", "--joint", "part_9=fixed"], "unknown link 'part_9'"),
    ],
)
def test_mesh_commands_refuse_bad_input_in_one_line(
    command: Command, cart: Path, words: list[str], expected: str
) -> None:
    ball = trimesh.creation.icosphere(subdivisions=1)
    trimesh.Trimesh(ball.vertices, ball.faces[3:]).export("open.stl")
    Path("noise.stl").write_bytes(b"solid noise\nfacet\nvertex 1 2\n" + bytes(range(200)))
    result = command("mesh", *words)
    assert result.code == 2
    assert any(part in result.error for part in expected.split("|")), result.error


def test_repairs_are_reported(command: Command) -> None:
    ball = trimesh.creation.icosphere(subdivisions=3)
    trimesh.Trimesh(ball.vertices, ball.faces[3:]).export("open.stl")
    result = command("mesh", "inertia", "open.stl", "--mass", 1, "--repair")
    assert result.code == 0
    assert "repaired: capped" in result.err
