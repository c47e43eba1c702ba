"""Git revisions of Roboyard as source trees, whose program runs with the installed Python.

A tree gets the metadata of its own ``pyproject.toml`` (entry points, requirements) on ``PYTHONPATH`` before the source,
so that its nodes, robots and scenarios do not depend on the installed package.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from roboyard.errors import InputError, RunError

_NEEDS = "a clone of Roboyard's repository"


@dataclass(frozen=True, slots=True)
class Revision:
    """Source tree of a revision, and the interpreter and environment for it.

    Attributes:
        name: Name that the user gave, e.g. "HEAD~3", or "the working tree".
        commit: Full hash; for a working tree that of its HEAD.
        is_clean: Whether the files equal those of the commit.
        root: Folder of the tree.
        python: The interpreter.
        environment: Environment of its processes.
    """

    name: str
    commit: str
    is_clean: bool
    root: Path
    python: Path
    environment: Mapping[str, str]

    @property
    def label(self) -> str:
        """Short hash, with the name where it differs."""
        short = self.commit[:10] + ("" if self.is_clean else " with changes")
        return short if self.commit.startswith(self.name) else f"{self.name} ({short})"

    def command(self, words: Sequence[str]) -> list[str]:
        """Return the command line of a process that runs ``roboyard`` with these arguments; it needs `environment`."""
        return [str(self.python), "-P", "-m", "roboyard", *words]


def find_repository(path: Path) -> Path:
    """Return the folder of the git working tree that contains ``path``.

    Raises:
        InputError: There is none, or git is not installed.
    """
    return Path(_git(path, "rev-parse", "--show-toplevel").strip())


def resolve_commit(repository: Path, name: str) -> str:
    """Return the full hash of a revision.

    Raises:
        InputError: The repository has no such revision.
    """
    if name.startswith("-"):  # git would read it as an option
        raise InputError(f"invalid revision {name!r}", location=str(repository), valid="a commit, branch or tag")
    try:
        return _git(repository, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").strip()
    except InputError:
        valid = "a commit, branch or tag of this repository"
        raise InputError(f"there is no revision {name!r}", location=str(repository), valid=valid) from None


@contextmanager
def open_revision(repository: Path, name: str, python: Path | None = None) -> Iterator[Revision]:
    """Write the files of a revision into a temporary folder, which is removed when the context ends.

    Args:
        repository: From `find_repository`.
        name: Commit, branch or tag.
        python: The interpreter; None: the one that runs this.

    Raises:
        InputError: There is no such revision, or it contains no Roboyard.
        RunError: Its files cannot be written.
    """
    commit = resolve_commit(repository, name)
    with TemporaryDirectory(prefix=f"roboyard-{commit[:10]}-", ignore_cleanup_errors=True) as folder:
        tree = Path(folder) / "tree"
        tree.mkdir()
        _extract(repository, commit, tree)
        yield _revision(name, commit, True, tree, Path(folder), python)


@contextmanager
def open_working_tree(repository: Path, python: Path | None = None) -> Iterator[Revision]:
    """Use the files of the working tree as they are; arguments and errors as for `open_revision`."""
    commit = resolve_commit(repository, "HEAD")
    is_clean = not _git(repository, "status", "--porcelain", "--", "src", "benchmarks", "pyproject.toml").strip()
    with TemporaryDirectory(prefix="roboyard-tree-", ignore_cleanup_errors=True) as folder:
        yield _revision("the working tree", commit, is_clean, repository, Path(folder), python)


def _revision(name: str, commit: str, is_clean: bool, tree: Path, scratch: Path, python: Path | None) -> Revision:
    source = tree / "src"
    if not (source / "roboyard").is_dir():
        raise InputError(f"revision {name} has no folder src/roboyard", location=str(tree), valid=_NEEDS)
    metadata, data = scratch / "metadata", scratch / "data"
    write_metadata(tree / "pyproject.toml", metadata)
    data.mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(metadata), str(source)]),
        "XDG_DATA_HOME": str(data),  # calibrations of the user must not affect the comparison
        "MPLBACKEND": "Agg",
    }
    return Revision(name, commit, is_clean, tree, (python or Path(sys.executable)).absolute(), environment)


def write_metadata(project: Path, folder: Path) -> None:
    """Write the metadata of an installation of ``pyproject.toml``, for `importlib.metadata`.

    Args:
        project: The ``pyproject.toml``.
        folder: A new folder for the module search path.

    Raises:
        InputError: The file is missing or describes no project.
    """
    try:
        table: dict[str, Any] = tomllib.loads(project.read_text("utf-8"))["project"]
        name, version = str(table["name"]), str(table.get("version", "0"))
    except (OSError, KeyError, ValueError) as error:
        raise InputError(
            f"cannot be used: {error}", location=str(project), valid="a pyproject.toml with a project"
        ) from None
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {text}" for text in table.get("dependencies", ())]
    for extra, needed in table.get("optional-dependencies", {}).items():
        lines.append(f"Provides-Extra: {extra}")
        for text in needed:
            package, _, marker = text.partition(";")
            condition = f"({marker.strip()}) and " if marker.strip() else ""
            lines.append(f"Requires-Dist: {package.strip()}; {condition}extra == '{extra}'")
    groups = {"console_scripts": table.get("scripts", {}), **table.get("entry-points", {})}
    points = [
        line
        for group, entries in groups.items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in entries.items()), "")
    ]
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("\n".join(lines) + "\n", "utf-8")
    (info / "entry_points.txt").write_text("\n".join(points), "utf-8")


def _extract(repository: Path, commit: str, tree: Path) -> None:
    """Write the files of a commit; unlike `git worktree` this leaves nothing in the repository after a kill."""
    archive = ["git", "-C", str(repository), "archive", "--format=tar", commit]
    with subprocess.Popen(archive, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as git:  # noqa: S603 - own words
        tar = subprocess.run(["tar", "-x", "-C", str(tree)], stdin=git.stdout, capture_output=True, check=False)  # noqa: S603, S607
        _, errors = git.communicate()
    if git.returncode or tar.returncode:
        reason = " ".join((errors or tar.stderr).decode(errors="replace").split())
        raise RunError(f"commit {commit[:10]} cannot be unpacked: {reason}", location=str(tree))


def _git(path: Path, *words: str) -> str:
    try:
        process = subprocess.run(["git", "-C", str(path), *words], capture_output=True, text=True, check=False)  # noqa: S603, S607
    except OSError as error:
        raise InputError(f"git cannot be called: {error.strerror}", valid="git, and " + _NEEDS) from None
    if process.returncode:
        message = " ".join(process.stderr.split()) or f"git {words[0]} ended with {process.returncode}"
        raise InputError(message, location=str(path), valid=_NEEDS)
    return process.stdout
