"""Declared parameters: typed, ranged, settable at run time; and resources handed to a node at construction."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from roboyard.config import load
from roboyard.errors import ConfigError

T = TypeVar("T")
_SCALAR_TYPES = (bool, int, float, str)


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
        if type(self.default) not in (*_SCALAR_TYPES, tuple):
            raise TypeError(
                f"default of {owner.__name__}.{name}: {self.default!r} is no bool, int, float, str or tuple"
            )
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
        raise ConfigError(f"parameter '{self.name}' is set with set_parameter()", location=type(instance).__name__)

    def check(self, value: Any, owner: str) -> T:
        """The value in this parameter's type.

        Raises:
            ConfigError: wrong type, out of range, or not one of the choices.
        """
        location = f"{owner}, parameter '{self.name}'"
        kind = type(self.default)
        if kind is tuple:
            if not isinstance(value, (list, tuple)):
                raise ConfigError(f"{_shortened_repr(value)} is not a tuple", location=location, valid=self.describe())
            example = self.default[0] if self.default else value[0] if value else ""  # type: ignore[index]
            value = tuple(_widen_int(item, type(example)) for item in value)
            if type(example) not in _SCALAR_TYPES or any(type(item) is not type(example) for item in value):
                raise ConfigError(
                    f"{_shortened_repr(value)} has entries of another type", location=location, valid=self.describe()
                )
        else:
            value = _widen_int(value, kind)
        if type(value) is not kind:
            article = "an" if kind is int else "a"
            raise ConfigError(
                f"{_shortened_repr(value)} is not {article} {kind.__name__}", location=location, valid=self.describe()
            )
        if self.choices and value not in self.choices:
            raise ConfigError(f"{_shortened_repr(value)} is not allowed", location=location, valid=self.describe())
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, (int, float)) and not isinstance(item, bool) and not self.low <= item <= self.high:
                raise ConfigError(f"{_shortened_repr(item)} is out of range", location=location, valid=self.describe())
            if type(item) is int and not -(2**63) <= item < 2**63:
                raise ConfigError(
                    f"{_shortened_repr(item)} is out of range", location=location, valid="whole numbers of 64 bits"
                )
        checked: T = value
        return checked

    def describe(self) -> str:
        """What is allowed, in words."""
        kind = type(self.default).__name__
        if isinstance(self.default, tuple) and self.default:
            kind = f"tuple of {type(self.default[0]).__name__}"
        text = "one of " + ", ".join(repr(choice) for choice in self.choices) if self.choices else kind
        if math.isfinite(self.low) or math.isfinite(self.high):
            text += f" in [{self.low:g}, {self.high:g}]"
        return f"{text} {self.unit}".rstrip()


def _shortened_repr(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _widen_int(value: Any, kind: type) -> Any:
    """``value``, whole numbers made real where those are wanted."""
    return float(value) if kind is float and type(value) is int and abs(value) < 2**63 else value


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


class Settings(Generic[T]):
    """Descriptor of a nested configuration; made by ``settings``."""

    def __init__(self, kind: type[T]) -> None:
        self.name = ""
        self.kind = kind

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Settings[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Settings[T] | T:
        if instance is None:
            return self
        values: dict[str, T] = instance.__dict__["_configurations"]
        return values[self.name]

    def __set__(self, instance: object, value: T) -> None:
        raise ConfigError(f"'{self.name}' is given at construction", location=type(instance).__name__)

    def check(self, value: Any, owner: str) -> T:
        """The configuration: the value itself, or made from a mapping as files have it; None gives the defaults.

        Raises:
            ConfigError: it says something that it may not.
        """
        if isinstance(value, self.kind):
            return value
        return load(self.kind, {} if value is None else value, source_name=f"{owner}, {self.name}")


def settings(kind: type[T]) -> T:
    """Declare a nested configuration of a node, in the class body: what has too many parts for parameters.

    Args:
        kind: A frozen dataclass whose fields all have defaults, see ``roboyard.config``.
    """
    descriptor: Any = Settings(kind)
    return descriptor  # type: ignore[no-any-return]  # on an instance the descriptor yields a T


class Resource:
    """Descriptor of something a node is handed; made by ``resource``."""

    def __init__(self, kind: type | None, optional: bool, make: Callable[[], Any] | None) -> None:
        self.name = ""
        self.kind = kind
        self.optional = optional or make is not None
        self.make = make or (lambda: None)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        return instance.__dict__["_resources"][self.name]

    def __set__(self, instance: object, value: Any) -> None:
        raise ConfigError(f"resource '{self.name}' is given at construction", location=type(instance).__name__)


def resource(kind: type | None = None, *, optional: bool = False, make: Callable[[], Any] | None = None) -> Any:
    """Declare something a node needs that does not travel over the bus, e.g. the hardware or the robot's description.

    Args:
        kind: Its class or runtime-checkable protocol.
        optional: True if the node can do without (it then is None).
        make: Makes the node's own one where it is handed none.
    """
    return Resource(kind, optional, make)


def find_descriptors(cls: type, descriptor: type[T]) -> dict[str, T]:
    """All descriptors of one kind on a class, base classes first."""
    found: dict[str, T] = {}
    for base in reversed(cls.__mro__):
        found.update({name: value for name, value in vars(base).items() if isinstance(value, descriptor)})
    return found
