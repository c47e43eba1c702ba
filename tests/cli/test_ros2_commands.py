"""Verbs that users of ros2 know, beyond looking and publishing; and help that can be read."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.conftest import Command
from tests.full_disk import full_disk
from tests.harness.live_bus import LiveBus

import roboyard as ry
from roboyard.cli.app import app
from roboyard.cli.message_text import flatten, to_plain
from roboyard.cli.source import validate_topic_name
from roboyard.errors import InputError
from roboyard.messages import type_names
from roboyard.record import open_recording


@pytest.mark.slow
def test_topics_and_types_are_found_from_each_other(command: Command, live: LiveBus) -> None:
    """``find`` of the ``type`` of anything gives it back."""
    for topic in ("count", "/map"):
        kind = command("topic", "type", topic).out.strip()
        found = command("topic", "find", kind, "--json").json["topics"]
        assert "/" + topic.removeprefix("/") in found
        assert command("topic", "find", kind.rpartition("/")[2]).out.split() == found
        assert {command("topic", "type", name).out.strip() for name in found} == {kind}
    kind = command("service", "type", "robot/set_parameters", "--json")
    assert kind.code == 2 or kind.json["type"] == "rcl_interfaces/srv/SetParameters"
    kind = command("service", "type", "greet").out.strip()
    assert command("service", "find", kind).out.split() == ["/greet"]
    for words in (("topic", "find", "Nothing"), ("service", "find", "Nothing")):
        assert command(*words).code == 1
    assert command("action", "info", "fibonacci", "--json").json["servers"] == ["/robot"]
    assert "no action nope" in command("action", "info", "nope").error


def test_param_load_restores_dumped_values(command: Command, live: LiveBus) -> None:
    Path("before.yaml").write_text(command("param", "dump", "robot").out)
    assert command("param", "load", "robot", "before.yaml", "--json").json["changed"] == {}
    command("param", "set", "robot", "speed", "0.25")
    command("param", "set", "robot", "mode", "quick")
    command("param", "set", "robot", "gains", "[3, 4]")
    changed = command("param", "load", "robot", "before.yaml", "--json").json["changed"]
    assert changed == {"speed": 1.0, "mode": "slow", "gains": [1.0, 2.0]}
    assert command("param", "dump", "robot").out == Path("before.yaml").read_text()


def test_bad_parameter_files_are_refused(command: Command, live: LiveBus) -> None:
    for text, expected in (
        ("a: 1\n", "has no entry for node /robot"),
        ("/**: {ros__parameters: {nope: 1}}\n", "no parameter nope"),
        ("robot: {ros__parameters: {speed: 9.0}}\n", "p.yaml, speed"),
        ("/robot: [\n", "p.yaml"),
        ("", "p.yaml"),
    ):
        Path("p.yaml").write_text(text)
        result = command("param", "load", "robot", "p.yaml")
        assert result.code == 2, text
        assert expected in result.error, text
    assert command("param", "load", "robot", "none.yaml").code == 2


def test_csv_holds_the_values_of_the_messages(command: Command, recording: Path) -> None:
    out = command("topic", "echo", "twist", "-f", recording, "--csv").out
    head, *rows = csv.reader(io.StringIO(out))
    with open_recording(recording) as opened:
        items = list(opened.messages(["/twist"]))
    assert head == ["time", *flatten(items[0].message)]
    assert [float(row[0]) for row in rows] == pytest.approx([item.time_ns * 1e-9 for item in items])
    assert len(rows) == len(items)
    assert command("topic", "echo", "twist", "--csv", "--json", "-f", recording).code == 2
    assert command("topic", "echo", "count", "--csv", "-n", "1", "-f", recording).out.splitlines()[0] == "time,data"


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=36, max_size=36), st.text())
def test_flat_values_are_those_of_the_message(values: list[float], name: str) -> None:
    """Putting each value where its path says gives the message back."""
    import numpy as np

    message = ry.msg.Odometry(child_frame_id=name)
    message.pose.covariance = np.array(values)
    data = to_plain(message)
    for path, value in flatten(message).items():
        place_file: Any = data
        for key in path.split("."):
            place_file = place_file[int(key)] if isinstance(place_file, list) else place_file[key]
        assert place_file == value
    assert len(flatten(message)) == 2 + 2 + 2 * 36 + 7 + 6


def test_no_arr_counts_arrays(command: Command, recording: Path) -> None:
    out = command("interface", "show", "LaserScan", "--json").json
    assert out["type"] == "sensor_msgs/msg/LaserScan"
    assert "speed" not in out
    assert command("topic", "echo", "map", "--no-arr", "-f", recording, "--once").out.startswith("{data: the map}")


def test_topic_delay_is_publication_less_stamp(command: Command, recording: Path) -> None:
    found = command("topic", "delay", "twist", "-f", recording, "--json").json
    with open_recording(recording) as opened:
        times = [item.time_ns * 1e-9 for item in opened.messages(["/twist"])]  # their stamps are 0
    assert found["mean"] == pytest.approx(sum(times) / len(times))
    assert (found["min_delay"], found["max_delay"]) == (pytest.approx(min(times)), pytest.approx(max(times)))
    assert "has no header" in command("topic", "delay", "count", "-f", recording).error


def test_bag_record_holds_every_message(command: Command, live: LiveBus) -> None:
    result = command("bag", "record", "-o", "new.mcap", "-d", "1", "--json")
    assert result.code == 0
    with open_recording("new.mcap") as recording:
        assert recording.is_complete
        assert recording.count == result.json["messages"]
        assert (recording.end_ns - recording.start_ns) * 1e-9 <= 1.0
        counts = [item.message.data for item in recording.messages(["/count"])]
        assert counts == list(range(counts[0], counts[0] + len(counts))), "none is missing"
        assert len(counts) >= 9
        assert recording.topics["/count"].publishers == ("/robot",)
        assert recording.topics["/map"].latched
        assert next(recording.messages(["/map"])).time_ns == recording.start_ns, (
            "latched before, counts as of the start"
        )
        assert recording.topics["/tf_static"].count == 1
    assert "exists already" in command("bag", "record", "-o", "new.mcap").error
    command("bag", "record", "/co*", "/twist", "-x", "/twist", "-o", "some.mcap", "-d", "0.3")
    with open_recording("some.mcap") as recording:
        assert list(recording.topics) == ["/count"]


def test_bag_record_keeps_the_old_file_until_messages_come(command: Command, live: LiveBus) -> None:
    file = Path("new.mcap")
    file.write_bytes(b"the old content")
    with full_disk(100):
        result = command("bag", "record", "-o", file, "--overwrite")
    assert result.code == 1
    assert "new.mcap: cannot be written" in result.error
    assert "the old file is unchanged" in result.error
    assert file.read_bytes() == b"the old content"
    assert command("bag", "record", "-o", file, "--overwrite", "-d", "0.3").code == 0
    recorded = file.read_bytes()
    assert len(recorded) > 1000
    live.end_after(lambda: live.is_connected, 0.5)
    result = command("bag", "record", "/silent", "-o", file, "--overwrite", "--json")
    assert (result.code, result.json["messages"]) == (0, 0)
    assert result.json["warnings"][-1] == "no message arrived, and new.mcap is unchanged"
    assert file.read_bytes() == recorded
    assert list(Path().iterdir()) == [file]


def test_bag_record_ends_with_the_run(command: Command, live: LiveBus) -> None:
    live.end_after(lambda: live.is_subscribed("/count"), 1.0)
    assert command("bag", "record", "-o", "new.mcap", "--overwrite").code == 0
    with open_recording("new.mcap") as recording:
        assert recording.is_complete
        assert recording.topics["/count"].count > 5


@pytest.mark.parametrize("name", ["Twist", "std_msgs/msg/Empty", "SetBool", "Fibonacci", "sensor_msgs/LaserScan"])
def test_interface_show_prints_definitions(command: Command, name: str) -> None:
    found = command("interface", "show", name, "--json").json
    assert found["type"].rpartition("/")[2] == name.rpartition("/")[2]
    text = command("interface", "show", name).out
    assert text.startswith(f"# {found['type']}")


@pytest.mark.slow
def test_every_listed_type_can_be_shown(command: Command) -> None:
    found = command("interface", "list", "--json").json
    assert found["messages"] == type_names()
    for name in [*found["messages"][::9], *found["services"][::5], *found["actions"]]:
        assert command("interface", "show", name, "--json").json["type"] == name
    assert "no package gemetry" in command("interface", "list", "gemetry").error
    assert "Nope" in command("interface", "show", "Nope").error


@given(st.from_regex(r"/?[a-z_][a-z0-9_]*(/[A-Za-z_]\w*)*", fullmatch=True).filter(str.isascii))
def test_valid_ros_names_are_accepted(name: str) -> None:
    assert validate_topic_name(name) == "/" + name.removeprefix("/")


@pytest.mark.parametrize("name", ["", "/", "a b", "a//b", "1a", "a/1b", "a/", "ä", "a\n"])
def test_invalid_ros_names_are_refused(name: str, command: Command, recording: Path) -> None:
    with pytest.raises(InputError):
        validate_topic_name(name)
    assert command("replay", recording, "--rate", "0", "--remap", f"count:={name}").code == 2


@pytest.mark.slow
def test_every_help_page_fits_80_columns(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """On 80 columns no verb's line in the lists is cut, no line is longer, and every option says what it does."""
    monkeypatch.setenv("COLUMNS", "80")

    def visit(subcommand: Any, words: list[str]) -> None:
        out = command(*words, "--help").out
        assert all(len(line) <= 80 for line in out.splitlines()), words
        body = out.partition("\n\n")[2]
        assert "..." not in body, words
        for option in subcommand.params:
            assert option.param_type_name != "option" or option.help, (words, option.name)
        for name, inner in getattr(subcommand, "commands", {}).items():
            visit(inner, [*words, name])

    visit(typer.main.get_command(app), [])


def test_json_is_the_last_line_of_every_command(command: Command, recording: Path) -> None:
    for words in (
        ("bag", "info", recording),
        ("topic", "list", "-f", recording),
        ("topic", "type", "map", "-f", recording),
        ("tf", "tree", "-f", recording),
        ("node", "list", "-f", recording),
        ("interface", "list"),
        ("list",),
        ("bag", "convert", recording, "x.mcap"),
        ("bag", "info", "nothing"),
        ("topic", "echo", "nothing", "-f", recording),
    ):
        result = command(*words, "--json")
        assert isinstance(json.loads(result.out.splitlines()[-1]), dict), words
        assert ("error" in result.json) == (result.code != 0)


def test_live_commands_refuse_recordings(command: Command, recording: Path) -> None:
    for words in (("service", "list"), ("action", "list"), ("param", "list"), ("pause",)):
        result = command(*words, "--file", recording)
        assert result.code == 2
        assert "needs a live run" in result.error
    assert "needs a live run" not in command("doctor", "-f", recording).error
    assert "--time nan" in command("tf", "echo", "odom", "base", "-f", recording, "--time", "nan").error
