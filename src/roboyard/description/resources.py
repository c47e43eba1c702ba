"""Where a description's files are: package://, model://, file:// and relative paths, and never outside their folders.

Folders that may be read are: the search folders the caller gives, those named by the environment
(``GZ_SIM_RESOURCE_PATH``, ``IGN_GAZEBO_RESOURCE_PATH``, ``SDF_PATH``, ``GAZEBO_MODEL_PATH``, ``GAZEBO_RESOURCE_PATH``,
``ROS_PACKAGE_PATH``, ``AMENT_PREFIX_PATH``), and those the description's own place implies: its folder, the packages
(``package.xml``) and models (``model.config``) around it, the folder above it, and packages or models beside them or in
``models/`` folders up the tree.  A package that is none of these is looked for by its name all over the workspace or
repository around it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

MESH_BYTES = 256 * 2**20
_MARKS = ("package.xml", "model.config")
_LEVELS = 8  # how far up the tree neighbours are looked for
_CRAWL_DEPTH = 5
_CRAWL_FOLDERS = 20_000
_MODEL_PATHS = (
    "GZ_SIM_RESOURCE_PATH",
    "IGN_GAZEBO_RESOURCE_PATH",
    "SDF_PATH",
    "GAZEBO_MODEL_PATH",
    "GAZEBO_RESOURCE_PATH",
)
_FUEL = re.compile(r"https?://(?:app|fuel|staging-fuel)\.(?:gazebosim|ignitionrobotics|ignitionfuel)\.org/.*", re.I)
_PACKAGE_NAME = re.compile(rb"<name>\s*([A-Za-z0-9_.-]{1,200})\s*</name>")


@dataclass(frozen=True, slots=True)
class Found:
    """The path behind a URI, or why there is none; ``guess`` says how it was found where the URI was not right."""

    path: Path | None
    problem: str = ""
    guess: str = ""


class Resources:
    """Resolves URIs against search folders, the environment, and the place of the asking file.

    Args:
        search: Folders of the caller's: a folder that holds packages or models, or a package itself.
        environment: Variables as in ``os.environ``; empty means that no variable counts.
    """

    def __init__(self, search: Iterable[str | Path] = (), environment: Mapping[str, str] | None = None) -> None:
        variables = environment if environment is not None else {}
        self.search = tuple(_absolute(at_home(folder)) for folder in search)
        models = [folder for name in _MODEL_PATHS for folder in _paths(variables.get(name, ""))]
        packages = _paths(variables.get("ROS_PACKAGE_PATH", ""))
        shares = [prefix / "share" for prefix in _paths(variables.get("AMENT_PREFIX_PATH", ""))]
        self._crawled = (*self.search, *packages)
        self._given = (*self.search, *models, *packages, *shares)
        self._index: dict[Path, dict[str, Path]] = {}
        self._implied: dict[Path, tuple[Path, ...]] = {}
        self._homes: dict[Path, None] = {}  # packages that were asked for by name

    # -- public ------------------------------------------------------------------------------------------------------
    def resolve(self, uri: str, base: str | Path | None = None, *, folder: bool = False) -> Found:
        """The existing file (or folder) behind ``uri``.

        Args:
            uri: package://name/path, model://name/path, file://path, an absolute or relative path.
            base: File that names it; None or a text in angle brackets when there is none.
            folder: Whether a folder is wanted instead of a file.
        """
        uri = uri.strip()
        if not uri or "\x00" in uri or len(uri) > 2000:
            return Found(None, "the name is empty or not a path")
        here = self._folder_of(base)
        scheme, separator, rest = uri.partition("://")
        if not separator:
            return self._relative(uri, here, folder)
        if scheme == "file":
            return self._relative(unquote(rest), here, folder)
        if scheme in ("package", "model"):
            return self._named(rest, here, folder)
        if _FUEL.match(uri):
            name = fuel_name(uri)
            found = self._named(name, here, folder) if name else Found(None)
            return found if found.path else Found(None, "it lies on Gazebo's server, and nothing is fetched")
        return Found(None, f"'{scheme[:20]}://' is not read: give a file, package:// or model://")

    def package(self, name: str, base: str | Path | None = None) -> Path | None:
        """The folder of the package or model ``name``."""
        if not re.fullmatch(r"[A-Za-z0-9_ .()+-]+", name) or name.strip(".") == "":
            return None
        here = self._folder_of(base)
        found = next((one for one in self._candidates(name, here) if _exists(one, True)), None)
        if found is not None:
            self._homes.setdefault(found)
        return found

    def allows(self, path: Path, base: str | Path | None = None) -> bool:
        """Whether ``path`` lies in a folder that may be read on behalf of ``base``."""
        return self._allowed(path, self._folder_of(base), ())

    def unreadable(self, path: Path, limit: int) -> str:
        """Why the file cannot be used; empty when it can."""
        try:
            size = path.stat().st_size
            if size > limit:
                return f"it has {size} bytes, more than {limit}"
            with path.open("rb") as stream:
                start = stream.read(64)
        except OSError as error:
            return f"it cannot be read ({error.strerror})"
        if not start:
            return "the file is empty"
        if start.startswith(b"version https://git-lfs"):
            return "it is a Git LFS pointer, not the file itself"
        return ""

    # -- how -----------------------------------------------------------------------------------------------------------
    @staticmethod
    def _folder_of(base: str | Path | None) -> Path | None:
        if base is None or str(base).startswith("<"):
            return None
        return _absolute(Path(base)).parent

    def _relative(self, text: str, here: Path | None, folder: bool) -> Found:
        path = Path(text)
        starts = [] if path.is_absolute() else [*((here,) if here else ()), *self._given]
        candidates = [path] if path.is_absolute() else [start / path for start in starts]
        if here and not path.is_absolute():
            candidates += [root / path for root in self._around(here)]
        refused = False
        for candidate in candidates:
            candidate = _absolute(candidate)
            if not _exists(candidate, folder):
                continue
            if self._allowed(candidate, here, ()):
                return Found(candidate)
            refused = True
        for home in self._homes:
            if not refused and path.is_relative_to(home):
                return self._deeper(home, path.relative_to(home), folder)
        if refused:
            return Found(None, "it lies outside the folders that may be read (name its folder in search)")
        return Found(None, "no such file")

    def _named(self, text: str, here: Path | None, folder: bool) -> Found:
        name, _, rest = unquote(text).partition("/")
        if name in ("", ".", ".."):
            return Found(None, "the URI names no package or model")
        known: list[Path] = []
        for home in self._candidates(name, here):
            known.append(home)
            path = _absolute(home / rest) if rest else home
            if not self._allowed(path, here, (home,)):
                return Found(None, "it lies outside the folders that may be read (name its folder in search)")
            if _exists(path, folder):
                return Found(path)
        if known:
            found = self._deeper(known[0], Path(os.path.normpath(rest or ".")), folder)
            return found if found.path else Found(None, f"'{name}' has no such file")
        if (here or self._given) and not rest:
            return self._relative(name, here, folder)
        return Found(None, f"package or model '{name}' is not found (name the folder that holds it in search)")

    @staticmethod
    def _deeper(home: Path, rest: Path, folder: bool) -> Found:
        """The one file a folder deeper than the URI says: build rules may install ``description/urdf`` as ``urdf``."""
        if rest.parts and ".." not in rest.parts:
            found = [one / rest for one in _subfolders(home) if _exists(one / rest, folder)]
            if len(found) == 1:
                return Found(found[0], guess=f"taken from the folder '{found[0].relative_to(home).parts[0]}'")
        return Found(None, "no such file")

    def _candidates(self, name: str, here: Path | None) -> Iterator[Path]:
        """Folders that may be the package or model ``name``, best first."""
        ancestors = _ancestors(here) if here else ()
        for ancestor in ancestors:
            if _is_home(ancestor) and name in (ancestor.name, _package_name(ancestor)):
                yield ancestor
        for root in self._given:
            if root.name == name or (_is_home(root) and _package_name(root) == name):
                yield root
            for path in (root / name, root / "models" / name, root / "share" / name):
                if _exists(path, True):
                    yield path
        for ancestor in ancestors:
            for path in (ancestor / name, ancestor / "models" / name, ancestor / name / "share" / name):
                if _is_home(path):
                    yield path
        for root in self._crawled:
            path = self._crawl(root).get(name, root)
            if path != root:
                yield path
        for root in _workspaces(ancestors):
            path = self._crawl(root).get(name, root)
            if path != root and path.resolve().is_relative_to(root.resolve()):
                yield path

    def _crawl(self, root: Path) -> dict[str, Path]:
        """Packages and models below ``root`` by name, as ROS crawls its package path; bounded."""
        index = self._index.get(root)
        if index is not None:
            return index
        index = self._index[root] = {}
        level, seen = [root], 0
        for _ in range(_CRAWL_DEPTH):
            below: list[Path] = []
            for folder in level:
                seen += 1
                if seen > _CRAWL_FOLDERS:
                    return index
                if _is_home(folder):
                    index.setdefault(folder.name, folder)
                    index.setdefault(_package_name(folder), folder)
                below += _subfolders(folder)
            level = below
        return index

    def _around(self, here: Path) -> tuple[Path, ...]:
        """The folders that a file in ``here`` may read without being told: see the module's text."""
        if here not in self._implied:
            roots = [here]
            if len(here.parts) > 3:  # ../meshes, ../scene.xml: one folder up is still the same project
                roots.append(here.parent)
            for ancestor in _ancestors(here):
                if _is_home(ancestor):
                    roots.append(ancestor)
                    if (ancestor / "model.config").is_file() and len(ancestor.parts) > 3:
                        roots.append(ancestor.parent)
                elif ancestor.name == "models" or (ancestor / "models").is_dir():
                    roots.append(ancestor if ancestor.name == "models" else ancestor / "models")
            self._implied[here] = tuple(dict.fromkeys(roots))
        return self._implied[here]

    def _allowed(self, path: Path, here: Path | None, homes: tuple[Path, ...]) -> bool:
        """Links are followed for folders implied by a description's place; folders the user named are trusted."""
        if any(path.is_relative_to(root) for root in self._given):
            return True
        real = path.resolve()
        roots = (*homes, *self._homes, *(self._around(here) if here else ()))
        return any(path.is_relative_to(root) and real.is_relative_to(root.resolve()) for root in roots)


