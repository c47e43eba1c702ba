"""Saved states from the command line: saved at a time or live, gone on from, and refused in one line."""

from pathlib import Path

import pytest
from tests.cli.conftest import Command
from tests.harness.live_run import LiveRun


def test_saved_run_resumes_to_the_same_bytes(command: Command, scenario: Path) -> None:
    words = ("run", scenario, "--no-video", "--out")
    assert command(*words, "first", "--save-snapshot", "0.25:a.state", "--save-snapshot", "400 ms:b.state").code == 0
    for name in "ab":
        result = command(*words, name, "--from-snapshot", f"{name}.state")
        assert result.code == 0, result
        assert (Path(name) / "recording.mcap").read_bytes() == Path("first/recording.mcap").read_bytes()


@pytest.mark.slow
def test_live_run_is_saved_and_resumed(command: Command, scenario: Path) -> None:
    words = ("run", scenario, "--duration", "1.5", "--no-video", "--out")
    with LiveRun(*words, "first", "--rate", "1") as run:
        run.wait_for_time(0.2)
        path = command("snapshot", "--json").json["file"]
        result = run.wait()
    assert result.code == 0, result
    assert Path(path).parent == Path("first").resolve()
    assert command(*words, "second", "--from-snapshot", path).code == 0
    assert Path("second/recording.mcap").read_bytes() == Path("first/recording.mcap").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--save-snapshot", "soon:x"), "T:FILE, as 12.5"),
        (("--save-snapshot", "0.3"), "the file is missing"),
        (("--save-snapshot", "0.3:"), "the file is missing"),
        (("--save-snapshot", "3:x.state"), "3 s is not within the run"),
        (("--save-snapshot", "-1:x.state"), "is not within the run"),
        (("--save-snapshot", "nan:x.state"), "--save-snapshot nan"),
        (("--save-snapshot", "0.1:nowhere/x.state"), "cannot be a file"),
        (("--from-snapshot", "nothing.state"), "nothing.state: there is no such file"),
        (("--from-snapshot", "."), "is a folder"),
        (("--from-snapshot", "/dev/null"), "/dev/null"),
    ],
)
def test_bad_state_options_are_refused(
    command: Command, scenario: Path, options: tuple[str, ...], message: str
) -> None:
    result = command("run", scenario, "--out", "out", *options)
    assert result.code == 2, result
    assert message in result.error
    assert not Path("out").exists()


OTHERS = """<sdf version="1.10"><model name="pusher">
<link name="base"><pose>0 0 0.06 0 0 0</pose>
<inertial><mass>4</mass><inertia><ixx>0.02</ixx><iyy>0.03</iyy><izz>0.04</izz></inertia></inertial>
<collision name="c"><pose>0.12 0 -0.035 0 0 0</pose><geometry><sphere><radius>0.025</radius></sphere></geometry>
<surface><friction><ode><mu>0</mu></ode></friction></surface></collision>
<collision name="d"><pose>-0.12 0 -0.035 0 0 0</pose><geometry><sphere><radius>0.025</radius></sphere></geometry>
<surface><friction><ode><mu>0</mu></ode></friction></surface></collision>
<sensor name="imu" type="imu"><update_rate>100</update_rate><imu><angular_velocity><z><noise type="gaussian">
<stddev>0.01</stddev></noise></z></angular_velocity></imu></sensor></link>
{wheels}
<plugin filename="gz-sim-diff-drive-system" name="gz::sim::systems::DiffDrive"><left_joint>left</left_joint>
<right_joint>right</right_joint><wheel_separation>0.3</wheel_separation><wheel_radius>0.06</wheel_radius></plugin>
</model></sdf>"""
WHEEL = """<link name="{0}_wheel"><pose>0 {1} 0.06 -1.5707963 0 0</pose>
<inertial><mass>0.3</mass><inertia><ixx>0.0003</ixx><iyy>0.0003</iyy><izz>0.0005</izz></inertia></inertial>
<collision name="c"><geometry><cylinder><radius>0.06</radius><length>0.03</length></cylinder></geometry></collision>
</link><joint name="{0}" type="revolute"><parent>base</parent><child>{0}_wheel</child>
<axis><xyz>0 0 1</xyz></axis></joint>"""


@pytest.mark.slow
def test_custom_robot_resumes_to_the_same_bytes(command: Command, scenario: Path) -> None:
    """A description alone, brought up by what it says, while it drives and its IMU is noisy."""
    wheels = WHEEL.format("left", 0.15) + WHEEL.format("right", -0.15)
    Path("theirs.sdf").write_text(OTHERS.format(wheels=wheels))
    words = ("run", scenario, "--robot", "theirs.sdf", "--no-video", "--out")
    result = command(*words, "first", "--save-snapshot", "0.31:a.state")
    assert result.code == 0, result  # that it drives is the scenario's criterion
    complete = Path("first/recording.mcap").read_bytes()
    assert command(*words, "again", "--from-snapshot", "a.state").code == 0
    assert Path("again/recording.mcap").read_bytes() == complete
