"""Short scenarios, and finished runs of them that many tests may read."""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

import yaml

from roboyard.scenarios import LoadedScenario, RunResult, load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions, SnapshotRequest


class ScenarioBuilder:
    """Writes a scenario file step by step.

    Args:
        robot: Model of the main robot, which is named after it.
        world: Name of the world.
        duration: How long it takes [s].
    """

    def __init__(self, robot: str = "rover", world: str = "empty", *, duration: float = 0.6) -> None:
        self._robot = robot
        self.document: dict[str, Any] = {"world": world, "robots": {robot: {"model": robot}}, "duration": duration}

    def drive(self, linear: float = 0.5, angular: float = 0.0, *, duration: float = 5.0) -> Self:
        """Let the operator drive straight or in a curve [m/s, rad/s, s]; further calls follow one after the other."""
        step: dict[str, Any] = {"linear": linear, "duration": duration}
        if angular:
            step["angular"] = angular
        self.document.setdefault("operator", []).append({"drive": step})
        return self

    def with_fault(self, kind: str, *, time: float = 0.2, **options: Any) -> Self:
        """Let a fault happen at a time [s]; ``options`` as in a scenario file."""
        self.document.setdefault("faults", []).append({"time": time, "type": kind, **options})
        return self

    def criterion(self, name: str, expression: str) -> Self:
        """Ask for an expression over metrics to hold."""
        self.document.setdefault("criteria", {})[name] = expression
        return self

    def robot(self, name: str, model: str = "rover", *, at: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Self:
        """Put a further robot somewhere: x, y [m], heading [rad]."""
        self.document["robots"][name] = {"model": model, "pose": list(at)}
        return self

    def set(self, **keys: Any) -> Self:
        """Set top-level keys of the file, e.g. ``stop_when="path_length > 0.1"``."""
        self.document.update(keys)
        return self

    def text(self) -> str:
        """The file's text."""
        return yaml.safe_dump(self.document, sort_keys=False, allow_unicode=True)

    def write(self, path: Path) -> Path:
        """Write it to a file, or into a folder as ``short.yaml``; returns the file."""
        path = path / "short.yaml" if path.is_dir() else path
        path.write_text(self.text(), "utf-8")
        return path

    def load(self, folder: Path) -> LoadedScenario:
        """Write it into a folder and read it as `roboyard run` does."""
        return load_scenario(self.write(folder))


def short_scenario(*, duration: float = 0.6) -> ScenarioBuilder:
    """A rover that drives straight in the empty world, with one criterion that holds."""
    return ScenarioBuilder(duration=duration).drive(0.5).criterion("moves", "path_length > 0.001")


@dataclass(frozen=True)
class RunFolder:
    """A finished run: tests read it and leave it as it is.

    Attributes:
        path: Its folder.
        outcome: What `run_scenario` returned.
    """

    path: Path
    outcome: RunResult

    @property
    def recording(self) -> Path:
        """Its recording."""
        return self.path / "recording.mcap"

    def copy_to(self, folder: Path) -> Path:
        """A copy in a new folder, for a test that changes it."""
        return Path(shutil.copytree(self.path, folder))


_finished: dict[Path, dict[str, tuple[int, int]]] = {}


def run_cached(name: str = "", seconds: float = 0.0, seed: int | None = None, *overrides: str) -> RunFolder:
    """A finished run of a scenario with its report; a worker process runs it once.

    Args:
        name: A scenario's name; "": the short scenario.
        seconds: How long it takes [s]; 0: as the scenario says.
        seed: Its seed; None: as the scenario says.
        overrides: Further ``key=value``.

    Raises:
        AssertionError: a test changed the folder since it was made.
    """
    folder = _run_once(name, seconds, seed, overrides)
    now = _signature(folder.path)
    assert now == _finished[folder.path], (
        f"a test changed the shared run {folder.path}: "
        f"{sorted(dict(now.items() ^ _finished[folder.path].items()))} (use copy_to)"
    )
    return folder


@cache
def _run_once(name: str, seconds: float, seed: int | None, overrides: tuple[str, ...]) -> RunFolder:
    base = Path(tempfile.mkdtemp(prefix="roboyard-run-"))
    atexit.register(shutil.rmtree, base, ignore_errors=True)
    scenario = name or short_scenario().write(base)
    changes = [*overrides]
    if seconds:
        changes.append(f"duration={seconds}")
    if seed is not None:
        changes.append(f"seed={seed}")
    outcome = run_scenario(load_scenario(scenario, overrides=changes), RunOptions(out=base / "run", serve=False))
    folder = RunFolder(base / "run", outcome)
    _finished[folder.path] = _signature(folder.path)
    return folder


def _signature(folder: Path) -> dict[str, tuple[int, int]]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


def snapshot_requests(folder: Path, times: Iterable[float]) -> tuple[SnapshotRequest, ...]:
    """Return requests to save a snapshot at each time [s], into the file ``TIME.state`` of a folder."""
    return tuple(SnapshotRequest(time, folder / f"{time}.state") for time in times)


def recording_digest(folder: Path) -> str:
    """SHA-256 of a run's recording: equal for runs that are equal byte for byte."""
    return hashlib.sha256((folder / "recording.mcap").read_bytes()).hexdigest()
