"""Configuration and resources of nodes: checked when they are given and when they change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, TypeVar, get_args, get_origin

from typing_extensions import TypeVar as TypeVarWithDefault

from roboyard.config import Config, ParameterDescriptor, did_you_mean
from roboyard.errors import ConfigError

T = TypeVar("T")
ConfigT = TypeVarWithDefault("ConfigT", bound=Config, default=Config, covariant=True)


class Resource:
    """Descriptor of an object that a node is given; made by ``resource``."""

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
    """Declare an object that a node needs and that does not travel over the bus: the hardware, the robot's description.

    Args:
        kind: Its class or runtime-checkable protocol.
        optional: The node can do without it (it then is None).
        make: Makes the node's own object where it is given none.
    """
    return Resource(kind, optional, make)


class Configurable(Generic[ConfigT]):
    """Base of nodes: the configuration's keys and the resources are keyword arguments of the constructor.

    The configuration's class stands in brackets behind the base: ``class Follower(Node[FollowerConfig])``.

    Attributes:
        config: Present configuration. Never changed in place: ``set_parameters`` replaces it.
        config_class: Its class.
        full_name: Name for messages; empty before the node has one.
    """

    config_class: ClassVar[type[Config]] = Config
    config: ConfigT

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        for base in vars(cls).get("__orig_bases__", ()):
            origin = get_origin(base)
            if isinstance(origin, type) and issubclass(origin, Configurable):
                argument: Any = get_args(base)[0]
                cls.config_class = getattr(argument, "__bound__", argument)  # of a type variable its bound

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.full_name = ""
        config, self.__dict__["_resources"] = check_arguments(type(self), arguments)
        self.config = config  # type: ignore[assignment]  # of the class in brackets

    def on_config_change(self, old: Any, new: Any) -> None:
        """React to a change of the configuration; called before ``config`` is replaced.

        Args:
            old: The present configuration.
            new: The one to come, checked.

        Raises:
            ConfigError: The node refuses the change.
        """

    @classmethod
    def parameters_declared(cls) -> Mapping[str, ParameterDescriptor]:
        """Return the node's parameters by dotted name, with their types, bounds and defaults."""
        return cls.config_class.descriptors()

    @classmethod
    def resources_declared(cls) -> dict[str, Resource]:
        """Return what the node must or can be given, base classes first."""
        found: dict[str, Resource] = {}
        for base in reversed(cls.__mro__):
            found.update({name: value for name, value in vars(base).items() if isinstance(value, Resource)})
        return found

    def parameters(self) -> dict[str, Any]:
        """Return the present values of all parameters by dotted name."""
        return self.config.values()

    def set_parameter(self, name: str, value: Any) -> None:
        """Change one parameter; see ``set_parameters``."""
        self.set_parameters({name: value})

    def set_parameters(self, changes: Mapping[str, Any]) -> None:
        """Change parameters, all or none.

        Args:
            changes: New values by dotted name.

        Raises:
            UnknownNameError: There is no parameter of a name.
            ConfigError: A value is not allowed, the parameter cannot change at run time, or the node refuses.
        """
        old = self.config
        new = old.replace(changes, location=self.full_name or type(self).__name__)
        declared = self.parameters_declared()
        for name in changes:
            if self._is_running() and not declared[name].info.runtime:
                raise ConfigError(f"parameter '{name}' can only be given at start", location=f"node {self.full_name}")
        self.on_config_change(old, new)
        self.config = new
        values = new.values()
        for name in changes:
            self._on_parameter_changed(name, values[name])

    def _is_running(self) -> bool:
        """Whether only parameters that are declared with ``runtime`` can still change."""
        return False

    def _on_parameter_changed(self, name: str, value: Any) -> None:
        """Announce a changed parameter."""


def check_arguments(cls: type[Configurable[Any]], arguments: dict[str, Any]) -> tuple[Config, dict[str, Any]]:
    """Return the configuration and the resources of a node from the keyword arguments of its class.

    Raises:
        ConfigError: an unknown keyword, a missing or wrong resource, or a wrong value of the configuration.
    """
    keys, resources = cls.config_class.keys(), cls.resources_declared()
    unknown = [key for key in arguments if key not in keys and key not in resources]
    if unknown:
        raise ConfigError(
            f"no parameter or resource '{unknown[0]}'{did_you_mean(unknown[0], [*keys, *resources])}",
            location=cls.__name__,
            valid="there are: " + ", ".join([*keys, *resources]),
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
    values = {key: value for key, value in arguments.items() if key in keys}
    config = cls.config_class.load(values, source_name=cls.__name__)
    resource_values = {
        key: item.make() if arguments.get(key) is None else arguments[key] for key, item in resources.items()
    }
    return config, resource_values
