"""Write what follows from the declarations of files: JSON Schemas, the first line of YAML files, the scenarios' page.

``tools/write_schemas.py`` is run after a change of what files may say. It writes the JSON Schemas of all kinds of files
into the package, the first line of the repository's YAML files, and the page ``docs/reference/scenarios.md``. A YAML
file names its schema in its first line by a path relative to the file, so that editors find it without a network.
"""

from __future__ import annotations

import os
from pathlib import Path

from docs_hooks import SCENARIO_PAGE, make_scenario_page

from roboyard.cli.commands.schema import FILE_TYPES, format_schema, make_schema

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "roboyard"
SCHEMAS = PACKAGE / "schemas"
COURTYARD = ROOT / "examples" / "roboyard-courtyard" / "src" / "roboyard_courtyard"
MARK = "# yaml-language-server: $schema="


def yaml_files() -> dict[Path, str]:
    """Return all YAML files of the repository that have a schema, with their kinds."""
    patterns = {
        "scenario": ("scenarios/library/*.yaml", "scenarios/library/bases/*.yaml"),
        "operator": ("scenarios/library/operators/*.yaml",),
        "tasks": ("scenarios/library/missions/*.yaml",),
        "animation": ("people/clips/*.yaml",),
        "gamepad": ("control/teleoperation/maps/*.yaml",),
    }
    files = {path: kind for kind, globs in patterns.items() for glob in globs for path in PACKAGE.glob(glob)}
    files |= dict.fromkeys(COURTYARD.glob("scenarios/*.yaml"), "scenario")
    for path in (*PACKAGE.glob("robots/*/*.yaml"), *COURTYARD.glob("robots/*/*.yaml")):
        files[path] = "robot" if path.stem == path.parent.name else path.stem
    return files


def first_line(path: Path, kind: str) -> str:
    """Return the line by which an editor finds the schema of a file."""
    schema = SCHEMAS / f"{kind}.schema.json"
    return f"{MARK}{Path(os.path.relpath(schema, path.parent)).as_posix()}\n"


def main() -> None:
    """Write the schemas, the first lines and the page."""
    SCHEMAS.mkdir(exist_ok=True)
    for kind in FILE_TYPES:
        (SCHEMAS / f"{kind}.schema.json").write_text(format_schema(make_schema(kind)), encoding="utf-8")
    for path, kind in yaml_files().items():
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        if lines[0].startswith(MARK):
            del lines[0]
        path.write_text(first_line(path, kind) + "".join(lines), encoding="utf-8")
    (ROOT / "docs" / SCENARIO_PAGE).write_text(make_scenario_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
