"""Planners and controllers of other packages drive a robot, as their pages say; reference pages hold the declarations.

The files of a page are installed as a package, and the commands of the page run.
"""

import re
from pathlib import Path

import pytest
from tests.project.test_docs import ROOT, Block, blocks_of, commands_of
from tests.project.test_node_pages import hooks  # noqa: F401
from tests.sensors.test_registry_package import install, roboyard

from roboyard.navigation import errors
from roboyard.navigation.plugins import CONTROLLERS, PLANNERS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "package", "scenario", "message"),
    [
        ("write-a-planner", "scipy_planner", "own-planner.yaml", "no planner 'scipy_planner'"),
        ("write-a-controller", "carrot", "carrot.yaml", "no controller 'carrot'"),
    ],
)
def test_commands_of_plugin_pages_run(tmp_path: Path, page: str, package: str, scenario: str, message: str) -> None:
    blocks = list(blocks_of((ROOT / "docs" / "howto" / f"{page}.md").read_text("utf-8")))
    for block in blocks:
        if block.title:
            (tmp_path / block.title).parent.mkdir(exist_ok=True)
            (tmp_path / block.title).write_text(block.body, "utf-8")
    rejected = roboyard(tmp_path, "run", scenario)
    assert rejected.returncode == 2
    assert message in rejected.stderr
    install(tmp_path / package, tmp_path / "site")
    commands = [words for block in blocks for words in commands_of(Block(block.kind, block.body, 0, None, ""))]
    assert commands[0][:2] == ["run", scenario]
    for words in commands:
        result = roboyard(tmp_path, *words)
        assert result.returncode == 0, result.stdout + result.stderr


def test_example_controller_is_short() -> None:
    page = (ROOT / "docs" / "howto" / "write-a-controller.md").read_text("utf-8")
    program = next(block.body for block in blocks_of(page) if block.title == "carrot/carrot.py")
    assert len(program.splitlines()) <= 60


@pytest.mark.parametrize(("page", "registry"), [("planners", PLANNERS), ("controllers", CONTROLLERS)])
def test_plugin_pages_hold_what_is_registered(page, registry, hooks) -> None:  # noqa: F811
    text = (ROOT / "docs" / "reference" / f"{page}.md").read_text("utf-8")
    assert text == hooks.with_plugin_tables(text), f"write {page}.md anew: python tools/docs_hooks.py"
    for name in registry.names():
        assert f"| [`{name}`](#{name}) |" in text
        assert text.count(f"\n## {name}\n") == 1


def test_page_of_planners_holds_the_causes_and_codes_of_errors() -> None:
    text = (ROOT / "docs" / "reference" / "planners.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (\d+) \| (.*) \|$", text, re.MULTILINE)
    assert len(rows) == 7
    for cause, name, code, meaning in rows:
        error = getattr(errors, name)
        assert (error.cause, str(error.compute_path_code)) == (cause, code)
        assert (error.__doc__ or "").partition("\n")[0] == meaning
