"""`Registry`: named classes and functions of one kind, of this package, of installed packages, and of files."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Generic, TypeVar

from roboyard.config.wording import did_you_mean
from roboyard.errors import ConfigError, RoboyardError, UnknownNameError, describe_exception

T = TypeVar("T")


class Registry(Generic[T]):
    """Objects by name; those of packages are imported when they are asked for.

    Args:
        kind: Kind of the objects, for errors: "node".
        group: Group of the entry points with which installed packages add objects.
        base: Class that classes among the objects must derive from; None: the objects may be anything.
        built_in: Objects with names that no package can take.
    """

    def __init__(
        self, kind: str, *, group: str, base: Callable[[], type] | None = None, built_in: Mapping[str, T] | None = None
    ) -> None:
        self.kind = kind
        self.group = group
        self._base = base
        self._built_in = dict(built_in or {})

    def entry_points(self) -> dict[str, EntryPoint]:
        """Return the entry points of installed packages by name; of several with one name the first by value."""
        return dict(_entry_points(self.group))

    def names(self) -> tuple[str, ...]:
        """Return all names, sorted."""
        return tuple(sorted({*self._built_in, *_entry_points(self.group)}))

    def __contains__(self, name: str) -> bool:
        return name in self._built_in or name in _entry_points(self.group)

    def __getitem__(self, name: str) -> T:
        """Return the object of a name.

        Raises:
            UnknownNameError: There is none of this name.
            ConfigError: Its package does not offer what it says, or the class leaves out abstract methods.
        """
        if name in self._built_in:
            return self._built_in[name]
        points = _entry_points(self.group)
        if name not in points:
            raise unknown_name_error(self.kind, name, self.names())
        location = f"entry point {name} = {points[name].value} of {self.group}"
        return self._checked(_load(points[name], location), location)

    def resolve(self, reference: str) -> T:
        """Return the object that a name, ``module:Object`` or ``file.py:Object`` refers to.

        Args:
            reference: Registered name, or module or file and name of the object in it.

        Raises:
            UnknownNameError: There is no such name, module, file or object.
            ConfigError: The module fails on import, or the object is of another kind.
        """
        if ":" not in reference:
            if reference not in self:
                raise unknown_name_error(self.kind, reference, self.names(), "or module:Class, or file.py:Class")
            return self[reference]
        return self._checked(load_object(reference), reference)

    def _checked(self, found: Any, location: str) -> T:
        if self._base is not None:
            base = self._base()
            if not (isinstance(found, type) and issubclass(found, base)):
                raise ConfigError(f"is no {self.kind}", location=location, valid=f"a subclass of {base.__name__}")
            if missing := sorted(getattr(found, "__abstractmethods__", ())):
                raise ConfigError(
                    f"is an incomplete {self.kind}: {found.__name__} does not define {', '.join(missing)}",
                    location=location,
                    valid=f"all abstract methods of {base.__name__}",
                )
        result: T = found
        return result


def unknown_name_error(kind: str, name: str, names: Collection[str], alternatives: str = "") -> UnknownNameError:
    """Return the error for an unknown name, with the most similar name, all names, and what else would be right."""
    choices = f"there are: {', '.join(names)}" if names else "there are none"
    return UnknownNameError(
        f"no {kind} {name!r}{did_you_mean(name, names)}",
        valid=f"{choices}; {alternatives}" if alternatives else choices,
    )


def load_object(reference: str) -> Any:
    """Return the object that ``module:Object`` or ``file.py:Object`` refers to; a file is executed once.

    Raises:
        UnknownNameError: There is no such module, file or object.
        ConfigError: The module fails on import.
    """
    module, _, attribute = reference.rpartition(":")
    if not module.endswith(".py"):
        try:
            return _load(EntryPoint(reference, f"{module}:{attribute}", ""), reference)
        except ConfigError as error:
            if isinstance(error.__cause__, ImportError | AttributeError):
                raise UnknownNameError(
                    f"there is no {reference}: {error.__cause__}", valid="module:Class or file.py:Class"
                ) from error
            raise
    file = Path(module)
    if not file.is_file():
        raise UnknownNameError(f"there is no file {module}", valid="a path that exists")
    loaded = _load_file(file.resolve())
    if not hasattr(loaded, attribute):
        raise UnknownNameError(f"no {attribute!r} in {file}")
    return getattr(loaded, attribute)


def _entry_points(group: str) -> Mapping[str, EntryPoint]:
    return _entry_points_on_path(group, tuple(sys.path))


@lru_cache(maxsize=64)
def _entry_points_on_path(group: str, path: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
        found.setdefault(point.name, point)
    return found


def _load(point: EntryPoint, location: str) -> Any:
    try:
        return point.load()
    except RoboyardError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(f"cannot be loaded: {describe_exception(error)}", location=location) from error


@lru_cache(maxsize=64)
def _load_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"roboyard_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} is no Python module")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ConfigError(f"cannot be imported: {describe_exception(error)}", location=str(path)) from error
    return module
