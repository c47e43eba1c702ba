"""Pages of step planners: tables hold what the classes declare, and the planner of a page is installed and run."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from tests.project.test_docs import ROOT, Block, blocks_of, commands_of
from tests.project.test_node_pages import hooks  # noqa: F401
from tests.sensors.test_registry_package import install, roboyard

from roboyard.walking.free_gait.planners.planner import STEP_PLANNERS

HOWTO = ROOT / "docs" / "howto" / "write-a-step-planner.md"


def test_page_of_step_planners_holds_what_is_registered(hooks: ModuleType) -> None:  # noqa: F811
    text = hooks.STEP_PLANNER_PAGE.read_text("utf-8")
    assert text == hooks.with_step_planner_tables(text), "write the page anew: python tools/docs_hooks.py"
    for name in STEP_PLANNERS.names():
        assert text.count(f"| [`{name}`](#{name}) |") == 1
        assert text.count(f"\n## {name}\n") == 1


def test_page_of_step_plan_files_holds_the_declared_keys(hooks: ModuleType) -> None:  # noqa: F811
    text = (ROOT / "docs" / "reference" / "step-plan-files.md").read_text("utf-8")
    assert text == hooks.with_key_tables(text), "write the page anew: python tools/docs_hooks.py"
    for key in ("track", "vertical_time", "height_range"):
        assert f"| `{key}` |" in text


def test_example_step_planner_is_short() -> None:
    program = next(
        block.body for block in blocks_of(HOWTO.read_text("utf-8")) if block.kind == "python" and block.title
    )
    lines = [line for line in program.splitlines() if line.strip()]
    assert len(lines) <= 40


@pytest.mark.slow
def test_commands_of_the_step_planner_page_run(tmp_path: Path) -> None:
    blocks = list(blocks_of(HOWTO.read_text("utf-8")))
    for block in blocks:
        if block.title:
            (tmp_path / block.title).parent.mkdir(exist_ok=True)
            (tmp_path / block.title).write_text(block.body, "utf-8")
    commands = [words for block in blocks for words in commands_of(Block(block.kind, block.body, 0, None, ""))]
    assert [words[:2] for words in commands] == [["list", "step-planners"], ["plan", "steps"]]
    rejected = roboyard(tmp_path, *commands[1])
    assert rejected.returncode == 2
    assert "no step planner 'patient'" in rejected.stderr
    install(tmp_path / "patient_planner", tmp_path / "site")
    for words in commands:
        result = roboyard(tmp_path, *words)
        assert result.returncode == 0, result.stdout + result.stderr
