"""Benchmarks: what is measured, what is skipped where a package is missing, and how figures are shown."""

from pathlib import Path

import pytest
from tests.cli.conftest import Command

from roboyard.cli.benchmarks import BenchmarkFigure, print_figures


def test_benchmarks_run_and_report(command: Command) -> None:
    Path("benchmarks").mkdir()
    Path("benchmarks/good.py").write_text(
        "def run(nightly): return {'figures': [{'name': 'x', 'value': 2 + nightly, 'unit': 's', 'target': '>= 3'}]}"
    )
    Path("benchmarks/lost.py").write_text("import a_module_that_is_not_there")
    Path("benchmarks/odd.py").write_text("def run(nightly): return 3")
    assert command("bench", "good").code == 1
    assert command("bench", "good", "--nightly").code == 0
    assert command("bench", "good", "--json").json["missed"] == ["x"]
    Path("benchmarks/counts.py").write_text(
        "def run(nightly, runs=5, seed=0): return [{'name': 'x', 'value': 10 * runs + seed, 'target': '>= 31'}]"
    )
    assert command("bench", "counts").code == 0
    assert command("bench", "counts", "--runs", "3", "--seed", "1", "--nightly").code == 0
    assert command("bench", "counts", "--runs", "3").code == 1
    assert command("bench", "good", "--runs", "3", "--nightly").code == 0
    assert command("bench", "counts", "--runs", "0").code == 2
    result = command("bench", "lost")
    assert result.code == 1
    assert "No module named 'a_module_that_is_not_there'" in result.error
    for wrong in ("a.pdf", "nowhere/a.svg"):
        assert command("bench", "good", "--plot", wrong).code == 2
    assert command("bench", "odd").code == 1
    for name, text in (("unfinished", "def run(:"), ("idle", "x = 1"), ("parts", "PARTS = [1]")):
        Path(f"benchmarks/{name}.py").write_text(text)
        result = command("bench", name)
        assert result.code == 1, name
        assert f"benchmarks/{name}.py" in result.error
    result = command("bench", "goood")
    assert result.code == 2
    assert "no benchmark 'goood'" in result.error


def test_benchmark_without_its_package_is_skipped_alone(command: Command) -> None:
    """The figures that remain are those of a file without the parts and the peers that are missing."""
    Path("benchmarks").mkdir()
    complete = (
        "def figure(name, **more): return {'name': name, 'value': 1.0, 'unit': 's', 'target': 2, 'limit': 3, **more}\n"
        "def first(nightly):\n    return [figure('a', peer='P', peer_value=3.0, ratio=3.0)]\n"
        "def last(nightly):\n    return {'figures': [figure('c', peer='P', missing='no P')]}\n"
    )
    lost = "def middle(nightly):\n    'How fast it is.'\n    import a_peer_that_is_not_there\n"
    Path("benchmarks/all.py").write_text(complete + lost + "PARTS = (first, middle, last)\n")
    Path("benchmarks/some.py").write_text(complete + "PARTS = (first, last)\n")
    Path("benchmarks/lost.py").write_text("import a_peer_that_is_not_there\n")
    result = command("bench", "--json")
    assert result.code == 0
    assert result.json["figures"]["all"] == result.json["figures"]["some"]
    assert result.json["figures"]["lost"] == []
    assert [item["part"] for item in result.json["skipped"]] == ["all: how fast it is", "lost"]
    assert "roboyard[bench]" in result.json["install"]
    result = command("bench")
    for expected in ("skipped all: how fast it is: No module named", "without reference c: no P", "roboyard[bench]"):
        assert expected in result.err


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_figures_and_references_fit_the_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    name, peer = "a long name of what was measured in some place with many words", "the peer's own name, one thread"
    print_figures({"engine": [BenchmarkFigure(name, 1234.5, "µs", "<= 300, ratio >= 6", peer, 5678.9, 4.6)]})
    out = capsys.readouterr().out
    assert all(len(line) <= columns for line in out.splitlines())
    words = out.split()
    for text in (*name.split(), *peer.split(), "1234", "5679", "4.6", "300,"):
        assert text in words


def test_profile_writes_a_folder(command: Command) -> None:
    """`--data` reaches the parts that take a folder; the lines that explain figures are shown and in the JSON."""
    Path("benchmarks").mkdir()
    Path("files").mkdir()
    Path("files/a").touch()
    Path("benchmarks/looks.py").write_text(
        "from dataclasses import dataclass\n@dataclass\nclass Kept:\n    n: 'int'\n"
        "def here(nightly, folder=None):\n"
        "    names = [one.name for one in folder.iterdir()] if folder else []\n"
        "    return {'figures': [{'name': 'x', 'value': Kept(len(names)).n}], 'details': [f'saw {names}']}\n"
        "def nowhere(nightly): return [{'name': 'y', 'value': 1}]\nPARTS = (here, nowhere)\n"
    )
    found = command("bench", "looks", "--data", "files", "--json").json
    assert [figure["value"] for figure in found["figures"]["looks"]] == [1, 1]
    assert found["details"]["looks"] == ["saw ['a']"]
    assert "saw []" in command("bench", "looks").out
    result = command("bench", "looks", "--data", "lost")
    assert result.code == 2
    assert "no folder lost" in result.error
