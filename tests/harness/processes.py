"""Runs in processes that have run nothing before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# Imports what runs need once; then runs each scenario that it reads in a copy of itself.
_PROGRAM = """
import json, os, sys, traceback
from roboyard.compute import expected_kernels
from roboyard.compute.jit import listen_to_first_calls
from roboyard.scenarios import RunObserver, RunOptions, load_scenario, run_scenario

def run(scenario, folder, smoke, from_snapshot):
    before, unexpected = [], []
    called = before

    def note(call):
        if call.name.startswith("roboyard.") and call.name not in expected_kernels():
            called.append(call.name)

    def start(run):
        nonlocal called
        called = unexpected
        unexpected.extend(name for name in before if name not in expected_kernels())

    with listen_to_first_calls(note):
        outcome = run_scenario(
            load_scenario(scenario, smoke=smoke),
            RunOptions(out=folder, from_snapshot=from_snapshot, write_report=False, serve=False),
            observer=RunObserver(on_started=start),
        )
    return {
        "state": outcome.state, "reason": outcome.failure_reason, "unexpected_kernels": unexpected,
        "n_expected_kernels": len(expected_kernels()),
    }

for line in sys.stdin:
    copy = os.fork()
    if copy == 0:
        code = 1
        try:
            print(json.dumps(run(**json.loads(line))), flush=True)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]), flush=True)
"""


@dataclass(frozen=True)
class FreshRun:
    """How a run in a fresh process ended.

    Attributes:
        state: As of its `RunResult`.
        reason: Why it did not succeed; "" where it did.
        unexpected_kernels: Names of kernels that it called before its clock ran and had not announced by then, or later
            and had not announced before.
        n_expected_kernels: Number of kernels that it announced.
    """

    state: str
    reason: str
    unexpected_kernels: list[str]
    n_expected_kernels: int


class FreshProcesses:
    """Runs scenarios, each in a process that has run nothing before, with another home and time zone.

    One interpreter imports what runs need; each run happens in a copy of it.

    Args:
        home: An empty folder, which becomes their home and working folder.
        hash_seed: Of Python's hashes in them.
    """

    def __init__(self, home: Path, *, hash_seed: int = 77) -> None:
        environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "HOME": str(home), "TZ": "UTC+7"}
        # compiled kernels may be shared: what they compute is what is tested, not how long compiling takes
        environment.setdefault("XDG_CACHE_HOME", str(Path("~/.cache").expanduser()))
        self._errors = home / "errors.txt"
        self._is_running = False
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM], cwd=home, env=environment, text=True, bufsize=1,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip

    def start(self, scenario: str | Path, folder: Path, *, smoke: bool = False, from_state: Path | None = None) -> None:
        """Let one run a scenario into a new folder; one whose end nobody waited for ends before."""
        assert self._process.stdin is not None
        if self._is_running:
            self._read_result()
        self._is_running = True
        job = {
            "scenario": str(scenario), "folder": str(folder), "smoke": smoke,
            "from_snapshot": None if from_state is None else str(from_state),
        }  # fmt: skip
        self._process.stdin.write(json.dumps(job) + "\n")

    def wait(self) -> FreshRun:
        """Wait until the run that was started has ended; fails with what it wrote if it raised an error."""
        result, code = self._read_result()
        assert code == 0, f"the run ended with exit code {code}\n{self._errors.read_text()}"
        return FreshRun(**json.loads(result))

    def _read_result(self) -> tuple[str, int]:
        """What the run that was started last has sent, if anything, and its exit code."""
        assert self._process.stdout is not None
        self._is_running = False
        line = self._process.stdout.readline()
        if not line.startswith("{"):
            return "", int(line)
        return line, int(self._process.stdout.readline())

    def run(self, scenario: str | Path, folder: Path, *, from_state: Path | None = None) -> FreshRun:
        """Run a scenario into a new folder, and wait for its end."""
        self.start(scenario, folder, from_state=from_state)
        return self.wait()

    def close(self) -> None:
        """End them."""
        try:
            self._process.communicate(timeout=60.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
