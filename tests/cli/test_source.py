"""Verbs that only look answer alike on a live run and on a recording of it."""

from pathlib import Path

import pytest
from tests.cli.conftest import Command, SampleRobot
from tests.harness.live_bus import LiveBus


@pytest.fixture(params=["live", "file"])
def source_options(request: pytest.FixtureRequest, recording: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The words that lead to the robot's messages."""
    if request.param == "file":
        return ("--file", str(recording))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(request.getfixturevalue("shared_runtime_folder")))
    return ()


def test_topics_are_listed(command: Command, source_options: tuple[str, ...]) -> None:
    result = command("topic", "list", *source_options)
    assert result.code == 0
    lines = {line.split()[0]: line.split()[1:] for line in result.out.splitlines()}
    assert lines["/count"][0] == "std_msgs/msg/Int32"
    topics = {topic["name"]: topic for topic in command("topic", "list", *source_options, "--json").json["topics"]}
    assert topics["/map"]["latched"]
    assert topics["/map"]["publishers"] == ["/robot"]


def test_topic_info_describes_a_topic(command: Command, source_options: tuple[str, ...]) -> None:
    assert "/robot" in command("topic", "info", "count", *source_options).out
    assert command("topic", "info", "/count", *source_options, "--json").json["topic"]["type"] == "std_msgs/msg/Int32"
    result = command("topic", "info", "cuont", *source_options)
    assert result.code == 2
    assert "no topic cuont (similar: /count" in result.error


def test_echo_prints_yaml(command: Command, source_options: tuple[str, ...]) -> None:
    assert command("topic", "echo", "/map", "--once", *source_options).out == "{data: the map}\n---\n"
    result = command("topic", "echo", "twist", "-n", "2", "--field", "twist.linear", *source_options)
    assert result.out == "{x: 0.0, y: 0.0, z: 0.0}\n---\n" * 2
    assert command("topic", "echo", "map", "--once", "--timestamps", *source_options).out.startswith(
        "# 0.000 s /robot\n"
    )
    result = command("topic", "echo", "twist", "--once", "--field", "twist.liner", *source_options)
    assert result.code == 2
    assert "no field 'liner'" in result.error
    assert "fields: linear, angular" in result.error


def test_echo_in_json_prints_one_object_per_line(command: Command, source_options: tuple[str, ...]) -> None:
    result = command("topic", "echo", "count", "-n", "3", "--json", *source_options)
    assert len(result.out.splitlines()) == 3
    assert result.json["message"]["data"] == round(result.json["time"] * 10)


def test_hz_and_bw_measure_simulated_time(command: Command, source_options: tuple[str, ...]) -> None:
    result = command("topic", "hz", "count", "-n", "10", "--json", *source_options)
    assert result.json["rate"] == pytest.approx(10.0)
    assert result.json["messages"] == 10
    assert "average rate: 10.000 Hz" in command("topic", "hz", "count", "-n", "10", *source_options).out
    # an Int32 takes four bytes behind a header of four, ten times a second
    assert command("topic", "bw", "count", "-n", "10", "--json", *source_options).json["per_second"] == pytest.approx(
        80.0
    )
    assert "average: 80 B/s" in command("topic", "bw", "count", "-n", "10", *source_options).out
    assert "too few messages" in command("topic", "hz", "map", "-n", "1", *source_options).out


def test_nodes_are_listed_and_described(command: Command, source_options: tuple[str, ...]) -> None:
    assert "/robot" in command("node", "list", *source_options).out
    found = command("node", "info", "robot", *source_options, "--json").json["node"]
    assert {"/count", "/map", "/twist"} <= set(found["publishes"])
    assert "publishes:\n  /count" in command("node", "info", "robot", *source_options).out
    result = command("node", "info", "robbot", *source_options)
    assert result.code == 2
    assert "no node robbot (similar: /robot" in result.error


def test_tf_tree_shows_frames(command: Command, source_options: tuple[str, ...]) -> None:
    lines = command("tf", "tree", *source_options).out.splitlines()
    assert lines[0] == "odom"
    assert lines[1].startswith("└─ base  (moving, 10")
    assert lines[2] == "   └─ laser  (static, /robot)"
    frames = {frame["name"]: frame for frame in command("tf", "tree", *source_options, "--json").json["frames"]}
    assert frames["laser"]["parent"] == "base"


def test_tf_echo_gives_pose_of_a_frame(command: Command, source_options: tuple[str, ...]) -> None:
    result = command("tf", "echo", "odom", "laser", "--once", *source_options)
    assert result.code == 0
    assert "0.0000  0.5000 m" in result.out
    pose = command("tf", "echo", "odom", "laser", "--once", "--json", *source_options).json
    assert pose["translation"]["z"] == pytest.approx(0.5)
    assert pose["translation"]["x"] == pytest.approx(round(pose["translation"]["x"]))
    assert pose["rotation"] == {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}


def test_tf_echo_gives_pose_at_a_time_of_a_recording(command: Command, recording: Path) -> None:
    pose = command("tf", "echo", "odom", "base", "--file", recording, "--time", "1.25", "--json").json
    assert pose["translation"]["x"] == pytest.approx(12.5)
    result = command("tf", "echo", "odom", "base", "--file", recording, "--time", "9")
    assert result.code == 2
    assert "known from 0.100000 to 2.000000 s" in result.error
    result = command("tf", "echo", "odom", "nowhere", "--file", recording)
    assert result.code == 2
    assert "frame 'nowhere' is unknown (known: base, laser, odom)" in result.error


def test_bag_info_describes_a_recording(command: Command, recording: Path) -> None:
    result = command("bag", "info", recording)
    assert "complete  yes" in result.out
    assert "run  yard" in result.out
    found = command("bag", "info", recording, "--json").json
    assert found["duration"] == pytest.approx(2.0)
    assert found["metadata"] == {"run": "yard"}
    assert found["messages"] == sum(topic["count"] for topic in found["topics"])


def test_convert_writes_the_same_messages(command: Command, recording: Path) -> None:
    result = command("bag", "convert", recording, "copy.mcap", "--json")
    assert result.json["messages"] == command("bag", "info", recording, "--json").json["messages"]
    assert command("bag", "convert", recording, "copy.mcap").code == 2
    assert command("bag", "convert", recording, "copy.mcap", "--overwrite").code == 0


def test_run_is_chosen_by_name_among_several(command: Command, live: LiveBus) -> None:
    with LiveBus((SampleRobot(), "robot"), name="garden"):
        result = command("topic", "list")
        assert result.code == 2
        assert "several runs are live" in result.error
        assert command("topic", "list", "--run", "garden").code == 0
        assert command("topic", "list", "--run", "grden").code == 2
        assert {run["name"] for run in command("list", "runs", "--json").json["runs"]} == {"yard", "garden"}


def test_commands_without_live_run_are_refused(command: Command, recording: Path) -> None:
    result = command("topic", "list")
    assert result.code == 2
    assert "no live run found (start one with 'roboyard run', or name a recording)" in result.error
    result = command("topic", "list", "--run", "yard", "--file", recording)
    assert result.code == 2
    assert "only one of --run and --file" in result.error
    assert command("list", "runs").out == "none\n"
