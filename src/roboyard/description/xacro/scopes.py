"""Scopes of xacro properties and macros; properties are evaluated when they are used."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from roboyard.description.xacro.expressions import ExpressionError, XacroNamespace
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import error_at, quote

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LazyProperty:
    """Text of a property that is evaluated at first use, in the scope of its definition."""

    text: str
    evaluate: Callable[[str, Properties], Any]


class XacroScope(Generic[T]):
    """Names of a scope, with an optional parent scope."""

    def __init__(self, parent: XacroScope[T] | None = None) -> None:
        self.parent = parent
        self.values: dict[str, T] = {}

    def get(self, name: str) -> T:
        """Return the value in this scope or a parent. Raises KeyError."""
        scope: XacroScope[T] | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.parent
        raise KeyError(name)

    def has(self, name: str) -> bool:
        """Return whether the name exists in this scope or a parent."""
        scope: XacroScope[T] | None = self
        while scope is not None and name not in scope.values:
            scope = scope.parent
        return scope is not None

    def root(self) -> XacroScope[T]:
        """Return the outermost scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


class Properties(XacroScope[Any]):
    """Property values; texts that look like numbers or Booleans are converted, as in xacro."""

    def __init__(self, parent: Properties | None = None) -> None:
        super().__init__(parent)
        self._evaluating: set[str] = set()

    def lookup(self, name: str) -> Any:
        """Return the evaluated value. Raises KeyError, and ExpressionError for a cyclic definition."""
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
    """Namespace of properties, each evaluated on access."""

    def __init__(self, name: str, properties: Properties) -> None:
        super().__init__(name, properties.values)
        self._properties = properties

    def __getitem__(self, key: str) -> Any:
        return self._properties.lookup(key)


def parse_literal(value: Any) -> Any:
    """Convert a text that is a number or Boolean; remove the quotes of 'quoted' text; return other values unchanged."""
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
    """Convert the condition of ``<xacro:if>``. Raises ExpressionError if it is not a Boolean."""
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


# name, or name:=default, name:=^ (from the outer scope), name:=^|default; a default may be 'quoted' (also a single
# quote)
_PARAMETER = re.compile(
    r"\s*([^\s:=]{1,200})\s*(?::?=\s*(\^\|?)?((?:'''|'[^']*'|\"[^\"]*\"|\$\{[^}]*\}|[^\s'\"])*))?(?=\s|$)"
)
_MAX_PARAMETERS = 500


@dataclass(frozen=True, slots=True)
class MacroParameter:
    """Parameter of a macro; ``*name`` takes an element, ``**name`` its content.

    Attributes:
        inherits: Whether an outer property of this name is used first.
        default: Text to evaluate if no value is given; None = the parameter is required.
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
    """Macro with the scopes of its definition."""

    node: XmlNode
    parameters: tuple[MacroParameter, ...]
    properties: Properties = field(repr=False)
    macros: XacroScope[Macro] = field(repr=False)


def parse_parameters(node: XmlNode) -> tuple[MacroParameter, ...]:
    """Parse the ``params`` attribute. Raises DescriptionError."""
    text, position = node.get("params"), 0
    parsed: dict[str, MacroParameter] = {}
    while text[position:].strip():
        match = _PARAMETER.match(text, position)
        if match is None or match.end() == position:
            raise error_at(
                f"invalid params {quote(text[position:])}", node, "name, name:=default, name:=^, *block or **block"
            )
        name, inherited, default = match.groups()
        if name in parsed or len(parsed) >= _MAX_PARAMETERS:
            raise error_at(f"duplicate parameter {quote(name)}, or too many parameters", node)
        if default is not None and len(default) >= 2 and default[0] == default[-1] and default[0] in "'\"":
            default = default[1:-1]
        if inherited == "^":
            default = None
        parsed[name] = MacroParameter(name, inherited is not None, default)
        position = match.end()
    return tuple(parsed.values())
