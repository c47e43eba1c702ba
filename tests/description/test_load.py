"""Loading refuses missing, empty, binary, special and too large files, and invalid arguments; it parses a file once."""

import os
from collections import Counter
from pathlib import Path

import pytest
from tests.harness.descriptions import ARM_URDF

from roboyard.description import ModelLoader, load, load_model, load_world, reader_context, xml
from roboyard.errors import DescriptionError


def read_load_error(source: str | Path) -> str:
    messages = []
    for load_description in (load_model, load_world):
        with pytest.raises(DescriptionError) as caught:
            load_description(source)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    return messages[0]


def test_missing_file_is_refused(tmp_path: Path) -> None:
    assert "no such file" in read_load_error(tmp_path / "nothing.urdf")


def test_folder_is_refused(tmp_path: Path) -> None:
    assert "folder" in read_load_error(tmp_path)


def test_empty_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "robot.urdf"
    file.write_text("")
    assert read_load_error(file) == f"{file}: the file is empty (a URDF, xacro, SDF or MJCF document)"


def test_unknown_file_extension_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "robot.pdf"
    file.write_text(ARM_URDF)
    assert "unknown extension '.pdf'" in read_load_error(file)


def test_binary_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "robot.urdf"
    file.write_bytes(b"\x7fELF\x02\x01\x00\x00" * 100)
    assert "binary" in read_load_error(file)


def test_file_with_other_content_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "robot.xml"
    file.write_text("<html>\n</html>")
    assert "the document is a <html>" in read_load_error(file)
    file.write_text("<mujoco><worldbody><body><freejoint/></body></worldbody></mujoco>")
    assert "mass" in read_load_error(file)
    file.write_text("just words")
    assert "not well-formed XML" in read_load_error(file)


def test_too_large_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "robot.urdf"
    with file.open("wb") as stream:
        stream.truncate(2**30)
    assert "1073741824 bytes" in read_load_error(file)


def test_special_file_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.urdf"
    os.mkfifo(pipe)
    assert "not a regular file" in read_load_error(pipe)


@pytest.mark.parametrize("source", ["", "  \n", "a\x00b.urdf", "x" * 5000 + ".urdf", "no tag here"])
def test_argument_must_be_text_or_path(source: str) -> None:
    assert read_load_error(source)


def test_search_folder_must_exist(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match="search folder"):
        load_model(ARM_URDF, search=[tmp_path / "nowhere"])


def test_arguments_of_a_plain_file_are_refused() -> None:
    with pytest.raises(DescriptionError, match="the file takes no arguments"):
        load_model(ARM_URDF, arguments={"color": "red"})


CRATE_URDF = """
<robot name="crate"><link name="base"><inertial><mass value="1.0"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>
"""
XACRO_NAMESPACE = "http://www.ros.org/wiki/xacro"


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts by file name how often the XML parser was called."""
    counts: Counter[str] = Counter()
    parse = xml.parse_xml

    def count(text: str | bytes, source: str = "<text>") -> object:
        counts[Path(source).name] += 1
        return parse(text, source)

    for module in (load, reader_context):
        monkeypatch.setattr(module, "parse_xml", count)
    return counts


def test_xacro_file_included_twice_is_parsed_once(tmp_path: Path, parses: Counter[str]) -> None:
    (tmp_path / "leg.xacro").write_text(
        f'<robot xmlns:xacro="{XACRO_NAMESPACE}"><link name="${{side}}_leg"/><joint name="${{side}}_hip" type="fixed">'
        '<parent link="base"/><child link="${side}_leg"/></joint></robot>',
        encoding="utf-8",
    )
    include = '<xacro:property name="side" value="{}"/><xacro:include filename="leg.xacro"/>'
    robot = tmp_path / "biped.urdf.xacro"
    robot.write_text(
        CRATE_URDF.replace("<robot", f'<robot xmlns:xacro="{XACRO_NAMESPACE}"').replace(
            "</robot>", include.format("left") + include.format("right") + "</robot>"
        ),
        encoding="utf-8",
    )
    assert [link.name for link in load_model(robot).links] == ["base", "left_leg", "right_leg"]
    assert parses == {"biped.urdf.xacro": 1, "leg.xacro": 1}


def test_sdf_file_included_twice_is_parsed_once(tmp_path: Path, parses: Counter[str]) -> None:
    model = '<sdf version="1.9"><model name="crate"><link name="base"/></model></sdf>'
    (tmp_path / "crate.sdf").write_text(model, encoding="utf-8")
    include = "<include><uri>crate.sdf</uri><name>{}</name></include>"
    world = tmp_path / "yard.world"
    world.write_text(
        f'<sdf version="1.9"><world name="yard">{include.format("a")}{include.format("b")}</world></sdf>',
        encoding="utf-8",
    )
    assert [placed.name for placed in load_world(world).models] == ["a", "b"]
    assert parses == {"yard.world": 1, "crate.sdf": 1}


def test_mjcf_file_included_twice_is_parsed_once_and_not_changed(tmp_path: Path, parses: Counter[str]) -> None:
    (tmp_path / "crate.xml").write_text(
        '<mujoco><geom type="box" size="0.1 0.1 0.1" mass="1"/></mujoco>', encoding="utf-8"
    )
    body = '<body name="{}"><freejoint/><include file="crate.xml"/></body>'
    world = tmp_path / "yard.xml"
    world.write_text(
        f'<mujoco model="yard"><worldbody>{body.format("a")}{body.format("b")}</worldbody></mujoco>', encoding="utf-8"
    )
    first, second = (placed.model for placed in load_world(world).models)
    assert len(first.links[0].collisions) == len(second.links[0].collisions) == 1
    assert parses == {"yard.xml": 1, "crate.xml": 1}


def test_loader_reads_anew_for_other_arguments(tmp_path: Path, parses: Counter[str]) -> None:
    file = tmp_path / "crate.urdf.xacro"
    text = CRATE_URDF.replace('name="crate"', 'name="crate" xmlns:xacro="http://www.ros.org/wiki/xacro"')
    text = text.replace("<link", '<xacro:arg name="mass" default="1.0"/><link').replace(
        'value="1.0"', 'value="$(arg mass)"'
    )
    file.write_text(text, encoding="utf-8")
    loader = ModelLoader(file)
    assert [loader.load({"mass": mass}).mass for mass in ("2.0", "3.0", "2.0")] == [2.0, 3.0, 2.0]
    assert loader.load().mass == 1.0
    assert parses["crate.urdf.xacro"] == 3


def test_loader_repairs_only_on_request(tmp_path: Path, parses: Counter[str]) -> None:
    faulty = tmp_path / "faulty.urdf"
    faulty.write_text(CRATE_URDF.replace('ixx="0.01"', 'ixx="5.0"'), encoding="utf-8")
    loader = ModelLoader(faulty)
    assert loader.load(repair=True).repairs
    for _ in range(2):
        with pytest.raises(DescriptionError, match="inertia"):
            loader.load()
    sound = tmp_path / "sound.urdf"
    sound.write_text(CRATE_URDF, encoding="utf-8")
    loader = ModelLoader(sound)
    assert loader.load(repair=True) is loader.load()
    assert parses == {"faulty.urdf": 3, "sound.urdf": 1}
