"""`roboyard check robot|world`: all faults at once, mended on request, and what is told of a sound one."""

from pathlib import Path

import numpy as np
from PIL import Image
from tests.cli.conftest import Command

INERTIAL = '<inertial><mass value="1"/><inertia ixx="{0}" iyy="{0}" izz="0.1"/></inertial>'
SHAPE = '<collision><geometry><box size="0.2 0.2 0.1"/></geometry></collision>'
ROBOT = f"""<robot name="r">
<link name="base">{INERTIAL}{SHAPE}</link>
<link name="arm">
{INERTIAL}</link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="2" velocity="3" effort="4"/></joint></robot>"""
WORLD = """<sdf version="1.9"><world name="w"><model name="m"><link name="l">
<inertial><mass>-2</mass></inertial></link></model></world></sdf>"""


def test_check_lists_faults_of_a_robot(command: Command) -> None:
    Path("r.urdf").write_text(ROBOT.format(0.01))
    completed = command("check", "robot", "r.urdf")
    assert completed.code == 2
    lines = [line for line in completed.err.splitlines() if line.startswith("error:")]
    assert ["link 'base'" in lines[0], "link 'arm'" in lines[1], len(lines)] == [True, True, 2]
    assert "r.urdf:2:" in lines[0]
    assert "r.urdf:4:" in lines[1]
    assert "--repair repairs them" in completed.err
    found = command("check", "robot", "r.urdf", "--json")
    assert found.code == 2
    assert found.json["ok"] is False
    assert len(found.json["faults"]) == 2
    repaired = command("check", "robot", "r.urdf", "--repair", "--json")
    assert repaired.code == 0
    assert len(repaired.json["repairs"]) == 2
    assert "smaller moments raised to 0.05 and 0.05" in repaired.json["repairs"][0]


def test_check_accepts_harmless_faults(command: Command) -> None:
    """An absurd inertia is a warning, no fault: with --repair it is mended, and what is mended needs no warning."""
    Path("r.urdf").write_text(ROBOT.format(50).replace('izz="0.1"', 'izz="50"'))
    found = command("check", "robot", "r.urdf", "--json")
    assert found.code == 0
    (messages,) = [one for one in found.json["warnings"] if "implausible" in one]
    assert "r.urdf:2: link 'base'" in messages
    assert found.json["masses"][0]["inertia"][0] == 50.0
    repaired = command("check", "robot", "r.urdf", "--repair", "--json").json
    assert len(repaired["repairs"]) == 1
    assert "of its collision shapes" in repaired["repairs"][0]
    assert repaired["masses"][0]["inertia"][2] < 0.01
    assert not any("implausible" in one for one in repaired["warnings"])


def test_check_warns_of_joints_that_cannot_move(command: Command) -> None:
    """Safety controllers, followers, interfaces' ranges, and joints that close loops."""
    more = f"""<safety_controller soft_lower_limit="-0.5" soft_upper_limit="1.5" k_position="20" k_velocity="3"/>
    </joint><link name="tip">{INERTIAL}</link><joint name="t" type="revolute"><parent link="arm"/><child link="tip"/>
    <limit lower="-1" upper="2" velocity="3" effort="4"/><mimic joint="j" multiplier="-2" offset="0.1"/></joint>
    <ros2_control name="c" type="system"><hardware><plugin>p</plugin></hardware><joint name="j">
    <command_interface name="velocity"><param name="min">-0.7</param></command_interface>
    <state_interface name="postion"/></joint></ros2_control>
    <gazebo><joint name="loop" type="revolute"><parent>base</parent><child>tip</child><axis><xyz>0 0 1</xyz></axis>
    </joint></gazebo></robot>"""
    Path("r.urdf").write_text((ROBOT.replace("</joint></robot>", more)).format(0.1))
    found = command("check", "robot", "r.urdf", "--json").json
    j, t, loop = found["limits"]
    assert j["safety"] == {"soft_lower": -0.5, "soft_upper": 1.5, "k_position": 20.0, "k_velocity": 3.0}
    assert j["commands"] == {"velocity": [-0.7, None]}
    assert t["mimics"] == {"joint": "j", "multiplier": -2.0, "offset": 0.1}
    assert (loop["name"], loop["closes_loop"], found["joints"]) == ("loop", True, ["j", "t"])
    assert any("unknown state interface 'postion'" in one for one in found["warnings"])
    result = command("check", "robot", "r.urdf").out
    for text in ("safety -0.5 … 1.5 rad, k_position 20, k_velocity 3", "velocity commands -0.7 … ∞",
                 "mimics -2 × j +0.1", "closes a loop from base to tip"):  # fmt: skip
        assert text in " ".join(result.split()), text


def test_check_reports_properties_of_a_robot(command: Command) -> None:
    Path("r.urdf").write_text(ROBOT.format(0.1))
    found = command("check", "robot", "r.urdf", "--json", "--picture", "r.png").json
    assert found["tree"] == ["base 1 kg", "  arm 1 kg, revolute by j"]
    assert found["limits"][0]["limits"] == [{"lower": -1.0, "upper": 2.0, "velocity": 3.0, "effort": 4.0}]
    assert found["masses"][1] == {"name": "arm", "mass": 1.0, "com": [0, 0, 0], "inertia": [0.1, 0.1, 0.1, 0, 0, 0]}
    assert found["standing"].startswith("the robot rests")
    assert not found["repairs"]
    assert Path("r.png").read_bytes().startswith(b"\x89PNG")
    for name, word in (("r.txt", "ends in"), ("no/r.png", "a folder that exists")):
        completed = command("check", "robot", "r.urdf", "--picture", name)
        assert completed.code == 2
        assert word in completed.error


