"""`roboyard bench descriptions` on a folder of a few files: what is counted, compared and said."""

import json
from pathlib import Path

from tests.harness.descriptions import INERTIAL, sdf, urdf

from roboyard.cli.figures import Measured, measure

FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "descriptions.py"
SHAPE = '<collision><geometry><box size="0.4 0.4 0.2"/></geometry></collision>'
WHEEL = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
JOINT = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>'
GOOD = urdf(f'<link name="a">{INERTIAL}{SHAPE}</link><link name="b">{INERTIAL}{WHEEL}</link>{JOINT}')
WRONG = urdf(f'<link name="a">{INERTIAL}</link>').replace('izz="0.1"', 'izz="0.9"')


def measured(folder: Path) -> tuple[dict[str, float | None], Measured]:
    found = measure(FILE, nightly=False, folder=folder)
    assert not found.skipped
    return {figure.name: figure.value for figure in found.figures}, found


def test_benchmark_counts_files_of_a_folder(tmp_path: Path) -> None:
    for name, text in {
        "good.urdf": GOOD,
        "wrong.urdf": WRONG,
        "parts.xacro": '<robot xmlns:xacro="x"><xacro:macro name="m"/></robot>',
        "w.sdf": sdf('<world name="w"><model name="m"><static>1</static><link name="l"/></model></world>'),
        "package.xml": "<package/>",
    }.items():
        (tmp_path / name).write_text(text)
    reference = {"dev/good.urdf": {"rc": 0, "urdf_links": 2, "urdf_mass": 2.0, "links": 2, "joints": 1, "sensors": 0}}
    (tmp_path / "urdf_reference.json").write_text(json.dumps(reference))
    figures, found = measured(tmp_path)
    assert figures["descriptions read"] == 2
    assert figures["refused for a reason that a second look finds"] == 1
    assert figures["crashes"] == figures["refused for one that it does not find"] == 0
    assert figures["of these, physics takes"] == 100
    assert figures["URDFs compared with libsdformat's reading"] == 1
    assert figures["largest difference in total mass"] == 0
    assert figures["free robots whose pose balances"] == 1
    assert figures["of these, at rest after 1 s"] == 100
    assert figures["URDFs read with the mass they state"] == 1
    (plain,) = [figure for figure in found.figures if figure.peer]
    assert plain.peer_value == 0, "plain MuJoCo welds the base to the world and loses it"
    assert all(figure.held is not False for figure in found.figures)
    assert any(line.startswith("refused: wrong.urdf: link 'a' has an inertia") for line in found.details)


def test_benchmark_finds_differences(tmp_path: Path) -> None:
    """A reference that says otherwise is a missed figure and a line, not a success."""
    (tmp_path / "good.urdf").write_text(GOOD)
    wrong = {"good.urdf": {"rc": 0, "urdf_links": 3, "urdf_mass": 2.5, "links": 2, "joints": 2, "sensors": 1}}
    (tmp_path / "urdf_reference.json").write_text(json.dumps(wrong))
    figures, found = measured(tmp_path)
    assert figures["largest difference in total mass"] == 20.0
    assert [figures[f"differing in {what}"] for what in ("links as written", "links", "joints", "sensors")] == [
        1,
        0,
        1,
        1,
    ]
    assert sum(figure.held is False for figure in found.figures) == 4
    assert sum(line.startswith("reference: good.urdf") for line in found.details) == 4
