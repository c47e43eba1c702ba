"""Which room may import which: the contracts hold, and they do catch what they are there to catch."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[2]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_contracts_hold() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def skeleton(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package of the same name with the required rooms, all empty, under the same contracts."""
    folder = tmp_path_factory.mktemp("skeleton")
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    rooms = re.findall(r"\w+", " ".join(config["contracts"][0]["layers"]))
    for room in rooms:
        (folder / "roboyard" / room / "nodes").mkdir(parents=True)
        (folder / "roboyard" / room / "__init__.py").touch()
        (folder / "roboyard" / room / "nodes" / "__init__.py").touch()
    named = [f"{room}.{name}" for contract in config["contracts"][1:] for room in contract.get("containers", [])
             for name in re.findall(r"[\w.]+", " ".join(contract["layers"]))]  # fmt: skip
    named += [name for contract in config["contracts"] for name in contract.get("forbidden_modules", [])]
    for name in named:
        *packages, module = name.removeprefix("roboyard.").split(".")
        place = (folder / "roboyard").joinpath(*packages)
        place.mkdir(exist_ok=True)
        (place / "__init__.py").touch()
        if not (place / module).is_dir():
            (place / f"{module}.py").touch()
    (folder / "roboyard" / "__init__.py").touch()
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.mark.parametrize(
    ("module", "imported", "allowed"),
    [
        ("cli/verb.py", "scenarios", True),
        ("control/nodes/base.py", "bus", True),
        ("simulation/nodes/__init__.py", "messages", True),
        ("control/wheels.py", "geometry", True),
        ("control/wheels.py", "bus", False),
        ("control/__init__.py", "messages", False),
        ("safety/deep/inside.py", "bus.node", False),
        ("control/wheels.py", "simulation", False),
        ("simulation/hardware.py", "physics", True),
        ("people/hands.py", "physics", True),
        ("people/hands.py", "simulation", False),
        ("sensors/lidar.py", "simulation", False),
        ("sensors/lidar.py", "people", False),
        ("physics/world.py", "sensors", False),
        ("physics/world.py", "rendering", False),
        ("rendering/cameras.py", "physics", False),
        ("people/body.py", "messages", False),
        ("record/mcap_writer.py", "description", False),
        ("geometry/poses.py", "bus", False),
        ("bus/node.py", "control", False),
        ("errors/__init__.py", "config", False),
        ("newroom/__init__.py", "geometry", False),
        ("scenarios/resolve.py", "walking.movement", False),
        ("bringup/robot_nodes.py", "walking", False),
        ("bringup/joint_groups.py", "manipulation", True),
        ("cli/commands/plan_path.py", "navigation.drawing", True),
        ("cli/commands/plan_path.py", "walking.movement", False),
    ],
)
def test_contracts_find_forbidden_imports(skeleton: Path, module: str, imported: str, allowed: bool) -> None:
    path = skeleton / "roboyard" / module
    old = path.read_text() if path.exists() else None
    target = skeleton / "roboyard" / imported.replace(".", "/")
    try:
        for made in (path.parent, target):
            made.mkdir(parents=True, exist_ok=True)
            (made / "__init__.py").touch()
        path.write_text(f"import roboyard.{imported}\n")
        done = lint(skeleton)
        assert (done.returncode == 0) == allowed, done.stdout
    finally:
        path.unlink() if old is None else path.write_text(old)
        for folder in (skeleton / "roboyard/newroom", skeleton / "roboyard/safety/deep"):
            shutil.rmtree(folder, ignore_errors=True)


def test_algorithms_do_not_import_nodes() -> None:
    graph = grimp.build_graph("roboyard", include_external_packages=False)
    for room in ("control", "simulation", "safety", "localization"):
        # the room's own package offers functions of its nodes, such as `slam` of a log, and loads them on first use
        for module in graph.modules:
            if not module.startswith(f"roboyard.{room}.") or module.startswith(f"roboyard.{room}.nodes"):
                continue
            leaning = [name for name in graph.find_modules_directly_imported_by(module) if ".nodes" in name]
            assert not leaning, f"{module} imports {leaning}: plain algorithms must work without the bus"
