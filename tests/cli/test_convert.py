"""``roboyard convert``: a file that reads back, what was lost, and one line when it cannot be."""

from pathlib import Path

import mujoco
import pytest
import trimesh
from tests.cli.conftest import Command
from tests.description.mjcf_samples import CART, SMALL_WORLD

from roboyard.description import Mesh, load_model, load_world


@pytest.mark.parametrize(("to", "suffix"), [("urdf", "urdf"), ("sdf", "sdf"), ("mjcf", "xml")])
def test_rover_is_converted_to_every_format(command: Command, to: str, suffix: str) -> None:
    result = command("convert", "rover", "--to", to, "--json")
    assert result.code == 0
    assert result.json["mass"] == pytest.approx(result.json["mass_written"], rel=1e-9)
    assert load_model(f"rover.{suffix}").mass == pytest.approx(result.json["mass"], rel=1e-9)
    if to == "mjcf":
        plain = mujoco.MjModel.from_xml_path("rover.xml")
        assert float(plain.body_mass.sum()) == pytest.approx(result.json["mass"], rel=1e-9)


def test_world_is_converted(command: Command) -> None:
    Path("yard.xml").write_text(SMALL_WORLD)
    assert command("convert", "yard.xml", "--to", "sdf").code == 0
    assert [placed.name for placed in load_world("yard.sdf").models] == ["scenery", "crate"]


def test_convert_never_overwrites(command: Command) -> None:
    Path("cart.xml").write_text(CART)
    assert command("convert", "cart.xml", "--to", "urdf").code == 0
    before = Path("cart.urdf").read_text()
    result = command("convert", "cart.xml", "--to", "urdf")
    assert result.code == 2
    assert "exists already" in result.error
    assert Path("cart.urdf").read_text() == before


def test_convert_names_lost_properties(command: Command) -> None:
    Path("cart.xml").write_text(CART)
    result = command("convert", "cart.xml", "--to", "sdf")
    assert "lost: command modes of joints" in result.err


def test_external_meshes_are_copied_in_the_folder_of_the_file(command: Command, tmp_path: Path) -> None:
    home = tmp_path / "robot"
    home.mkdir()
    trimesh.creation.box((1.0, 2.0, 3.0)).export(home / "box.glb")
    trimesh.creation.box((1.0, 2.0, 3.0)).export(home / "crate.stl")
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    parts = "".join(
        f'<visual><geometry><mesh filename="{name}"/></geometry></visual>' for name in ("box.glb", "crate.stl")
    )
    (home / "r.urdf").write_text(f'<robot name="r"><link name="a">{inertial}{parts}</link></robot>')
    result = command("convert", home / "r.urdf", "--to", "mjcf", "--json")
    assert result.code == 0
    assert [Path(copy).name for copy in result.json["copied_files"]] == ["box.stl", "crate.stl"]
    for visual in load_model("r.xml").link("a").visuals:
        assert isinstance(visual.geometry, Mesh)
        assert visual.geometry.file is not None
        assert visual.geometry.file.parent.name == "r_meshes"
    assert mujoco.MjModel.from_xml_path("r.xml").nmesh == 2
    assert (
        command("convert", home / "r.urdf", "--to", "sdf", "--out", home / "there.sdf", "--json").json["copied_files"]
        == []
    )
    visuals = load_model(home / "there.sdf").link("a").visuals
    assert [Path(one.geometry.uri).name for one in visuals if isinstance(one.geometry, Mesh)] == [
        "box.glb",
        "crate.stl",
    ]


@pytest.mark.parametrize(
    ("text", "words", "expected_text"),
    [
        (SMALL_WORLD, ("--to", "urdf", "--read-as", "world"), "URDF"),
        (CART.replace('axis="0 1 0"', 'axis="0 0 0"'), ("--to", "sdf"), "axis"),
        (CART.replace('size="0.03"', 'size="x"'), ("--to", "urdf"), "bad.xml:13"),
        (CART, ("--to", "urdf", "--out", "nowhere/cart.urdf"), "nowhere"),
        ("<mujoco/>", ("--to", "urdf"), "no body"),
        ("", ("--to", "urdf"), "empty"),
    ],
)
def test_bad_input_is_one_error(command: Command, text: str, words: tuple[str, ...], expected_text: str) -> None:
    Path("bad.xml").write_text(text)
    result = command("convert", "bad.xml", *words)
    assert result.code == 2
    assert expected_text in result.error
    assert "\n" not in result.error
    assert sorted(path.name for path in Path().iterdir()) == ["bad.xml"]
