"""`roboyard bench --against`: two revisions in pairs, ratios with their spread, and what counts as slower."""

import json
import os
import subprocess
from collections.abc import Sequence
from importlib.metadata import Distribution
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from tests.cli.conftest import Command

from roboyard.cli.benchmark_comparison import (
    CONFIDENCE,
    BenchmarkComparison,
    classify_unit,
    compare_benchmark,
    median_interval,
)
from roboyard.cli.revisions import find_repository, open_revision, open_working_tree, write_metadata
from roboyard.errors import InputError

FAKE = '''"""A command whose benchmarks give what a file says, run by run."""
import json, os, sys
from pathlib import Path

tree = Path.cwd()
assert sys.argv[1] == "bench" and sys.argv[-1] == "--json"
name = sys.argv[2]
side = "new" if (tree / ".git").exists() else "old"
with open(os.environ["FAKE_LOG"], "a") as log:
    log.write(" ".join([side, *sys.argv[2:-1]]) + "\\n")
count = Path(os.environ["FAKE_LOG"]).read_text().count(f"{side} {name}")
found = json.loads((tree / "benchmarks" / (name + ".json")).read_text())
if "error" in found:
    print("error: " + found["error"], file=sys.stderr)
    sys.exit(1)
figures = [
    {**one, "value": one["value"][count - 1] if isinstance(one["value"], list) else one["value"]}
    for one in found["figures"]
]
print(json.dumps({"figures": {name: figures}, "skipped": found.get("skipped", [])}))
'''
POSITIVE = st.floats(1e-6, 1e6)


