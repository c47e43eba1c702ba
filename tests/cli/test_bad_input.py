"""Whatever is wrong with what the user gives: exit code 2, and one line that says what, where, and what is right."""

import os
from pathlib import Path

import pytest
from tests.cli.conftest import Command

LINK = '<link name="{0}"><inertial><mass value="{1}"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>'
BOMB = (
    '<?xml version="1.0"?><!DOCTYPE robot [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + ']><robot name="&i;"/>'
)
OUTSIDE = '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/hostname">]><robot name="r"><link name="&x;"/></robot>'
ROBOTS = {
    "empty.urdf": ("", ("empty",)),
    "bomb.urdf": (BOMB, ("entit",)),
    "outside.urdf": (OUTSIDE, ("entit",)),
    "broken.urdf": ("<robot name='r'><link", ("broken.urdf",)),
    "nothing.urdf": ("<robot name='r'/>", ("link",)),
    "negative.urdf": (f"<robot name='r'>{LINK.format('a', -1)}</robot>", ("mass", "negative.urdf")),
    "twins.urdf": (f"<robot name='r'>{LINK.format('a', 1)}{LINK.format('a', 1)}</robot>", ("'a'", "twins.urdf")),
    "roots.urdf": (f"<robot name='r'>{LINK.format('a', 1)}{LINK.format('b', 1)}</robot>", ("root",)),
    "robot.txt": ("hello", ("robot.txt",)),
}
GOOD = "world: empty\nduration: 0.1 s\nrobots: {rover: {model: rover}}\n"
SCENARIOS = {
    "": ("is empty", "s.yaml"),
    "- a\n": ("is no scenario", "s.yaml"),
    "world: [": ("is not valid YAML", "s.yaml"),
    GOOD + "duraton: 3\n": ("unknown key 'duraton'", "s.yaml:4", "did you mean 'duration'"),
    GOOD.replace("0.1 s", "3 kg"): ("'3 kg' is a mass", "s.yaml:2", "duration"),
    GOOD.replace("0.1 s", "fast"): ("fast", "s.yaml:2"),
    GOOD.replace("0.1 s", "-1"): ("-1", "s.yaml:2"),
    GOOD.replace("empty", "nowhere"): ("no world 'nowhere'", "arena"),
    GOOD.replace("model: rover", "model: rovr"): ("no robot 'rovr'", "rover"),
    GOOD + "criteria: {a: path_lenth > 1}\n": ("path_lenth", "criteria.a"),
    GOOD + "criteria: {a: __import__('os')}\n": ("criteria.a",),
    GOOD + "operator: nowhere.yaml\n": ("nowhere.yaml",),
    GOOD + "operator: [{dance: 3}]\n": ("dance",),
    GOOD + "nodes: {a: {type: 'nowhere.py:A'}}\n": ("nowhere.py",),
    GOOD + "nodes: {a: {type: odometri}}\n": ("odometri", "odometry"),
    GOOD + "nodes: {robot_state: {type: robot_state, robot: rover}}\n": ("/robot_state",),
    GOOD.replace("rover}}", "rover, parameters: {drive: {speeed: 1}}}}"): ("speeed",),
    GOOD.replace("rover}}", "rover, parameters: {drive: {speed: 1 kg}}}}"): ("1 kg", "speed"),
    GOOD + "nodes: {navigator: {type: navigator, robot: rover, parameters: {planner: {type: no_way}}}}\n": (
        "no planner 'no_way'",
        "a_star",
        "node /navigator",
    ),
}


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("subcommand", ["check", "run"])
def test_bad_robots_are_one_error(command: Command, name: str, subcommand: str) -> None:
    text, expected = ROBOTS[name]
    Path(name).write_text(text)
    words = (
        ["check", "robot", name] if subcommand == "check" else ["run", "rover-drive", "--robot", name, "--out", "out"]
    )
    result = command(*words)
    assert result.code == 2, result
    for part in expected:
        assert part in result.error
    assert len(result.error) < 400
    assert not Path("out").exists() or not list(Path("out").iterdir()), "nothing is left behind"


@pytest.mark.parametrize("text", SCENARIOS)
def test_bad_scenarios_are_one_error(command: Command, text: str) -> None:
    Path("s.yaml").write_text(text)
    for words in (["check", "scenario", "s.yaml"], ["run", "s.yaml", "--out", "out"]):
        result = command(*words)
        assert result.code == 2, result
        for part in SCENARIOS[text]:
            assert part in result.error
    assert not Path("out").exists() or not list(Path("out").iterdir()), "nothing is left behind"


