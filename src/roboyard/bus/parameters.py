"""Declared parameters: typed, ranged, settable at run time; and resources handed to a node at construction."""

from __future__ import annotations

import math
from typing import Any, Generic, TypeVar, overload

from roboyard.errors import ConfigError

T = TypeVar("T")
_MISSING: Any = object()


class Param(Generic[T]):
    """Descriptor of one parameter; made by ``param``."""

    def __init__(
        self, default: T, unit: str, low: float, high: float, choices: tuple[T, ...], doc: str, fixed: bool
    ) -> None:
        self.name = ""
        self.default = default
        self.unit = unit
        self.low = low
        self.high = high
        self.choices = choices
        self.doc = doc
        self.fixed = fixed

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        try:
            self.default = self.check(self.default, owner.__name__)
        except ConfigError as error:
            raise TypeError(f"default of {owner.__name__}.{name}: {error}") from error

    @overload
    def __get__(self, instance: None, owner: type) -> Param[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Param[T] | T:
        if instance is None:
            return self
        values: dict[str, T] = instance.__dict__["_parameters"]
        return values[self.name]

    def __set__(self, instance: object, value: T) -> None:
        raise ConfigError(f"parameter '{self.name}' is set with set_parameter()", where=type(instance).__name__)

    def check(self, value: Any, where: str) -> T:
        """The value in this parameter's type.

        Raises:
            ConfigError: wrong type, out of range, or not one of the choices.
        """
        place = f"{where}, parameter '{self.name}'"
        kind = type(self.default)
        if kind is float and type(value) is int:
            value = float(value)
        if kind is tuple and isinstance(value, (list, tuple)):
            value = tuple(value)
            if self.default and not all(_same_kind(item, self.default[0]) for item in value):  # type: ignore[index]
                raise ConfigError(f"{value!r} has entries of another type", where=place, valid=self.describe())
        if type(value) is not kind:
            raise ConfigError(f"{value!r} is not a {kind.__name__}", where=place, valid=self.describe())
        if self.choices and value not in self.choices:
            raise ConfigError(f"{value!r} is not allowed", where=place, valid=self.describe())
        if isinstance(value, (int, float)) and not isinstance(value, bool) and not self.low <= value <= self.high:
            raise ConfigError(f"{value!r} is out of range", where=place, valid=self.describe())
        return value

    def describe(self) -> str:
        """What is allowed, in words."""
        kind = type(self.default).__name__
        text = "one of " + ", ".join(repr(choice) for choice in self.choices) if self.choices else kind
        if math.isfinite(self.low) or math.isfinite(self.high):
            text += f" in [{self.low:g}, {self.high:g}]"
        return f"{text} {self.unit}".rstrip()


def _same_kind(value: Any, like: Any) -> bool:
    return type(value) is type(like) or (type(like) is float and type(value) is int)


def param(
    default: T,
    *,
    unit: str = "",
    low: float = -math.inf,
    high: float = math.inf,
    choices: tuple[T, ...] = (),
    doc: str = "",
    fixed: bool = False,
) -> T:
    """Declare a parameter of a node, in the class body.

    Args:
        default: Its value when nobody says otherwise; fixes the type (bool, int, float, str, or a tuple of one).
        unit: SI unit, shown to users.
        low: Smallest allowed number.
        high: Largest allowed number.
        choices: The only allowed values, if given.
        doc: One line on what it does.
        fixed: True if it can only be given at construction.
    """
    descriptor: Any = Param(default, unit, low, high, choices, doc, fixed)
    return descriptor  # type: ignore[no-any-return]  # on an instance the descriptor yields a T


class Resource:
    """Descriptor of something a node is handed; made by ``resource``."""

    def __init__(self, kind: type | None, optional: bool) -> None:
        self.name = ""
        self.kind = kind
        self.optional = optional

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        return instance.__dict__["_resources"][self.name]

    def __set__(self, instance: object, value: Any) -> None:
        raise ConfigError(f"resource '{self.name}' is given at construction", where=type(instance).__name__)


def resource(kind: type | None = None, *, optional: bool = False) -> Any:
    """Declare something a node needs that does not travel over the bus, e.g. the hardware or the robot's description.

    Args:
        kind: Its class or runtime-checkable protocol.
        optional: True if the node can do without (it then is None).
    """
    return Resource(kind, optional)


def declared(cls: type, descriptor: type[T]) -> dict[str, T]:
    """All descriptors of one kind on a class, base classes first."""
    found: dict[str, T] = {}
    for base in reversed(cls.__mro__):
        found.update({name: value for name, value in vars(base).items() if isinstance(value, descriptor)})
    return found
