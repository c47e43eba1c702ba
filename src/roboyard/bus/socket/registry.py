"""Registry of live runs, in which the command line finds them."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from roboyard.errors import InputError, RunError, UnknownNameError

_MAX_DIRECTORY_LENGTH = 107 - len("/4194304-9999.sock")  # sun_path holds 107 bytes (unix(7))


@dataclass(frozen=True, slots=True)
class LiveRun:
    """Live run that can be connected to.

    Attributes:
        name: Name of the scenario or world.
        pid: Id of its process.
        socket: Path of its Unix socket.
    """

    name: str
    pid: int
    socket: Path


def runtime_directory() -> Path:
    """Return the folder of sockets, private to this user; created on first use.

    It is below ``$XDG_RUNTIME_DIR`` if that is usable, else below the folder for temporary files.

    Raises:
        RunError: The folder cannot be created, belongs to another user, or is accessible to other users.
    """
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    problem = ""
    for path in (Path(base) / "roboyard", Path(tempfile.gettempdir()) / f"roboyard-{os.getuid()}"):
        if (path.parent == Path(base) and not (base and path.parent.is_dir())) or len(
            bytes(path)
        ) > _MAX_DIRECTORY_LENGTH:
            problem = problem or f"{path} is too long for the path of a socket"
            continue
        try:
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
            info = path.lstat()
        except OSError as error:
            problem = str(error)
            continue
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid() or info.st_mode & 0o077:
            raise RunError(f"{path} is not a folder private to this user", valid="remove it")
        return path
    raise RunError(
        f"cannot create the folder of the run's socket: {problem}", valid="XDG_RUNTIME_DIR with a short, writable path"
    )


def register_run(name: str) -> LiveRun:
    """Choose a socket path for a run of this process and write it into the registry."""
    folder = runtime_directory()
    for number in range(10_000):
        socket_path = folder / f"{os.getpid()}-{number}.sock"
        entry = socket_path.with_suffix(".json")
        try:
            with entry.open("x") as file:
                json.dump({"name": name, "pid": os.getpid()}, file)
        except FileExistsError:
            continue
        except OSError as error:
            raise RunError(f"cannot write the run into the registry: {error}", location=str(folder)) from error
        socket_path.unlink(missing_ok=True)  # of a dead process with the same id
        return LiveRun(name, os.getpid(), socket_path)
    raise RunError("too many runs in this process")


def unregister_run(run: LiveRun) -> None:
    """Remove a run from the registry."""
    for path in (run.socket.with_suffix(".json"), run.socket):
        path.unlink(missing_ok=True)


def live_runs() -> list[LiveRun]:
    """Return all runs of this user whose process is alive, oldest first; entries of dead processes are removed."""
    runs: list[tuple[float, LiveRun]] = []
    for entry in runtime_directory().glob("*.json"):
        try:
            data = json.loads(entry.read_text())
            run = LiveRun(str(data["name"]), int(data["pid"]), entry.with_suffix(".sock"))
            started = entry.stat().st_mtime
        except (OSError, ValueError, KeyError, TypeError):
            continue  # written or removed at the same time
        if _is_alive(run.pid):
            runs.append((started, run))
        else:
            unregister_run(run)
    return [run for _, run in sorted(runs, key=lambda item: (item[0], item[1].socket.name))]


def find_run(name: str | None) -> LiveRun:
    """Find the live run `name` (or with that process id); the only one if `name` is None.

    Raises:
        UnknownNameError: No live run has this name.
        InputError: There is no live run, or there are several.
    """
    runs = live_runs()
    names = ", ".join(f"{run.name} (pid {run.pid})" for run in runs) or "none"
    if name is not None:
        matches = [run for run in runs if name in (run.name, str(run.pid))]
        if not matches:
            raise UnknownNameError(f"no live run '{name}'", valid=f"live: {names}")
        if len(matches) > 1:
            raise InputError(f"several live runs are named '{name}'", valid=f"a process id: {names}")
        return matches[0]
    if not runs:
        raise InputError("no live run found", valid="start one with 'roboyard run', or name a recording")
    if len(runs) > 1:
        raise InputError("several runs are live", valid=f"one of: {names}")
    return runs[0]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
