"""Pages of the navigator name all registered types, actions and codes; packages of its how-to pages work."""

import re
from pathlib import Path

import pytest
from tests.project.test_docs import ROOT, Block, blocks_of, commands_of
from tests.sensors.test_registry_package import install, roboyard

from roboyard.navigation import errors
from roboyard.navigation.costmap import COSTMAP_LAYERS
from roboyard.navigation.errors import NavigationError
from roboyard.navigation.navigator import BEHAVIORS, RECOVERY_POLICIES
from roboyard.navigation.nodes.navigation_actions import (
    compute_path_error_code,
    follow_path_error_code,
    navigation_actions,
)

REFERENCE = ROOT / "docs" / "reference"


def _rows(page: str, columns: int) -> list[list[str]]:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]
    return [row for row in rows if len(row) == columns]


@pytest.mark.parametrize(
    ("name", "registry"), [("costmap-layers", COSTMAP_LAYERS), ("navigation-behaviors", BEHAVIORS)]
)
def test_every_registered_type_has_a_section_with_its_keys(name: str, registry) -> None:
    page = (REFERENCE / f"{name}.md").read_text("utf-8")
    sections = {part.split("\n", 1)[0]: part for part in page.split("\n## ")[1:]}
    for one in registry.names():
        cls = registry[one]
        assert f"<!-- keys of {cls.__module__}:{cls.__name__} -->" in sections[one]
        assert any(row[0] == f"`{one}`" for row in _rows(page, 3)), f"{one} in Nav2's names"


def test_page_of_behaviors_lists_the_steps_of_policies() -> None:
    rows = {row[0]: row[1] for row in _rows((REFERENCE / "navigation-behaviors.md").read_text("utf-8"), 2)}
    for policy, steps in RECOVERY_POLICIES.items():
        found = next(text for key, text in rows.items() if key.startswith(f"`{policy}`"))
        assert re.findall(r"`(\w+)`", found) == list(steps)


def test_page_of_the_navigator_lists_all_actions_with_their_types() -> None:
    rows = {row[0]: row[1] for row in _rows((REFERENCE / "navigator.md").read_text("utf-8"), 3)}
    for name, action in navigation_actions().items():
        package, kind = rows[f"`{name}`"].split("/")
        assert action.action_type.name == f"{package}/action/{kind}"


def test_page_of_the_navigator_lists_all_causes_with_their_codes() -> None:
    rows = {row[0]: row[2:] for row in _rows((REFERENCE / "navigator.md").read_text("utf-8"), 4)}
    classes = [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, NavigationError)]
    assert len(classes) > 10
    for cls in classes:
        error = cls("reason")
        codes = [str(compute_path_error_code(error)), str(follow_path_error_code(error))]
        assert rows[f"`{cls.cause}`"] == codes, cls.cause


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "package", "unknown"),
    [
        ("write-a-costmap-layer", "caution_layer", "caution"),
        ("write-a-recovery-behavior", "look_around", "look_around"),
    ],
)
def test_commands_of_the_how_to_page_run(tmp_path: Path, page: str, package: str, unknown: str) -> None:
    blocks = list(blocks_of((ROOT / "docs" / "howto" / f"{page}.md").read_text("utf-8")))
    for block in blocks:
        if block.title:
            (tmp_path / block.title).parent.mkdir(exist_ok=True)
            (tmp_path / block.title).write_text(block.body, "utf-8")
    code = next(block.body for block in blocks if block.title and block.title.endswith(".py"))
    assert len(code.splitlines()) <= 60
    commands = [words for block in blocks for words in commands_of(Block(block.kind, block.body, 0, None, ""))]
    run = next(words for words in commands if words[0] == "run")
    rejected = roboyard(tmp_path, *run)
    assert rejected.returncode == 2
    assert unknown in rejected.stderr
    install(tmp_path / package, tmp_path / "site")
    for words in commands:
        result = roboyard(tmp_path, *words)
        assert result.returncode == 0, result.stdout + result.stderr
