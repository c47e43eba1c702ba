"""The page of commands holds the commands and options of the program; the page of the command line its exit codes."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
import typer

from roboyard.cli.app import make_app
from roboyard.cli.exit_codes import EXIT_CODE_MEANINGS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "cli.md").read_text()


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    """tools/docs_hooks.py, which is in no package."""
    spec = importlib.util.spec_from_file_location("tools_docs_hooks", ROOT / "tools" / "docs_hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_command_has_a_section_with_its_options(hooks: ModuleType) -> None:
    path, text = hooks.make_command_page()
    sections = dict(section.split("\n", 1) for section in text.split("\n## ")[1:])
    commands = dict(hooks.iterate_commands(typer.main.get_command(make_app())))
    assert sections.keys() == commands.keys()
    assert len(commands) > 80
    for words, command in commands.items():
        documented = set(re.findall(r"`(--[\w-]+)`", sections[words].partition("| option |")[2]))
        declared = {name for one in command.params for name in [*one.opts, *one.secondary_opts] if name[:2] == "--"}
        assert documented == declared, words
    assert f"Commands: {path}" in (ROOT / "mkdocs.yml").read_text()


def test_exit_codes_are_those_of_the_program() -> None:
    table = PAGE.partition("## Exit codes")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| (\d+) \| (.+) \|$", table, re.MULTILINE))
    assert rows == {str(int(code)): meaning for code, meaning in EXIT_CODE_MEANINGS.items()}


def test_named_commands_and_options_exist(hooks: ModuleType) -> None:
    commands = dict(hooks.iterate_commands(typer.main.get_command(make_app())))
    options = {name for command in commands.values() for one in command.params for name in [*one.opts]}
    named = set(re.findall(r"`(--[a-z][\w-]+)", PAGE)) - {"--install-completion", "--show-completion", "--help"}
    assert named <= options
    groups = {words.split(" ")[0] for words in commands}
    assert set(re.findall(r"`roboyard ([a-z]+)", PAGE)) <= groups
