"""The package replaces files of the user through one atomic write; what writes in place is listed with its reason."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "roboyard"

IN_PLACE = {
    "bus/socket/registry.py": "an entry of a live run, made new",
    "cli/revisions.py": "unpacks a revision into a temporary folder",
    "compute/kernel_folders.py": "a file that is only locked",
    "config/atomic_file.py": "the atomic write itself",
    "mapping/graph_slam/map_file.py": "writes to an atomic path",
    "mapping/map_files.py": "writes to an atomic path",
    "mapping/trajectory.py": "writes to an atomic path",
    "record/compressed_files.py": "unpacks into a temporary folder",
    "record/mcap_writer.py": "a recording grows while it is made, so that a killed run leaves one",
    "scenarios/batch/folder.py": "results are appended",
    "scenarios/batch/worker.py": "an archive in memory",
}
"""Modules that write files in another way, and why."""
RUN_FOLDERS = ("runfolder(", "run_folder", "folder", "written", "self")
"""How calls of `RunFolder.write_text` begin, which is atomic."""


def writes_in_place(tree: ast.Module) -> bool:
    """Whether a module calls ``write_text``, ``write_bytes`` of a path, or opens something for writing."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        owner = ast.unparse(node.func.value).lower() if isinstance(node.func, ast.Attribute) else ""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name == "write_bytes" or (name == "write_text" and owner and not owner.startswith(RUN_FOLDERS)):
            return True
        if name == "open":
            texts = [value.value for value in ast.walk(node) if isinstance(value, ast.Constant)]
            if any(isinstance(text, str) and text.strip("bt+") in ("w", "a", "x") for text in texts):
                return True
    return False


def test_files_are_written_through_the_atomic_write() -> None:
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if writes_in_place(ast.parse(path.read_text("utf-8")))
    }
    assert found == set(IN_PLACE), "use roboyard.config.write_atomic or atomic_path, or list the module with its reason"


@pytest.mark.parametrize(
    "code",
    ["path.write_text(text)", "path.write_bytes(data)", "open(path, 'w')", "path.open('wb')", "path.open(mode='a')"],
)
def test_write_in_place_is_found(code: str) -> None:
    assert writes_in_place(ast.parse(code))
    assert not writes_in_place(ast.parse("write_atomic(path, text); path.open('rb'); open(path)"))