def test_check_reports_properties_of_worlds(command: Command) -> None:
    Path("w.sdf").write_text(WORLD)
    completed = command("check", "world", "w.sdf")
    assert completed.code == 2
    assert "link 'l' has mass -2 kg" in completed.error
    assert command("check", "world", "w.sdf", "--repair", "--json").json["repairs"][0].endswith("2 kg is used")


def test_harmless_faults_are_warnings(command: Command) -> None:
    """A robot that runs as it is, is right: with massless links between its joints, or without a mesh."""
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    mesh = '<collision><geometry><mesh filename="package://no/such.stl"/></geometry></collision>'
    rotation_limit = (
        '<joint name="{0}" type="continuous"><parent link="{1}"/><child link="{2}"/><axis xyz="{3}"/></joint>'
    )
    joints = rotation_limit.format("j", "a", "b", "1 0 0") + rotation_limit.format("k", "b", "c", "0 1 0")
    links = f'<link name="a">{inertial}{mesh}</link><link name="b"/><link name="c">{inertial}</link>'
    Path("r.urdf").write_text(f'<robot name="r">{links}{joints}</robot>')
    completed = command("check", "robot", "r.urdf", "--json")
    assert completed.code == 0
    assert any("such.stl" in one for one in completed.json["warnings"])
    repaired = command("check", "robot", "r.urdf", "--json", "--repair").json["repairs"]
    assert [("such.stl" in one, "'b' moves but has no mass" in one) for one in repaired] == [
        (True, False),
        (False, True),
    ]


def test_placeholders_of_missing_models_are_visible(command: Command) -> None:
    """Half a metre each, half a kilometre apart: some pixels of their magenta, and the world itself as it was."""
    one = "<include><uri>model://nowhere</uri><name>n{0}</name><pose>{1} 0 0 0 0 0</pose></include>"
    inside = "".join(one.format(k, 500 * k) for k in range(3))
    Path("w.sdf").write_text(f'<sdf version="1.9"><world name="w">{inside}</world></sdf>')
    assert command("check", "world", "w.sdf", "--picture", "w.png").code == 0
    red, green, blue = np.asarray(Image.open("w.png"), int).transpose(2, 0, 1)
    magenta = (red > green + 20) & (blue > green + 20)
    assert 60 < magenta.sum() < 600


def test_check_lists_all_faults_of_a_world(command: Command) -> None:
    """As of a robot, with those of the models in it."""
    Path("w.sdf").write_text(WORLD.replace("</model>", '<link name="m"><pose>1 2</pose></link></model>'))
    completed = command("check", "world", "w.sdf", "--json")
    assert completed.code == 2
    assert [one["repairable"] for one in completed.json["faults"]] == [False, True]
    assert "<pose> is '1 2'" in completed.json["error"]


def test_fixed_file_is_accepted(command: Command) -> None:
    """What is mended can be written, and what is written is right."""
    Path("r.urdf").write_text(ROBOT.format(0.01))
    for words in (
        ("convert", "r.urdf", "--to", "urdf", "--out", "m.urdf"),
        ("run", "rover-drive", "--robot", "r.urdf"),
    ):
        rejected = command(*words)
        assert rejected.code == 2
        assert "--repair` writes a repaired copy" in rejected.err
    completed = command("convert", "r.urdf", "--to", "urdf", "--out", "m.urdf", "--repair", "--json")
    assert completed.code == 0
    assert len(completed.json["repairs"]) == 2
    assert command("check", "robot", "m.urdf").code == 0


def test_check_lists_all_faults_next_to_a_fatal_one(command: Command) -> None:
    """Each with file and line, and whether --repair mends it; what only follows of another is not said."""
    text = ROBOT.format(0.01).replace('<axis xyz="0 0 1"/>', '<axis xyz="0 zero 1"/>')
    text = text.replace("</robot>", '\n<gazebo reference="arm"><mu1>slippery</mu1></gazebo></robot>')
    Path("r.urdf").write_text(text)
    for more in ((), ("--repair",)):
        completed = command("check", "robot", "r.urdf", "--json", *more)
        assert completed.code == 2
        listed = [(one["message"].split(" ")[0], one["repairable"]) for one in completed.json["faults"]]
        assert listed == [("r.urdf:5:", False), ("r.urdf:7:", False), ("r.urdf:2:", True), ("r.urdf:4:", True)]
        assert len(completed.json["faults"]) == 4
    lines = [line for line in completed.err.splitlines() if line.startswith("error:")]
    assert [line.endswith("[--repair repairs it]") for line in lines] == [False, False, True, True]
    assert "2 faults cannot be repaired, 2 can" in completed.err


def test_check_passes_arguments_to_xacro(command: Command) -> None:
    Path("r.xacro").write_text(
        '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><link name="${1}_$(arg which)"/></robot>'
    )
    assert "'which' is not declared" in command("check", "robot", "r.xacro").error
    assert command("check", "robot", "r.xacro", "--arg", "which=a", "--json").json["links"] == 1
    assert "NAME=VALUE" in command("check", "robot", "r.xacro", "--arg", "which").error
