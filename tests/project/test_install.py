"""What `make` installs: the lock file names who needs what, and the installer takes exactly that."""

import ast
import importlib.util
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tools_{name}", ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


INSTALL, LOCK, BYTECODE = tool("install"), tool("lock"), tool("bytecode")
TEXT = (ROOT / "requirements.lock").read_text("utf-8")


def names(*extras: str) -> set[str]:
    return {canonicalize_name(line.partition("==")[0]) for line in INSTALL.locked(TEXT, extras)}


def test_every_line_of_the_lock_names_its_dependents() -> None:
    lines = [line for line in TEXT.splitlines() if not line.startswith("#")]
    assert len(INSTALL.locked(TEXT, EXTRAS)) == len(lines)
    known = {"base", "build", *EXTRAS}
    for line in lines:
        assert set(line.partition("# ")[2].split(", ")) <= known, line


@pytest.mark.parametrize("extra", [None, *EXTRAS])
def test_declared_requirements_are_installed_with_their_extra(extra: str | None) -> None:
    declared = [Requirement(text) for text in (PROJECT["project"]["dependencies"] if extra is None else EXTRAS[extra])]
    found = names(*(() if extra is None else (extra,)))
    for requirement in declared:
        if requirement.name == "roboyard":
            for other in requirement.extras:
                assert names(other) <= found
        else:
            assert canonicalize_name(requirement.name) in found, requirement


def test_base_install_leaves_out_packages_of_extras() -> None:
    base = names()
    assert {"hatchling", "editables", "numpy", "coal"} <= base
    assert not {"imageio-ffmpeg", "coacd", "manifold3d", "ray", "cyclonedds", "ruff", "mkdocs"} & base
    assert names("video") - base == {"imageio-ffmpeg"}


def test_parts_hold_every_requirement_once() -> None:
    wanted = INSTALL.locked(TEXT, ("test", "docs"))
    parts = INSTALL.deal(wanted, 2)
    assert sorted(one for part in parts for one in part) == sorted(wanted)
    assert abs(len(parts[0]) - len(parts[1])) <= 1


def test_closure_follows_extras_and_markers() -> None:
    found = {
        "robot": {"requires_dist": ["arm>=1", "wheel[rim]", "gone; python_version < '3'", "film; extra == 'video'"]},
        "arm": {"requires_dist": ["bolt", "paint; extra == 'shine'"]},
        "wheel": {"requires_dist": ["tyre; extra == 'rim'", "spoke; extra == 'old'"]},
        "film": {"requires_dist": ["arm", "codec"]},
        "bolt": {}, "tyre": {}, "codec": {}, "maker": {"requires_dist": ["bolt", "glue"]}, "glue": {},
    }  # fmt: skip
    needs = LOCK.who_needs("robot", ["video"], ["maker"], found)
    base = {name: ["base"] for name in ("robot", "arm", "wheel", "bolt", "tyre")}
    assert needs == base | {"film": ["video"], "codec": ["video"], "maker": ["build"], "glue": ["build"]}


def test_failed_pip_ends_the_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "pip.py"
    program.write_text("import sys; sys.exit('part-1' in sys.argv[-1])")
    monkeypatch.setattr(INSTALL, "PIP", [sys.executable, str(program)])
    assert INSTALL.install_locked(["a==1"], tmp_path) == 1
    assert INSTALL.main(["video"]) == 1


def test_imports_in_functions_are_found_without_own_ones() -> None:
    tree = ast.parse(
        "import os\nfrom roboyard.bus import Bus\nfrom . import near\ndef f():\n from a.b import c\n import d"
    )
    assert set(BYTECODE.imported(tree)) == {"a.b", "a.b.c", "d"}


@pytest.mark.parametrize("switched_off", [True, False])
def test_bytecode_is_kept_where_python_writes_none(switched_off: bool, tmp_path: Path) -> None:
    source, others = tmp_path / "source", tmp_path / "others"
    for folder in (source, others):
        folder.mkdir()
    (source / "module.py").write_text("def f():\n    import wanted\n    import broken\n")
    for name, text in (("wanted", ""), ("broken", "raise RuntimeError('no display')"), ("idle", "")):
        (others / f"{name}.py").write_text(text)
    code = (
        f"import sys, pathlib; sys.path.insert(0, {str(ROOT / 'tools')!r}); import bytecode; "
        f"sys.exit(bytecode.main(pathlib.Path({str(source)!r})))"
    )
    environment = {name: value for name, value in os.environ.items() if name != BYTECODE.SWITCH}
    environment |= {"PYTHONPATH": str(others)} | ({BYTECODE.SWITCH: "1"} if switched_off else {})
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
    kept = {file.name.partition(".")[0] for file in others.rglob("*.pyc")}
    assert "idle" not in kept
    assert ("wanted" in kept) == switched_off
