"""Registry of live runs, from which the command line finds them."""

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
    """A run that can be reached.

    Attributes:
        name: The scenario's or world's name.
        pid: Process that runs it.
        socket: Its unix socket.
    """

    name: str
    pid: int
    socket: Path


def runtime_directory() -> Path:
    """The folder of sockets, private to this user; made on first use.

    Below ``$XDG_RUNTIME_DIR`` if that can be used, else below the folder for temporary files.

    Raises:
        RunError: it cannot be made, belongs to somebody else, or others may look into it.
    """
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    problem = ""
    for path in (Path(base) / "roboyard", Path(tempfile.gettempdir()) / f"roboyard-{os.getuid()}"):
        if (path.parent == Path(base) and not (base and path.parent.is_dir())) or len(
            bytes(path)
        ) > _MAX_DIRECTORY_LENGTH:
            problem = problem or f"{path} is too long for a socket's path"
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
    raise RunError(f"no folder for the run's socket: {problem}", valid="XDG_RUNTIME_DIR may name a short, writable one")


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
            raise RunError(f"the run cannot be listed: {error}", location=str(folder)) from error
        socket_path.unlink(missing_ok=True)  # of a dead process that had the same number
        return LiveRun(name, os.getpid(), socket_path)
    raise RunError("too many runs in this process")


def unregister_run(run: LiveRun) -> None:
    """Take a run out of the registry."""
    for path in (run.socket.with_suffix(".json"), run.socket):
        path.unlink(missing_ok=True)


def live_runs() -> list[LiveRun]:
    """All runs of this user whose process is alive, oldest first; what dead processes left behind is removed."""
    runs: list[tuple[float, LiveRun]] = []
    for entry in runtime_directory().glob("*.json"):
        try:
            data = json.loads(entry.read_text())
            run = LiveRun(str(data["name"]), int(data["pid"]), entry.with_suffix(".sock"))
            started = entry.stat().st_mtime
        except (OSError, ValueError, KeyError, TypeError):
            continue  # written or removed at this very moment
        if _is_alive(run.pid):
            runs.append((started, run))
        else:
            unregister_run(run)
    return [run for _, run in sorted(runs, key=lambda item: (item[0], item[1].socket.name))]


def find_run(name: str | None) -> LiveRun:
    """The live run called ``name`` (or with that process id); the only one if ``name`` is None.

    Raises:
        UnknownNameError: none of this name.
        InputError: none at all, or several to choose from.
    """
    runs = live_runs()
    names = ", ".join(f"{run.name} (pid {run.pid})" for run in runs) or "none"
    if name is not None:
        matches = [run for run in runs if name in (run.name, str(run.pid))]
        if not matches:
            raise UnknownNameError(f"no live run '{name}'", valid=f"live: {names}")
        if len(matches) > 1:
            raise InputError(f"several runs '{name}' are live", valid=f"choose by process id: {names}")
        return matches[0]
    if not runs:
        raise InputError("no run is live", valid="start one with 'roboyard run', or name a recording")
    if len(runs) > 1:
        raise InputError("several runs are live", valid=f"choose one of: {names}")
    return runs[0]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
