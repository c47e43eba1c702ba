"""The pages about gaits list every registered gait, and the package of their example works once it is installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.project.test_docs import ROOT, Block, blocks_of, commands_of
from tests.sensors.test_registry_package import install, roboyard

from roboyard.walking import GAITS


def test_page_of_gaits_names_every_registered_gait() -> None:
    page = (ROOT / "docs" / "reference" / "gaits.md").read_text("utf-8")
    for name in GAITS.names():
        assert page.count(f"| `{name}` |") == 3  # what it is, and measured on two robots
        assert f"- **`{name}`**" in page  # when to take it


def test_example_gait_is_short() -> None:
    page = (ROOT / "docs" / "howto" / "write-a-gait.md").read_text("utf-8")
    program = next(block.body for block in blocks_of(page) if block.title == "tetrapod_gait/tetrapod_gait.py")
    assert len(program.splitlines()) <= 40


@pytest.mark.slow
def test_robot_walks_with_the_gait_of_an_installed_package(tmp_path: Path) -> None:
    blocks = list(blocks_of((ROOT / "docs" / "howto" / "write-a-gait.md").read_text("utf-8")))
    for block in blocks:
        if block.title:
            (tmp_path / block.title).parent.mkdir(exist_ok=True)
            (tmp_path / block.title).write_text(block.body, "utf-8")
    rejection = roboyard(tmp_path, "run", "tetrapod.yaml")
    assert rejection.returncode == 2
    assert "tetrapod" in rejection.stderr
    assert "Traceback" not in rejection.stderr
    install(tmp_path / "tetrapod_gait", tmp_path / "site")
    commands = [words for block in blocks for words in commands_of(Block(block.kind, block.body, 0, None, ""))]
    assert commands
    for words in commands:
        result = roboyard(tmp_path, *words)
        assert result.returncode == 0, result.stdout + result.stderr
    assert "tetrapod" in roboyard(tmp_path, "list", "gaits").stdout
