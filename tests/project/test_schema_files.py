"""The JSON Schemas in the package are those that the program makes, and every YAML file names its own."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from roboyard.cli.commands.schema import FILE_TYPES, format_schema, make_schema
from roboyard.config import read_yaml, schema_comment, schema_rows
from roboyard.scenarios.faults.schema import FAULTS
from roboyard.scenarios.operator import ScriptStep
from roboyard.scenarios.schema import complete_config_class

ROOT = Path(__file__).resolve().parents[2]


def _load_tool() -> Any:
    spec = importlib.util.spec_from_file_location("write_schemas", ROOT / "tools" / "write_schemas.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(ROOT / "tools"))  # it imports another tool
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "tools"))
    return module


TOOL = _load_tool()
FILES: dict[Path, str] = TOOL.yaml_files()


def test_schemas_in_the_package_are_those_that_the_program_makes() -> None:
    for kind in FILE_TYPES:
        written = (TOOL.SCHEMAS / f"{kind}.schema.json").read_text("utf-8")
        assert written == format_schema(make_schema(kind)), "run tools/write_schemas.py"
    assert {path.name for path in TOOL.SCHEMAS.iterdir()} == {f"{kind}.schema.json" for kind in FILE_TYPES}


def test_every_yaml_file_of_the_repository_has_a_schema() -> None:
    command = ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", "src", "examples"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    paths = {ROOT / name for name in listed if name.endswith((".yaml", ".yml")) and (ROOT / name).is_file()}
    assert paths <= FILES.keys()
    assert len(FILES) > 80
    assert set(FILES.values()) == set(FILE_TYPES) - {"steps"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_file_names_its_schema_in_the_first_line_and_keeps_to_it(path: Path) -> None:
    kind = FILES[path]
    first_line = path.read_text("utf-8").splitlines()[0]
    named = (path.parent / first_line.removeprefix("# yaml-language-server: $schema=")).resolve()
    assert named == (TOOL.SCHEMAS / f"{kind}.schema.json").resolve(), "run tools/write_schemas.py"
    schema = json.loads(named.read_text("utf-8"))
    errors = [f"{one.json_path}: {one.message}" for one in Draft202012Validator(schema).iter_errors(_content(path))]
    assert not errors


def _content(path: Path) -> Any:
    return read_yaml(path).to_data()


@pytest.mark.parametrize("kind", FILE_TYPES)
def test_comment_of_written_files_leads_to_the_installed_schema(kind: str) -> None:
    mark, _, path = schema_comment(kind).strip().partition("=")
    assert mark == "# yaml-language-server: $schema"
    assert Path(path).is_absolute()
    assert json.loads(Path(path).read_text("utf-8"))["title"] == f"Roboyard {kind} file"


def test_page_of_scenario_files_has_every_key() -> None:
    page = (ROOT / "docs" / TOOL.SCENARIO_PAGE).read_text("utf-8")
    assert page == TOOL.make_scenario_page(), "run tools/write_schemas.py"
    for row in schema_rows(complete_config_class()):
        if not row.key.startswith(("faults[", "operator")):
            assert f"| `{row.key}` |" in page
    steps = {field.name for field in fields(ScriptStep)}
    faults = set(FAULTS.names())
    for name in steps | faults:
        assert f"`{name}`" in page
