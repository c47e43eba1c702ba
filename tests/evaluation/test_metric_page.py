"""A package that adds a metric works as the page about it says: its files are installed, its commands run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.evaluation.page_packages import PagePackage
from tests.sensors.test_registry_package import install, roboyard


@pytest.fixture
def package(tmp_path: Path) -> PagePackage:
    return PagePackage("add-a-metric.md", tmp_path)


@pytest.fixture
def project(package: PagePackage) -> Path:
    """The folder with the files of the page."""
    return package.folder


def test_package_has_forty_lines_of_code(package: PagePackage) -> None:
    assert package.count_code_lines("hard_braking/hard_braking.py") <= 40


def test_criterion_on_a_metric_of_a_package_that_is_not_installed_is_refused(project: Path) -> None:
    result = roboyard(project, "check", "scenario", "braking.yaml")
    assert result.returncode == 2
    assert "no metric 'hard_brakings'" in result.stderr


def test_commands_of_the_metric_page_run(package: PagePackage, project: Path) -> None:
    install(project / "hard_braking", project / "site")
    outputs = package.run_commands("list", "run")
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
