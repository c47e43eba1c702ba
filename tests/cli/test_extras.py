"""A command that needs an extra which is not installed says in one line how to install it, and exits with code 2."""

import json
import pickle
import re
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
import trimesh
from tests.cli.conftest import Command

from roboyard.behavior.nodes.groot_server import GrootServer
from roboyard.errors import InputError, MissingExtraError, import_extra
from roboyard.simulation.video.mp4_writer import find_ffmpeg

SOURCE = Path(find_ffmpeg.__code__.co_filename).parents[2]
CALL = re.compile(r'(?:import_extra\(\s*"?\w+"?,|MissingExtraError\(\s*f?"[^"]*",)\s*"(\w+)"')


class Blocker:
    """A finder that knows no module of some packages, as where they are not installed."""

    def __init__(self, packages: tuple[str, ...]) -> None:
        self.packages = packages

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in self.packages:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def block(patch: pytest.MonkeyPatch, *packages: str) -> None:
    """Let importing these packages fail."""
    remove_modules(patch, *packages)
    patch.setattr(sys, "meta_path", [Blocker(packages), *sys.meta_path])


def remove_modules(patch: pytest.MonkeyPatch, *modules: str) -> None:
    """Let these modules be imported anew."""
    for name in list(sys.modules):
        if any(name == module or name.startswith(f"{module}.") for module in modules):
            patch.delitem(sys.modules, name)


@pytest.fixture
def notched(tmp_path: Path) -> Path:
    """A block with a notch, which is not convex: two boxes side by side, joined into one closed surface."""
    low, high = trimesh.creation.box((2, 1, 1)), trimesh.creation.box((1, 1, 1))
    high.apply_translation((0.5, 0, 1))
    file = tmp_path / "notched.stl"
    trimesh.util.concatenate([low, high]).export(file)
    return file


@pytest.mark.parametrize(
    ("module", "extra", "words"),
    [
        ("coacd", "mesh", ("mesh", "collision", "FILE", "--shapes", "decompose", "--max-shapes", "4")),
        ("manifold3d", "mesh", ("mesh", "split", "FILE", "--plane", "x=0.1")),
        ("imageio_ffmpeg", "video", ("run", "rover-drive", "--smoke", "--video", "--out", "made")),
        ("dynamixel_sdk", "hardware", ("bringup", "akrobat", "--port", "/dev/null", "--check")),
        ("ray", "batch", ("batch", "rover-drive", "--runs", "1", "--cluster", "local", "--out", "made")),
    ],
)
def test_command_names_its_missing_extra(
    module: str, extra: str, words: tuple[str, ...], command: Command, notched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    block(monkeypatch, module)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("IMAGEIO_FFMPEG_EXE", raising=False)
    process = command(*(str(notched) if word == "FILE" else word for word in words))
    assert process.code == 2, process.err
    assert f"needs the extra '{extra}', which is not installed (pip install 'roboyard[{extra}]'" in process.error
    assert not Path("made").exists()


def test_ros2_bridge_names_its_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    block(monkeypatch, "cyclonedds")
    remove_modules(monkeypatch, "roboyard.bridges.ros2")
    with pytest.raises(MissingExtraError, match=r"ROS 2 needs the extra 'ros2'.*roboyard\[ros2\]"):
        import_extra("roboyard.bridges.ros2.bridge", "none", "never shown")


def test_incompatible_cyclonedds_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = pytest.importorskip("cyclonedds._clayer", reason="cyclonedds is not installed")
    monkeypatch.delattr(layer, "ddspy_write")
    remove_modules(monkeypatch, "roboyard.bridges.ros2")
    found = distribution("cyclonedds").version
    with pytest.raises(InputError, match=rf"cyclonedds {found} lacks .*ddspy_write.*pip install 'cyclonedds"):
        import_extra("roboyard.bridges.ros2.bridge", "none", "never shown")


def test_groot_names_its_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    block(monkeypatch, "zmq")
    with pytest.raises(MissingExtraError, match=r"Groot2 needs the extra 'groot'"):
        GrootServer(None, 1, print)  # type: ignore[arg-type]


def test_installed_ffmpeg_replaces_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    block(monkeypatch, "imageio_ffmpeg")
    monkeypatch.delenv("IMAGEIO_FFMPEG_EXE", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtraError, match="an ffmpeg in PATH"):
        find_ffmpeg()
    program = tmp_path / "ffmpeg"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert find_ffmpeg() == str(program)
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", "/opt/ffmpeg")
    assert find_ffmpeg() == "/opt/ffmpeg"


def test_missing_extra_error_is_pickled_whole() -> None:
    error = MissingExtraError("a thing", "mesh", location="here", alternative="another way")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_every_extra_named_in_the_code_exists() -> None:
    texts = [file.read_text("utf-8") for file in SOURCE.rglob("*.py")]
    named = {name for text in texts for name in CALL.findall(text)}
    assert {"video", "mesh", "ros2", "batch", "gym", "hardware", "groot", "planning"} <= named
    declared_extras = set(distribution("roboyard").metadata.get_all("Provides-Extra") or ())
    assert named <= declared_extras


def test_installed_extra_is_imported() -> None:
    assert import_extra("json", "mesh", "never shown") is json
