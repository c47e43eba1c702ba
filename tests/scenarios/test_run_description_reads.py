"""How often a run reads its robot's description: once, whatever asks for the model, and anew in the next run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from roboyard.bringup.robot_loader import load_robot
from roboyard.description import load, reader_context, xml
from roboyard.scenarios import Run, load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions

BODY = """
<link name="base"><inertial><mass value="1.0"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>
</inertial><collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision></link>
"""
URDF = f'<robot name="crate">{BODY}</robot>'
SDF = """
<sdf version="1.9"><model name="crate"><link name="base"><inertial><mass>1.0</mass></inertial>
<collision name="shape"><geometry><box><size>0.2 0.2 0.2</size></box></geometry></collision></link></model></sdf>
"""
MJCF = """
<mujoco model="crate"><worldbody><body name="base"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1.0"/></body>
</worldbody></mujoco>
"""
XACRO = '<robot name="crate" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:include filename="body.xacro"/></robot>'
PART = f'<robot xmlns:xacro="http://www.ros.org/wiki/xacro">{BODY}</robot>'


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts by file name how often the XML parser was called."""
    counts: Counter[str] = Counter()
    parse = xml.parse_xml

    def count(text: str | bytes, source: str = "<text>") -> object:
        counts[Path(source).name] += 1
        return parse(text, source)

    for module in (load, reader_context):
        monkeypatch.setattr(module, "parse_xml", count)
    return counts


@pytest.fixture
def scenario(tmp_path: Path) -> Callable[..., Path]:
    """Writes a scenario with robots of one file that look for a free place, which asks for the model once more."""

    def write(robot: Path, names: tuple[str, ...] = ("a",)) -> Path:
        robots = "".join(f"  {name}: {{model: {robot}, pose: free}}\n" for name in names)
        path = tmp_path / "scenario.yaml"
        path.write_text(f"world: empty\nrobots:\n{robots}duration: 0.01 s\ncriteria: {{}}\n", encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize(
    ("name", "text"), [("crate.urdf", URDF), ("crate.sdf", SDF), ("crate.xml", MJCF), ("crate.urdf.xacro", XACRO)]
)
def test_run_parses_bare_description_once(
    name: str, text: str, tmp_path: Path, scenario: Callable[..., Path], parses: Counter[str]
) -> None:
    (tmp_path / "body.xacro").write_text(PART, encoding="utf-8")
    (tmp_path / name).write_text(text, encoding="utf-8")
    run_scenario(load_scenario(str(scenario(tmp_path / name))), RunOptions(write_files=False))
    assert parses[name] == 1
    assert parses["body.xacro"] == (1 if name.endswith(".xacro") else 0)


def test_robots_of_one_file_parse_it_once(tmp_path: Path, scenario: Callable[..., Path], parses: Counter[str]) -> None:
    robot = tmp_path / "crate.urdf"
    robot.write_text(URDF, encoding="utf-8")
    run_scenario(load_scenario(str(scenario(robot, ("a", "b", "c")))), RunOptions(write_files=False))
    assert parses["crate.urdf"] == 1


def test_run_of_packaged_robot_parses_its_description_once(scenario: Callable[..., Path], parses: Counter[str]) -> None:
    run_scenario(load_scenario(str(scenario(Path("rover")))), RunOptions(write_files=False))
    assert parses["rover.urdf.xacro"] == 1


def test_second_run_sees_changed_description(tmp_path: Path) -> None:
    robot = tmp_path / "crate.urdf"
    masses = []
    for mass in ("1.0", "2.5"):
        robot.write_text(URDF.replace('mass value="1.0"', f'mass value="{mass}"'), encoding="utf-8")
        with Run("empty", record=False) as run:
            masses.append(run.add_robot(robot).model.mass)
    assert masses == [1.0, 2.5]


def test_package_keeps_model_that_its_nodes_were_derived_from(tmp_path: Path) -> None:
    robot = tmp_path / "crate.urdf"
    robot.write_text(URDF, encoding="utf-8")
    package = load_robot(str(robot))
    robot.write_text(URDF.replace("base", "another_base"), encoding="utf-8")
    assert package.load_model().roots[0].name == package.config.base_frame == "base"
    assert load_robot(str(robot)).load_model().roots[0].name == "another_base"
