"""The promise: same scenario, seed, dependencies, CPU class and renderer give the same recording, byte for byte."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.scenarios import recording_digest

from roboyard.scenarios import load_spec, run_scenario
from roboyard.scenarios.catalog import scenarios

# Imports what runs need once; then runs each scenario that it reads in a copy of itself that has run nothing before.
_CHILD = """
import os, sys, traceback
from roboyard.scenarios import load_spec, run_scenario
for line in sys.stdin:
    name, folder = line.rstrip("\\n").split("\\t")
    copy = os.fork()
    if copy == 0:
        try:
            run_scenario(load_spec(name, smoke=True), out=folder, report=False, serve=False)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]), flush=True)
"""


class FreshProcesses:
    """Runs scenarios in processes with other hash seed, folder, home and time zone, each in one that has run nothing.

    Args:
        home: An empty folder, which becomes their home and working folder.
    """

    def __init__(self, home: Path) -> None:
        environment = {**os.environ, "PYTHONHASHSEED": "77", "HOME": str(home), "TZ": "UTC+7"}
        # compiled kernels may be shared: what they compute is what is tested, not how long compiling takes
        environment.setdefault("XDG_CACHE_HOME", str(Path("~/.cache").expanduser()))
        self._errors = home / "errors.txt"
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _CHILD], cwd=home, env=environment, text=True, bufsize=1,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip

    def start(self, name: str, folder: Path) -> None:
        """Let one run a scenario's smoke variant into a new folder."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name}\t{folder}\n")

    def wait(self) -> None:
        """Wait until the run that was started has ended; fails with what it wrote if it has not ended well."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "0\n", self._errors.read_text()

    def close(self) -> None:
        """End them."""
        try:
            self._process.communicate(timeout=60.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


@pytest.fixture(scope="module")
def fresh_processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FreshProcesses]:
    """Copies of one interpreter, which has imported everything and run nothing."""
    processes = FreshProcesses(tmp_path_factory.mktemp("home"))
    yield processes
    processes.close()


SOONER = {"akrobat-free", "rover-homecoming"}
"""One that walks and one that drives are tried with the quick tests; the others with the slow ones."""
NAMES = [pytest.param(name, marks=[] if name in SOONER else [pytest.mark.slow]) for name in sorted(scenarios())]


@pytest.mark.parametrize("name", NAMES)
def test_smoke_runs_are_byte_identical(name: str, fresh_processes: FreshProcesses, tmp_path: Path) -> None:
    """In a fresh process with other hash seed, folder, home and time zone, in this used one, and from the middle on."""
    fresh_processes.start(name, tmp_path / "fresh")
    spec = load_spec(name, smoke=True)
    middle = spec.scenario.duration / 2.0 + 0.0123
    state = tmp_path / "state"
    here = run_scenario(spec, out=tmp_path / "here", save_states=[(middle, state)], report=False, serve=False)
    assert here.state == "done", here.error
    later = run_scenario(spec, out=tmp_path / "later", from_state=state, report=False, serve=False)
    fresh_processes.wait()
    digests = {run: recording_digest(tmp_path / run) for run in ("fresh", "here", "later")}
    assert len(set(digests.values())) == 1, digests
    assert later.metrics["criteria"] == here.metrics["criteria"]


def test_the_seed_matters(tmp_path: Path) -> None:
    for seed in (0, 1):
        spec = load_spec("rover-drive", smoke=True, overrides=["duration=0.5"]).seeded(seed)
        run_scenario(spec, out=tmp_path / str(seed), report=False, serve=False)
    assert recording_digest(tmp_path / "0") != recording_digest(tmp_path / "1")
