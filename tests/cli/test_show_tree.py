"""`roboyard check tree` and `show tree` as somebody types them: what is wrong is said in one line, with its place."""

import re
from pathlib import Path
from threading import Thread

import pytest
from tests.cli.conftest import Command

import roboyard as ry
from roboyard.behavior.nodes import TreeExecutorNode
from roboyard.bus.socket import SocketServer
from roboyard.record import Recorder

BOMB = (
    '<!DOCTYPE r [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
)


def tree(body: str) -> str:
    lines = (
        '<root BTCPP_format="4">',
        '<BehaviorTree ID="Main">',
        "<Sequence>",
        body,
        "</Sequence>",
        "</BehaviorTree>",
    )
    return "\n".join(lines) + "</root>"


@pytest.mark.parametrize(
    ("text", "expected_text"),
    [
        (tree("<Sleep msec='1'>"), r"bad\.xml:5: .*mismatched tag"),
        (BOMB + tree("<AlwaysSuccess/>"), r"bad\.xml:1: .*entit"),
        (tree("<NavigateToPos goal='1;2;0'/>"), r"bad\.xml:4: .*NavigateToPos .perhaps NavigateToPose"),
        (tree('<SubTree ID="Main"/>'), r"bad\.xml:4: .*cycle.*Main → Main"),
        (tree('<NavigateToPose goal="there"/>'), r"bad\.xml:4: <NavigateToPose>, port goal: 'there' is no SE2"),
        (tree('<NavigateToPose name="home"/>'), r"bad\.xml:4: <NavigateToPose> 'home', port goal: .*missing.*x;y;yaw"),
        (tree('<NavigateToPose aim="1;0;0"/>'), r"bad\.xml:4: .*no port \[aim\] .*goal"),
        (tree('<Script code="a := (1 + "/>'), r"bad\.xml:4: <Script>.*position"),
        (tree('<AlwaysSuccess _skipIf="&amp;&amp; 1"/>'), r"bad\.xml:4: <AlwaysSuccess>.*_skipIf: .*position"),
        (tree('<RunSkill skill="pick" goal="polarty: 1"/>'), r"bad\.xml:4: <RunSkill>.*polarty.*polarity"),
        (tree('<CallAction server_name="a" action_type="a/b/C"/>'), r"bad\.xml:4: <CallAction>.*a/b/C"),
        (tree('<CallService service_name="a" service_type="a/b/C"/>'), r"bad\.xml:4: <CallService>.*a/b/C"),
        (tree('<WaitForMessage topic="a" type="a/b/C"/>'), r"bad\.xml:4: <WaitForMessage>.*a/b/C"),
        ("", r"bad\.xml: .*empty"),
    ],
)
def test_bad_tree_is_refused_with_file_and_line(command: Command, text: str, expected_text: str) -> None:
    Path("bad.xml").write_text(text)
    for subcommand in ("check", "show"):
        completed = command(subcommand, "tree", "bad.xml")
        assert completed.code == 2
        assert re.search(expected_text, completed.error), completed.error


def test_good_tree_is_described_and_drawn(command: Command) -> None:
    Path("good.xml").write_text(tree('<NavigateToPose goal="{there}"/><Foreign of="nobody"/>'))
    assert command("check", "tree", "good.xml").code == 2
    completed = command("check", "tree", "good.xml", "--mock", "--json")
    assert completed.json["trees"][0] | {"subtrees": []} == {
        "tree": "Main", "nodes": 3, "subtrees": [], "blackboard": ["there"], "mocked": ["Foreign"],
    }  # fmt: skip
    completed = command("show", "tree", "good.xml", "--mock", "--picture", "good.svg")
    assert "└─ • Foreign  of=nobody" in completed.out
    assert Path("good.svg").read_text().startswith("<svg")


SLEEPY = tree('<Script code="a := 1"/><Sleep msec="2000"/><AlwaysFailure/>')


def mission(folder: Path) -> TreeExecutorNode:
    file = folder / "sleepy.xml"
    file.write_text(SLEEPY)
    return TreeExecutorNode(file=str(file), start_time=0.5)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "run.mcap"
    with ry.Bus() as bus:
        bus.add(mission(tmp_path), "mission")
        with Recorder(bus, path, metadata={"run": "yard"}):
            bus.executor.run_for(4.0)
    return path


def test_recorded_tree_is_shown_with_its_state_at_a_time(command: Command, recorded: Path) -> None:
    lines = command("show", "tree", "-f", recorded, "--time", "1.0").out.splitlines()
    assert lines[0].endswith("Sequence  [RUNNING]")
    assert lines[1].endswith("code=a := 1  [SUCCESS]")
    assert lines[2].endswith("msec=2000  [RUNNING]")
    assert lines[3].endswith("AlwaysFailure")
    assert "[" not in command("show", "tree", "-f", recorded, "--time", "0.2").out
    result = command("show", "tree", "-f", recorded, "--json").json
    assert [node["last_status"] for node in result["nodes"]] == ["FAILURE", "SUCCESS", "SUCCESS", "FAILURE"]
    assert {node["status"] for node in result["nodes"]} == {"IDLE"}
    times = [
        line for line in command("show", "tree", "-f", recorded, "--transitions").out.splitlines() if line[:1] == "#"
    ]
    assert times == ["# 0.000 s", "# 0.500 s", "# 2.500 s"]


def test_live_tree_is_shown_with_its_present_state(command: Command, tmp_path: Path) -> None:
    with ry.Bus() as bus:
        bus.add(mission(tmp_path), "mission")
        server = SocketServer(bus, "yard")
        bus.executor.pacer.real_time_factor = 1.0
        bus.executor.run_for(0.6)  # the change to RUNNING is over when somebody looks
        thread = Thread(target=lambda: bus.executor.run_until(10**16))
        thread.start()
        try:
            completed = command("show", "tree")
            assert command("show", "tree", "--time", "1").code == 2
            assert "--node /mission" in command("show", "tree", "--node", "nobody").error
        finally:
            bus.executor.stop()
            thread.join()
            server.close()
    assert "Sequence  [RUNNING]" in completed.out
    assert "msec=2000  [RUNNING]" in completed.out


def test_sources_without_tree_are_refused(command: Command, recording: Path) -> None:
    assert "no node has a tree" in command("show", "tree", "-f", recording).error
    assert "or a recording" in command("show", "tree", "x.xml", "-f", recording).error
