"""Runs the scenarios' smoke variants at a revision, each in a process of its own, and keeps what they leave.

A kept folder is found again by commit, versions of the packages that a recording's bytes depend on, class of
processor, seed and scenario.  Runs of a working tree with changes are not kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from threading import Event
from typing import Any

from roboyard.cli.revisions import Revision
from roboyard.errors import InputError, RunError

FILES = ("recording.mcap", "metrics.json", "scenario.yaml")
"""What is kept of a run's folder."""
OWN_SEED = "own"
"""The seed that each scenario names itself, in names of folders."""
_SCRATCH = ".scratch-"


@dataclass(frozen=True, slots=True)
class SmokeRun:
    """A scenario that was run at a revision.

    Attributes:
        scenario: Its name there.
        folder: Where `FILES` lie, as far as the run left them.
        error: Why it came to no end; None if it did, whatever its criteria said.
        is_kept: Whether an earlier comparison had left it.
    """

    scenario: str
    folder: Path
    error: str | None = None
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """A scenario to be run.

    Attributes:
        revision: Where.
        words: Words of the command, in which {scenario}, {seed} and {folder} stand for what belongs there.
        scenario: Its name there.
        seed: Of the run; None takes the scenario's own.
        home: Folder that runs of this revision, environment and seed are kept in.
    """

    revision: Revision
    words: Sequence[str]
    scenario: str
    seed: int | None
    home: Path

    def command(self, folder: Path) -> list[str]:
        """Arguments of the process."""
        words = list(self.words)
        if self.seed is None and "{seed}" in words:
            place = words.index("{seed}")
            del words[place - 1 : place + 1]  # the option, too
        given = {"{scenario}": self.scenario, "{seed}": str(self.seed), "{folder}": str(folder)}
        return self.revision.command([given.get(word, word) for word in words])


def default_store() -> Path:
    """Where recordings are kept: ``roboyard/recordings`` in the XDG cache."""
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(xdg) if xdg.startswith("/") else Path.home() / ".cache") / "roboyard" / "recordings"


def home_of(revision: Revision, words: Sequence[str], seed: int | None, store: Path, scratch: Path) -> Path:
    """The folder that keeps runs of a revision by this environment, machine and seed.

    Args:
        revision: Of the runs.
        words: Of a Python that prints what else a recording's bytes depend on.
        seed: Of the runs.
        store: Where all of them are kept.
        scratch: Taken instead where a working tree has changes, which no name tells apart.

    Raises:
        InputError: the interpreter cannot run Roboyard.
    """
    if not revision.is_clean:
        return scratch / f"tree-{OWN_SEED if seed is None else seed}"
    done = _call([str(revision.python), "-P", *words], revision.environment)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        valid = "a Python of Roboyard's environment; [commands] in the table of renames says how it is asked"
        raise InputError(f"{revision.python} cannot run Roboyard at {revision.label}: {reason}", valid=valid)
    machine = hashlib.sha256(done.stdout.encode()).hexdigest()[:10]
    return store / f"{revision.commit[:12]}-{machine}-seed-{OWN_SEED if seed is None else seed}"


def list_scenarios(revision: Revision, words: Sequence[str]) -> list[str]:
    """Names of a revision's scenarios.

    Raises:
        RunError: the command fails or answers otherwise.
    """
    done = _call(revision.command(words), revision.environment)
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
        return [str(entry["name"]) for entry in answer["scenarios"]]
    except (IndexError, KeyError, TypeError, ValueError):
        reason = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        what = f"`roboyard {' '.join(words)}` does not list scenarios at {revision.label}: {reason}"
        raise RunError(what, valid="[commands] in the table of renames says how it is called") from None


def _call(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=dict(environment), capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )


