"""A package that adds a key to scenario files works as the page about it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.evaluation.page_packages import PagePackage
from tests.sensors.test_registry_package import install, roboyard

from roboyard.config import read_yaml
from roboyard.record import open_recording


@pytest.fixture
def package(tmp_path: Path) -> PagePackage:
    return PagePackage("add-a-scenario-key.md", tmp_path)


@pytest.fixture
def project(package: PagePackage) -> Path:
    """The folder with the files of the page."""
    return package.folder


def test_package_has_at_most_thirty_lines_of_code(package: PagePackage) -> None:
    assert package.count_code_lines("weather/weather.py") <= 30


def test_key_of_a_package_that_is_not_installed_is_refused(project: Path) -> None:
    result = roboyard(project, "check", "scenario", "winter.yaml")
    assert result.returncode == 2
    assert "winter.yaml:5" in result.stderr
    assert "weather" in result.stderr


def test_commands_of_the_page_run_and_wrong_values_are_refused(package: PagePackage, project: Path) -> None:
    install(project / "weather", project / "site")
    outputs = package.run_commands("check", "run", "schema")
    with open_recording(project / "runs" / "winter" / "recording.mcap") as recording:
        temperatures = {one.message.temperature for one in recording.messages() if one.topic == "/temperature"}
    assert temperatures == {250.0}
    repeated = read_yaml(project / "runs" / "winter" / "scenario.yaml").to_data()
    assert repeated["weather"] == {"sky": "overcast", "temperature": 250.0}
    schema = json.loads(outputs[2])
    assert {"sky", "temperature"} == schema["$defs"]["WeatherConfig"]["properties"].keys()
    for assignment, message in (
        ("weather.sky=overcats", "weather.sky"),
        ("weather.temperature=10", "weather.temperature"),
        ("weather.wind=3", "weather.wind"),
    ):
        result = roboyard(project, "check", "scenario", "winter.yaml", "--set", assignment)
        assert result.returncode == 2
        assert message in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    (project / "winter.yaml").write_text((project / "winter.yaml").read_text().replace("overcast", "overcats"))
    assert (
        "winter.yaml:6, weather.sky: is the text 'overcats'"
        in roboyard(project, "check", "scenario", "winter.yaml").stderr
    )
