"""A package that adds a metric works as the page about it says: its files are installed, its commands run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.project.test_docs import ROOT, Block, blocks_of, commands_of
from tests.sensors.test_registry_package import install, roboyard

PAGE = list(blocks_of((ROOT / "docs" / "howto" / "add-a-metric.md").read_text("utf-8")))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The files of the page, in a folder."""
    for block in PAGE:
        if block.title:
            (tmp_path / block.title).parent.mkdir(exist_ok=True)
            (tmp_path / block.title).write_text(block.body, "utf-8")
    return tmp_path


def test_package_has_forty_lines_of_code(project: Path) -> None:
    code = (project / "hard_braking" / "hard_braking.py").read_text("utf-8").splitlines()
    assert len([line for line in code if line.strip()]) <= 40


def test_criterion_on_a_metric_of_a_package_that_is_not_installed_is_refused(project: Path) -> None:
    result = roboyard(project, "check", "scenario", "braking.yaml")
    assert result.returncode == 2
    assert "no metric 'hard_brakings'" in result.stderr


def test_commands_of_the_metric_page_run(project: Path) -> None:
    install(project / "hard_braking", project / "site")
    commands = [words for block in PAGE for words in commands_of(Block(block.kind, block.body, 0, None, ""))]
    assert [words[0] for words in commands] == ["list", "run"]
    outputs = []
    for words in commands:
        result = roboyard(project, *words)
        assert result.returncode == 0, result.stdout + result.stderr
        outputs.append(result.stdout)
    assert "hard_brakings" in outputs[0]
    assert "Decelerations of more than 1 m/s²." in outputs[0]
    assert "hard brakings " in outputs[1], "the summary shows it"
    metrics = json.loads((project / "runs" / "braking" / "metrics.json").read_text("utf-8"))
    assert metrics["hard_brakings"] >= 1
    assert metrics["criteria"]["brakes_once"]["passed"] is True
    timeline = metrics["robots"]["rover"]["timeline"]
    assert len([event for event in timeline if event["kind"] == "hard_braking"]) == metrics["hard_brakings"]
    page = (project / "runs" / "braking" / "report.html").read_text("utf-8")
    assert "<h2>Hard brakings</h2>" in page
    assert "<td>hard braking</td>" in page.split("<h2>Timeline</h2>")[1], "the events of the package"
    assert page.index("<h2>Hard brakings</h2>") > page.index("odometry"), "after the sections of the package"
