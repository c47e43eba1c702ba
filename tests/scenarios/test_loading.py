"""Scenario files: what they may contain, and how mistakes are refused."""

import re
from pathlib import Path

import pytest

from roboyard.bringup.catalog import ROBOTS, SCENARIOS, WORLDS
from roboyard.errors import ConfigError, InputError, UnknownNameError
from roboyard.scenarios import load_scenario
from roboyard.scenarios.faults.world_faults import RemoveFault, SpawnFault
from roboyard.scenarios.resolve import resolve_scenario

GOOD = """\
world: arena
robots:
  rover: {model: rover, pose: [1 m, 50 cm, 90 deg]}
  second: {model: rover, pose: [0, 0, 0.1, 0, 0, 0], nodes: [drive, arbiter]}
operator: [{drive: {linear: 0.5, duration: 2 s}}]
faults:
  - {time: 1.5 min, type: spawn, model: box, pose: [6, 0.2, 0]}
  - {time: 100, type: remove, name: box_0}
duration: 2 min
criteria: {success: path_length > 1 and second.contacts == 0}
variants:
  smoke: {robots: {rover: {pose: [2, 0, 0]}}, seed: 5}
"""


@pytest.fixture
def write(tmp_path: Path):  # type: ignore[no-untyped-def]
    def make(text: str, name: str = "mine.yaml") -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return make


def test_full_scenario_is_read(write) -> None:  # type: ignore[no-untyped-def]
    spec = load_scenario(write(GOOD))
    scenario = spec.config
    assert spec.name == "mine"
    assert scenario.duration == 120.0
    assert scenario.robots["rover"].pose == (1.0, 0.5, pytest.approx(1.5707963))
    assert scenario.main_robot == "rover"
    assert scenario.faults == (
        SpawnFault(time=90.0, type="spawn", model="box", pose=(6.0, 0.2, 0.0)),
        RemoveFault(time=100.0, type="remove", name="box_0"),
    )
    resolved = resolve_scenario(spec)
    assert list(resolved.scripts) == ["rover"]
    assert set(resolved.criteria) == {"success"}


def test_smoke_variant_is_short_and_differs_only_as_written(write) -> None:  # type: ignore[no-untyped-def]
    full, smoke = load_scenario(write(GOOD)), load_scenario(write(GOOD), smoke=True)
    assert smoke.is_smoke
    assert smoke.config.duration == 5.0
    assert smoke.config.criteria == {}
    assert smoke.config.robots["rover"].pose == (2.0, 0.0, 0.0)
    assert smoke.config.robots["second"] == full.config.robots["second"]
    assert smoke.config.seed == 5
    assert load_scenario(write("world: arena\nduration: 3\n"), smoke=True).config.duration == 3.0


def test_overrides_change_the_scenario(write) -> None:  # type: ignore[no-untyped-def]
    spec = load_scenario(
        write(GOOD), overrides=("duration=7 s", "robots.rover.pose=[0, 0, 0]", "criteria.success=contacts == 0")
    )
    assert (spec.config.duration, spec.config.robots["rover"].pose) == (7.0, (0.0, 0.0, 0.0))
    assert spec.with_seed(9).config.seed == 9


