"""``msg``, ``srv``, ``action``: types as attributes, ``msg.Twist`` or ``msg.geometry_msgs.Twist``."""

from __future__ import annotations

from typing import Any

from roboyard.errors import MessageError
from roboyard.messages.library import library
from roboyard.messages.types import action_type, message_type, names, service_type

_FIND = {"msg": message_type, "srv": service_type, "action": action_type}


class Package:
    """The types of one package."""

    def __init__(self, kind: str, name: str) -> None:
        self._kind, self._name = kind, name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = _FIND[self._kind](f"{self._name}/{self._kind}/{name}")
        setattr(self, name, found)  # a plain attribute from now on
        return found

    def __dir__(self) -> list[str]:
        start = f"{self._name}/"
        return sorted(full.rsplit("/", 1)[1] for full in names(self._kind) if full.startswith(start))

    def __repr__(self) -> str:
        return f"<{self._kind} types of {self._name}>"


class Types:
    """All types of one kind; a bare name stands for the one type of that name, or the one of the commonest package."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name[0].islower():
            packages = self._packages()
            if name not in packages:
                raise MessageError(f"no package '{name}' has {self._kind} types", valid=", ".join(packages))
            found: Any = Package(self._kind, name)
        else:
            found = _FIND[self._kind](name)
            if len([full for full in names(self._kind) if full.endswith(f"/{name}")]) > 1:
                return found  # a later registration may change what is preferred
        setattr(self, name, found)
        return found

    def _packages(self) -> list[str]:
        return sorted({full.split("/", 1)[0] for full in names(self._kind)})

    def __dir__(self) -> list[str]:
        return sorted({*self._packages(), *(full.rsplit("/", 1)[1] for full in names(self._kind))})

    def __repr__(self) -> str:
        return f"<{len(names(self._kind))} {self._kind} types of {len(self._packages())} packages>"


msg = Types("msg")
srv = Types("srv")
action = Types("action")

__all__ = ["action", "library", "msg", "srv"]