class SmokeRunner:
    """Runs jobs on several cores, and says how far it is.

    Args:
        scratch: From `scratch_folder`.
        workers: How many at once.
        limit: Seconds that a run may take.
        say: Takes a line of progress.
    """

    def __init__(self, scratch: Path, workers: int, limit: float, say: Callable[[str], None]) -> None:
        self._scratch, self._workers, self._limit, self._say = scratch, workers, limit, say
        self._stop = Event()

    def run(self, jobs: Sequence[Job], ready: Callable[[Job, SmokeRun], None]) -> None:
        """Run all jobs that no folder is kept of.

        Args:
            jobs: In the order in which they begin.
            ready: Called in this thread for each that is done or was kept.

        Raises:
            KeyboardInterrupt: what is done stays where it is kept, what is running is ended.
        """
        left: list[Job] = []
        for job in jobs:
            kept = job.home / job.scenario
            if is_complete(kept):
                os.utime(kept)
                ready(job, SmokeRun(job.scenario, kept, is_kept=True))
            else:
                left.append(job)
        if len(left) < len(jobs):
            self._say(f"{len(jobs) - len(left)} of {len(jobs)} runs are kept from before")
        begin, done, waiting = time.monotonic(), 0, dict[Future[SmokeRun], Job]()
        with ThreadPoolExecutor(self._workers) as pool, self._stop_on_interrupt():
            try:
                waiting = {pool.submit(self._run, job): job for job in left}
                while waiting:
                    if self._stop.is_set():
                        raise KeyboardInterrupt
                    for future in wait(waiting, 0.5, return_when=FIRST_COMPLETED).done:
                        job, found = waiting.pop(future), future.result()
                        done += 1
                        seconds = (time.monotonic() - begin) * len(waiting) / done
                        rest = f"; about {_duration(seconds)} left" if waiting else ""
                        outcome = "ran" if found.error is None else f"failed ({found.error})"
                        self._say(f"[{done}/{len(left)}] {job.scenario} {outcome} at {job.revision.label}{rest}")
                        ready(job, found)
            except BaseException:
                self._stop.set()
                for future in waiting:
                    future.cancel()
                raise

    @contextmanager
    def _stop_on_interrupt(self) -> Iterator[None]:
        """Remember Ctrl-C: Python drops its exception where it arrives in a finalizer."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = signal.getsignal(signal.SIGINT)

        def stop(number: int, frame: Any) -> None:
            self._stop.set()
            if callable(previous):
                previous(number, frame)

        signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, previous)

    def _run(self, job: Job) -> SmokeRun:
        place = Path(mkdtemp(prefix=f"{job.scenario}-", dir=self._scratch))
        folder = place / "run"
        code, said = self._process(job.command(folder), job.revision.environment, place)
        if not is_complete(folder):
            return SmokeRun(job.scenario, folder, _reason(folder, code, said))
        try:
            job.home.mkdir(parents=True, exist_ok=True)
            return SmokeRun(job.scenario, _keep(folder, job.home / job.scenario))
        except OSError as error:
            raise RunError(f"a run cannot be kept: {error.strerror}", location=str(job.home)) from error

    def _process(self, command: Sequence[str], environment: Mapping[str, str], place: Path) -> tuple[int, str]:
        """Exit code and last line of a process, which is ended when the others are to stop or it takes too long."""
        output = place / "output.txt"
        with output.open("w") as said:
            process = subprocess.Popen(
                command, env=dict(environment), cwd=place, stdin=subprocess.DEVNULL, stdout=said, stderr=said
            )
            deadline = time.monotonic() + self._limit
            try:
                while True:
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(0.2)
                        break
                    if self._stop.is_set():
                        raise KeyboardInterrupt
                    if time.monotonic() > deadline:
                        return 124, f"it took more than {self._limit:g} s"
            finally:
                if process.poll() is None:
                    process.terminate()
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(10.0)
                    process.kill()
                    process.wait()
        lines = [line for line in output.read_text("utf-8", "replace").splitlines() if line.strip()]
        return process.returncode, next((line for line in lines if line.startswith("error:")), (lines or [""])[-1])


def is_complete(folder: Path) -> bool:
    """Whether a run's folder holds a run that came to its end, whatever its criteria said."""
    if not all((folder / name).is_file() for name in FILES[:2]):
        return False
    return read_metrics(folder).get("state") == "done"


def read_metrics(folder: Path) -> dict[str, Any]:
    """What a run's metrics.json says; empty where there is none."""
    try:
        found = json.loads((folder / FILES[1]).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _reason(folder: Path, code: int, said: str) -> str:
    error = read_metrics(folder).get("error")
    return " ".join(str(error or said or f"it ended with exit code {code}").split())[:300]


def _keep(folder: Path, kept: Path) -> Path:
    """Move a finished run to its place; where another process was first, that one's stays."""
    for entry in folder.iterdir():
        if entry.name not in FILES:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    if kept.exists() and not is_complete(kept):
        shutil.rmtree(kept)
    try:
        folder.rename(kept)
    except OSError:
        if not is_complete(kept):
            raise
    return kept


@contextmanager
def scratch_folder(store: Path) -> Iterator[Path]:
    """A folder beside what is kept, removed with all in it at the end; what killed processes have left goes, too.

    Raises:
        InputError: nothing can be written there.
    """
    try:
        store.mkdir(parents=True, exist_ok=True)
        for old in store.glob(f"{_SCRATCH}*"):
            if not Path("/proc", old.name.removeprefix(_SCRATCH).partition("-")[0]).exists():
                shutil.rmtree(old, ignore_errors=True)
        folder = Path(mkdtemp(prefix=f"{_SCRATCH}{os.getpid()}-", dir=store))
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", location=str(store), valid="--keep DIR") from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
