"""Verbs that only look answer alike on a live run and on a recording of it."""

from pathlib import Path

import pytest
from tests.cli.conftest import Command, SampleRobot
from tests.harness.live_bus import LiveBus


@pytest.fixture(params=["live", "file"])
def where(request: pytest.FixtureRequest, recording: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The words that lead to the robot's messages."""
    if request.param == "file":
        return ("--file", str(recording))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(request.getfixturevalue("shared_runtime_folder")))
    return ()


def test_topics_are_listed(command: Command, where: tuple[str, ...]) -> None:
    done = command("topic", "list", *where)
    assert done.code == 0
    lines = {line.split()[0]: line.split()[1:] for line in done.out.splitlines()}
    assert lines["/count"][0] == "std_msgs/msg/Int32"
    topics = {topic["name"]: topic for topic in command("topic", "list", *where, "--json").json["topics"]}
    assert topics["/map"]["latched"]
    assert topics["/map"]["publishers"] == ["/robot"]


def test_topic_info_describes_a_topic(command: Command, where: tuple[str, ...]) -> None:
    assert "published by  /robot" in command("topic", "info", "count", *where).out
    assert command("topic", "info", "/count", *where, "--json").json["topic"]["type"] == "std_msgs/msg/Int32"
    done = command("topic", "info", "cuont", *where)
    assert done.code == 2
    assert "no topic cuont (near to it: /count" in done.error


def test_echo_prints_yaml(command: Command, where: tuple[str, ...]) -> None:
    assert command("topic", "echo", "/map", "--once", *where).out == "{data: the map}\n---\n"
    done = command("topic", "echo", "twist", "-n", "2", "--field", "twist.linear", *where)
    assert done.out == "{x: 0.0, y: 0.0, z: 0.0}\n---\n" * 2
    assert command("topic", "echo", "map", "--once", "--time", *where).out.startswith("# 0.000 s /robot\n")
    done = command("topic", "echo", "twist", "--once", "--field", "twist.liner", *where)
    assert done.code == 2
    assert "no part 'liner'" in done.error
    assert "fields: linear, angular" in done.error


def test_echo_in_json_prints_one_object_per_line(command: Command, where: tuple[str, ...]) -> None:
    done = command("topic", "echo", "count", "-n", "3", "--json", *where)
    assert len(done.out.splitlines()) == 3
    assert done.json["message"]["data"] == round(done.json["time"] * 10)


def test_hz_and_bw_measure_simulated_time(command: Command, where: tuple[str, ...]) -> None:
    done = command("topic", "hz", "count", "-n", "10", "--json", *where)
    assert done.json["rate"] == pytest.approx(10.0)
    assert done.json["messages"] == 10
    assert "average rate: 10.000 Hz" in command("topic", "hz", "count", "-n", "10", *where).out
    # an Int32 takes four bytes behind a header of four, ten times a second
    assert command("topic", "bw", "count", "-n", "10", "--json", *where).json["per_second"] == pytest.approx(80.0)
    assert "average: 80 B/s" in command("topic", "bw", "count", "-n", "10", *where).out
    assert "too few messages" in command("topic", "hz", "map", "-n", "1", *where).out


def test_nodes_are_listed_and_described(command: Command, where: tuple[str, ...]) -> None:
    assert "/robot" in command("node", "list", *where).out
    found = command("node", "info", "robot", *where, "--json").json["node"]
    assert {"/count", "/map", "/twist"} <= set(found["publishes"])
    assert "publishes:\n  /count" in command("node", "info", "robot", *where).out
    done = command("node", "info", "robbot", *where)
    assert done.code == 2
    assert "no node robbot (near to it: /robot" in done.error


def test_tf_tree_shows_frames(command: Command, where: tuple[str, ...]) -> None:
    lines = command("tf", "tree", *where).out.splitlines()
    assert lines[0] == "odom"
    assert lines[1].startswith("└─ base  (moving, 10")
    assert lines[2] == "   └─ laser  (static, /robot)"
    frames = {frame["name"]: frame for frame in command("tf", "tree", *where, "--json").json["frames"]}
    assert frames["laser"]["parent"] == "base"


def test_tf_echo_gives_pose_of_a_frame(command: Command, where: tuple[str, ...]) -> None:
    done = command("tf", "echo", "odom", "laser", "--once", *where)
    assert done.code == 0
    assert "0.0000  0.5000 m" in done.out
    pose = command("tf", "echo", "odom", "laser", "--once", "--json", *where).json
    assert pose["translation"]["z"] == pytest.approx(0.5)
    assert pose["translation"]["x"] == pytest.approx(round(pose["translation"]["x"]))
    assert pose["rotation"] == {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}


def test_tf_echo_gives_pose_at_a_time_of_a_recording(command: Command, recording: Path) -> None:
    pose = command("tf", "echo", "odom", "base", "--file", recording, "--time", "1.25", "--json").json
    assert pose["translation"]["x"] == pytest.approx(12.5)
    done = command("tf", "echo", "odom", "base", "--file", recording, "--time", "9")
    assert done.code == 2
    assert "known from 0.100000 to 2.000000 s" in done.error
    done = command("tf", "echo", "odom", "nowhere", "--file", recording)
    assert done.code == 2
    assert "frame 'nowhere' is unknown (known: base, laser, odom)" in done.error


def test_bag_info_describes_a_recording(command: Command, recording: Path) -> None:
    done = command("bag", "info", recording)
    assert "complete  yes" in done.out
    assert "run  yard" in done.out
    found = command("bag", "info", recording, "--json").json
    assert found["duration"] == pytest.approx(2.0)
    assert found["metadata"] == {"run": "yard"}
    assert found["messages"] == sum(topic["count"] for topic in found["topics"])


def test_convert_writes_the_same_messages(command: Command, recording: Path) -> None:
    done = command("bag", "convert", recording, "copy.mcap", "--json")
    assert done.json["messages"] == command("bag", "info", recording, "--json").json["messages"]
    assert command("bag", "convert", recording, "copy.mcap").code == 2
    assert command("bag", "convert", recording, "copy.mcap", "--overwrite").code == 0


def test_run_is_chosen_by_name_among_several(command: Command, live: LiveBus) -> None:
    with LiveBus((SampleRobot(), "robot"), name="garden"):
        done = command("topic", "list")
        assert done.code == 2
        assert "several runs are live" in done.error
        assert command("topic", "list", "--run", "garden").code == 0
        assert command("topic", "list", "--run", "grden").code == 2
        assert {run["name"] for run in command("list", "runs", "--json").json["runs"]} == {"yard", "garden"}


def test_verbs_without_live_run_are_refused(command: Command, recording: Path) -> None:
    done = command("topic", "list")
    assert done.code == 2
    assert "no live run found (start one with 'roboyard run', or name a recording)" in done.error
    done = command("topic", "list", "--run", "yard", "--file", recording)
    assert done.code == 2
    assert "exclude each other" in done.error
    assert command("list", "runs").out == "none\n"
