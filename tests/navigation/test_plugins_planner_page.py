"""A planner of another package drives, as the page about it says: its files are installed, its commands run."""

from pathlib import Path

import pytest
from tests.project.test_docs import ROOT, Block, blocks_of, commands_of
from tests.sensors.test_registry_package import install, roboyard

PAGE = list(blocks_of((ROOT / "docs" / "howto" / "write-a-planner.md").read_text("utf-8")))


@pytest.mark.slow
def test_commands_of_the_planner_page_run(tmp_path: Path) -> None:
    for block in PAGE:
        if block.title:
            (tmp_path / block.title).parent.mkdir(exist_ok=True)
            (tmp_path / block.title).write_text(block.body, "utf-8")
    rejected = roboyard(tmp_path, "run", "own-way.yaml")
    assert rejected.returncode == 2
    assert "no planner 'scipy_way'" in rejected.stderr
    install(tmp_path / "scipy_way", tmp_path / "site")
    commands = [words for block in PAGE for words in commands_of(Block(block.kind, block.body, 0, None, ""))]
    assert [words[0] for words in commands] == ["run", "batch"]
    for words in commands:
        result = roboyard(tmp_path, *words)
        assert result.returncode == 0, result.stdout + result.stderr
