"""Options of scenarios: short names for nested keys, or for several changes at once."""

from pathlib import Path

import pytest

from roboyard.config import load
from roboyard.errors import ConfigError
from roboyard.scenarios import ScenarioConfig, load_scenario

SCENARIO = """\
world: empty
robots: {rover: {model: rover, parameters: {drive: {timeout: 1.0}}}}
duration: 2
options:
  pace:
    summary: how it is driven
    choices:
      slow: {}
      quick: {duration: 1, robots: {rover: {pose: [1, 0, 0]}}, criteria: {covers_distance: path_length > 0.01}}
  timeout: {key: robots.rover.parameters.drive.timeout, allowed: [0.5, 1.0]}
  record: {key: record.camera_rate}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "ways.yaml"
    path.write_text(SCENARIO)
    return str(path)


def scenario(file: str, *overrides: str) -> ScenarioConfig:
    return load_scenario(file, overrides=overrides).config


def test_first_choice_is_the_default(file: str) -> None:
    plain = scenario(file)
    assert plain.duration == 2.0
    assert plain.options["pace"].default == "slow"
    assert plain.robots["rover"].parameters["drive"]["timeout"] == 1.0
    quick = scenario(file, "pace=slow", "pace=quick")
    assert (quick.duration, quick.robots["rover"].pose) == (1.0, (1.0, 0.0, 0.0))
    assert quick.robots["rover"].parameters == plain.robots["rover"].parameters
    assert quick.options["pace"].default == "quick"
    assert list(quick.criteria) == ["covers_distance"]


def test_option_sets_its_key(file: str) -> None:
    assert scenario(file, "timeout=0.5").robots["rover"].parameters["drive"]["timeout"] == 0.5


def test_deeper_settings_override_options(file: str) -> None:
    for order in (("duration=1.5", "pace=quick"), ("pace=quick", "duration=1.5")):
        assert scenario(file, *order).duration == 1.5


def test_mapping_for_an_option_named_as_a_key_sets_the_key(file: str) -> None:
    assert scenario(file, "record=0.5").record.camera_rate == 0.5
    assert scenario(file, "record={exclude_topics: [/scan]}").record.exclude_topics == ("/scan",)


def test_scenario_as_run_keeps_its_options(file: str, tmp_path: Path) -> None:
    spec = load_scenario(file, overrides=("pace=quick", "timeout=0.5"))
    repeated = tmp_path / "again.yaml"
    repeated.write_text(spec.to_yaml())
    assert load_scenario(repeated).config == spec.config == load(ScenarioConfig, repeated)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("pace=quik", "'quik'; did you mean 'quick'? (slow, quick)"),
        ("timeout=0.7", "--set timeout: 0.7 (0.5, 1.0)"),
        ("options.pace.default=fast", "fast"),
        ("options.pace.key=duration", "'choices' and 'key'"),
    ],
)
def test_invalid_option_values_are_refused(file: str, override: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        scenario(file, override)
    assert message in str(caught.value)
