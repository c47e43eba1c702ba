"""How ``msg``, ``srv`` and ``action`` find types: by bare name, or by package and name."""

from __future__ import annotations

from typing import Any

from roboyard.errors import MessageError
from roboyard.messages.types import action_type, message_type, names, service_type

_FIND = {"msg": message_type, "srv": service_type, "action": action_type}


class UnknownTypeError(MessageError, AttributeError):
    """No type of that name; also an AttributeError, so that ``hasattr`` works."""


class Package:
    """The types of one package as attributes."""

    def __init__(self, kind: str, name: str) -> None:
        self._kind, self._name = kind, name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = _find(self._kind, f"{self._name}/{self._kind}/{name}")
        setattr(self, name, found)  # a plain attribute from now on
        return found

    def __dir__(self) -> list[str]:
        start = f"{self._name}/"
        return [full.rsplit("/", 1)[1] for full in names(self._kind) if full.startswith(start)]

    def __repr__(self) -> str:
        return f"<{self._kind} types of {self._name}>"


def find(kind: str, name: str) -> Any:
    """The type of that bare name, or the package.

    Raises:
        UnknownTypeError: neither; lists what there is.
    """
    if name.startswith("_"):
        raise AttributeError(name)
    packages = _packages(kind)
    if name in packages:
        return Package(kind, name)
    if name[0].islower():
        raise UnknownTypeError(f"no package '{name}' has {kind} types", valid=", ".join(packages))
    return _find(kind, name)


def listing(kind: str) -> list[str]:
    """Packages and bare names, sorted."""
    return sorted({*_packages(kind), *(full.rsplit("/", 1)[1] for full in names(kind))})


def _find(kind: str, name: str) -> Any:
    try:
        return _FIND[kind](name)
    except MessageError as error:
        raise UnknownTypeError(error.what, where=error.where, valid=error.valid) from None


def _packages(kind: str) -> list[str]:
    return sorted({full.split("/", 1)[0] for full in names(kind)})