@pytest.mark.parametrize(
    ("change", "location", "message"),
    [
        (("world: arena", "wrold: arena"), "mine.yaml:1", "unknown key 'wrold'.*mean 'world'"),
        (("duration: 2 min", "duration: 2 m"), "mine.yaml:9", "is a length, expected a time"),
        (("duration: 2 min", "duration: 0"), "mine.yaml:9", "below"),
        (("duration: 2 min", "duration: soon"), "mine.yaml:9", "duration"),
        (("duration: 2 min\n", ""), "mine.yaml:1", "'duration' is missing"),
        (("90 deg]", "90 kg]"), "mine.yaml:3", "is a mass, expected an angle"),
        (("[0, 0, 0.1, 0, 0, 0]", "[0, 0]"), "mine.yaml:4", "robots.second.pose"),
        (("type: spawn", "type: explode"), "mine.yaml:7", "must be one of: call_service, .* spawn, teleport"),
        (("name: box_0", ""), "mine.yaml:8", "name"),
        (("drive: {linear: 0.5", "drvie: {linear: 0.5"), "mine.yaml:5", "unknown key 'drvie'.*mean 'drive'"),
        (("duration: 2 s}}]", "duration: 2 kg}}]"), "mine.yaml:5", "is a mass, expected a time"),
        (("second: {", "2nd: {"), "mine.yaml", "robot name '2nd'"),
        (("model: rover, pose: [1", "mdoel: rover, pose: [1"), "mine.yaml:3", "unknown key 'mdoel'"),
    ],
)
def test_invalid_scenarios_are_refused_with_line_and_suggestion(
    write, change: tuple[str, str], location: str, message: str
) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigError) as caught:
        load_scenario(write(GOOD.replace(*change)))
    assert location in str(caught.value)
    assert re.search(message, str(caught.value), re.DOTALL), str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("path_length > 1", "path_lenght > 1"), "no metric 'path_lenght'.*path_length"),
        (("path_length > 1", "open('/etc/passwd')"), "calls 'open'"),
        (("second.contacts", "third.contacts"), "no metric 'third.contacts'"),
        (("[{drive: {linear: 0.5, duration: 2 s}}]", "nowhere.yaml"), "no file nowhere.yaml"),
    ],
)
def test_expressions_and_scripts_are_checked_early(write, change: tuple[str, str], message: str) -> None:  # type: ignore[no-untyped-def]
    spec = load_scenario(write(GOOD.replace(*change)))
    with pytest.raises(InputError, match=message):
        resolve_scenario(spec)


@pytest.mark.parametrize("text", ["", "[]", "3", "{", "a: &a [*a]", "world: !!python/object:os.system {}", "\x00"])
def test_files_without_a_scenario_are_refused(write, text: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigError):
        load_scenario(write(text))


def test_unknown_names_are_refused_with_similar_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"no scenario 'rover-dirve'; did you mean 'rover-drive'"):
        load_scenario("rover-dirve")
    with pytest.raises(UnknownNameError, match="no world 'arean'; did you mean 'arena'"):
        WORLDS.resolve("arean")
    with pytest.raises(InputError, match=r"no file nothing\.yaml"):
        load_scenario("nothing.yaml")


def test_installed_scenarios_robots_and_worlds_are_found() -> None:
    assert {"rover-drive"} <= set(SCENARIOS)
    assert {"rover"} <= set(ROBOTS)
    assert {"arena", "empty"} <= set(WORLDS)
    assert SCENARIOS["rover-drive"].summary
    assert WORLDS["arena"].origin == "roboyard"


def test_packaged_scenarios_have_smoke_variant_and_summary() -> None:
    for name in SCENARIOS:
        spec = load_scenario(name, smoke=True)
        assert spec.config.duration <= 5.0
        assert spec.config.summary
        resolve_scenario(spec)


def test_number_with_a_unit_is_drawn_as_a_number(write) -> None:  # type: ignore[no-untyped-def]
    loaded = load_scenario(write(GOOD + "randomize: {duration: [90, 110]}\n"))  # it says 2 min
    assert 90.0 <= loaded.config.duration <= 110.0


def test_numbers_are_drawn_by_the_seed(write) -> None:  # type: ignore[no-untyped-def]
    text = GOOD + "randomize: {faults.1.time: [90, 110], robots.second.pose.0: [-1, 1]}\n"
    spec = load_scenario(write(text))
    sampled = [spec.with_seed(seed).config for seed in (1, 1, 2)]
    assert sampled[0] == sampled[1]
    assert sampled[0].faults[1].time != sampled[2].faults[1].time
    assert 90.0 <= sampled[0].faults[1].time <= 110.0
    assert sampled[0].robots["rover"] == spec.config.robots["rover"]
    alone = load_scenario(write(GOOD + "randomize: {faults.1.time: [90, 110]}\n")).with_seed(1).config
    assert alone.faults[1].time == sampled[0].faults[1].time  # whatever else is drawn
    with pytest.raises(ConfigError, match="faults.7.time"):
        load_scenario(write(GOOD + "randomize: {faults.7.time: [0, 1]}\n"))
    with pytest.raises(ConfigError, match="least"):
        load_scenario(write(GOOD + "randomize: {faults.1.time: [2, 1]}\n"))
    assert load_scenario("akrobat-randomized", smoke=True).with_seed(3).config.duration <= 5.0
