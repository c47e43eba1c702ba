"""`ry.msg.Twist`, `ry.msg.geometry_msgs.Twist`, `ry.srv.SetBool`, `ry.action.Fibonacci`: types by attribute."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from typing import Any

from roboyard.errors import UnknownNameError
from roboyard.messages.interfaces import action_type, service_type
from roboyard.messages.store import DEFINITIONS, message_type, typestore

_PREFERRED = ("std_msgs", "geometry_msgs", "sensor_msgs", "nav_msgs", "builtin_interfaces", "tf2_msgs")
"""Whose message a short name means when several packages have one."""


class Namespace:
    """Types of one kind, by short name or below their package.

    Args:
        kind: "msg", "srv" or "action".
        load: Gives the type of a full name.
        names: All full names.
        package: Restricts to one package.
    """

    def __init__(
        self, kind: str, load: Callable[[str], Any], names: Callable[[], tuple[str, ...]], package: str = ""
    ) -> None:
        self._kind = kind
        self._load = load
        self._names = names
        self._package = package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = self._find(name)
        setattr(self, name, found)
        return found

    def _find(self, name: str) -> Any:
        names = [full for full in self._names() if not self._package or full.startswith(f"{self._package}/")]
        if not self._package and any(full.startswith(f"{name}/") for full in names):
            return Namespace(self._kind, self._load, self._names, name)
        matches = [full for full in names if full.rsplit("/", 1)[1] == name]
        if len(matches) > 1:
            ranked = [full for package in _PREFERRED for full in matches if full.startswith(f"{package}/")]
            if not ranked:
                raise UnknownNameError(f"'{name}' is in several packages", valid=", ".join(matches))
            matches = ranked
        if not matches:
            near = get_close_matches(name, [full.rsplit("/", 1)[1] for full in names], 3)
            where = f"{self._package}/{self._kind}" if self._package else self._kind
            raise UnknownNameError(f"no {where} type '{name}'", valid=f"near: {', '.join(near)}" if near else None)
        return self._load(matches[0])

    def __dir__(self) -> list[str]:
        return sorted({full.rsplit("/", 1)[1] for full in self._names()})


@cache
def _messages() -> tuple[str, ...]:
    return tuple(sorted(name for name in typestore().fielddefs if "/msg/" in name))


def _defined(kind: str) -> Callable[[], tuple[str, ...]]:
    return cache(
        lambda: tuple(sorted(f"{f.parts[-3]}/{kind}/{f.stem}" for f in DEFINITIONS.glob(f"*/{kind}/*.{kind}")))
    )


msg = Namespace("msg", message_type, _messages)
srv = Namespace("srv", service_type, _defined("srv"))
action = Namespace("action", action_type, _defined("action"))
