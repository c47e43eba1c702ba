"""`roboyard bench descriptions` counts and compares the files of a small folder."""

import json
from pathlib import Path

from tests.harness.descriptions import INERTIAL, sdf, urdf

from roboyard.cli.benchmarks import BenchmarkResult, run_benchmark

FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "descriptions.py"
SHAPE = '<collision><geometry><box size="0.4 0.4 0.2"/></geometry></collision>'
WHEEL = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
JOINT = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>'
VALID_ROBOT = urdf(f'<link name="a">{INERTIAL}{SHAPE}</link><link name="b">{INERTIAL}{WHEEL}</link>{JOINT}')
INVALID_ROBOT = urdf(f'<link name="a">{INERTIAL}</link>').replace('izz="0.1"', 'izz="0.9"')


def run_descriptions_benchmark(folder: Path) -> tuple[dict[str, float | None], BenchmarkResult]:
    result = run_benchmark(FILE, nightly=False, folder=folder)
    assert not result.skipped
    return {figure.name: figure.value for figure in result.figures}, result


def test_benchmark_counts_files_of_a_folder(tmp_path: Path) -> None:
    for name, text in {
        "good.urdf": VALID_ROBOT,
        "wrong.urdf": INVALID_ROBOT,
        "parts.xacro": '<robot xmlns:xacro="x"><xacro:macro name="m"/></robot>',
        "w.sdf": sdf('<world name="w"><model name="m"><static>1</static><link name="l"/></model></world>'),
        "package.xml": "<package/>",
    }.items():
        (tmp_path / name).write_text(text)
    reference = {"dev/good.urdf": {"rc": 0, "urdf_links": 2, "urdf_mass": 2.0, "links": 2, "joints": 1, "sensors": 0}}
    (tmp_path / "urdf_reference.json").write_text(json.dumps(reference))
    figures, result = run_descriptions_benchmark(tmp_path)
    assert figures["descriptions read"] == 2
    assert figures["refused for a reason that a second look finds"] == 1
    assert figures["crashes"] == figures["refused for one that it does not find"] == 0
    assert figures["of these, physics takes"] == 100
    assert figures["URDFs compared with libsdformat's reading"] == 1
    assert figures["largest difference in total mass"] == 0
    assert figures["free robots whose pose balances"] == 1
    assert figures["of these, at rest after 1 s"] == 100
    assert figures["URDFs read with the mass they state"] == 1
    (peer_figure,) = [figure for figure in result.figures if figure.peer]
    assert peer_figure.peer_value == 0, "MuJoCo itself welds the base to the world and omits its mass"
    assert all(figure.is_target_met is not False for figure in result.figures)
    assert any(
        line.startswith("refused: wrong.urdf: link 'a' has a physically impossible inertia") for line in result.details
    )


def test_benchmark_reports_differences_from_the_reference(tmp_path: Path) -> None:
    """Each difference from the reference is a missed figure and a line of details."""
    (tmp_path / "good.urdf").write_text(VALID_ROBOT)
    reference = {"good.urdf": {"rc": 0, "urdf_links": 3, "urdf_mass": 2.5, "links": 2, "joints": 2, "sensors": 1}}
    (tmp_path / "urdf_reference.json").write_text(json.dumps(reference))
    figures, result = run_descriptions_benchmark(tmp_path)
    assert figures["largest difference in total mass"] == 20.0
    assert [figures[f"differing in {quantity}"] for quantity in ("links as written", "links", "joints", "sensors")] == [
        1,
        0,
        1,
        1,
    ]
    assert sum(figure.is_target_met is False for figure in result.figures) == 4
    assert sum(line.startswith("reference: good.urdf") for line in result.details) == 4
