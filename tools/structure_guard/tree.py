"""The files that are checked, on disk or in a revision of the git repository, and their cached facts."""

from __future__ import annotations

import gc
import hashlib
import io
import os
import pickle
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path, PurePosixPath

from structure_guard import facts as facts_module
from structure_guard.facts import Facts, extract

PACKAGE = "roboyard"
SOURCE = PurePosixPath("src", PACKAGE)
FOLDERS = ("src", "tests", "docs")
FILES = ("README.md", "pyproject.toml")
SUFFIXES = frozenset(
    {".py", ".yaml", ".yml", ".toml", ".md", ".html", ".js", ".css", ".sdf", ".urdf", ".xacro", ".xml"}
)
IGNORED = frozenset({"__pycache__", "three"})
"""Folders without sources of ours; `three` is a library of others."""
CACHE = ".structure_cache"


class SourceError(Exception):
    """A file that cannot be read or parsed, or a revision that git does not have; the message is one line."""


@dataclass(frozen=True)
class Module:
    """One Python file of the package or of its tests."""

    name: str
    path: str
    room: str
    is_package: bool
    facts: Facts

    @property
    def is_entry_point(self) -> bool:
        """Whether ``python -m`` runs the file; no module imports it."""
        return self.stem == "__main__"

    @property
    def stem(self) -> str:
        """The last part of the dotted name, which is the folder's for a package."""
        return self.name.rpartition(".")[2]


class SourceTree:
    """Texts of all files that are checked, by their path relative to the repository's root."""

    def __init__(self, texts: Mapping[str, str], cache: Path | None = None, *, writes_cache: bool = False) -> None:
        self.texts = dict(sorted(texts.items()))
        self._cache = cache
        self._writes_cache = writes_cache

    @classmethod
    def from_disk(cls, root: Path) -> SourceTree:
        """The working tree below `root`."""
        if not (root / SOURCE).is_dir():
            raise SourceError(f"{root}: no folder {SOURCE} (the root of a checkout)")
        texts: dict[str, str] = {}
        for path in _find_files(root):
            try:
                texts[path.relative_to(root).as_posix()] = path.read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise SourceError(f"{path}: cannot be read: {error}") from None
        return cls(texts, root / CACHE, writes_cache=True)

    @classmethod
    def from_revision(cls, root: Path, revision: str) -> SourceTree:
        """The tree that git holds under `revision`."""
        listed = _git(root, "ls-tree", "--name-only", revision)
        wanted = [name for name in (*FOLDERS, *FILES) if name in listed.decode().split("\n")]
        archive = _git(root, "archive", "--format=tar", revision, "--", *wanted)
        texts: dict[str, str] = {}
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for member in tar:
                if member.isfile() and _is_checked(PurePosixPath(member.name)):
                    content = tar.extractfile(member)
                    if content is not None:
                        texts[member.name] = content.read().decode("utf-8", errors="replace")
        return cls(texts, root / CACHE)

    @cached_property
    def modules(self) -> dict[str, Module]:
        """Modules of the package by their dotted name."""
        return {module.name: module for module in self._all_modules if module.path.startswith("src/")}

    @cached_property
    def tests(self) -> list[Module]:
        """Python files of the tests."""
        return [module for module in self._all_modules if module.path.startswith("tests/")]

    @cached_property
    def _all_modules(self) -> list[Module]:
        paths = [path for path in self.texts if path.endswith(".py") and not path.startswith("docs/")]
        found = _extract_all({path: self.texts[path] for path in paths}, self._cache, self._writes_cache)
        return [_make_module(path, found[path]) for path in paths]


def room_of(path: str) -> str:
    """The room that a file belongs to: the folder of the package or of the tests, or `docs`."""
    parts = PurePosixPath(path).parts
    if parts[0] == "src":
        inner = parts[2:]
        if len(inner) > 1:
            return inner[0]
        stem = PurePosixPath(inner[0]).stem
        return PACKAGE if stem.startswith("__") else stem
    if parts[0] == "tests":
        return parts[1] if len(parts) > 2 else "tests"
    return "docs"


