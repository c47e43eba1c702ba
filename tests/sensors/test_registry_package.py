"""A sensor of another package, as the page about it says: one file and an entry point, and nothing of ours changes.

The page's own files are installed into a folder, as an installer would, and its commands run there in fresh processes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from tests.harness.live_bus import CliResult
from tests.project.test_docs import ROOT, Block, blocks_of, commands_of

from roboyard.record import open_recording

PAGE = list(blocks_of((ROOT / "docs" / "howto" / "write-a-sensor.md").read_text("utf-8")))


def install(project: Path, site: Path) -> None:
    """What an installer leaves of a package: its module, and its metadata with the entry points."""
    project_table = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]
    info = site / f"{project_table['name']}-{project_table['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project_table['name']}\nVersion: {project_table['version']}\n"
    )
    groups = (
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project_table["entry-points"].items()
    )
    (info / "entry_points.txt").write_text("\n".join(groups))
    shutil.copy(project / f"{project_table['name']}.py", site)


@pytest.fixture(scope="module")
def page_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's folder: its files written, its package installed beside them."""
    folder = tmp_path_factory.mktemp("page")
    for block in PAGE:
        if block.title:
            (folder / block.title).parent.mkdir(exist_ok=True)
            (folder / block.title).write_text(block.body, "utf-8")
    install(folder / "thermometer", folder / "site")
    return folder


def roboyard(folder: Path, *arguments: str, site: str = "site") -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("roboyard")
    environment = {**os.environ, "PYTHONPATH": str(folder / site)}
    return subprocess.run(
        [str(program), *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


SEVERAL = """
import json, sys
from tests.harness.live_bus import run_cli
print(json.dumps([vars(run_cli(*words)) for words in json.loads(sys.argv[1])]))
"""


def run_in_one_process(folder: Path, *commands: tuple[str, ...]) -> list[CliResult]:
    """Run commands one after the other in one fresh process, whose start costs more than they do."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder / "site"), str(ROOT)))}
    process = subprocess.run(
        [sys.executable, "-c", SEVERAL, json.dumps(commands)],
        cwd=folder, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [CliResult(**result) for result in json.loads(process.stdout)]


@pytest.mark.slow
def test_commands_of_the_sensor_page_run(page_folder: Path) -> None:
    """And the recording has what it measured: at its rate, late by its latency, silent while it fails."""
    commands = [words for block in PAGE for words in commands_of(Block(block.kind, block.body, 0, None, ""))]
    assert [words[0] for words in commands] == ["check", "check", "run", "topic", "topic"]
    for words in commands:
        result = roboyard(page_folder, *words)
        assert result.returncode == 0, result.stderr
        assert "kept as written" not in result.stderr
    with open_recording(page_folder / "runs" / "descent") as recording:
        found = [
            (one.time_ns * 1e-9, one.message.header.stamp, one.message.temperature)
            for one in recording.messages(["/temperature"])
        ]
    stamps = np.array([stamp.sec + stamp.nanosec * 1e-9 for _, stamp, _ in found])
    times = np.array([time for time, _, _ in found])
    np.testing.assert_allclose(times - stamps, 0.05, atol=1e-9)
    np.testing.assert_allclose(stamps, np.rint(stamps * 20) / 20, atol=1e-9)
    assert not np.any((stamps > 1.0 + 1e-6) & (stamps < 1.5 - 1e-6))
    assert len(stamps) == pytest.approx(20 * 2.5, abs=3)
    warm = 15.0 - 0.0065 * (1000.0 - 0.5 * 9.8 * stamps**2)  # it falls some 40 m and warms by 0.3 K; the glass lags
    measured = np.array([value for _, _, value in found])
    assert abs(float(np.mean(measured - warm))) < 0.15
    assert np.std(measured - warm) == pytest.approx(0.2, rel=0.35)


def test_package_sensor_is_listed_and_works_from_urdf(page_folder: Path) -> None:
    (page_folder / "kite.urdf").write_text(
        '<robot name="kite"><link name="spar"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" '
        'ixz="0" iyz="0"/></inertial></link><gazebo reference="spar"><sensor name="tip" type="thermometer">'
        "<update_rate>10</update_rate><thermometer><lag>0</lag></thermometer></sensor></gazebo></robot>"
    )
    result = roboyard(page_folder, "check", "robot", "kite.urdf", "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout.splitlines()[-1])
    assert "thermometer" in json.dumps(report)
    assert "has the unknown type" not in result.stdout + result.stderr
    assert "thermometer" in roboyard(page_folder, "list", "sensors").stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [("import nothing_of_this_name", "cannot be loaded"), ("class Thermometer:\n    pass\n", "is no sensor")],
)
def test_broken_sensor_package_is_named_in_one_line(page_folder: Path, tmp_path: Path, text: str, message: str) -> None:
    install(page_folder / "thermometer", tmp_path / "site")
    (tmp_path / "site" / "thermometer.py").write_text(text)
    shutil.copy(page_folder / "balloon.sdf", tmp_path)
    commands = (("check", "sensor", "thermometer"), ("check", "robot", "balloon.sdf"))
    for result in run_in_one_process(tmp_path, *commands):
        assert result.code == 2
        assert message in result.err
        assert "thermometer = thermometer:Thermometer" in result.err
        assert "Traceback" not in result.err


@pytest.mark.slow
def test_invalid_value_of_a_package_sensor_is_refused(page_folder: Path) -> None:
    text = (page_folder / "balloon.sdf").read_text().replace("<lag>2</lag>", "<lag>soon</lag>")
    (page_folder / "wrong.sdf").write_text(text)
    result = roboyard(page_folder, "check", "robot", "wrong.sdf")
    assert result.returncode == 2
    assert "thermometer/lag" in result.stderr