def packages_around(file: Path) -> tuple[Path, ...]:
    """The package that ``file`` lies in (its folder's parent, where it lies in none), and those beside it by name.

    Of the neighbours only those that control or bring up the same robot: they share the beginning of its name.
    """
    ancestors = _ancestors(_absolute(file).parent)
    home = next((one for one in ancestors if _exists(one / "package.xml", False)), None)
    if home is None:
        above = ancestors[1] if len(ancestors) > 1 else None
        return tuple(one for one in (ancestors[0] if ancestors else None, above) if one is not None)
    stem = (_package_name(home) or home.name).removesuffix("_description")
    kin = [
        one
        for one in _subfolders(home.parent)
        if one != home and one.name.startswith(stem) and _exists(one / "package.xml", False)
    ]
    order = ("control", "bringup", "gazebo", "gz", "sim")
    rank = {one: next((k for k, word in enumerate(order) if word in one.name), None) for one in kin}
    return (home, *sorted((one for one in kin if rank[one] is not None), key=lambda one: (rank[one], one.name)))


def at_home(path: str | os.PathLike[str]) -> Path:
    """The path with ``~`` written out, as it is where there is no such home."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def fuel_name(uri: str) -> str:
    """The model or world name in a Gazebo server address, e.g. "Ground Plane"; empty if it has none."""
    if not uri.startswith(("http://", "https://")):
        return ""
    parts = [unquote(part) for part in uri.split("/")]
    for index, part in enumerate(parts[:-1]):
        if part.lower() in ("models", "worlds"):
            return parts[index + 1]
    return ""


def _absolute(path: Path) -> Path:
    return Path(os.path.normpath(Path.cwd() / path))


def _paths(text: str) -> list[Path]:
    return [_absolute(Path(part)) for part in text.split(os.pathsep) if part.strip()]


def _exists(path: Path, folder: bool) -> bool:
    try:
        return path.is_dir() if folder else path.is_file()
    except (OSError, ValueError):
        return False


def _is_home(folder: Path) -> bool:
    return any(_exists(folder / mark, False) for mark in _MARKS)


def _package_name(folder: Path) -> str:
    try:
        with (folder / "package.xml").open("rb") as stream:
            found = _PACKAGE_NAME.search(stream.read(20_000))
    except OSError:
        return ""
    return found.group(1).decode() if found else ""


def _ancestors(folder: Path) -> tuple[Path, ...]:
    """``folder`` and those above it, without the root of the file system and the folders just below it."""
    return tuple(path for path in (folder, *folder.parents)[:_LEVELS] if len(path.parts) > 2)


def _workspaces(ancestors: tuple[Path, ...]) -> list[Path]:
    """Where unbuilt packages lie side by side: two folders above the package, the repository, the workspace's src."""
    home = next((index for index, one in enumerate(ancestors) if _exists(one / "package.xml", False)), len(ancestors))
    found = []
    for index, ancestor in enumerate(ancestors):
        last = ancestor.name == "src" or _exists(ancestor / ".git", True) or _exists(ancestor / ".git", False)
        if last or home < index <= home + 2:
            found.append(ancestor)
        if last:
            break
    return found


def _subfolders(folder: Path) -> list[Path]:
    try:
        return sorted(
            path
            for path in folder.iterdir()
            if not path.name.startswith(".") and not path.is_symlink() and path.is_dir()
        )
    except OSError:
        return []
