"""Parameters and resources of nodes: declared in the class body, checked when given and when changed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from roboyard.config import load
from roboyard.errors import ConfigError, UnknownNameError

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


class Configurable:
    """Base of nodes: parameters and resources declared in the class body are keyword arguments of the constructor.

    Attributes:
        full_name: For messages; empty before it has one.
    """

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.full_name = ""
        values = check_arguments(type(self), arguments)
        self.__dict__["_parameters"], self.__dict__["_resources"], self.__dict__["_configurations"] = values

    def on_parameter(self, name: str, value: Any) -> None:
        """Called before a parameter changes at run time; raise ConfigError to refuse."""

    @classmethod
    def parameters_declared(cls) -> dict[str, Param[Any]]:
        """The node's parameters with their types, ranges and defaults."""
        return find_descriptors(cls, Param)

    @classmethod
    def settings_declared(cls) -> dict[str, Settings[Any]]:
        """The node's nested configurations."""
        return find_descriptors(cls, Settings)

    @classmethod
    def resources_declared(cls) -> dict[str, Resource]:
        """What the node wants to be handed."""
        return find_descriptors(cls, Resource)

    def parameters(self) -> dict[str, Any]:
        """Present values of all parameters."""
        return dict(self.__dict__["_parameters"])

    def set_parameter(self, name: str, value: Any) -> None:
        """Change a parameter.

        Raises:
            UnknownNameError: there is none of this name.
            ConfigError: the value is not allowed, the parameter is fixed, or the node refuses.
        """
        parameters = self.parameters_declared()
        if name not in parameters:
            raise UnknownNameError(
                f"no parameter '{name}'", location=f"node {self.full_name}", valid="there are: " + ", ".join(parameters)
            )
        if parameters[name].fixed and self._is_running():
            raise ConfigError(f"parameter '{name}' can only be given at start", location=f"node {self.full_name}")
        checked_value = parameters[name].check(value, self.full_name or type(self).__name__)
        self.on_parameter(name, checked_value)
        self.__dict__["_parameters"][name] = checked_value
        self._on_parameter_changed(name, checked_value)

    def _is_running(self) -> bool:
        """Whether what is fixed cannot change any more."""
        return False

    def _on_parameter_changed(self, name: str, value: Any) -> None:
        """Called after a parameter changed."""


def check_arguments(cls: type, arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Checked values of a class's parameters, its resources, and its nested configurations, from keyword arguments.

    Raises:
        ConfigError: an unknown keyword, a missing resource, or a bad parameter value.
    """
    parameters, resources, nested = (
        find_descriptors(cls, Param),
        find_descriptors(cls, Resource),
        find_descriptors(cls, Settings),
    )
    unknown = [key for key in arguments if key not in parameters and key not in resources and key not in nested]
    if unknown:
        raise ConfigError(
            f"no parameter or resource '{unknown[0]}'",
            location=cls.__name__,
            valid="there are: " + ", ".join([*parameters, *nested, *resources]),
        )
    missing = [key for key, item in resources.items() if not item.optional and arguments.get(key) is None]
    if missing:
        raise ConfigError(f"resource '{missing[0]}' is missing", location=cls.__name__)
    for key, item in resources.items():
        if arguments.get(key) is not None and item.kind is not None and not isinstance(arguments[key], item.kind):
            raise ConfigError(
                f"resource '{key}' is a {type(arguments[key]).__name__}",
                location=cls.__name__,
                valid=item.kind.__name__,
            )
    values = {key: item.check(arguments.get(key, item.default), cls.__name__) for key, item in parameters.items()}
    nested_values = {key: item.check(arguments.get(key), cls.__name__) for key, item in nested.items()}
    resource_values = {
        key: item.make() if arguments.get(key) is None else arguments[key] for key, item in resources.items()
    }
    return values, resource_values, nested_values
