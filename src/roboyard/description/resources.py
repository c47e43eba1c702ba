"""Resource resolution for descriptions: package://, model://, file:// and relative paths, restricted to allowed
folders.

Allowed folders are the search folders of the caller, those of the environment (``GZ_SIM_RESOURCE_PATH``,
``IGN_GAZEBO_RESOURCE_PATH``, ``SDF_PATH``, ``GAZEBO_MODEL_PATH``, ``GAZEBO_RESOURCE_PATH``, ``ROS_PACKAGE_PATH``,
``AMENT_PREFIX_PATH``), and those implied by the description's location: its folder, the packages (``package.xml``) and
models (``model.config``) around it, the folder above it, and packages or models next to them or in ``models/`` folders
up the tree.  Other packages are searched by name in the workspace or repository around the description.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

MAX_MESH_BYTES = 256 * 2**20
_MARKER_FILES = ("package.xml", "model.config")
_MAX_LEVELS = 8  # number of levels up the tree whose neighbors are searched
_MAX_CRAWL_DEPTH = 5
_MAX_CRAWL_FOLDERS = 20_000
_MODEL_PATH_VARIABLES = (
    "GZ_SIM_RESOURCE_PATH",
    "IGN_GAZEBO_RESOURCE_PATH",
    "SDF_PATH",
    "GAZEBO_MODEL_PATH",
    "GAZEBO_RESOURCE_PATH",
)
_FUEL_ADDRESS = re.compile(
    r"https?://(?:app|fuel|staging-fuel)\.(?:gazebosim|ignitionrobotics|ignitionfuel)\.org/.*", re.I
)
_PACKAGE_NAME = re.compile(rb"<name>\s*([A-Za-z0-9_.-]{1,200})\s*</name>")


@dataclass(frozen=True, slots=True)
class UriResolution:
    """Path of a URI, or the reason why it cannot be resolved; `how_found` explains the path of an inexact URI."""

    path: Path | None
    problem: str = ""
    how_found: str = ""


class Resources:
    """Resolves URIs by search folders, the environment, and the location of the referring file.

    Args:
        search: Folders of the caller: a folder that contains packages or models, or a package itself.
        environment: Variables as in ``os.environ``; if empty, no variable is used.
    """

    def __init__(self, search: Iterable[str | Path] = (), environment: Mapping[str, str] | None = None) -> None:
        variables = environment if environment is not None else {}
        self.search = tuple(_absolute(expand_home(folder)) for folder in search)
        model_folders = [folder for name in _MODEL_PATH_VARIABLES for folder in _split_paths(variables.get(name, ""))]
        package_folders = _split_paths(variables.get("ROS_PACKAGE_PATH", ""))
        prefix_folders = [prefix / "share" for prefix in _split_paths(variables.get("AMENT_PREFIX_PATH", ""))]
        self._crawl_roots = (*self.search, *package_folders)
        self._trusted_folders = (*self.search, *model_folders, *package_folders, *prefix_folders)
        self._package_index: dict[Path, dict[str, Path]] = {}
        self._implied_roots: dict[Path, tuple[Path, ...]] = {}
        self._named_packages: dict[Path, None] = {}  # packages requested by name

    # -- public --------------------------------------------------------------------------------------------------------
    def resolve(self, uri: str, base: str | Path | None = None, *, expect_folder: bool = False) -> UriResolution:
        """Resolve `uri` to an existing file (or folder).

        Args:
            uri: package://name/path, model://name/path, file://path, an absolute or relative path.
            base: File that refers to it; None or a text in angle brackets without one.
            expect_folder: Whether the URI refers to a folder instead of a file.
        """
        uri = uri.strip()
        if not uri or "\x00" in uri or len(uri) > 2000:
            return UriResolution(None, "the name is empty or not a path")
        base_folder = self._base_folder(base)
        scheme, separator, location = uri.partition("://")
        if not separator:
            return self._resolve_path(uri, base_folder, expect_folder)
        if scheme == "file":
            return self._resolve_path(unquote(location), base_folder, expect_folder)
        if scheme in ("package", "model"):
            return self._resolve_in_package(location, base_folder, expect_folder)
        if _FUEL_ADDRESS.match(uri):
            name = fuel_resource_name(uri)
            found = self._resolve_in_package(name, base_folder, expect_folder) if name else UriResolution(None)
            return (
                found if found.path else UriResolution(None, "it is on Gazebo's server, and files are not downloaded")
            )
        return UriResolution(None, f"unsupported scheme '{scheme[:20]}://' (a file, package:// or model://)")

    def find_package(self, name: str, base: str | Path | None = None) -> Path | None:
        """Return the folder of the package or model `name`."""
        if not re.fullmatch(r"[A-Za-z0-9_ .()+-]+", name) or name.strip(".") == "":
            return None
        base_folder = self._base_folder(base)
        found = next((one for one in self._candidate_packages(name, base_folder) if _exists(one, True)), None)
        if found is not None:
            self._named_packages.setdefault(found)
        return found

    def is_allowed(self, path: Path, base: str | Path | None = None) -> bool:
        """Return whether `path` is in a folder that may be read on behalf of `base`."""
        return self._is_allowed(path, self._base_folder(base), ())

    def explain_unreadable(self, path: Path, max_bytes: int) -> str:
        """Explain why the file cannot be used; empty if it can."""
        try:
            size = path.stat().st_size
            if size > max_bytes:
                return f"it has {size} bytes, more than {max_bytes}"
            with path.open("rb") as stream:
                start = stream.read(64)
        except OSError as error:
            return f"it cannot be read ({error.strerror})"
        if not start:
            return "the file is empty"
        if start.startswith(b"version https://git-lfs"):
            return "it is a Git LFS pointer, not the file itself"
        return ""

    # -- internals
    # -----------------------------------------------------------------------------------------------------------
    @staticmethod
    def _base_folder(base: str | Path | None) -> Path | None:
        if base is None or str(base).startswith("<"):
            return None
        return _absolute(Path(base)).parent

    def _resolve_path(self, text: str, base_folder: Path | None, expect_folder: bool) -> UriResolution:
        path = Path(text)
        search_roots = [] if path.is_absolute() else [*((base_folder,) if base_folder else ()), *self._trusted_folders]
        candidates = [path] if path.is_absolute() else [start / path for start in search_roots]
        if base_folder and not path.is_absolute():
            candidates += [root / path for root in self._find_implied_roots(base_folder)]
        is_outside = False
        for candidate in candidates:
            candidate = _absolute(candidate)
            if not _exists(candidate, expect_folder):
                continue
            if self._is_allowed(candidate, base_folder, ()):
                return UriResolution(candidate)
            is_outside = True
        for package_folder in self._named_packages:
            if not is_outside and path.is_relative_to(package_folder):
                return self._find_one_level_deeper(package_folder, path.relative_to(package_folder), expect_folder)
        if is_outside:
            return UriResolution(None, "it is outside the allowed folders (add its folder to search)")
        return UriResolution(None, "no such file")

    def _resolve_in_package(self, text: str, base_folder: Path | None, expect_folder: bool) -> UriResolution:
        name, _, subpath = unquote(text).partition("/")
        if name in ("", ".", ".."):
            return UriResolution(None, "the URI has no package or model name")
        package_folders: list[Path] = []
        for package_folder in self._candidate_packages(name, base_folder):
            package_folders.append(package_folder)
            path = _absolute(package_folder / subpath) if subpath else package_folder
            if not self._is_allowed(path, base_folder, (package_folder,)):
                return UriResolution(None, "it is outside the allowed folders (add its folder to search)")
            if _exists(path, expect_folder):
                return UriResolution(path)
        if package_folders:
            found = self._find_one_level_deeper(
                package_folders[0], Path(os.path.normpath(subpath or ".")), expect_folder
            )
            return found if found.path else UriResolution(None, f"'{name}' has no such file")
        if (base_folder or self._trusted_folders) and not subpath:
            return self._resolve_path(name, base_folder, expect_folder)
        return UriResolution(None, f"package or model '{name}' not found (add the folder that contains it to search)")

    @staticmethod
    def _find_one_level_deeper(package_folder: Path, subpath: Path, expect_folder: bool) -> UriResolution:
        """Find the file one folder deeper than the URI states: build rules may install ``description/urdf`` as
        ``urdf``.
        """
        if subpath.parts and ".." not in subpath.parts:
            found = [one / subpath for one in _subfolders(package_folder) if _exists(one / subpath, expect_folder)]
            if len(found) == 1:
                return UriResolution(
                    found[0], how_found=f"found in the folder '{found[0].relative_to(package_folder).parts[0]}'"
                )
        return UriResolution(None, "no such file")

    def _candidate_packages(self, name: str, base_folder: Path | None) -> Iterator[Path]:
        """Iterate over folders that may be the package or model `name`, best first."""
        ancestors = _ancestors(base_folder) if base_folder else ()
        for ancestor in ancestors:
            if _is_package(ancestor) and name in (ancestor.name, _package_name(ancestor)):
                yield ancestor
        for root in self._trusted_folders:
            if root.name == name or (_is_package(root) and _package_name(root) == name):
                yield root
            for path in (root / name, root / "models" / name, root / "share" / name):
                if _exists(path, True):
                    yield path
        for ancestor in ancestors:
            for path in (ancestor / name, ancestor / "models" / name, ancestor / name / "share" / name):
                if _is_package(path):
                    yield path
        for root in self._crawl_roots:
            path = self._index_packages(root).get(name, root)
            if path != root:
                yield path
        for root in _find_workspaces(ancestors):
            path = self._index_packages(root).get(name, root)
            if path != root and path.resolve().is_relative_to(root.resolve()):
                yield path

    def _index_packages(self, root: Path) -> dict[str, Path]:
        """Index packages and models below `root` by name, as ROS crawls its package path, with a size limit."""
        index = self._package_index.get(root)
        if index is not None:
            return index
        index = self._package_index[root] = {}
        level, folder_count = [root], 0
        for _ in range(_MAX_CRAWL_DEPTH):
            next_level: list[Path] = []
            for folder in level:
                folder_count += 1
                if folder_count > _MAX_CRAWL_FOLDERS:
                    return index
                if _is_package(folder):
                    index.setdefault(folder.name, folder)
                    index.setdefault(_package_name(folder), folder)
                next_level += _subfolders(folder)
            level = next_level
        return index

    def _find_implied_roots(self, base_folder: Path) -> tuple[Path, ...]:
        """Return the folders that a file in `base_folder` may read by default: see the module docstring."""
        if base_folder not in self._implied_roots:
            roots = [base_folder]
            if len(base_folder.parts) > 3:  # ../meshes, ../scene.xml: one folder up is still the same project
                roots.append(base_folder.parent)
            for ancestor in _ancestors(base_folder):
                if _is_package(ancestor):
                    roots.append(ancestor)
                    if (ancestor / "model.config").is_file() and len(ancestor.parts) > 3:
                        roots.append(ancestor.parent)
                elif ancestor.name == "models" or (ancestor / "models").is_dir():
                    roots.append(ancestor if ancestor.name == "models" else ancestor / "models")
            self._implied_roots[base_folder] = tuple(dict.fromkeys(roots))
        return self._implied_roots[base_folder]

    def _is_allowed(self, path: Path, base_folder: Path | None, package_folders: tuple[Path, ...]) -> bool:
        """Check a path; links are resolved for folders implied by a description's location, but not for folders given
        by the user.
        """
        if any(path.is_relative_to(root) for root in self._trusted_folders):
            return True
        real = path.resolve()
        roots = (
            *package_folders,
            *self._named_packages,
            *(self._find_implied_roots(base_folder) if base_folder else ()),
        )
        return any(path.is_relative_to(root) and real.is_relative_to(root.resolve()) for root in roots)


def find_bringup_packages(file: Path) -> tuple[Path, ...]:
    """Return the package of `file` (its folder's parent, if it is in none), and related packages next to it by name.

    Related packages control or bring up the same robot: their names share the beginning of its name.
    """
    ancestors = _ancestors(_absolute(file).parent)
    package_folder = next((one for one in ancestors if _exists(one / "package.xml", False)), None)
    if package_folder is None:
        parent = ancestors[1] if len(ancestors) > 1 else None
        return tuple(one for one in (ancestors[0] if ancestors else None, parent) if one is not None)
    robot_name = (_package_name(package_folder) or package_folder.name).removesuffix("_description")
    related = [
        one
        for one in _subfolders(package_folder.parent)
        if one != package_folder and one.name.startswith(robot_name) and _exists(one / "package.xml", False)
    ]
    role_words = ("control", "bringup", "gazebo", "gz", "sim")
    rank = {one: next((k for k, word in enumerate(role_words) if word in one.name), None) for one in related}
    return (
        package_folder,
        *sorted((one for one in related if rank[one] is not None), key=lambda one: (rank[one], one.name)),
    )


def expand_home(path: str | os.PathLike[str]) -> Path:
    """Return the path with ``~`` expanded; unchanged if the home does not exist."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def fuel_resource_name(uri: str) -> str:
    """Return the model or world name in a Gazebo server address, e.g. "Ground Plane"; empty if it has none."""
    if not uri.startswith(("http://", "https://")):
        return ""
    parts = [unquote(part) for part in uri.split("/")]
    for index, part in enumerate(parts[:-1]):
        if part.lower() in ("models", "worlds"):
            return parts[index + 1]
    return ""


def _absolute(path: Path) -> Path:
    return Path(os.path.normpath(Path.cwd() / path))


def _split_paths(text: str) -> list[Path]:
    return [_absolute(Path(part)) for part in text.split(os.pathsep) if part.strip()]


def _exists(path: Path, expect_folder: bool) -> bool:
    try:
        return path.is_dir() if expect_folder else path.is_file()
    except (OSError, ValueError):
        return False


def _is_package(folder: Path) -> bool:
    return any(_exists(folder / marker, False) for marker in _MARKER_FILES)


def _package_name(folder: Path) -> str:
    try:
        with (folder / "package.xml").open("rb") as stream:
            found = _PACKAGE_NAME.search(stream.read(20_000))
    except OSError:
        return ""
    return found.group(1).decode() if found else ""


def _ancestors(folder: Path) -> tuple[Path, ...]:
    """Return `folder` and its ancestors, without the root of the file system and the folders just below it."""
    return tuple(path for path in (folder, *folder.parents)[:_MAX_LEVELS] if len(path.parts) > 2)


def _find_workspaces(ancestors: tuple[Path, ...]) -> list[Path]:
    """Return candidate workspaces: two folders above the package, the repository, the workspace's src."""
    package_level = next(
        (index for index, one in enumerate(ancestors) if _exists(one / "package.xml", False)), len(ancestors)
    )
    workspaces = []
    for index, ancestor in enumerate(ancestors):
        is_top = ancestor.name == "src" or _exists(ancestor / ".git", True) or _exists(ancestor / ".git", False)
        if is_top or package_level < index <= package_level + 2:
            workspaces.append(ancestor)
        if is_top:
            break
    return workspaces


def _subfolders(folder: Path) -> list[Path]:
    try:
        return sorted(
            path
            for path in folder.iterdir()
            if not path.name.startswith(".") and not path.is_symlink() and path.is_dir()
        )
    except OSError:
        return []
