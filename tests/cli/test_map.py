"""``roboyard map`` from the command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command
from tests.mapping.room_drive import drive

from roboyard.mapping import load_map, read_g2o, read_relations, read_tum, relation_errors
from roboyard.mapping.trajectory import format_seconds

START = 10**18


def write_log(path: Path, n: int = 60) -> None:
    """A CARMEN log with angles of the small world's drive."""
    scans, _ = drive(n)
    lines = []
    for scan in scans:
        assert scan.odometry is not None
        laser, robot = scan.odometry @ scan.T_base_laser, scan.odometry
        span = scan.angle_increment * (len(scan.ranges) - 1)
        poses = " ".join(f"{v:.6f}" for p in (laser, robot) for v in (p.x, p.y, p.theta))
        ranges = " ".join(f"{value:.3f}" for value in scan.ranges)
        lines.append(
            f"ROBOTLASER1 0 {scan.angle_min:.9f} {span:.9f} {scan.angle_increment:.12f} 12.0 0.01 0 "
            f"{len(scan.ranges)} {ranges} 0 {poses} 0 0 0 0 0 {format_seconds(START + scan.time_ns)} host 0"
        )
    path.write_text("\n".join(lines) + "\n")


def write_true_relations(path: Path, n: int = 60) -> None:
    _, truth = drive(n)
    lines = []
    for i in range(0, n - 10, 5):
        motion = truth.pose(i).inverse() @ truth.pose(i + 10)
        times = " ".join(format_seconds(START + int(truth.times_ns[k])) for k in (i, i + 10))
        lines.append(f"{times} {motion.x} {motion.y} 0 0 0 {motion.theta}")
    path.write_text("\n".join(lines))


@pytest.mark.slow
def test_log_becomes_a_folder_in_standard_formats(command: Command) -> None:
    write_log(Path("hall.log"))
    write_true_relations(Path("hall.relations"))
    options = ("--algorithm", "rbpf", "--relations", "hall.relations", "--out", "made", "--resolution", "0.1")
    result = command("map", "hall.log", *options, "--json")
    assert result.code == 0, result.err
    found = result.json
    assert (found["scans"], found["interrupted"], found["relations"]) == (60, False, 10)
    assert found["trans_m"] < 0.1
    assert {Path(path).name for path in found["files"].values()} == {
        "map.yaml", "trajectory.tum", "graph.g2o", "metrics.json", "report.html",
    }  # fmt: skip
    assert json.loads(Path("made/metrics.json").read_text()) == {k: v for k, v in found.items() if k != "files"}
    grid, track = load_map("made/map.yaml"), read_tum("made/trajectory.tum")
    assert grid.geometry.resolution == 0.1
    assert (grid.cells == 100).sum() > 50
    repeated = relation_errors(track, read_relations("hall.relations"))
    assert repeated.translational.mean == pytest.approx(found["trans_m"], abs=1e-9)
    assert np.array_equal(read_g2o("made/graph.g2o").times_ns, track.times_ns)
    page = Path("made/report.html").read_text()
    assert page.count("<svg") >= 4
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "src=" not in page


def send_ctrl_c() -> None:
    """Also where the tests themselves run in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.slow
def test_ctrl_c_keeps_the_map_so_far(tmp_path: Path) -> None:
    write_log(Path("hall.log"), 400)
    code = "from roboyard.cli.main import main; main()"
    options = ["map", "hall.log", "--algorithm", "rbpf", "--out", "made"]
    arguments = [sys.executable, "-c", code, *options]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, preexec_fn=send_ctrl_c) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "%" in line:
                process.send_signal(signal.SIGINT)
                break
        process.stderr.read()
    assert process.returncode == 130
    found = json.loads(Path("made/metrics.json").read_text())
    assert found["interrupted"] is True
    assert 10 < found["scans"] < 400
    assert len(read_tum("made/trajectory.tum")) == found["scans"]
    assert load_map("made/map.yaml").cells.size
    assert "Interrupted" in Path("made/report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.log"], "does not exist"),
        (["empty.log"], "is empty"),
        (["hall.log", "--relations", "none"], "cannot be read"),
        (["hall.log", "--relations", "other.relations"], "none of 1 relations"),
        (["hall.log", "--scan-topics", "/lidar"], "unknown topic '/lidar'"),
        (["hall.log", "--odometry", "/scan"], "/scan carries"),
        (["hall.log", "--algorithm", "magic"], "magic"),
        (["hall.log", "--resolution", "0"], "resolution"),
        (["hall.log", "--out", "full"], "not empty"),
        (["words.txt"], "unknown line keyword"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(command: Command, arguments: list[str], message: str) -> None:
    write_log(Path("hall.log"), 3)
    Path("empty.log").touch()
    Path("words.txt").write_text("so many words\n")
    Path("other.relations").write_text("1 2 0 0 0 0 0 0\n")
    Path("full").mkdir()
    Path("full/thing").touch()
    before = sorted(Path().rglob("*"))
    result = command("map", "--algorithm", "rbpf", *arguments)
    assert result.code == 2
    assert message in result.error
    assert sorted(Path().rglob("*")) == before


@pytest.mark.slow
def test_known_map_is_extended_or_only_localized_in(command: Command) -> None:
    write_log(Path("hall.log"))
    write_true_relations(Path("hall.relations"))
    first = command("map", "hall.log", "--relations", "hall.relations", "--out", "first", "--json").json
    place_file = first["files"]["pose_graph"]
    longer = command("map", "hall.log", "--resume", place_file, "--out", "longer", "--json").json
    assert longer["nodes"] > first["nodes"]
    found = command(
        "map", "hall.log", "--localize", place_file, "--relations", "hall.relations", "--out", "found", "--json"
    )
    assert found.json["nodes"] == first["nodes"]
    for figures in (first, found.json):
        assert figures["trans_m"] < 0.05
    assert "pose_graph" not in found.json["files"]


def test_log_of_one_scan_or_of_another_place_is_handled(command: Command) -> None:
    write_log(Path("hall.log"))
    Path("one.log").write_text(Path("hall.log").read_text().partition("\n")[0] + "\n")
    one = command("map", "one.log", "--out", "one", "--json").json
    assert (one["scans"], one["real_time_factor"] or 0.0) == (1, 0.0)
    assert load_map("one/map.yaml").cells.size
    blind = "FLASER 4 0 0 0 0 0 0 0 0 0 0 {t} host 0\n"
    Path("blind.log").write_text("".join(blind.format(t=1000 + k) for k in range(5)))
    nowhere = command("map", "blind.log", "--localize", "one/pose_graph.npz", "--out", "nowhere", "--json")
    assert nowhere.code == 0, nowhere.err
    assert "5 scans before the place was found" in nowhere.json["warnings"]
    for name in ("graph", "rbpf"):
        result = command("map", "blind.log", "--algorithm", name, "--out", f"dark-{name}", "--json")
        assert result.code == 0, result.err
        assert Path(f"dark-{name}/report.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--resume", "none.npz"], "none.npz"),
        (["--localize", "hall.log"], "hall.log"),
        (["--resume", "hall.log", "--localize", "hall.log"], "exclude each other"),
        (["--algorithm", "rbpf", "--resume", "hall.log"], "rbpf has no pose graph maps"),
    ],
)
def test_bad_places_are_refused(command: Command, arguments: list[str], message: str) -> None:
    write_log(Path("hall.log"), 3)
    result = command("map", "hall.log", *arguments)
    assert result.code == 2
    assert message in result.error