def git(*words: str) -> None:
    author = {
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    subprocess.run(["git", *words], env={**os.environ, **author}, check=True, capture_output=True)


def put(name: str, figures: Any = (), **more: Any) -> None:
    Path("benchmarks").mkdir(exist_ok=True)
    Path(f"benchmarks/{name}.py").touch()
    Path(f"benchmarks/{name}.json").write_text(json.dumps({"figures": list(figures), **more}))


def figure(name: str, value: Any, unit: str, target: str | None = None) -> dict[str, Any]:
    return {"name": name, "value": value, "unit": unit, "target": target}


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in the working directory, and the file in which its command says what was asked of it."""
    package = Path("src/roboyard")
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(FAKE)
    Path("pyproject.toml").write_text('[project]\nname = "roboyard"\nversion = "0.1.0"\n')
    git("init", "-q")
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    return tmp_path / "log"


def commit(tag: str) -> None:
    git("add", "-A")
    git("commit", "-q", "-m", tag)
    git("tag", tag)


def test_both_revisions_are_measured_in_turn(command: Command, log: Path) -> None:
    """The first run of each is not counted; the order changes from pair to pair; a folder is named for both."""
    put("quick", [figure("a", [99.0, 1.0, 1.1, 1.2, 0.9, 1.0], "ms"), figure("b", 50.0, "1/s"), figure("c", 3.0, "mm")])
    commit("first")
    put("quick", [figure("a", [1.0, 2.0, 2.0, 2.4, 1.8, 1.5], "ms"), figure("b", 100.0, "1/s"), figure("c", 4.0, "mm")])
    Path("files").mkdir()
    result = command("bench", "quick", "--against", "first", "--data", "files", "--json")
    assert result.code == 1
    words = f"quick --data {Path('files').absolute()}"
    order = ["old", "new", "old", "new", "new", "old", "old", "new", "new", "old", "old", "new"]
    assert log.read_text().splitlines() == [f"{side} {words}" for side in order]
    a, b, c = result.json["figures"]["quick"]
    assert (a["old"], a["new"]) == ([1.0, 1.1, 1.2, 0.9, 1.0], [2.0, 2.0, 2.4, 1.8, 1.5])
    assert a["ratios"] == pytest.approx([2.0, 2.0 / 1.1, 2.0, 2.0, 1.5])
    assert (a["ratio"], a["interval"]) == (2.0, [1.5, 2.0])
    assert (b["ratio"], c["ratio"]) == (0.5, 4.0 / 3.0)
    assert [one["result"] for one in (a, b, c)] == ["slower", "faster", "changed"]
    assert result.json["slower"] == ["quick: a"]
    log.unlink()
    result = command("bench", "quick", "--against", "first", "--tolerance", "60")
    assert result.code == 0  # not all of its spread lies above
    for expected in ("2.000", "1.500 … 2.000", "unclear", "faster", "changed", "no figure is slower by more than 60 %"):
        assert expected in result.out
    log.unlink()
    result = command("bench", "quick", "--against", "first", "--repeats", "1")
    assert result.code == 1
    assert "fewer than 5 pairs" in result.out
    assert "slower by more than 3 %, with the whole interval: quick: a" in result.out


def test_a_side_that_cannot_be_measured_is_reported(command: Command, log: Path) -> None:
    put("lost", error="the planner is gone")
    put("moved", [figure("path of 12", 1.0, "ms"), figure("kept", 1.0, "ms")])
    put("fewer", [figure("kept", 1.0, "ms"), figure("dropped", 1.0, "s")])
    commit("first")
    put("lost", [figure("a", 1.0, "ms")])
    put("moved", [figure("path of 13", 1.0, "ms"), figure("kept", 1.0, "ms")], skipped=[{"what": "x", "why": "no X"}])
    put("fewer", [figure("kept", 1.0, "ms"), figure("none", None, "ms")])
    put("fresh", [figure("a", 1.0, "ms")])
    result = command("bench", "--against", "first", "--repeats", "2", "--json")
    assert result.code == 1
    found = result.json
    assert found["failed"]["lost"] == {"old": "the planner is gone"}
    assert "fresh.json" in found["failed"]["fresh"]["old"]
    assert [one["name"] for one in found["figures"]["moved"]] == ["path of 13", "kept"]
    assert found["skipped"] == {"moved": ["new: x: no X"]}
    assert found["only"] == {"fewer": {"old": ["dropped"], "new": ["none"]}}
    assert not found["slower"]
    log.unlink()
    result = command("bench", "lost", "fewer", "--against", "first", "--repeats", "1")
    assert result.code == 1
    for expected in (
        "the old revision could not be measured: the planner is gone",
        "only at the old revision: dropped",
    ):
        assert expected in result.out
    log.unlink()
    assert command("bench", "moved", "--against", "first", "--repeats", "1").code == 0


def test_bad_input_is_reported(command: Command, log: Path) -> None:
    put("quick", [figure("a", 1.0, "ms")])
    commit("first")
    for words, reason in (
        (["quick", "--against", "nowhere"], "no revision 'nowhere'"),
        (["quick", "--against", "--exec=x"], "--exec=x"),
        (["quikc", "--against", "first"], "no benchmark 'quikc'"),
        (["quick", "--against", "first", "--tolerance", "-1"], "--tolerance"),
        (["quick", "--against", "first", "--repeats", "0"], "repeats"),
    ):
        result = command("bench", *words)
        assert result.code == 2, words
        assert reason in result.error
    git("mv", "src", "other")
    commit("empty")
    result = command("bench", "quick", "--against", "empty")
    assert result.code == 2
    assert "no folder src/roboyard" in result.error


def test_a_folder_without_git_is_reported(command: Command, tmp_path: Path) -> None:
    put("quick", [figure("a", 1.0, "ms")])
    process = command("bench", "quick", "--against", "HEAD")
    assert process.code == 2
    assert "clone of Roboyard's repository" in process.error


@given(st.lists(POSITIVE, min_size=1, max_size=40), POSITIVE)
def test_the_interval_holds_the_median_and_has_its_confidence(values: list[float], scale: float) -> None:
    low, high = median_interval(values)
    assert min(values) <= low <= median(values) <= high <= max(values)
    assert median_interval([scale * value for value in values]) == (scale * low, scale * high)
    n, ordered = len(values), sorted(values)
    k = next(k for k in range(n, 0, -1) if k == 1 or 1.0 - 2.0 * binom.cdf(k - 1, n, 0.5) >= CONFIDENCE)
    assert (low, high) == (ordered[k - 1], ordered[n - k])


@pytest.mark.parametrize(
    ("unit", "target", "expected"),
    [
        ("ms", "", (True, False)),
        ("µs", "<= 300", (True, False)),
        ("s per pose", "", (True, False)),
        ("1/s", "", (True, True)),
        ("deliveries/s", "ratio >= 3", (True, True)),
        ("Hz", ">= 20", (True, True)),
        ("x real time", "", (True, True)),
        ("kB/s", "<= 100", (True, False)),
        ("% of a core", "", (True, False)),
        ("mm", "<= 1", (False, False)),
        ("m/s", ">= 1", (False, True)),
        ("%", ">= 95", (False, True)),
        ("", "", (False, False)),
    ],
)
def test_units_and_targets_decide_what_is_faster(unit: str, target: str, expected: tuple[bool, bool]) -> None:
    assert classify_unit(unit, target) == expected


def compared(old: Sequence[float], new: Sequence[float], unit: str) -> BenchmarkComparison:
    """The comparison of one figure whose values are known."""
    left = {"old": [old[0], *old], "new": [new[0], *new]}

    def measure(side: str) -> dict[str, Any]:
        return {"figures": {"x": [figure("a", left[side].pop(0), unit)]}}

    return compare_benchmark(measure, "x", len(old), lambda _: None)


PAIRS = st.lists(st.tuples(POSITIVE, POSITIVE), min_size=1, max_size=12)


@given(PAIRS, st.sampled_from(["ms", "1/s"]), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_results_are_inverted_with_the_sides_and_soften_with_the_tolerance(
    pairs: list[tuple[float, float]], unit: str, tolerance: float, more: float
) -> None:
    old, new = zip(*pairs, strict=True)
    (opposite,), (back,) = compared(old, new, unit).figures, compared(new, old, unit).figures
    assert opposite.ratio is not None
    inverted = sorted(1.0 / ratio for ratio in back.ratios)
    assert sorted(opposite.ratios) == pytest.approx(inverted)
    if opposite.classify(tolerance) == "slower":
        assert back.classify(max(0.0, tolerance - 1e-9)) == "faster"
    else:
        assert opposite.classify(tolerance + more) != "slower"
    (same,) = compared(old, old, unit).figures
    assert same.classify(0.0) == "same"


@given(st.lists(POSITIVE, min_size=5, max_size=12), st.floats(1.05, 10.0))
def test_times_that_grow_and_rates_that_fall_are_slower(values: list[float], factor: float) -> None:
    (time,) = compared(values, [factor * value for value in values], "ms").figures
    (rate,) = compared(values, [value / factor for value in values], "1/s").figures
    for one in (time, rate):
        assert one.ratio == pytest.approx(factor)
        assert one.classify(0.03) == "slower"


def test_a_revision_has_its_own_files_and_metadata(log: Path, tmp_path: Path) -> None:
    """Its entry points and requirements are those of its pyproject.toml, not of what is installed."""
    text = '[project]\nname = "roboyard"\nversion = "7.8"\ndependencies = ["numpy>=2"]\n'
    text += "[project.optional-dependencies]\nextra = [\"scipy; python_version > '3'\", 'rich']\n"
    text += "[project.entry-points.'roboyard.nodes']\nodd = 'roboyard.odd:Node'\n"
    Path("pyproject.toml").write_text(text)
    commit("first")
    Path("pyproject.toml").write_text(text.replace("7.8", "7.9"))
    repository = find_repository(Path())
    query = "import importlib.metadata as m; d = m.distribution('roboyard'); "
    query += "print(d.version, [p.value for p in m.entry_points(group='roboyard.nodes')])"
    with open_revision(repository, "first") as first, open_working_tree(repository) as tree:
        assert (first.is_clean, tree.is_clean) == (True, False)
        assert first.commit == tree.commit
        assert tree.root == repository
        root = first.root
        for revision, version in ((first, "7.8"), (tree, "7.9")):
            words = [str(revision.python), "-c", query]
            process = subprocess.run(words, env=dict(revision.environment), capture_output=True, text=True, check=True)
            assert process.stdout.split(" ", 1) == [version, "['roboyard.odd:Node']\n"]
        assert (root / "src/roboyard/__main__.py").read_text() == FAKE
    assert not root.exists()
    write_metadata(Path("pyproject.toml"), tmp_path / "metadata")
    (found,) = Distribution.discover(path=[str(tmp_path / "metadata")])
    assert found.requires == [
        "numpy>=2",
        "scipy; (python_version > '3') and extra == 'extra'",
        "rich; extra == 'extra'",
    ]
    with pytest.raises(InputError, match="cannot be used"):
        write_metadata(Path("none.toml"), tmp_path / "other")
