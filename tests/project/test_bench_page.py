"""The page of benchmarks is made from what was measured: nothing else is in it, nothing of it is left out."""

import ast
import json
import re
import statistics
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.cli.benchmarks import BenchmarkFigure, find_benchmarks

ROOT = Path(__file__).resolve().parents[2]
NAMES = list(find_benchmarks([]))
MACHINE = {"processor": "P", "cores": 2, "memory": "8 GiB", "system": "Debian", "versions": {"numpy": "2"}}


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """tools/bench_page.py, which is in no package."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import bench_page
    finally:
        sys.path.pop(0)
    return bench_page


def figure(value: float | None = 1.0, **more: Any) -> dict[str, Any]:
    return BenchmarkFigure(**{"name": "it", "value": value, "unit": "ms", **more}).to_dict()


def result(*runs: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    made = {"command": "roboyard bench bus", "commit": "abc", "machine": MACHINE, "busy": 0.1, "seconds": 3}
    return {**made, "skipped": [], "details": [], "runs": list(runs), **more}


def write(store: Path, name: str, found: dict[str, Any]) -> None:
    (store / f"{name}.json").write_text(json.dumps(found), "utf-8")


def sections(page: str) -> dict[str, str]:
    parts = re.split(r"^## (.+)\n", page, flags=re.MULTILINE)
    return {"": parts[0], **{name: part.strip() for name, part in zip(parts[1::2], parts[2::2], strict=True)}}


def test_page_equals_the_generated_one(tool: ModuleType) -> None:
    made = tool.page(ROOT / "docs" / "benchmarks", NAMES, ROOT / "benchmarks")
    assert (ROOT / "docs" / "benchmarks.md").read_text("utf-8") == made, "`python tools/bench.py --page` makes it"


@pytest.mark.parametrize("name", NAMES)
def test_each_benchmark_has_description_and_command(name: str) -> None:
    tree = ast.parse((ROOT / "benchmarks" / f"{name.replace('-', '_')}.py").read_text("utf-8"))
    made = [node for node in tree.body if isinstance(node, ast.Assign)]
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    names |= {to.id for node in made for to in node.targets if isinstance(to, ast.Name)}
    assert ast.get_docstring(tree)
    assert names & {"run", "PARTS"}


def test_new_measurement_changes_only_its_section(tool: ModuleType, tmp_path: Path) -> None:
    for name in ("bus", "ik"):
        write(tmp_path, name, result([figure(2.0)]))
    before = sections(tool.page(tmp_path, NAMES, ROOT / "benchmarks"))
    write(tmp_path, "ik", result([figure(7.0)]))
    after = sections(tool.page(tmp_path, NAMES, ROOT / "benchmarks"))
    assert {name for name in before if before[name] != after[name]} == {"ik"}
    (tmp_path / "ik.json").unlink()
    without = sections(tool.page(tmp_path, NAMES, ROOT / "benchmarks"))
    assert "ik" not in without
    assert re.search(r"Not measured yet:.*\bik\b", "".join(without.values()))
    assert without["bus"] == before["bus"]


@given(st.lists(st.tuples(st.floats(0.1, 1e6), st.floats(0.1, 1e6)), min_size=1, max_size=5))
def test_medians_have_their_range(tool: ModuleType, pairs: list[tuple[float, float]]) -> None:
    runs = [
        [figure(ours, name=f"it, at {ours}", peer="P", peer_value=theirs, target="<= 100")] for ours, theirs in pairs
    ]
    (one,) = tool.summed([*runs, []])  # a run that lost a figure is left out
    assert one["name"] == f"it, at {pairs[0][0]}"
    ours = [pair[0] for pair in pairs]
    assert one["value"] == statistics.median(ours)
    assert one["spread"] == (None if len(set(ours)) == 1 else (min(ours), max(ours)))
    assert one["peer_value"] == statistics.median(pair[1] for pair in pairs)
    assert one["ratio"] == statistics.median(theirs / mine for mine, theirs in pairs)
    assert one["held"] == (max(ours) <= 100)


@pytest.mark.parametrize(
    ("unit", "given", "ratio"),
    [*((unit, None, 4.0) for unit in ("µs", "s", "ms of one core")),
     *((unit, None, 0.25) for unit in ("deliveries/s", "Hz")),
     *((unit, None, None) for unit in ("m/s", "rad/s", "mm", "")), ("mm", 3.0, 3.0), ("µs", 9.0, 9.0)],
)  # fmt: skip
def test_ratio_is_of_the_benchmark_or_a_speedup(
    tool: ModuleType, unit: str, given: float | None, ratio: float | None
) -> None:
    assert tool.ratio(figure(2.0, unit=unit, peer="P", peer_value=8.0, ratio=given)) == ratio
    assert tool.ratio(figure(2.0, unit=unit, peer="P", missing="no P")) is None


def test_bad_results_are_reported(tool: ModuleType, tmp_path: Path) -> None:
    """Targets that were missed in one run, peers and parts that were not there, and how many lines are not shown."""
    figures = [
        figure(5.0, name="slow|er", target="<= 4"),
        figure(1.0, name="alone", peer="Q", missing="no Q"),
        figure(None, name="none", target="<= 4"),
    ]
    good = [figure(3.0, name="slow|er", target="<= 4"), *figures[1:]]
    many = [f"line {k}" for k in range(20)]
    write(tmp_path, "bus", result(good, figures, skipped=["bus: parts: no R"], details=many))
    page = tool.page(tmp_path, NAMES, ROOT / "benchmarks")
    assert "| slow\\|er | 4 ms (3 … 5) | \\<= 4 | ✗ |  |  |" in page
    assert page.count("not measured: no Q") == 2  # in the overview, and in its section
    assert "| none | - ms | \\<= 4 |  |  |  |" in page
    assert "- Left out: bus: parts: no R" in page
    assert f"… and {20 - tool.DETAILS} lines more" in page
    assert page.index("line 0") < page.index(f"line {tool.DETAILS - 1}")
    assert f"line {tool.DETAILS}" not in page


def test_machines_are_described_once(tool: ModuleType, tmp_path: Path) -> None:
    for name in ("bus", "ik", "plan"):
        write(tmp_path, name, result([figure()], machine={**MACHINE, "cores": 64 if name == "plan" else 2}))
    found = sections(tool.page(tmp_path, NAMES, ROOT / "benchmarks"))
    assert [name for name in found if name.startswith("Machine")] == ["Machine (bus, ik)", "Machine (plan)"]
    assert "64 cores" in found["Machine (plan)"]


def test_page_names_no_path_of_the_machine(tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import bench

    monkeypatch.setenv("ROBOYARD_DATA", "/secret/data")
    (tmp_path / "maps").mkdir()
    (tmp_path / "x.npz").touch()
    options = ["--data", str(tmp_path / "maps"), "--worlds", str(tmp_path / "x.npz"), "--seeds", "3"]
    assert [bench.placeholder(one) for one in options] == ["--data", "DIR", "--worlds", "FILE", "--seeds", "3"]
    line = f"refused: {tmp_path}/maps/a.urdf, /secret/data/b.urdf, {ROOT}/runs/c"
    assert bench.without_paths(line, options) == "refused: DIR/a.urdf, ROBOYARD_DATA/b.urdf, ./runs/c"
