"""Attribute look-up behind ``msg``, ``srv`` and ``action``: by bare or by qualified type name."""

from __future__ import annotations

from typing import Any

from roboyard.errors import MessageError
from roboyard.messages.classes import action_type, message_type, service_type, type_names

_RESOLVERS = {"msg": message_type, "srv": service_type, "action": action_type}


class UnknownTypeError(MessageError, AttributeError):
    """Unknown type name; also an AttributeError, so that ``hasattr`` works."""


class TypeNamespace:
    """Types of one package as attributes."""

    def __init__(self, kind: str, name: str) -> None:
        self._kind, self._name = kind, name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = _resolve(self._kind, f"{self._name}/{self._kind}/{name}")
        setattr(self, name, found)  # a plain attribute for later look-ups
        return found

    def __dir__(self) -> list[str]:
        start = f"{self._name}/"
        return [full.rsplit("/", 1)[1] for full in type_names(self._kind) if full.startswith(start)]

    def __repr__(self) -> str:
        return f"<{self._kind} types of {self._name}>"


def find_type(kind: str, name: str) -> Any:
    """Return the type of a bare name, or the package.

    Raises:
        UnknownTypeError: It is neither; the error lists the existing names.
    """
    if name.startswith("_"):
        raise AttributeError(name)
    packages = _package_names(kind)
    if name in packages:
        return TypeNamespace(kind, name)
    if name[0].islower():
        raise UnknownTypeError(f"package '{name}' has no {kind} types", valid=", ".join(packages))
    return _resolve(kind, name)


def list_names(kind: str) -> list[str]:
    """Return packages and bare names, sorted."""
    return sorted({*_package_names(kind), *(full.rsplit("/", 1)[1] for full in type_names(kind))})


def _resolve(kind: str, name: str) -> Any:
    try:
        return _RESOLVERS[kind](name)
    except MessageError as error:
        raise UnknownTypeError(error.message, location=error.location, valid=error.valid) from None


def _package_names(kind: str) -> list[str]:
    return sorted({full.split("/", 1)[0] for full in type_names(kind)})