@pytest.mark.parametrize(
    "words",
    [
        ["run", "{}"],
        ["run", "rover-drive", "--robot", "{}"],
        ["run", "rover-drive", "--world", "{}"],
        ["run", "rover-drive", "--replay-inputs", "{}"],
        ["check", "world", "{}"],
        ["check", "robot", "{}"],
        ["check", "scenario", "{}"],
        ["batch", "{}", "--runs", "2"],
        ["bag", "info", "{}"],
        ["bag", "recover", "{}"],
        ["bag", "convert", "{}", "new.mcap"],
        ["topic", "list", "--file", "{}"],
        ["tf", "tree", "--file", "{}"],
        ["replay", "{}"],
        ["report", "{}"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("kind", ["missing", "folder", "empty", "binary"])
def test_bad_files_are_one_error(command: Command, words: list[str], kind: str) -> None:
    # with a suffix that each of them takes, so that the content is what counts
    suffix = ".sdf" if "robot" in words[-2] or "world" in words[-2] else ".yaml"
    path = Path(f"file{suffix}")
    if kind == "folder":
        path.mkdir()
    elif kind != "missing":
        path.write_bytes(b"" if kind == "empty" else bytes(range(256)) * 4)
    result = command(*[word.format(path) for word in words])
    assert result.code == 2, result
    assert "file" in result.error
    assert not Path("new.mcap").exists()


@pytest.mark.parametrize("words", [["run"], ["bag", "info"], ["check", "robot"]], ids=" ".join)
def test_unreadable_files_are_one_error(command: Command, words: list[str]) -> None:
    path = Path("file.sdf")
    path.write_text("")
    assert command(*words, path).code == 2  # everything that is needed is imported now
    path.chmod(0)
    user = os.geteuid()
    if user == 0:  # root may read everything
        Path().absolute().chmod(0o755)
        os.seteuid(65534)
    try:
        if os.access(path, os.R_OK, effective_ids=True):
            pytest.skip("every user may read everything here")
        result = command(*words, path.name)
    finally:
        os.seteuid(user)
    assert result.code == 2, result
    assert "file.sdf" in result.error
    assert "Permission denied" in result.error


def test_bad_settings_are_one_error(command: Command, scenario: Path) -> None:
    for setting, expected in (
        ("duration", "is no assignment"),
        ("duratin=3", "did you mean 'duration'"),
        ("duration=3 kg", "'3 kg' is a mass"),
        ("robots.rover.pose=[1,2]", "robots.rover.pose"),
        ("robots.rover.pose=[1,2", "is not valid YAML"),
        ("duration.x=1", "cannot be set inside"),
    ):
        result = command("run", scenario, "--set", setting)
        assert result.code == 2, setting
        assert expected in result.error, setting


def test_run_never_overwrites_folders(command: Command, scenario: Path) -> None:
    Path("full").mkdir()
    Path("full/file").write_text("mine")
    Path("file").write_text("mine")
    assert "full is not empty" in command("run", scenario, "--out", "full").error
    assert "file is no folder" in command("run", scenario, "--out", "file").error
    assert Path("full/file").read_text() == "mine"


def test_errors_are_objects_in_json(command: Command) -> None:
    result = command("run", "nothing", "--json")
    assert (result.code, result.json["exit_code"]) == (2, 2)
    assert "no scenario 'nothing'" in result.json["error"]
    assert len(result.out.splitlines()) == 1


def test_replay_of_missing_entries_is_one_error(command: Command, recording: Path) -> None:
    for words, expected in (
        (["-t", "/nothing"], "no topic /nothing"),
        (["--start-offset", "5"], "--start-offset 5 is after the end"),
        (["--node", "odometri"], "odometri"),
        (["--node", "differential_drive"], "hardware"),
        (["--param", "x"], "invalid parameter"),
        (["--param", "odometry.rate=1"], "names no --node node"),
        (["--node", "odometry", "--param", "odometry.rat=1"], "no parameter 'rat'"),
        (["--out", str(recording)], "exists already"),
    ):
        result = command("replay", recording, "--rate", "0", *words)
        assert result.code == 2, words
        assert expected in result.error, words


TOUR = {
    "lisst": "Did you mean 'list'",
    "list robts": "'robts' is not one of 'robots', 'worlds'",
    "list robots rover": "unexpected name 'rover'",
    "list nodes nothing": "no node 'nothing'",
    "run": "Missing argument 'SCENARIO'",
    "run s.yaml extra": "unexpected extra argument(s) (extra)",
    "run s.yaml --robot nobody": "no robot 'nobody'",
    "run s.yaml --world nowhere": "no world 'nowhere'",
    "run s.yaml --seed abc": "Invalid value for '--seed'",
    "run s.yaml --duration nan": "'nan' is not a number",
    "run s.yaml --set =3": "is no assignment",
    "run s.yaml --from-snapshot text.txt": "is no saved state",
    "run s.yaml --from-snapshot folder": "folder: is a folder",
    "run s.yaml --replay-inputs bad.mcap": "bad.mcap: is truncated",
    "run s.yaml --save-snapshot 0.1:folder": "folder cannot be a file",
    "run s.yaml --save-snapshot 0.05:": "the file is missing",
    "run s.yaml --read-only": "require a view (--view)",
    "run s.yaml --bridge-port 9": "requires exactly one server",
    "run s.yaml --bridge-topics /x": "--bridge-topics /x requires a bridge (with --ros2",
    "run s.yaml --bridge-host 1.2.3.4": "--bridge-host 1.2.3.4 requires a bridge (with --ros2",
    "run s.yaml --external-timeout 3": "requires an external node (with --external NODE)",
    "bringup rover --emulate --port /dev/x": "exactly one of --port and --emulate",
    "batch s.yaml": "Missing option '--runs'",
    "batch s.yaml -n 0": "Invalid value for '--runs'",
    "batch s.yaml -n 1 --keep some": "'some' is not one of 'failed', 'all', 'none'",
    "batch s.yaml -n 1 --vary duration=foo:1,2": "no distribution 'foo'",
    "batch s.yaml -n 1 --design grid": "design grid without --vary",
    "batch s.yaml -n 1 --baseline folder": "there is no batch at folder",
    "batch s.yaml -n 1 --baseline text.txt": "text.txt: cannot be read",
    "batch s.yaml -n 1 --export x.txt": "a name in .csv or .parquet",
    "batch s.yaml -n 1 --junit folder": "folder is a folder (a file)",
    "batch s.yaml -n 1 --out full": "full is not empty and holds no batch",
    "batch all rover-drive -n 1": "the name all stands for every scenario (all alone",
    "batch rover-drive rover-drive -n 1": "occurs twice",
    "compare s.yaml": "Missing option '--vary'",
    "compare s.yaml --vary duration=1": "at least two variants",
    "compare s.yaml --vary duration=1,2 --out full": "--out: full is not empty and holds no comparison (a new folder",
    "compare s.yaml --vary duration=1,2 --out text.txt": "--out: text.txt is no folder",
    "report folder": "is not the folder of a run",
    "map bad.mcap": "bad.mcap: is truncated",
    "convert text.txt --to nothing": "'nothing' is not one of 'urdf', 'sdf', 'mjcf'",
    "check foo": "No such command 'foo'",
    "check world bad.xml": "bad.xml:1: not well-formed XML",
    "check tree bad.xml": "bad.xml:1: not well-formed XML",
    "check tasks broken.yaml": "broken.yaml:3: is not valid YAML",
    "check robot rover --picture x.txt": "a name that ends in .png, .jpg or .jpeg",
    "check animation folder": "no clip 'folder'",
    "calibrate odometry rover --turns 1": "Invalid value for '--turns'",
    "calibrate camera text.txt --board foo": "is not a readable image",
    "calibrate hand-eye folder": "folder: cannot be read",
    "plan path folder --start 0,0 --goal 1,1": "folder: cannot be read",
    "plan arm youbot_arm --goal foo": "no pose 'foo' (poses: ",
    "plan tasks broken.yaml": "broken.yaml:3: is not valid YAML",
    "show octree text.txt": "its first line is 'hello'",
    "new robot ../x": "a robot cannot be called '../x'",
    "schema scenario foo": "takes no name",
    "teleop foo": "'foo' is not one of 'keyboard', 'gamepad'",
    "pause --run nobody": "no live run 'nobody'",
    "topic list --file folder": "no recording found in the folder",
    "topic pub /x --file bad.mcap": "needs a live run",
    "tf echo a b --time -1": "--time -1",
    "interface list nothing": "no package nothing",
    "bag convert bad.mcap new.mcap": "bad.mcap: is truncated",
    "arm ik youbot_arm": "exactly one goal is required",
    "mesh simplify text.txt --triangles 10": "unknown mesh format .txt",
    "precompile foo": "no scenario 'foo'",
    "doctor foo": "unexpected extra argument(s) (foo)",
}
"""Wrong command lines, and what the error says."""


@pytest.mark.parametrize("line", TOUR)
def test_wrong_command_lines_are_one_line(command: Command, line: str) -> None:
    Path("s.yaml").write_text(GOOD)
    Path("text.txt").write_text("hello\n")
    Path("broken.yaml").write_text("a: [1,\n b: {")
    Path("bad.xml").write_text("<root><BehaviorTree></root>")
    Path("bad.mcap").write_bytes(b"\x89MCAP0\r\nnonsense")
    Path("folder").mkdir()
    Path("full").mkdir()
    Path("full/file").write_text("mine")
    result = command(*line.split())
    assert result.code == 2, result
    assert TOUR[line] in result.err
    assert len(result.err.strip().splitlines()) == 1
    assert result.out == ""
    assert "Traceback" not in result.err
