"""XML launch files of ROS 1 and ROS 2 are read as far as they define the parameter robot_description."""

from pathlib import Path

import pytest

from roboyard.description import load_model
from roboyard.errors import DescriptionError

XACRO = """<robot name="tiny" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="mass" default="2.0"/>
  <link name="base_link"><inertial><mass value="$(arg mass)"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
</robot>"""
ROS1 = """<launch><arg name="heavy" default="5.0"/><group>
  <param name="robot_description"
         command="$(find xacro)/xacro --inorder '$(find tiny)/urdf/tiny.xacro' mass:=$(arg heavy)"/>
</group></launch>"""
ROS2 = """<launch><let name="heavy" value="5.0"/>
  <node pkg="robot_state_publisher" exec="robot_state_publisher">
    <param name="robot_description"
           value="$(command 'xacro $(find-pkg-share tiny)/urdf/tiny.xacro mass:=$(var heavy)')"/>
  </node></launch>"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    (folder / "urdf").mkdir(parents=True)
    (folder / "launch").mkdir()
    (folder / "package.xml").write_text("<package><name>tiny</name></package>")
    (folder / "urdf" / "tiny.xacro").write_text(XACRO)
    return folder


def write_launch_file(package: Path, text: str, name: str = "tiny.launch") -> Path:
    path = package / "launch" / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(("text", "name"), [(ROS1, "tiny.launch"), (ROS2, "tiny.launch.xml")])
def test_launch_file_loads_its_xacro_file_with_arguments(package: Path, text: str, name: str) -> None:
    model = load_model(write_launch_file(package, text, name))
    assert model.links == load_model(package / "urdf" / "tiny.xacro", arguments={"mass": "5.0"}).links
    assert model.source == package / "urdf" / "tiny.xacro"


def test_launch_arguments_override_xacro_defaults(package: Path) -> None:
    path = write_launch_file(package, ROS1)
    expected = load_model(package / "urdf" / "tiny.xacro", arguments={"mass": "7"}).links
    assert load_model(path, arguments={"heavy": "7"}).links == expected
    path_without_argument = write_launch_file(package, ROS1.replace(" mass:=$(arg heavy)", ""), "plain.launch")
    assert load_model(path_without_argument, arguments={"mass": "7"}).links == expected


def test_launch_file_with_textfile_reads_the_urdf_file(package: Path) -> None:
    (package / "urdf" / "tiny.urdf").write_text(XACRO.replace("$(arg mass)", "3"))
    text = '<launch><param name="/robot_description" textfile="$(dirname)/../urdf/tiny.urdf"/></launch>'
    assert load_model(write_launch_file(package, text)).links[0].inertial.mass == 3.0


def test_launch_file_in_python_is_not_executed(package: Path) -> None:
    with pytest.raises(DescriptionError, match=r"Python launch file is a program.*the xacro or URDF file"):
        load_model(write_launch_file(package, "raise SystemExit", "tiny.launch.py"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<launch/>", "does not set robot_description"),
        (ROS1.replace("find tiny", "find tony"), "package 'tony' not found"),
        (ROS1.replace("$(arg heavy)", "$(arg light)"), "argument 'light' has no value .*heavy"),
        (ROS1.replace("$(find xacro)/xacro", "rm -rf"), "the unsupported command 'rm -rf"),
        (ROS1.replace("$(arg heavy)", "$(eval 1 + 1)"), "unknown substitution"),
        (ROS1.replace("tiny.xacro", "none.xacro"), "no such file"),
        (ROS1.replace("urdf/tiny.xacro", "launch/tiny.launch"), "robot_description is a launch file"),
        ('<launch><param name="robot_description" value=""/></launch>', "is not loaded from a file"),
        (ROS1.replace("--inorder '", "--inorder "), "cannot parse the command"),
    ],
)
def test_faulty_launch_files_are_refused_with_a_reason(package: Path, text: str, message: str) -> None:
    with pytest.raises(DescriptionError, match=message):
        load_model(write_launch_file(package, text))