def last_change_of(root: Path, path: Path) -> str | None:
    """The last commit that changed a file; None if there is none, or no git."""
    try:
        return _git(root, "log", "-1", "--format=%H", "--", str(path)).decode().strip() or None
    except SourceError:
        return None


def _make_module(path: str, facts: Facts) -> Module:
    parts = list(PurePosixPath(path).with_suffix("").parts)
    is_package = parts[-1] == "__init__"
    if is_package:
        parts.pop()
    name = ".".join(parts[1:] if parts[0] == "src" else parts)
    return Module(name, path, room_of(path), is_package, facts)


def _is_checked(path: PurePosixPath) -> bool:
    return path.suffix in SUFFIXES and not IGNORED.intersection(path.parts)


def _find_files(root: Path) -> Iterable[Path]:
    for folder in FOLDERS:
        for place, folders, names in os.walk(root / folder):
            folders[:] = sorted(set(folders) - IGNORED)
            yield from (Path(place, name) for name in names if PurePosixPath(name).suffix in SUFFIXES)
    yield from (root / name for name in FILES if (root / name).is_file())


def _git(root: Path, *arguments: str) -> bytes:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)
    except OSError as error:
        raise SourceError(f"git cannot be started: {error}") from None
    if done.returncode:
        message = done.stderr.decode(errors="replace").strip().splitlines()
        raise SourceError(f"git {' '.join(arguments[:2])}: {message[0] if message else 'failed'}")
    return done.stdout


def _extract_all(texts: Mapping[str, str], cache: Path | None, writes_cache: bool) -> dict[str, Facts]:
    """Facts of all files; those that are not cached are extracted by a process for each core."""
    version = hashlib.sha256(Path(facts_module.__file__).read_bytes()).hexdigest()
    keys = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in texts.items()}
    stored = _read_cache(cache, version)
    missing = [path for path, key in keys.items() if key not in stored]
    if missing:
        for path, found in zip(missing, _extract_in_processes([texts[path] for path in missing]), strict=True):
            if isinstance(found, str):
                raise SourceError(f"{path}:{found}")
            stored[keys[path]] = found
        if cache is not None and writes_cache:
            _write_cache(cache, version, {key: stored[key] for key in keys.values()})
    return {path: stored[key] for path, key in keys.items()}


def _extract_in_processes(texts: list[str]) -> list[Facts | str]:
    if len(texts) < 64:
        return _extract_some(texts)
    size = 32
    groups = [texts[start : start + size] for start in range(0, len(texts), size)]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        return [item for group in pool.map(_extract_some, groups) for item in group]


def _extract_some(texts: list[str]) -> list[Facts | str]:
    """Facts of each text, or the line and message of its syntax error."""
    gc.disable()  # trees have no cycles, and the collector would visit all their nodes again and again
    found: list[Facts | str] = []
    try:
        for text in texts:
            try:
                found.append(extract(text))
            except SyntaxError as error:
                found.append(f"{error.lineno}: {error.msg}")
    finally:
        gc.enable()
    return found


def _read_cache(cache: Path | None, version: str) -> dict[str, Facts]:
    if cache is None:
        return {}
    try:
        stored_version, stored = pickle.loads((cache / "facts.pickle").read_bytes())
    except (OSError, EOFError, pickle.UnpicklingError, AttributeError, ImportError, IndexError, TypeError, ValueError):
        # Missing, cut short, or of another version: extracted anew.
        return {}
    return dict(stored) if stored_version == version else {}


def _write_cache(cache: Path, version: str, stored: Mapping[str, Facts]) -> None:
    """Replace the cache at once; a folder that cannot be written costs only time."""
    try:
        cache.mkdir(exist_ok=True)
        partial = cache / f"facts.{os.getpid()}.partial"
        partial.write_bytes(pickle.dumps((version, dict(stored)), protocol=5))
        partial.replace(cache / "facts.pickle")
    except OSError:
        pass
