"""Scopes of xacro properties and macros; properties are evaluated when they are used."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from roboyard.description.xacro.operations import ExpressionError, XacroNamespace
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import error_at, quote

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LazyProperty:
    """A property's text that is evaluated at first use, in the table it stands in."""

    text: str
    evaluate: Callable[[str, Properties], Any]


class XacroScope(Generic[T]):
    """Names with a parent to fall back on."""

    def __init__(self, parent: XacroScope[T] | None = None) -> None:
        self.parent = parent
        self.values: dict[str, T] = {}

    def get(self, name: str) -> T:
        """The value here or in a parent. Raises KeyError."""
        scope: XacroScope[T] | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.parent
        raise KeyError(name)

    def has(self, name: str) -> bool:
        """Whether it is here or in a parent."""
        scope: XacroScope[T] | None = self
        while scope is not None and name not in scope.values:
            scope = scope.parent
        return scope is not None

    def root(self) -> XacroScope[T]:
        """The outermost table."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


class Properties(XacroScope[Any]):
    """Property values; texts that look like numbers or truth values become such, as xacro does."""

    def __init__(self, parent: Properties | None = None) -> None:
        super().__init__(parent)
        self._evaluating: set[str] = set()

    def lookup(self, name: str) -> Any:
        """The evaluated value. Raises KeyError, and ExpressionError where a definition needs itself."""
        scope: Properties | None = self
        while scope is not None:
            if name in scope.values:
                return scope._resolve(name)
            scope = scope.parent if isinstance(scope.parent, Properties) else None
        raise KeyError(name)

    def define(self, name: str, value: Any) -> None:
        """Set a value that needs no evaluation."""
        self.values[name] = parse_literal(value)

    def _resolve(self, name: str) -> Any:
        value = self.values[name]
        if isinstance(value, Properties):
            return _NamespaceView(name, value)
        if not isinstance(value, LazyProperty):
            return value
        if name in self._evaluating:
            raise ExpressionError(f"the property '{name}' is defined by itself")
        self._evaluating.add(name)
        try:
            self.values[name] = parse_literal(value.evaluate(value.text, self))
        finally:
            self._evaluating.discard(name)
        return self.values[name]


class _NamespaceView(XacroNamespace):
    """A namespace of properties, each evaluated when asked for."""

    def __init__(self, name: str, properties: Properties) -> None:
        super().__init__(name, properties.values)
        self._properties = properties

    def __getitem__(self, key: str) -> Any:
        return self._properties.lookup(key)


def parse_literal(value: Any) -> Any:
    """A text that is a number or a truth value as such; 'quoted' text without its quotes; all else as it is."""
    if not isinstance(value, str):
        return value
    if len(value) >= 2 and value[0] == value[-1] == "'":
        return value[1:-1]
    if "_" in value or len(value) > 400:
        return value
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return {"true": True, "True": True, "false": False, "False": False}.get(value, value)


def to_bool(value: Any) -> bool:
    """Condition of ``<xacro:if>``. Raises ExpressionError for a text that is none."""
    if isinstance(value, str):
        text = value.strip()
        if text in ("true", "True"):
            return True
        if text in ("false", "False"):
            return False
        try:
            return bool(int(text))
        except ValueError:
            raise ExpressionError(f"{text[:60]!r} is neither true nor false") from None
    return bool(value)


# name, or name:=default, name:=^ (take it from outside), name:=^|default; a default may be 'quoted' (a lone quote, too)
_PARAMETER = re.compile(
    r"\s*([^\s:=]{1,200})\s*(?::?=\s*(\^\|?)?((?:'''|'[^']*'|\"[^\"]*\"|\$\{[^}]*\}|[^\s'\"])*))?(?=\s|$)"
)
_MAX_PARAMETERS = 500


@dataclass(frozen=True, slots=True)
class MacroParameter:
    """One parameter; ``*name`` takes an element, ``**name`` its content.

    Attributes:
        inherits: Whether an outer property of this name is taken first.
        default: Text to evaluate where nothing is given; None = it must be given.
    """

    name: str
    inherits: bool = False
    default: str | None = None

    @property
    def is_block(self) -> bool:
        """Whether it takes an element instead of a value."""
        return self.name.startswith("*")


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro with the scopes it was defined in."""

    node: XmlNode
    parameters: tuple[MacroParameter, ...]
    properties: Properties = field(repr=False)
    macros: XacroScope[Macro] = field(repr=False)


def parse_parameters(node: XmlNode) -> tuple[MacroParameter, ...]:
    """What the ``params`` attribute declares. Raises DescriptionError."""
    text, position = node.get("params"), 0
    parsed: dict[str, MacroParameter] = {}
    while text[position:].strip():
        match = _PARAMETER.match(text, position)
        if match is None or match.end() == position:
            raise error_at(
                f"params has {quote(text[position:])}", node, "name, name:=default, name:=^, *block or **block"
            )
        name, inherited, default = match.groups()
        if name in parsed or len(parsed) >= _MAX_PARAMETERS:
            raise error_at(f"parameter {quote(name)} exists twice, or there are too many", node)
        if default is not None and len(default) >= 2 and default[0] == default[-1] and default[0] in "'\"":
            default = default[1:-1]
        if inherited == "^":
            default = None
        parsed[name] = MacroParameter(name, inherited is not None, default)
        position = match.end()
    return tuple(parsed.values())
