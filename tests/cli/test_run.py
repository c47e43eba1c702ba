"""Runs from the command line: to the end, stopped, killed, repeated, in batches, and on a full disk."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Command
from tests.full_disk import full_disk
from tests.harness.live_bus import PROGRAM
from tests.harness.live_run import LiveRun, poll

from roboyard.bus.socket import live_runs
from roboyard.record import open_recording

NODE = '''
import roboyard as ry


class DoubleConfig(ry.Config):
    gain: float = ry.parameter(2.0)


class Double(ry.Node[DoubleConfig]):
    """in: odom   out: doubled"""


    def setup(self) -> None:
        self.out = self.publisher("doubled", ry.msg.Float64)
        self.subscribe("odom", ry.msg.Odometry, self.on_odometry)

    def on_odometry(self, message: object) -> None:
        self.out.publish(ry.msg.Float64(data=self.config.gain * message.pose.pose.position.x))


class Failing(Double):
    def on_odometry(self, message: object) -> None:
        raise ZeroDivisionError("on purpose")
'''


def test_held_criteria_have_exit_code_0(command: Command, scenario: Path) -> None:
    result = command("run", scenario, "--seed", "3", "--out", "out")
    assert result.code == 0, result
    assert result.out.startswith("criteria passed: short, seed 3\n  ✓ moves: path_length > 0.001  (path_length = 0.")
    names = {path.name for path in Path("out").iterdir()}
    assert {"recording.mcap", "metrics.json", "report.html", "scenario.yaml"} <= names
    assert json.loads(Path("out/metrics.json").read_text())["seed"] == 3


def test_failed_criteria_have_exit_code_1(command: Command, scenario: Path) -> None:
    result = command("run", scenario, "--set", "criteria.far=path_length > 100", "--no-video", "--quiet")
    assert result.code == 1
    assert result.out.startswith("criteria failed: short")
    assert "✗ far: path_length > 100  (path_length = 0." in result.out
    assert "✓ moves" in result.out
    assert result.err == ""
    assert Path("runs/short-001/report.html").is_file()


def test_json_is_one_object_at_the_end(command: Command, scenario: Path) -> None:
    result = command("run", scenario, "--duration", "0.3", "--json", "--no-video")
    assert result.code == 0
    assert result.err == ""
    assert len(result.out.splitlines()) == 1
    assert result.json["sim_time"] == pytest.approx(0.3)
    assert Path(result.json["files"]["recording"]).is_file()
    assert result.json["folder"] == "runs/short-001"


def test_run_with_failing_node_has_exit_code_1(command: Command, scenario: Path) -> None:
    Path("mine.py").write_text(NODE)
    file = Path("failing.yaml")
    file.write_text(scenario.read_text() + "nodes: {mine: {type: 'mine.py:Failing', robot: rover}}\n")
    result = command("run", file, "--out", "out")
    assert result.code == 1
    assert result.out.startswith("failed: failing, seed 0; criteria are not evaluated\n")
    assert "node /mine, topic /odom, at 0.02" in result.out
    assert "ZeroDivisionError: on purpose" in result.out
    assert "Traceback" not in result.out + result.err
    assert command("bag", "info", "out", "--json").json["complete"]


def test_run_of_its_saved_scenario_repeats_the_messages(command: Command, scenario: Path) -> None:
    assert command("run", scenario, "--seed", "5", "--out", "first", "--no-video").code == 0
    assert command("run", "first/scenario.yaml", "--out", "second", "--no-video").code == 0
    first, second = (command("topic", "echo", "odom", "-f", name, "--json").out for name in ("first", "second"))
    assert first == second


def test_report_is_written_again(command: Command, scenario: Path) -> None:
    command("run", scenario, "--out", "out", "--no-video")
    Path("out/report.html").unlink()
    result = command("report", "out")
    assert result.code == 0
    assert Path("out/report.html").stat().st_size > 1000
    assert command("report", "out", "--json").json["success"]


def test_check_describes_scenario_robot_and_world(command: Command, scenario: Path) -> None:
    result = command("check", "scenario", scenario)
    assert result.code == 0
    assert result.out.endswith("valid\n")
    found = command("check", "scenario", scenario, "--json").json
    assert found["ok"]
    assert found["check"]["topics"]["/odom"] == "nav_msgs/msg/Odometry"
    assert command("check", "robot", "rover", "--json").json["joints"]
    assert command("check", "world", "empty", "--json").json["ok"]


def test_list_names_robots_worlds_scenarios_and_nodes(command: Command) -> None:
    found = command("list", "--json").json
    assert "rover" in {robot["name"] for robot in found["robots"]}
    assert {"arena", "corridor"} <= {world["name"] for world in found["worlds"]}
    assert "rover-drive" in {scenario["name"] for scenario in found["scenarios"]}
    assert "rover-drive" in command("list", "scenarios").out
    assert "odometry" in command("list", "nodes").out
    assert "turntable" in command("list", "devices").out


@pytest.mark.slow
def test_recorded_inputs_are_repeated(command: Command, scenario: Path) -> None:
    with LiveRun("run", scenario, "--duration", "1.5", "--rate", "1", "--out", "first", "--no-video", "--json") as run:
        run.wait_for_time(0.2)
        assert command("topic", "pub", "hello", "String", "{data: hi}", "--once").code == 0
        result = run.wait()
    assert result.code == 0, result
    words = ("--duration", "1.5", "--replay-inputs", "first", "--out", "second", "--no-video")
    assert command("run", scenario, *words).code == 0
    first, second = (command("topic", "echo", "hello", "-f", name, "--json").out for name in ("first", "second"))
    assert first == second != ""


# -- the end comes early -----------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_ends_a_run_with_complete_files(command: Command, scenario: Path, number: int, code: int) -> None:
    with LiveRun("run", scenario, "--duration", "60", "--rate", "1", "--out", "out", "--no-video") as run:
        run.wait_for_time(0.2)
        run.send_signal(number)
        result = run.wait()
    assert result.code == code
    assert result.out.startswith("interrupted: short, seed 0; criteria are not evaluated\n")
    assert "Traceback" not in result.out + result.err
    assert "stopping" in result.err
    assert command("bag", "info", "out", "--json").json["complete"]
    assert json.loads(Path("out/metrics.json").read_text())["state"] == "interrupted"
    assert Path("out/report.html").is_file()
    assert live_runs() == []


@pytest.mark.slow
def test_stop_ends_a_paused_run(command: Command, scenario: Path) -> None:
    with LiveRun("run", scenario, "--duration", "60", "--paused", "--out", "out", "--json") as run:
        run.wait_for_time()
        before = command("step", "--json").json["time"]
        assert command("step", "5", "--json").json["time"] > before
        assert command("step", "--by", "0.25", "--json").json["state"] == "paused"
        assert command("stop").code == 0
        result = run.wait()
    assert result.code == 1
    assert result.json["state"] == "interrupted"
    assert 0.25 < result.json["sim_time"] < 1.0


@pytest.mark.slow
def test_reset_restarts_the_run_in_a_second_folder(command: Command, scenario: Path) -> None:
    with LiveRun("run", scenario, "--rate", "1", "--out", "out", "--no-video", "--duration", "2") as run:
        run.wait_for_time(0.2)
        assert command("service", "call", "/reset_simulation").code == 0
        result = run.wait()
    assert result.code == 0, result.err
    ends = [json.loads(Path(folder, "metrics.json").read_text())["state"] for folder in ("out", "out-2")]
    assert ends == ["interrupted", "done"]
    assert result.out.count("seed 0") == 2
    assert command("bag", "info", "out", "--json").json["complete"]


def test_killed_run_is_read_and_recovered(command: Command, scenario: Path) -> None:
    with LiveRun("run", scenario, "--duration", "60", "--rate", "4", "--out", "out") as run:
        run.wait_for_time(2.5)
        run.send_signal(signal.SIGKILL)
        assert run.wait().code == -signal.SIGKILL
    found = command("bag", "info", "out")
    assert found.code == 0
    assert "complete  no (`roboyard bag recover out/recording.mcap` writes a complete copy)" in found.out
    assert command("bag", "info", "out", "--json").json["duration"] > 1.0
    assert command("topic", "hz", "odom", "-f", "out", "--json").json["rate"] == pytest.approx(50.0)
    repaired = command("bag", "recover", "out", "--json").json
    assert repaired["messages"] == command("bag", "info", "out", "--json").json["messages"]
    assert command("bag", "info", repaired["file"], "--json").json["complete"]
    assert command("report", "out").out.startswith("killed: short")
    assert command("list", "runs").out == "none\n"


@pytest.mark.slow
def test_full_disk_ends_a_run_with_one_error(command: Command, scenario: Path) -> None:
    with full_disk(60_000):
        result = command("run", scenario, "--duration", "5", "--out", "out", "--no-video")
    assert result.code == 1
    assert "cannot be written" in result.out + result.err
    assert "Traceback" not in result.out + result.err
    assert command("bag", "info", "out", "--json").json["messages"] > 0
    command("run", scenario, "--out", "other", "--no-video")
    with full_disk(999):
        result = command("bag", "recover", "other")
    assert result.code == 1
    assert "cannot be written" in result.error


def test_full_or_closed_output_is_one_error(recording: Path) -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run([str(PROGRAM), "list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert result.stderr.startswith("error: the disk is full")
    with LiveRun("topic", "echo", "count", "-f", recording, "--full-length") as run:
        assert run.process.stdout is not None
        run.process.stdout.close()
        result = run.wait()
    assert (result.code, result.err) == (141, "")


# -- replay and batch --------------------------------------------------------------------------------------------------
def test_replay_runs_a_custom_node(command: Command, scenario: Path) -> None:
    command("run", scenario, "--out", "out", "--no-video")
    Path("mine.py").write_text(NODE)
    words = ("--rate", "0", "--node", "mine.py:Double", "--param", "double.gain=3", "--out", "new.mcap")
    result = command("replay", "out", *words, "--json")
    assert result.code == 0, result
    doubled = [
        json.loads(line) for line in command("topic", "echo", "doubled", "-f", "new.mcap", "--json").out.splitlines()
    ]
    odometry = [json.loads(line) for line in command("topic", "echo", "odom", "-f", "out", "--json").out.splitlines()]
    assert [item["message"]["data"] for item in doubled] == [
        3.0 * item["message"]["pose"]["pose"]["position"]["x"] for item in odometry
    ]
    assert [item["time"] for item in doubled] == [item["time"] for item in odometry]


def test_odometry_on_a_replay_equals_the_recorded_one(command: Command, scenario: Path) -> None:
    """Byte for byte, from the recorded joints, at any pace and beside the recorded one under another name."""

    def odometry(file: Path | str, publisher: str = "/odometry", topic: str = "/odom") -> list[tuple[int, bytes]]:
        with open_recording(file) as recording:
            return [(t, bytes(data)) for t, c, data in recording.raw_messages([topic]) if c.publisher == publisher]

    command("run", scenario, "--out", "out", "--no-video")
    expected = odometry("out")
    assert len(expected) == 30
    node = ("--node", "odometry", "--robot", "rover")
    for number, factor in enumerate(("0", "5")):
        assert command("replay", "out", "--rate", factor, *node, "--out", f"{number}.mcap").code == 0
        assert odometry(f"{number}.mcap") == expected
    words = ("--node", "again=odometry", "--robot", "rover", "--remap", "odom:=/recorded/odom", "--out", "two.mcap")
    assert command("replay", "out", "--rate", "0", *words).code == 0
    assert odometry("two.mcap", topic="/recorded/odom") == expected
    assert odometry("two.mcap", "/again") == expected
    result = command("replay", "out", "--rate", "0", "--node", "odometry", "--robot", "rover", "-p",
                   "odometry.track=1.0", "--out", "wide.mcap")  # fmt: skip
    assert result.code == 0
    assert len(odometry("wide.mcap")) == len(expected), "a given parameter goes before the robot's"


def test_replay_loop_continues_until_sigterm(recording: Path) -> None:
    with LiveRun("replay", recording, "--rate", "0", "--loop", "--duration", "0.5", "--json") as run:
        run.wait_for_time(2.0)  # three passes of half a second, and more
        run.send_signal(signal.SIGTERM)
        result = run.wait()
    assert result.code == 143
    assert result.json["passes"] > 2
    assert result.json["duration"] > 0.5 * result.json["passes"]


def test_replay_is_a_live_run(command: Command, recording: Path) -> None:
    with LiveRun("replay", recording, "--paused", "--start-offset", "0.5", "--duration", "1") as run:
        run.wait_for_time()
        assert command("list", "runs", "--json").json["runs"][0]["name"] == "replay-yard"
        assert command("topic", "info", "count", "--json").json["topic"]["count"] == 1, "that of the first instant"
        assert command("step", "--by", "0.2", "--json").json["time"] == pytest.approx(0.7)
        found = command("topic", "info", "count", "--json").json["topic"]
        assert (found["count"], found["publishers"]) == (3, ["/robot"])
        assert command("topic", "echo", "map", "--once").out.startswith("{data: the map}")
        command("rate", "0")
        command("resume")
        result = run.wait()
    assert result.code == 0
    assert "1.000 s" in result.out


@pytest.mark.slow
def test_batch_resumes_in_its_folder(command: Command, scenario: Path, thread_workers: None) -> None:
    words = ("batch", scenario, "--workers", "1", "--out", "out", "--set", "duration=0.2", "--set", "criteria={}")
    result = command(*words, "--runs", "2")
    assert result.code == 0, result
    assert result.out.startswith("short: 2 of 2 (100.0%, 95 % interval 34.2% to 100.0%)")
    found = command(*words, "--runs", "3", "--json")
    assert found.json["runs"] == 3
    assert found.json["folder"] == "out"
    assert command(*words, "--runs", "3", "--smoke").code == 2


@pytest.mark.slow
def test_batch_with_failures_has_exit_code_1(command: Command, scenario: Path, thread_workers: None) -> None:
    words = ("--workers", "1", "--runs", "2", "--set", "duration=0.2", "--set", "criteria={far: path_length > 9}")
    result = command("batch", scenario, *words)
    assert result.code == 1
    assert result.out.startswith("short: 0 of 2 (0.0%")
    assert "not held: far (path_length > 9)" in result.out
    assert Path("runs/short-batch-001/seed-000001/report.html").is_file()


def test_batch_varies_compares_and_exports(command: Command, scenario: Path, thread_workers: None) -> None:
    words = ("batch", scenario, "--workers", "1", "--set", "criteria={}", "--keep", "none")
    varied = ("--vary", "duration=range:0.1,0.3,2", "--design", "grid", "--runs", "1")
    result = command(*words, *varied, "--out", "first", "--export", "t.csv", "--junit", "j.xml", "--json")
    assert (result.code, result.json["runs"], result.json["report"]) == (0, 2, "first/report.html")
    assert [line.split(",")[1] for line in Path("t.csv").read_text().splitlines()] == ["vary.duration", "0.1", "0.3"]
    assert 'name="seed 0, duration=0.3"' in Path("j.xml").read_text()
    comparison = command(*words, *varied, "--baseline", "first")
    assert comparison.code == 0
    assert "2 succeeded before, 2 now (McNemar's p = 1)" in comparison.out
    assert "regressions: none" in comparison.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--vary", "duration=gauss:0,1"], "no distribution 'gauss'"),
        (["--vary", "nonsense=1,2"], "nonsense"),
        (["--design", "lhs"], "--design"),
        (["--baseline", "nowhere"], "--baseline: there is no batch at nowhere"),
        (["--cluster", "127.0.0.1:1"], "no response from 127.0.0.1:1"),
        (["--cluster", "somewhere"], "HOST:PORT"),
        (["--export", "t.txt"], ".csv or .parquet"),
        (["--junit", "nowhere/j.xml"], "no folder nowhere"),
    ],
)
def test_bad_batch_options_are_refused(command: Command, scenario: Path, words: list[str], expected: str) -> None:
    result = command("batch", scenario, "--runs", "2", *words)
    assert (result.code, expected in result.error) == (2, True), result
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["all", "--vary", "duration=1,2"], "--vary requires a single scenario"),
        (["rover-drive", "crowd", "--set", "duration=1"], "--set requires a single scenario"),
        (["rover-drive", "rover-drvie"], "did you mean 'rover-drive'?"),
        (["rover-drive", "all"], "the name all stands for every scenario"),
        (["crowd", "rover-drive", "crowd"], "'crowd' occurs twice"),
    ],
)
def test_bad_scenario_lists_are_refused(command: Command, words: list[str], expected: str) -> None:
    result = command("batch", *words, "--runs", "1")
    assert (result.code, expected in result.error) == (2, True), result
    assert not Path("runs").exists()


@pytest.mark.slow
def test_batch_runs_several_scenarios(command: Command, thread_workers: None) -> None:
    result = command(
        "batch",
        "rover-drive",
        "corridor-no-obstacles",
        "-n",
        "1",
        "--smoke",
        "--no-video",
        "--seed",
        "7",
        "--json",
        "-q",
    )
    assert result.code == 0, result
    assert list(result.json["scenarios"]) == ["rover-drive", "corridor-no-obstacles"]
    assert Path(result.json["report"]).is_file()
    for name in result.json["scenarios"]:
        lines = Path(result.json["folder"], name, "results.jsonl").read_text().splitlines()
        assert [json.loads(line)["seed"] for line in lines] == [7]


@pytest.mark.slow
def test_batch_stopped_while_drawing_a_video_keeps_the_run(command: Command, scenario: Path) -> None:
    words = ("batch", scenario, "--workers", "1", "--runs", "2", "--out", "out")
    words += ("--set", "duration=6", "--set", "criteria={far: path_length > 900}")
    with LiveRun(*words) as run:
        poll(lambda: Path("out/seed-000000/video.mp4").exists() or run.process.poll() is not None, timeout=300.0)
        assert run.process.poll() is None
        run.send_signal(signal.SIGINT)
        result = run.wait()
    assert result.code == 130
    assert "stopped after 1 of 2 runs; the same command with --out out continues" in result.err
    (line,) = Path("out/results.jsonl").read_text().splitlines()
    assert (json.loads(line)["seed"], json.loads(line)["state"]) == (0, "done")
    assert Path("out/seed-000000/report.html").is_file()
    assert "0 of 1 succeeded" in Path("out/report.html").read_text()


def test_help_imports_nothing_heavy() -> None:
    words = [sys.executable, "-X", "importtime", "-c", "from roboyard.cli.main import run; run(['topic', '--help'])"]
    result = subprocess.run(words, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in result.stderr.splitlines()}
    assert "typer" in imported
    assert not imported & {"numpy", "rich", "yaml", "mujoco", "numba", "rosbags", "asyncio"}


def test_module_and_command_are_equal() -> None:
    words = ([str(PROGRAM)], [sys.executable, "-m", "roboyard"])
    first, second = (subprocess.run([*one, "--version"], capture_output=True, text=True, check=True) for one in words)
    assert first.stdout == second.stdout != ""
